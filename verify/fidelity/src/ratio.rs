//! Figures of a launch, the ratio of two programs over many pairs, and the verdict on it.

use std::fmt;

use ombx_core::stats::order_bounds;

/// Figures of one launch, in nanoseconds per leg.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Launch {
    /// Median over samples, the main figure of ombx.
    pub(crate) median: f64,
    /// The 10th percentile, which depends less on other load of the machine. `None` for a single sample.
    pub(crate) quiet: Option<f64>,
}

impl Launch {
    /// Returns the figures of samples; `None` without a sample.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        let sorted = sorted(samples);
        let quiet = sorted.get(sorted.len() / 10).copied().filter(|_| sorted.len() > 1);
        Some(Self { median: middle(&sorted)?, quiet })
    }
}

/// Ratio of the times of two programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    /// Median over pairs of the ratio in a pair.
    pub(crate) median: f64,
    /// Distribution-free 95 % interval; `None` below 6 pairs.
    pub(crate) interval: Option<[f64; 2]>,
}

impl Ratio {
    /// Returns the ratio of pairs of time and reference time; `None` without a pair.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let ratios = sorted(&pairs.iter().map(|(time, reference)| time / reference).collect::<Vec<_>>());
        let interval = order_bounds(ratios.len(), 0.5).map(|(low, high)| [ratios[low - 1], ratios[high - 1]]);
        Some(Self { median: middle(&ratios)?, interval })
    }

    /// Compares the ratio with a goal.
    pub(crate) fn verdict(&self, goal: f64) -> Verdict {
        match self.interval {
            Some([low, _]) if low > goal => Verdict::Missed,
            Some([_, high]) if high < 1.0 / goal => Verdict::Below,
            Some([_, high]) if high <= goal => Verdict::Met,
            // Wider than twice the tolerance: it cannot distinguish a miss from noise.
            Some([low, high]) if high - low > 2.0 * (goal - 1.0) => Verdict::Unresolved,
            Some(_) if self.median <= goal => Verdict::Met,
            Some(_) => Verdict::Doubtful,
            None => Verdict::Unresolved,
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.median)?;
        match self.interval {
            Some([low, high]) => write!(f, " ({low:.3} to {high:.3})"),
            None => f.write_str(" (no interval)"),
        }
    }
}

/// Result of a comparison with a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The interval is below the goal, or it is narrow and the median is below.
    Met,
    /// The median is above the goal, but the narrow interval contains the goal.
    Doubtful,
    /// The whole interval is above the goal.
    Missed,
    /// The whole interval is below the reciprocal of the goal: ombx cannot be faster than the same calls alone.
    Below,
    /// The interval is wider than what the goal allows.
    Unresolved,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::Doubtful => "above, within the interval",
            Self::Missed => "MISSED",
            Self::Below => "below: not the same work?",
            Self::Unresolved => "not resolved on this machine",
        })
    }
}

/// Returns the median; `None` without a value.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    middle(&sorted(values))
}

/// Shuffles by a seed (SplitMix64 and Fisher-Yates).
pub(crate) fn shuffle<T>(order: &mut [T], seed: &mut u64) {
    for last in (1..order.len()).rev() {
        *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = *seed;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let pick = (word ^ (word >> 31)) % (last as u64 + 1);
        order.swap(last, pick as usize);
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    Some(if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[half - 1], upper) } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ratios: &[f64]) -> Ratio {
        Ratio::of(&ratios.iter().map(|r| (r * 200.0, 200.0)).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_launch_is_its_samples() {
        let samples: Vec<f64> = (1..=20).map(f64::from).rev().collect();
        assert_eq!(Launch::of(&samples), Some(Launch { median: 10.5, quiet: Some(3.0) }));
        assert_eq!(Launch::of(&[7.0]), Some(Launch { median: 7.0, quiet: None }));
        assert_eq!(Launch::of(&[]), None);
    }

    #[test]
    fn one_bad_launch_on_either_side_does_not_decide() {
        let ratio = of(&[1.01, 0.25, 1.0, 1.011, 0.999, 4.0, 1.009]);
        assert_eq!(ratio.median, 1.009);
        assert_eq!(ratio.interval, Some([0.25, 4.0]));
        assert_eq!(ratio.verdict(1.02), Verdict::Unresolved);
        assert_eq!(ratio.to_string(), "1.009 (0.250 to 4.000)");
    }

    #[test]
    fn the_interval_of_15_pairs_is_the_fourth_and_the_twelfth() {
        let ratio = of(&(0..15).map(|i| 1.0 + f64::from(i) / 1000.0).collect::<Vec<_>>());
        assert_eq!(ratio.interval, Some([1.003, 1.011]));
        assert_eq!(ratio.verdict(1.02), Verdict::Met);
        assert_eq!(ratio.verdict(1.002), Verdict::Missed);
        assert_eq!(of(&[0.9; 15]).verdict(1.02), Verdict::Below);
        assert_eq!(of(&[0.99; 15]).verdict(1.02), Verdict::Met);
    }

    #[test]
    fn with_a_narrow_interval_around_the_goal_the_median_decides() {
        assert_eq!(of(&[1.01, 1.015, 1.016, 1.016, 1.02, 1.03]).verdict(1.02), Verdict::Met);
        assert_eq!(of(&[1.01, 1.02, 1.024, 1.025, 1.03, 1.03]).verdict(1.02), Verdict::Doubtful);
        assert_eq!(of(&[1.5; 5]).verdict(1.02), Verdict::Unresolved);
    }

    #[test]
    fn the_order_depends_only_on_the_seed_and_keeps_all_rows() {
        let orders: Vec<Vec<u8>> = [7, 7, 8]
            .map(|mut seed| {
                let mut order: Vec<u8> = (0..50).collect();
                shuffle(&mut order, &mut seed);
                order
            })
            .into();
        assert_eq!(orders[0], orders[1]);
        assert_ne!(orders[0], orders[2]);
        let mut back = orders[0].clone();
        back.sort_unstable();
        assert_eq!(back, (0..50).collect::<Vec<u8>>());
    }
}
