//! The ratio of the times of two loops over many launches, and the verdict on it.

use std::fmt;

use ombx_record::stats::{median, order_bounds};

/// Largest half width of the interval of a ratio that is resolved.
pub(crate) const RESOLVED: f64 = 0.01;

/// Ratio of the times of two loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    /// Median over launches of the ratio in a launch.
    pub(crate) median: f64,
    /// Distribution-free 95 % interval; `None` below 6 launches.
    pub(crate) interval: Option<[f64; 2]>,
}

impl Ratio {
    /// Returns the median of ratios; `None` without one.
    pub(crate) fn from_ratios(ratios: &[f64]) -> Option<Self> {
        let mut sorted = ratios.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let interval = order_bounds(sorted.len(), 0.5).map(|(low, high)| [sorted[low - 1], sorted[high - 1]]);
        Some(Self { median: median(ratios)?, interval })
    }

    /// Compares the ratio with a goal.
    pub(crate) fn verdict(&self, goal: f64) -> Verdict {
        match self.interval {
            None => Verdict::Unresolved,
            Some([low, high]) if high - low > 2.0 * RESOLVED => Verdict::Unresolved,
            Some([low, _]) if low > goal => Verdict::Missed,
            Some([_, high]) if high < 1.0 / goal => Verdict::Below,
            Some(_) if self.median <= goal => Verdict::Met,
            Some(_) => Verdict::Doubtful,
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
    /// The median is at most the goal.
    Met,
    /// The median is above the goal, but the interval contains the goal.
    Doubtful,
    /// The whole interval is above the goal.
    Missed,
    /// The whole interval is below the reciprocal of the goal: ombx cannot be faster than the same calls alone.
    Below,
    /// The interval is wider than 1 % to either side.
    Unresolved,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::Doubtful => "above, within the interval",
            Self::Missed => "MISSED",
            Self::Below => "below: not the same work?",
            Self::Unresolved => "not resolved",
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio_of(ratios: &[f64]) -> Ratio {
        Ratio::from_ratios(ratios).unwrap()
    }

    #[test]
    fn one_bad_launch_on_either_side_leaves_a_row_unresolved() {
        let ratio = ratio_of(&[1.01, 0.25, 1.0, 1.011, 0.999, 4.0, 1.009]);
        assert_eq!((ratio.median, ratio.interval), (1.009, Some([0.25, 4.0])));
        assert_eq!(ratio.verdict(1.02), Verdict::Unresolved);
        assert_eq!(ratio.to_string(), "1.009 (0.250 to 4.000)");
        assert_eq!(ratio_of(&[1.5; 5]).verdict(1.02), Verdict::Unresolved);
    }

    #[test]
    fn the_interval_of_15_launches_is_the_fourth_and_the_twelfth() {
        let ratio = ratio_of(&(0..15).map(|i| 1.0 + f64::from(i) / 1000.0).collect::<Vec<_>>());
        assert_eq!(ratio.interval, Some([1.003, 1.011]));
        assert_eq!(ratio.verdict(1.02), Verdict::Met);
        assert_eq!(ratio.verdict(1.002), Verdict::Missed);
        assert_eq!(ratio_of(&[0.9; 15]).verdict(1.02), Verdict::Below);
        assert_eq!(ratio_of(&[0.99; 15]).verdict(1.02), Verdict::Met);
    }

    #[test]
    fn with_an_interval_around_the_goal_the_median_decides() {
        assert_eq!(ratio_of(&[1.012, 1.015, 1.016, 1.016, 1.02, 1.028]).verdict(1.02), Verdict::Met);
        assert_eq!(ratio_of(&[1.012, 1.02, 1.024, 1.025, 1.03, 1.031]).verdict(1.02), Verdict::Doubtful);
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
