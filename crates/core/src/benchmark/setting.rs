//! What a user can set freely.

use crate::error::Result;

/// One value of a benchmark that is no choice among few, such as a number of bytes. The command line has one option for
/// each, made from this entry; the value is the same in all rows of a run, and the run's record has it.
#[derive(Debug)]
pub struct Setting {
    /// Name of the option and of the field in results, lower case.
    pub name: &'static str,
    /// What stands for the value in `--help`: `BYTES`.
    pub value: &'static str,
    /// One sentence for `--help`.
    pub about: &'static str,
    /// The value taken when the user gives none.
    pub default: Option<&'static str>,
    /// Refuses what is no value, before anything starts.
    pub check: fn(&str) -> Result<()>,
}
