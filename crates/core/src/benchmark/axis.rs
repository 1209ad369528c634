//! Choices of a benchmark that users make and rows name.

/// A choice that a user can make for a benchmark, such as the synchronisation of a one-sided test.
///
/// Its values are either dispatched to types before the loop (see [`crate::measure::session::Session::split`]) or read while
/// opening a case. The command line has one option per axis, made from this entry.
#[derive(Debug)]
pub struct Axis {
    /// Name of the option and of the field in results, lower case.
    pub name: &'static str,
    /// One sentence for `--help`.
    pub about: &'static str,
    /// Every value.
    pub values: &'static [&'static str],
    /// The value taken when the user chooses none.
    pub default: &'static str,
    /// Whether rows name it even where it has its default.
    pub named: Named,
}

/// When a row names the value of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// In every row.
    Always,
    /// Only where it is not the default: a refinement that most never use.
    IfChosen,
}
