//! Arguments that choose units and percentiles.

use clap::{Args, ValueEnum};
use ombx_core::error::{Error, Result};
use ombx_results::{
    number::{RateUnit, TimeUnit, Units},
    percentiles::Percentiles,
    render::Shown,
};

use super::output::Format;

/// Units and percentiles of tables and CSV.
#[derive(Debug, Default, Args)]
pub(crate) struct ShownArgs {
    /// Units of times and of bandwidths, such as ns,Gbit/s [default: us,MB/s; in CSV ns,MB/s]
    #[arg(long, value_enum, value_name = "UNIT", value_delimiter = ',', help_heading = "Output")]
    pub(crate) unit: Vec<Unit>,
    /// Percentiles of single iterations, such as 50,99,99.9 [default: 99; in CSV 95,99,99.9]
    #[arg(long, value_name = "P,P", help_heading = "Output")]
    pub(crate) percentiles: Option<Percentiles>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
    /// 10^6 bytes per second
    #[value(name = "MB/s")]
    MegaBytes,
    /// 2^20 bytes per second
    #[value(name = "MiB/s")]
    MebiBytes,
    /// 10^9 bits per second
    #[value(name = "Gbit/s")]
    GigaBits,
}

impl Unit {
    fn is_of_rates(self) -> bool {
        matches!(self, Unit::MegaBytes | Unit::MebiBytes | Unit::GigaBits)
    }
}

impl ShownArgs {
    /// Returns what a format shows. Only tables and CSV have a choice.
    pub(crate) fn shown(&self, format: Format) -> Result<Shown> {
        self.check(format)?;
        for of_rates in [false, true] {
            if self.unit.iter().filter(|unit| unit.is_of_rates() == of_rates).count() > 1 {
                return Err(Error::usage("--unit: give at most one unit of times and one of bandwidths"));
            }
        }
        Ok(Shown { units: self.units(), percentiles: self.percentiles.clone().unwrap_or_default() })
    }

    /// Returns the units, of which [`ShownArgs::shown`] finds mistakes.
    pub(crate) fn units(&self) -> Units {
        let mut units = Units::default();
        for unit in &self.unit {
            let (time, rate) = match unit {
                Unit::Ns => (Some(TimeUnit::Ns), None),
                Unit::Us => (Some(TimeUnit::Us), None),
                Unit::Ms => (Some(TimeUnit::Ms), None),
                Unit::MegaBytes => (None, Some(RateUnit::MegaBytes)),
                Unit::MebiBytes => (None, Some(RateUnit::MebiBytes)),
                Unit::GigaBits => (None, Some(RateUnit::GigaBits)),
            };
            units = Units { time: units.time.or(time), rate: units.rate.or(rate) };
        }
        units
    }

    fn check(&self, format: Format) -> Result<()> {
        let given = match (self.unit.is_empty(), &self.percentiles) {
            (false, _) => "--unit",
            (_, Some(_)) => "--percentiles",
            _ => return Ok(()),
        };
        match matches!(format, Format::Table | Format::Csv | Format::Markdown | Format::Latex) {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "{given} is for tables and CSV: leave it out, or choose another --format"
            ))),
        }
    }

    /// Rejects these options of a command that has no use for them.
    pub(crate) fn refuse(&self, command: &str) -> Result<()> {
        match (self.unit.is_empty(), &self.percentiles) {
            (true, None) => Ok(()),
            (false, _) => Err(Error::usage(format!("{command} has no option --unit"))),
            _ => Err(Error::usage(format!("{command} has no option --percentiles"))),
        }
    }
}
