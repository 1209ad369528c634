//! Largest possible effect of a disturbance on the median of a row, and the level that follows from it.

use crate::{
    result::Level,
    stats::{Summary, quantile},
};

/// Precision that stands for "as precise as possible".
const DEFAULT_PRECISION: f64 = 0.02;

/// Samples of a row, and how much a disturbance may change their median.
pub(super) struct Effect {
    /// Samples in ascending order.
    sorted: Vec<f64>,
    median: f64,
    /// Tolerated effect, as a fraction of the median.
    tolerated: f64,
}

impl Effect {
    /// Half the interval and the requested precision are tolerated, whichever is larger.
    pub(super) fn on(samples: &[f64], summary: &Summary, precision: f64) -> Effect {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let precision = if precision.is_finite() { precision } else { DEFAULT_PRECISION };
        Effect {
            sorted,
            median: summary.median,
            tolerated: summary.precision().map_or(precision, |half| half.max(precision)),
        }
    }

    /// Returns the largest effect of this many interruptions, each in another sample.
    ///
    /// If a fraction e of the samples was disturbed and all of them lie above the median, the others have their median at the
    /// quantile (1 - e) / 2 of all.
    pub(super) fn of_interruptions(&self, count: u64) -> f64 {
        let disturbed = (count as f64 / self.sorted.len().max(1) as f64).min(1.0);
        quantile(&self.sorted, 0.5 * (1.0 - disturbed)).map_or(0.0, |lowest| self.down_to(lowest))
    }

    /// Returns the largest effect of delays that add up to this time, in the unit of the samples.
    ///
    /// A true median of x needs that delays have moved samples from x or below to where they are, between x and the median. The
    /// result is for the lowest x for which the delays suffice, but not below the smallest sample.
    pub(super) fn of_delays(&self, total: f64) -> f64 {
        let (mut lowest, mut left) = (self.median, total);
        let below = self.sorted.iter().rev().filter(|x| **x < self.median);
        for (moved, x) in (1..).zip(below) {
            let step = (left / f64::from(moved)).min(lowest - x);
            lowest -= step;
            left -= step * f64::from(moved);
        }
        self.down_to(lowest)
    }

    /// Returns the level of an effect.
    pub(super) fn level(&self, effect: f64) -> Level {
        Level::of_effect(effect, self.tolerated)
    }

    /// Returns how far the median is above this value, as a fraction of the median.
    fn down_to(&self, lowest: f64) -> f64 {
        if self.median > 0.0 { ((self.median - lowest) / self.median).min(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples 1 to 101: the median is 51, and the quantile q is 1 + 100 q.
    fn ladder(precision: f64) -> Effect {
        let samples: Vec<f64> = (1..=101).rev().map(f64::from).collect();
        let summary = Summary { ci95: Some([48.45, 53.55]), ..Summary::of(&samples).unwrap() };
        Effect::on(&samples, &summary, precision)
    }

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn interruptions_have_the_effect_that_was_computed_by_hand() {
        let effect = ladder(0.01);
        assert_near(effect.of_interruptions(0), 0.0);
        // One of 5 samples: e = 0.2, and the quantile 0.4 of 8, 9, 10, 11, 12 is 9.6.
        let five = Effect { sorted: vec![8.0, 9.0, 10.0, 11.0, 12.0], median: 10.0, tolerated: 0.01 };
        assert_near(five.of_interruptions(1), 0.04);
        // More interruptions than samples: down to the smallest sample.
        assert_near(effect.of_interruptions(1000), 50.0 / 51.0);
    }

    #[test]
    fn delays_have_the_effect_that_was_computed_by_hand() {
        let effect = ladder(0.01);
        assert_near(effect.of_delays(0.0), 0.0);
        // One unit moves the median sample from 50 to 51, two more move 50 and 51 from 49, three more three samples from 48.
        assert_near(effect.of_delays(6.0), 3.0 / 51.0);
        // Half of the way to 47 is left: four samples by half a unit.
        assert_near(effect.of_delays(8.0), 3.5 / 51.0);
        assert_near(effect.of_delays(1e9), 50.0 / 51.0);
    }

    #[test]
    fn constant_samples_were_not_disturbed() {
        let samples = [7.0; 50];
        let effect = Effect::on(&samples, &Summary::of(&samples).unwrap(), 0.01);
        assert_near(effect.of_interruptions(50), 0.0);
        assert_near(effect.of_delays(1e9), 0.0);
    }

    #[test]
    fn the_level_is_relative_to_interval_and_precision() {
        // Half the interval is 5 %.
        let levels = |effect: &Effect| [0.049, 0.051, 0.249, 0.251].map(|part| effect.level(part));
        use Level::{Caution, Invalid, Note};
        assert_eq!(levels(&ladder(0.01)), [Note, Caution, Caution, Invalid]);
        assert_eq!(levels(&ladder(0.1)), [Note, Note, Caution, Caution]);
        assert_eq!(levels(&ladder(f64::INFINITY)), [Note, Caution, Caution, Invalid]);
        let open = Effect::on(&[1.0, 2.0], &Summary::of(&[1.0, 2.0]).unwrap(), f64::INFINITY);
        assert_eq!([0.02, 0.03, 0.11].map(|part| open.level(part)), [Note, Caution, Invalid]);
    }
}
