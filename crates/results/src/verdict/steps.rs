//! Steps of a sweep: the links that are measured at the same time, as LinkTest reports them.

use std::collections::BTreeMap;

use ombx_core::result::Measurement;

use super::RETEST;

/// Links that were measured at the same time: one direction of the pairs of a round. Several steps can be added up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Number of links.
    pub links: usize,
    /// Shortest and longest time in nanoseconds.
    pub range_ns: [f64; 2],
    sum_ns: f64,
    /// Lowest and highest bandwidth in MB/s; `None` for messages of 0 bytes.
    pub range_mb_per_s: Option<[f64; 2]>,
    /// Sum of the bandwidths in MB/s: what all links carried together.
    pub sum_mb_per_s: f64,
}

impl Step {
    /// Returns the mean time in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.links as f64
    }

    /// Returns the mean bandwidth in MB/s; `None` for messages of 0 bytes.
    pub fn mean_mb_per_s(&self) -> Option<f64> {
        self.range_mb_per_s.map(|_| self.sum_mb_per_s / self.links as f64)
    }

    fn of(row: &Measurement) -> Option<Step> {
        let ns = row.summary.as_ref()?.median;
        let rate = row.mb_per_s().map(|rate| rate.median).filter(|rate| *rate > 0.0);
        Some(Step {
            links: 1,
            range_ns: [ns; 2],
            sum_ns: ns,
            range_mb_per_s: rate.map(|rate| [rate; 2]),
            sum_mb_per_s: rate.unwrap_or(0.0),
        })
    }

    /// Returns a step with the links of both.
    #[must_use]
    pub fn and(self, other: Step) -> Step {
        let both = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        Step {
            links: self.links + other.links,
            range_ns: both(self.range_ns, other.range_ns),
            sum_ns: self.sum_ns + other.sum_ns,
            range_mb_per_s: match (self.range_mb_per_s, other.range_mb_per_s) {
                (Some(a), Some(b)) => Some(both(a, b)),
                (a, b) => a.or(b),
            },
            sum_mb_per_s: self.sum_mb_per_s + other.sum_mb_per_s,
        }
    }
}

/// Steps of all launches of a sweep, by size, launch, round and direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps(BTreeMap<(u64, usize, u32, bool), Step>);

impl Steps {
    /// Adds a row. Rows without a round, such as those of links that were measured alone, are ignored.
    pub(super) fn add(&mut self, row: &Measurement, launch: usize) {
        let number = |axis: &str| row.axes.get(axis).and_then(|value| value.parse::<u32>().ok());
        let (Some(bytes), Some(round), Some(from), Some(to)) =
            (row.bytes, number("round"), number("from"), number("to"))
        else {
            return;
        };
        let Some(step) = Step::of(row).filter(|_| !row.axes.contains_key(RETEST)) else { return };
        // The lower rank of each pair is timed first.
        let known = self.0.entry((bytes, launch, round, from > to));
        known.and_modify(|known| *known = known.and(step)).or_insert(step);
    }

    /// Returns the steps of a size in the order of measuring.
    pub(super) fn of_size(&self, bytes: u64) -> Vec<Step> {
        let from = (bytes, 0, 0, false);
        self.0.range(from..=(bytes, usize::MAX, u32::MAX, true)).map(|(_, step)| *step).collect()
    }
}

/// Joins consecutive steps so that at most `most` remain. Returns the number of the first step of each group, from 1, with the
/// links of all its steps.
pub fn join_steps(steps: &[Step], most: usize) -> Vec<(usize, Step)> {
    let each = steps.len().div_ceil(most.max(1)).max(1);
    let joined = steps.chunks(each).filter_map(|chunk| chunk.iter().copied().reduce(Step::and));
    (0..).map(|at| 1 + at * each).zip(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombx_core::{
        benchmark::{Metric, Work},
        stats::Summary,
    };

    /// Returns the row of a link of 1000 bytes.
    fn row(from: u32, to: u32, round: u32, ns: f64) -> Measurement {
        let axes = [("from", from), ("to", to), ("round", round)];
        Measurement {
            bytes: Some(1000),
            axes: axes.map(|(name, value)| (name.to_owned(), value.to_string())).into(),
            work: Some(Work { bytes: 2000, ops: 2, legs: 2 }),
            summary: Summary::of(&[ns; 10]),
            ..Measurement::new("links", "x", Metric::Bandwidth, 2)
        }
    }

    #[test]
    fn a_step_has_the_least_the_mean_and_the_largest_of_its_links() {
        let mut steps = Steps::default();
        // Round 0 pairs 0 with 1, 2 with 3 and 4 with 5; round 1 comes later although its row is added first.
        steps.add(&row(0, 2, 1, 500.0), 0);
        steps.add(&row(0, 1, 0, 1000.0), 0);
        steps.add(&row(2, 3, 0, 4000.0), 0);
        steps.add(&row(4, 5, 0, 1000.0), 0);
        steps.add(&row(1, 0, 0, 2000.0), 0);
        let mut again = row(0, 1, 0, 9e9);
        again.axes.insert(RETEST.into(), "alone".into());
        steps.add(&again, 0);
        let all = steps.of_size(1000);
        assert_eq!(all.iter().map(|step| step.links).collect::<Vec<_>>(), [3, 1, 1]);
        assert_eq!((all[0].range_ns, all[0].mean_ns()), ([1000.0, 4000.0], 2000.0));
        let [low, high] = all[0].range_mb_per_s.unwrap();
        let rates = [low, all[0].mean_mb_per_s().unwrap(), high, all[0].sum_mb_per_s];
        assert_eq!(rates.map(f64::round), [250.0, 750.0, 1000.0, 2250.0], "{rates:?}");
        assert_eq!((all[1].mean_ns(), all[2].mean_ns()), (2000.0, 500.0));
        assert!(steps.of_size(8).is_empty());
    }

    #[test]
    fn launches_are_steps_of_their_own_and_lines_join_steps() {
        let mut steps = Steps::default();
        for launch in 0..2 {
            for round in 0..3 {
                steps.add(&row(0, 1, round, 1000.0 * f64::from(1 + round) + 100.0 * launch as f64), launch);
            }
        }
        let all = steps.of_size(1000);
        let means: Vec<f64> = all.iter().map(Step::mean_ns).collect();
        assert_eq!(means, [1000.0, 2000.0, 3000.0, 1100.0, 2100.0, 3100.0]);
        let joined = join_steps(&all, 3);
        assert_eq!(
            joined.iter().map(|(first, step)| (*first, step.links)).collect::<Vec<_>>(),
            [(1, 2), (3, 2), (5, 2)]
        );
        assert_eq!((joined[1].1.range_ns, joined[1].1.mean_ns()), ([1100.0, 3000.0], 2050.0));
        assert_eq!(join_steps(&all, 100).len(), 6);
        assert!(join_steps(&[], 3).is_empty());
    }
}
