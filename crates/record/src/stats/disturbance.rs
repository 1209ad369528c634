//! Bounds: how much lower a headline would be without samples that were interrupted, or without delays.

use std::collections::BTreeMap;

use crate::{
    order::sort_by_value,
    stats::{level, mean, median, median_of_sorted, sorted},
};

/// Samples of a row, by what its headline is.
#[derive(Debug, Clone, Copy)]
pub enum HeadlineOf<'s> {
    /// The median of the samples.
    Median(&'s [f64]),
    /// The mean of the samples.
    Mean(&'s [f64]),
    /// The mean of the levels of rounds.
    Levels(&'s [Vec<f64>]),
}

/// A part of the fall of a headline. Its cost is a number of samples, or a time.
struct FallPart {
    fall: f64,
    cost: f64,
}

impl HeadlineOf<'_> {
    /// Returns the number of samples.
    pub fn samples(self) -> usize {
        match self {
            HeadlineOf::Median(samples) | HeadlineOf::Mean(samples) => samples.len(),
            HeadlineOf::Levels(rounds) => rounds.iter().map(Vec::len).sum(),
        }
    }

    /// Returns the headline; `None` without samples.
    pub fn value(self) -> Option<f64> {
        match self {
            HeadlineOf::Median(samples) => median(samples),
            HeadlineOf::Mean(samples) => (!samples.is_empty()).then(|| mean(samples)),
            HeadlineOf::Levels(rounds) => {
                let levels: Vec<f64> = rounds.iter().filter_map(|round| level(round)).collect();
                (!levels.is_empty()).then(|| mean(&levels))
            }
        }
    }

    /// Returns by how much the headline is above that of the other samples at most, if any `count` samples are left out; `None` if none
    /// would be left.
    ///
    /// The headline of the smallest samples is lowest. Of rounds, the division of `count` among them is the worst one, or worse: each round
    /// falls along the concave curve above its falls. A round without samples is left out, or counts as the smallest sample of the row.
    pub fn fall_without_samples(self, count: u64) -> Option<f64> {
        let left = self.samples().checked_sub(usize::try_from(count).ok()?).filter(|left| *left > 0)?;
        let value = self.value()?;
        match self {
            HeadlineOf::Median(samples) => Some(value - median_of_sorted(&sorted(samples)[..left])),
            HeadlineOf::Mean(samples) => Some(value - mean(&sorted(samples)[..left])),
            HeadlineOf::Levels(rounds) => {
                let least = rounds.iter().flatten().copied().reduce(f64::min)?;
                let most = usize::try_from(count).ok()?;
                let mut parts = Vec::new();
                for round in rounds {
                    parts.extend(parts_without_samples(round, least, most));
                    // A part costs a sample or more, so that no more of them count.
                    if parts.len() > 4 * most {
                        by_steepness(&mut parts);
                        parts.truncate(most);
                    }
                }
                Some(largest(parts, count as f64) / rounds.len() as f64)
            }
        }
    }

    /// Returns by how much the headline falls at most if delays of this total, in the unit of the samples, are subtracted from samples in
    /// any way; `None` if it could fall to zero.
    ///
    /// A median falls to x if all samples between x and the median do. The level of m samples is the median of their pairs, and what a
    /// sample loses, its pairs lose (m + 1) / 2 times in all.
    pub fn fall_without_delays(self, total: f64) -> Option<f64> {
        let value = self.value()?;
        let fall = match self {
            HeadlineOf::Median(samples) => largest(parts_of_median(samples, 1.0), total),
            HeadlineOf::Mean(samples) => total / samples.len() as f64,
            HeadlineOf::Levels(rounds) => {
                // In rounds of one length, parts of one number are equally steep: a row has thousands of rounds.
                let mut by_length: BTreeMap<usize, Vec<FallPart>> = BTreeMap::new();
                for round in rounds {
                    let parts = parts_of_median(&means_of_pairs(round), (round.len() + 1) as f64 / 2.0);
                    let sums = by_length.entry(round.len()).or_default();
                    sums.resize_with(parts.len(), || FallPart { fall: 0.0, cost: 0.0 });
                    for (sum, part) in sums.iter_mut().zip(parts) {
                        (sum.fall, sum.cost) = (sum.fall + part.fall, sum.cost + part.cost);
                    }
                }
                largest(by_length.into_values().flatten().collect(), total) / rounds.len() as f64
            }
        };
        // Rounding must not leave a time.
        (fall < value * (1.0 - 1e-9)).then_some(fall)
    }
}

fn by_steepness(parts: &mut [FallPart]) {
    sort_by_value(parts, |part| -part.fall / part.cost);
}

/// Returns the largest fall at this cost, where parts of one curve are concave: the steepest parts first, the last one in proportion.
fn largest(mut parts: Vec<FallPart>, mut cost: f64) -> f64 {
    parts.retain(|part| part.cost > 0.0);
    by_steepness(&mut parts);
    let mut fall = 0.0;
    for part in parts {
        fall += part.fall * (cost / part.cost).min(1.0);
        cost -= part.cost;
        if cost <= 0.0 {
            break;
        }
    }
    fall
}

/// Returns the concave curve above the falls of the level of a round without 0 .. `most` samples. Without any it falls to `least`.
fn parts_without_samples(round: &[f64], least: f64, most: usize) -> Vec<FallPart> {
    let sorted = sorted(round);
    let levels: Vec<f64> = (0..=most.min(sorted.len()))
        .map(|without| level(&sorted[..sorted.len() - without]).unwrap_or(least))
        .collect();
    let (mut at, mut parts) = (0, Vec::new());
    while let Some(part) = (at + 1..levels.len())
        .map(|to| FallPart { fall: levels[at] - levels[to], cost: (to - at) as f64 })
        .max_by(|one, other| (one.fall / one.cost).total_cmp(&(other.fall / other.cost)))
    {
        at += part.cost as usize;
        parts.push(part);
    }
    parts
}

/// Returns the fall of a median to each of the values below it, and to zero. A unit of the cost moves values by `each` in all.
fn parts_of_median(values: &[f64], each: f64) -> Vec<FallPart> {
    let sorted = sorted(values);
    let mut from = median_of_sorted(&sorted);
    let below = sorted[..sorted.len() / 2].iter().rev().copied().chain([0.0]);
    let part = |(moved, to): (i32, f64)| {
        let fall = from - to;
        from = to;
        FallPart { fall, cost: fall * f64::from(moved) / each }
    };
    (1..).zip(below).map(part).collect()
}

/// Returns the means of all pairs of samples, each also with itself.
pub(super) fn means_of_pairs(round: &[f64]) -> Vec<f64> {
    let with_later = |(at, one): (usize, &f64)| {
        let one = *one;
        round[at..].iter().map(move |other| (one + other) / 2.0)
    };
    (0..).zip(round).flat_map(with_later).collect()
}

#[cfg(test)]
mod tests {
    use crate::stats::disturbance::*;
    use ombx_testkit::noise::Noise;

    fn assert_near(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{found:?} is not {expected}");
    }

    /// 101 to 201 in no order.
    fn ladder() -> Vec<f64> {
        (0..101).map(|i| 101.0 + f64::from(i * 37 % 101)).collect()
    }

    #[test]
    fn a_fall_without_samples_is_that_which_was_computed_by_hand() {
        let five = [12.0, 8.0, 10.0, 9.0, 11.0];
        // Without 12, the median of four is 9.5.
        assert_near(HeadlineOf::Median(&five).fall_without_samples(1), 0.5);
        assert_near(HeadlineOf::Mean(&five).fall_without_samples(1), 0.5);
        assert_near(HeadlineOf::Median(&five).fall_without_samples(4), 2.0);
        assert_eq!(HeadlineOf::Median(&five).fall_without_samples(5), None);
        // Rounds of 1, 1, 4 and 1, 1, 1: the level of the first is 1.75, and 1 without its largest sample.
        let rounds = [vec![1.0, 4.0, 1.0], vec![1.0; 3]];
        let level = level(&rounds[0]).unwrap();
        assert_near(HeadlineOf::Levels(&rounds).fall_without_samples(1), (level - 1.0) / 2.0);
        assert_eq!(HeadlineOf::Levels(&rounds).fall_without_samples(6), None);
        // Without one or two of these samples the level is still 55, without three it is 10: of four, the fourth has a third of a fall.
        let half = [10.0, 100.0, 10.0, 100.0, 10.0, 100.0, 10.0, 100.0];
        let two = [half.to_vec(), half.to_vec()];
        assert_near(HeadlineOf::Levels(&two).fall_without_samples(2), 0.0);
        assert_near(HeadlineOf::Levels(&two).fall_without_samples(4), (45.0 + 15.0) / 2.0);
        assert_near(HeadlineOf::Levels(&rounds).fall_without_samples(0), 0.0);
    }

    #[test]
    fn a_fall_without_delays_is_that_which_was_computed_by_hand() {
        let samples = ladder();
        let of = |total: f64| HeadlineOf::Median(&samples).fall_without_delays(total);
        assert_near(of(0.0), 0.0);
        // One unit moves the median sample from 150 to 151, two more move 150 and 151 from 149, three more three samples from 148.
        assert_near(of(6.0), 3.0);
        assert_near(of(8.0), 3.5);
        // The smallest sample may have been delayed too: 1275 units lower 51 samples to 101, and 51 more to 100.
        assert_near(of(1275.0 + 51.0), 51.0);
        assert_eq!(of(1e9), None);
        // Half of equal samples must have been delayed.
        assert_near(HeadlineOf::Median(&[10.0; 9]).fall_without_delays(10.0), 2.0);
        assert_near(HeadlineOf::Mean(&[10.0; 9]).fall_without_delays(9.0), 1.0);
        // 136 pairs of 16 samples: 69 of them at 10 lose 8.5 times as much as the samples.
        assert_near(HeadlineOf::Levels(&[vec![10.0; 16]]).fall_without_delays(16.0), 16.0 * 8.5 / 69.0);
    }

    /// Simulated rows for each number of interruptions and what they hit.
    const ROWS: u64 = 100;
    const ROUND: usize = 8;
    const ROUNDS: usize = 8;

    /// What a pause hits.
    #[derive(Debug, Clone, Copy)]
    enum Hit {
        /// Any samples.
        Any,
        /// As many samples of a round as possible, then the next round.
        Rounds,
        /// More than 29 % of the samples of a round, which move its level, then the next round.
        PartsOfRounds,
    }

    /// A row with `count` interrupted samples: the times as they were, how long each would have taken, and the places of the interrupted.
    struct Row {
        times: Vec<f64>,
        quiet: Vec<f64>,
        hit: Vec<usize>,
    }

    fn row(seed: u64, count: usize, hit: Hit) -> Row {
        let mut noise = Noise::Independent { sigma: 0.05 }.stream(seed);
        let mut length = Noise::Tailed { mean: 20.0, phi: 0.0 }.stream(!seed);
        // Rounds have levels of their own.
        let quiet: Vec<f64> = (0..ROUND * ROUNDS)
            .map(|i| noise.next_time() * (1.0 + (i / ROUND * 5 % ROUNDS) as f64 / 10.0))
            .collect();
        let order: Vec<usize> = match hit {
            Hit::Any => {
                let mut keyed: Vec<(f64, usize)> =
                    (0..quiet.len()).map(|at| (noise.next_time(), at)).collect();
                keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
                keyed.into_iter().map(|(_, at)| at).collect()
            }
            Hit::Rounds => (0..quiet.len()).rev().collect(),
            Hit::PartsOfRounds => {
                let part = |from: usize, to: usize| {
                    (0..ROUNDS).flat_map(move |r| (from..to).map(move |i| r * ROUND + i))
                };
                part(0, 3).chain(part(3, ROUND)).collect()
            }
        };
        let mut times = quiet.clone();
        let hit = order[..count].to_vec();
        hit.iter().for_each(|at| times[*at] += length.next_time());
        Row { times, quiet, hit }
    }

    /// Returns for each headline its fall without the interrupted samples, and without their delays, beside the bounds.
    fn falls(row: &Row) -> Vec<([f64; 2], [Option<f64>; 2])> {
        let delays: f64 = row.times.iter().zip(&row.quiet).map(|(time, quiet)| time - quiet).sum();
        let left: Vec<f64> =
            (0..row.times.len()).filter(|at| !row.hit.contains(at)).map(|at| row.times[at]).collect();
        let rounds = |times: &[f64]| times.chunks(ROUND).map(<[f64]>::to_vec).collect::<Vec<_>>();
        let left_of_round = |r: usize| {
            (r * ROUND..(r + 1) * ROUND).filter(|at| !row.hit.contains(at)).map(|at| row.times[at]).collect()
        };
        let all_left: Vec<Vec<f64>> = (0..ROUNDS).map(left_of_round).collect();
        let (all, quiet) = (rounds(&row.times), rounds(&row.quiet));
        [
            [&row.times, &left, &row.quiet].map(|times| HeadlineOf::Median(times)),
            [&row.times, &left, &row.quiet].map(|times| HeadlineOf::Mean(times)),
            [&all, &all_left, &quiet].map(|rounds| HeadlineOf::Levels(rounds)),
        ]
        .map(|[all, left, quiet]| {
            let value = all.value().unwrap();
            let falls = [left, quiet].map(|other| value - other.value().unwrap_or(value));
            (falls, [all.fall_without_samples(row.hit.len() as u64), all.fall_without_delays(delays)])
        })
        .into()
    }

    /// In 2,100 rows, no headline falls by more than its bound.
    #[test]
    fn no_interrupted_row_falls_by_more_than_its_bound() {
        for count in [1, 3, 8, 24, 40, 60, 63] {
            for hit in [Hit::Any, Hit::Rounds, Hit::PartsOfRounds] {
                for seed in 0..ROWS {
                    for (falls, bounds) in falls(&row(seed, count, hit)) {
                        for (fall, bound) in falls.into_iter().zip(bounds) {
                            let bound = bound.unwrap_or(f64::INFINITY);
                            assert!(fall <= bound + 1e-9, "{count} {hit:?} {seed}: {fall} above {bound}");
                        }
                    }
                }
            }
        }
    }
}
