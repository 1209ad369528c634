//! Rows of one model of noise, and the verdict on them.

use std::fmt;

use ombx_record::stats::proportion_interval;
use ombx_testkit::coverage::{Coverage, Model, SLOWER};

/// Share of intervals of 95 % that should hold the true median: least and most.
pub(crate) const GOAL: [f64; 2] = [0.92, 0.995];

/// Model of noise and the counts of its rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) model: &'static Model,
    pub(crate) coverage: Coverage,
}

/// Verdict on the rows of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The share of intervals that contain the true median is as expected, within chance.
    Right,
    /// More often: intervals are wider than they need to be.
    Wide,
    /// Certainly less often.
    Low,
    /// The change is slower than a row, so that no row can show it.
    Unseen,
    /// Most rows have a mark.
    Marked,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Right => "as expected",
            Verdict::Wide => "wider than needed",
            Verdict::Low => "TOO LOW",
            Verdict::Unseen => "not seen in a row",
            Verdict::Marked => "marked",
        })
    }
}

impl Line {
    /// Returns the verdict. Rows without a mark must hold the true median; rows with a mark need not.
    pub(crate) fn verdict(&self) -> Verdict {
        let Coverage { rows, marked, silent, silent_covered, .. } = self.coverage;
        let [_, honest] = wilson(marked + silent_covered, rows);
        let [least, _] = wilson(silent_covered, silent);
        match () {
            () if honest < GOAL[0] && self.model.family == SLOWER => Verdict::Unseen,
            () if honest < GOAL[0] => Verdict::Low,
            () if silent * 2 < rows => Verdict::Marked,
            () if least > GOAL[1] => Verdict::Wide,
            () => Verdict::Right,
        }
    }
}

/// Returns the 95 % interval of a share (Wilson 1927).
pub(crate) fn wilson(hits: u64, of: u64) -> [f64; 2] {
    proportion_interval(hits, of).unwrap_or([0.0, 1.0])
}

#[cfg(test)]
mod tests {
    use ombx_testkit::coverage::MODELS;

    use super::*;

    fn line(silent: u64, silent_covered: u64) -> Line {
        let coverage =
            Coverage { rows: 1000, marked: 1000 - silent, silent, silent_covered, ..Coverage::default() };
        Line { model: &MODELS[0], coverage }
    }

    #[test]
    fn a_verdict_allows_for_chance() {
        assert_eq!(line(1000, 950).verdict(), Verdict::Right);
        assert_eq!(line(1000, 920).verdict(), Verdict::Right);
        assert_eq!(line(1000, 900).verdict(), Verdict::Low);
        assert_eq!(line(1000, 1000).verdict(), Verdict::Wide);
        assert_eq!(line(10, 0).verdict(), Verdict::Marked);
        let [low, high] = wilson(950, 1000);
        assert!((low - 0.9347).abs() < 1e-3 && (high - 0.9619).abs() < 1e-3, "{low} {high}");
    }
}
