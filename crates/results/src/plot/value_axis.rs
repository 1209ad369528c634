//! Axes of measured values: linear, or logarithmic for values far apart.

use super::{LogAxis, Ticks};
use crate::number::tick_label;

/// Ratio of the largest to the smallest value from which an axis is logarithmic.
const WIDE: f64 = 10.0;
/// Smallest length of a linear axis, as a part of its upper end. Noise below it must not look like structure.
const NARROW: f64 = 0.02;

/// Linear axis whose ends are ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearAxis {
    low: f64,
    high: f64,
    step: f64,
}

/// Axis of times, rates or shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueAxis {
    /// Logarithmic.
    Log(LogAxis),
    /// Linear.
    Linear(LinearAxis),
}

impl LinearAxis {
    /// Returns an axis that covers two numbers. It starts at 0 if the lower one is much closer to 0.
    pub fn covering(low: f64, high: f64) -> LinearAxis {
        let low = if low >= 0.0 && low < 0.4 * high { 0.0 } else { low };
        let least = (high.abs().max(low.abs()) * NARROW).max(f64::MIN_POSITIVE);
        let widen = ((least - (high - low)) / 2.0).max(0.0);
        let (low, high) = (low - widen, high + widen);
        let rough = (high - low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let round = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        let step = round.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(rough);
        let ends = [(low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step];
        LinearAxis { low: ends[0], high: ends[1], step }
    }

    /// Returns an axis with these ends, and a tick at each multiple of `step`.
    pub fn exact(low: f64, high: f64, step: f64) -> LinearAxis {
        LinearAxis { low, high, step }
    }

    /// Returns the position of a value: 0 at the lower end, 1 at the upper end.
    pub fn position(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// Returns at most `max` ticks at equal distances.
    pub fn ticks(&self, max: usize) -> Vec<f64> {
        let first = (self.low / self.step - 1e-6).ceil();
        let count = ((self.high / self.step + 1e-6).floor() - first) as usize + 1;
        let every = (1..).find(|every| count.div_ceil(*every) <= max.max(2)).unwrap_or(1);
        // A sum of steps would not be exactly 0.
        let tick = |at: usize| if first + at as f64 == 0.0 { 0.0 } else { (first + at as f64) * self.step };
        (0..count).step_by(every).map(tick).collect()
    }
}

impl ValueAxis {
    /// Returns a logarithmic axis if the values differ by a factor of 10, else a linear one; `None` without values.
    pub fn covering(values: impl Iterator<Item = f64>) -> Option<ValueAxis> {
        let (low, high) = range(values)?;
        let log = LogAxis::covering([low, high], Ticks::Decimal).filter(|_| low > 0.0 && high / low >= WIDE);
        Some(log.map_or(ValueAxis::Linear(LinearAxis::covering(low, high)), ValueAxis::Log))
    }

    /// Returns a linear axis; `None` without values.
    pub fn linear(values: impl Iterator<Item = f64>) -> Option<ValueAxis> {
        range(values).map(|(low, high)| ValueAxis::Linear(LinearAxis::covering(low, high)))
    }

    /// Returns a logarithmic axis; `None` without values above 0.
    pub fn log(values: impl Iterator<Item = f64>) -> Option<ValueAxis> {
        LogAxis::covering(values, Ticks::Decimal).map(ValueAxis::Log)
    }

    /// Returns whether the axis is logarithmic.
    pub fn is_log(&self) -> bool {
        matches!(self, ValueAxis::Log(_))
    }

    /// Returns the position of a value: 0 at the lower end, 1 at the upper end.
    pub fn position(&self, value: f64) -> f64 {
        match self {
            ValueAxis::Log(axis) => axis.position(value),
            ValueAxis::Linear(axis) => axis.position(value),
        }
    }

    /// Returns at most `max` values with a tick.
    pub fn ticks(&self, max: usize) -> Vec<f64> {
        match self {
            ValueAxis::Log(axis) => axis.ticks(max),
            ValueAxis::Linear(axis) => axis.ticks(max),
        }
    }

    /// Divides the part of the axis between two values into ranges of equal length, and returns their ends.
    pub fn ranges(&self, low: f64, high: f64, count: usize) -> Vec<f64> {
        let end =
            |part: f64| if self.is_log() { low * (high / low).powf(part) } else { low + (high - low) * part };
        (0..=count).map(|at| end(at as f64 / count as f64)).collect()
    }
}

/// Counts sorted values from one end to the next. The last range contains its upper end.
pub fn counts(sorted: &[f64], ends: &[f64]) -> Vec<usize> {
    let inner = ends.iter().skip(1).take(ends.len().saturating_sub(2));
    let below = inner.map(|end| sorted.partition_point(|value| value < end));
    let bounds: Vec<usize> = std::iter::once(0).chain(below).chain(std::iter::once(sorted.len())).collect();
    bounds.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Formats a tick of a value.
pub fn value_label(value: f64) -> String {
    if value == 0.0 { "0".into() } else { tick_label(value) }
}

/// Returns the smallest and the largest finite value.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let known = values.filter(|value| value.is_finite());
    let (low, high) = known.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
    (low <= high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: ValueAxis, max: usize) -> Vec<String> {
        axis.ticks(max).into_iter().map(value_label).collect()
    }

    #[test]
    fn a_linear_axis_has_round_ticks_that_cover_the_values() {
        let axis = ValueAxis::covering([1.03, 1.47].into_iter()).unwrap();
        assert_eq!(labels(axis, 8), ["1", "1.1", "1.2", "1.3", "1.4", "1.5"]);
        assert!((axis.position(1.25) - 0.5).abs() < 1e-9);
        let axis = ValueAxis::linear([3.0, 48.0].into_iter()).unwrap();
        assert_eq!(labels(axis, 8), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(labels(axis, 3), ["0", "20", "40"]);
        let equal = ValueAxis::covering([5.0, 5.0].into_iter()).unwrap();
        assert!((0.2..0.8).contains(&equal.position(5.0)), "{}", equal.position(5.0));
    }

    #[test]
    fn values_far_apart_have_a_logarithmic_axis() {
        let axis = ValueAxis::covering([1.0, 100.0].into_iter()).unwrap();
        assert!(axis.is_log() && (axis.position(10.0) - 0.5).abs() < 1e-9);
        assert!(!ValueAxis::covering([1.0, 9.0].into_iter()).unwrap().is_log());
        assert!(ValueAxis::covering([f64::NAN].into_iter()).is_none());
        let ends = axis.ranges(1.0, 100.0, 2);
        assert!((ends[1] - 10.0).abs() < 1e-9);
    }

    #[test]
    fn every_value_is_counted_once() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        let counts = counts(&values, &[0.0, 50.0, 90.0, 100.0]);
        assert_eq!(counts, [50, 40, 11]);
    }
}
