//! The gate of `--fail-on`: an exit code from a comparison.

use ombx_results::{
    compare::{Comparison, Side},
    render::compare::margin,
};

use super::Undecided;

/// Exit code if a case is worse, or failed on the new side only.
const REGRESSION: u8 = 3;
/// Exit code if no case is worse, but a case is not shown to be within the margin or faster either.
pub(crate) const UNDECIDED: u8 = 8;

/// What a gate counts.
pub(super) struct Gate {
    cases: usize,
    worse: usize,
    broken: usize,
    undecided: usize,
    on_undecided: Undecided,
    margin: f64,
}

impl Gate {
    pub(super) fn of(comparison: &Comparison, on_undecided: Undecided) -> Gate {
        let lost = comparison.lost().filter(|case| case.only == Side::Base).count();
        Gate {
            cases: comparison.cases.len() + comparison.broken.len() + lost,
            worse: comparison.counts().worse,
            broken: comparison.broken.len(),
            undecided: comparison.undecided().count() + lost,
            on_undecided,
            margin: comparison.margin,
        }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match (self.worse + self.broken, self.undecided, self.on_undecided) {
            (1.., ..) => REGRESSION,
            (0, 1.., Undecided::Fail) => UNDECIDED,
            (0, ..) => 0,
        }
    }

    /// Returns what the exit code counts, unless it is 0.
    pub(super) fn reason(&self) -> Option<String> {
        let margin = margin(self.margin);
        let counts = [
            (self.worse > 0).then(|| format!("{} worse by more than {margin}", self.worse)),
            (self.broken > 0).then(|| format!("{} failed on the new side only", self.broken)),
            (self.undecided > 0).then(|| format!("{} not shown to be within {margin}", self.undecided)),
        ];
        let counts = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let cases = if self.cases == 1 { "case" } else { "cases" };
        (self.exit_code() > 0).then(|| format!("of {} {cases} {counts}", self.cases))
    }
}
