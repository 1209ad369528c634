//! Turns of `ombx ab`, which its files keep.

use ombx_core::result::Run;

/// Name in the plan of a run: a name of the comparison, then `open` or `fixed`. The number of the turn is that of the launch.
const OPTION: &str = "turns";

/// Place of a launch in a comparison of two sides that took turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Name of the comparison.
    pub of: String,
    /// Number of the turn, from 1.
    pub number: u32,
    /// Whether the number of turns was open, so that it depends on what they showed.
    pub is_open: bool,
}

impl Turn {
    /// Returns the turn of a run; `None` for a run of another command.
    pub fn of_run(run: &Run) -> Option<Turn> {
        let (of, kind) = run.plan.get(OPTION)?.split_once(' ')?;
        let number = run.plan.get("launch")?.parse().ok()?;
        Some(Turn { of: of.to_owned(), number, is_open: kind == "open" })
    }

    /// Adds the turn to the plan of a run. The number must be that of its launch.
    pub fn add_to(&self, run: &mut Run) {
        let kind = if self.is_open { "open" } else { "fixed" };
        run.plan.insert(OPTION.into(), format!("{} {kind}", self.of));
        run.plan.insert("launch".into(), self.number.to_string());
    }
}
