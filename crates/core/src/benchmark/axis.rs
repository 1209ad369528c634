//! Axes: options of a benchmark that rows name.
//!
//! An axis is an enum that [`axis!`](crate::axis) declares. The command line, results and the catalogue of benchmarks share its
//! names and help texts.

use crate::error::{Error, Result};

/// A choice that a user can make for a benchmark, such as the synchronisation of a one-sided test.
///
/// [`Session::split`](crate::measure::session::Session::split) dispatches values to types before the timed loop; other values are
/// read while a case is opened. The command line has one option per axis, made from this description.
#[derive(Debug)]
pub struct Axis {
    /// Name of the option and of the field in results, lower case.
    pub name: &'static str,
    /// Help text of the option.
    pub about: &'static str,
    /// Names of the values.
    pub values: &'static [&'static str],
    /// Help text of each value.
    pub help: &'static [&'static str],
    /// Value if the user chooses none.
    pub default: &'static str,
    /// When rows name the axis.
    pub named: Named,
}

/// When a row names the value of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// In every row.
    Always,
    /// Only in rows whose value is not the default; for options that few users need.
    IfChosen,
}

impl Axis {
    /// Returns the name of a value as results keep it.
    ///
    /// # Errors
    /// Usage error for an unknown value. No other code decides this.
    pub fn value(&self, name: &str) -> Result<&'static str> {
        self.values.iter().find(|value| **value == name).copied().ok_or_else(|| {
            Error::usage(format!("--{} has no value {name}; use {}", self.name, self.values.join(", ")))
        })
    }
}

/// An enum that is an axis, declared by [`axis!`](crate::axis).
pub trait AxisValue: Copy + PartialEq + 'static {
    /// Description for the command line and for results.
    const AXIS: &'static Axis;
    /// Every value, in the order of [`Axis::values`].
    const ALL: &'static [Self];
    /// Value if the user chooses none.
    const DEFAULT: Self;

    /// Returns the value with this name.
    ///
    /// # Errors
    /// Usage error for an unknown value.
    fn parse(name: &str) -> Result<Self> {
        let name = Self::AXIS.value(name)?;
        let at = Self::AXIS.values.iter().position(|value| *value == name);
        Ok(at.and_then(|at| Self::ALL.get(at)).copied().unwrap_or(Self::DEFAULT))
    }
}

/// Declares an enum that is an axis.
///
/// The doc comment of the enum is the help of its option. The doc comments of the variants are the help of its values.
///
/// ```
/// use ombx_core::benchmark::AxisValue;
///
/// ombx_core::axis! {
///     /// Protocol under the messages
///     pub enum Transport: "transport", Always, default Tcp {
///         /// TCP
///         Tcp = "tcp",
///         /// Unix-domain stream inside a host
///         Unix = "unix",
///     }
/// }
///
/// assert_eq!(Transport::AXIS.default, "tcp");
/// assert_eq!(Transport::parse("unix").unwrap(), Transport::Unix);
/// assert!(Transport::parse("udp").unwrap_err().to_string().contains("use tcp, unix"));
/// ```
#[macro_export]
macro_rules! axis {
    (
        #[doc = $about:literal]
        $vis:vis enum $Axis:ident: $name:literal, $named:ident, default $default:ident {
            $( #[doc = $help:literal] $Value:ident = $value:literal, )+
        }
    ) => {
        #[doc = $about]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $Axis { $( #[doc = $help] $Value, )+ }

        impl $Axis {
            /// Returns the name on the command line and in results.
            #[allow(dead_code, reason = "not every axis prints its values")]
            $vis const fn name(self) -> &'static str {
                match self { $( $Axis::$Value => $value, )+ }
            }
        }

        impl $crate::benchmark::AxisValue for $Axis {
            const AXIS: &'static $crate::benchmark::Axis = &$crate::benchmark::Axis {
                name: $name,
                about: $about.trim_ascii(),
                values: &[$( $value, )+],
                help: &[$( $help.trim_ascii(), )+],
                default: $Axis::$default.name(),
                named: $crate::benchmark::Named::$named,
            };
            const ALL: &'static [Self] = &[$( $Axis::$Value, )+];
            const DEFAULT: Self = $Axis::$default;
        }
    };
}
