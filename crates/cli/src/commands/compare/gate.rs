//! The gate of `--fail-on`: an exit code from a comparison.

use ombx_core::exit::Exit;
use ombx_results::{
    compare::{Comparison, Side},
    render::compare::margin,
};

use super::Undecided;

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
            (1.., ..) => Exit::Regression.code(),
            (0, 1.., Undecided::Fail) => Exit::Undecided.code(),
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
