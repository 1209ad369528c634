//! A simulated figure beside what it must be.

/// One simulated figure.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The rule, with its constant.
    pub(super) rule: &'static str,
    /// What is simulated.
    pub(super) model: String,
    /// What was found, in percent.
    pub(super) found: f64,
    /// Half of its interval of 95 %, by chance.
    pub(super) chance: f64,
    /// Least and most that it must be, in percent.
    pub(super) must: [f64; 2],
}

impl Line {
    /// Returns the line of a share that must lie in a range of percentages.
    pub(super) fn share(
        rule: &'static str,
        model: impl Into<String>,
        [hits, of]: [u64; 2],
        must: [f64; 2],
    ) -> Line {
        let share = hits as f64 / of.max(1) as f64;
        // The chance at the nearer end of what must be: a share of 0 or 1 has some too.
        let at = (must[0] / 100.0).max(share.min(must[1] / 100.0)).clamp(0.5 / of.max(1) as f64, 0.995);
        let chance = 196.0 * (at * (1.0 - at) / of.max(1) as f64).sqrt();
        Line { rule, model: model.into(), found: share * 100.0, chance, must }
    }

    /// Returns the line of a figure that is not a share.
    pub(super) fn figure(rule: &'static str, model: impl Into<String>, found: f64, must: [f64; 2]) -> Line {
        Line { rule, model: model.into(), found, chance: 0.0, must }
    }

    /// Returns whether the figure is as it must be, within chance.
    pub(super) fn is_right(&self) -> bool {
        self.must[0] - self.chance <= self.found && self.found <= self.must[1] + self.chance
    }
}
