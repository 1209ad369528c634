//! Settings: options of a benchmark with free values.

use crate::error::Result;

/// An option of a benchmark whose value is free, such as a number of bytes.
///
/// The command line has one option for each. The value holds for all rows of a run and is kept in the plan of the run.
#[derive(Debug)]
pub struct Setting {
    /// Name of the option and of the field in results, lower case.
    pub name: &'static str,
    /// Placeholder of the value in `--help`, such as `BYTES`.
    pub value: &'static str,
    /// Help text of the option, in one sentence.
    pub about: &'static str,
    /// Value if the user gives none.
    pub default: Option<&'static str>,
    /// Returns an error for an invalid value. Called before ranks start.
    pub check: fn(&str) -> Result<()>,
}
