//! Axes of measured values: linear, or logarithmic for values far apart.

use ombx_estimate::number::tick_label;

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

/// Values that may have ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticks {
    /// 1, 2, 5, 10, 20 ...: for times and rates.
    Decimal,
    /// 1, 2, 4, 8 ...: for sizes.
    Binary,
}

/// Logarithmic axis. Its bounds are ticks and at least a factor of two apart, so that noise does not fill it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogAxis {
    ticks: Ticks,
    /// Tick numbers of the bounds.
    first: i32,
    last: i32,
}

impl Ticks {
    /// Returns the value of a tick. Tick 0 is 1.
    fn value(self, number: i32) -> f64 {
        match self {
            Ticks::Binary => f64::from(number).exp2(),
            Ticks::Decimal => [1.0, 2.0, 5.0][number.rem_euclid(3) as usize] * power(number.div_euclid(3)),
        }
    }

    /// Returns the number of the largest tick that is not above a value.
    fn below(self, value: f64) -> i32 {
        let guess = match self {
            Ticks::Binary => value.log2().floor() as i32,
            Ticks::Decimal => value.log10().floor() as i32 * 3 + 2,
        };
        // Rounding of the logarithm may be off by one tick.
        (guess - 3..=guess + 1).rev().find(|at| self.value(*at) <= value).unwrap_or(guess)
    }
}

/// Returns a power of ten, correctly rounded: repeated multiplication is not.
fn power(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::MAX)
}

impl LogAxis {
    /// Returns the shortest axis that covers all values above 0, or `None` if there are none.
    pub fn covering(values: impl IntoIterator<Item = f64>, ticks: Ticks) -> Option<LogAxis> {
        // Measured values are within these limits. Ticks outside would overflow.
        let known = values.into_iter().filter(|v| *v > 1e-100 && *v < 1e100);
        let (low, high) =
            known.fold((f64::MAX, 0f64), |(low, high), value| (low.min(value), high.max(value)));
        if high == 0.0 {
            return None;
        }
        let (first, below) = (ticks.below(low), ticks.below(high));
        let last = if ticks.value(below) < high { below + 1 } else { below };
        Some(LogAxis { ticks, first, last: last.max(first + 1) })
    }

    /// Returns the values of the lower and the upper bound.
    pub fn bounds(&self) -> [f64; 2] {
        [self.ticks.value(self.first), self.ticks.value(self.last)]
    }

    /// Returns the position of a value: 0 at the lower bound, 1 at the upper bound.
    pub fn position(&self, value: f64) -> f64 {
        let [low, high] = self.bounds();
        (value / low).ln() / (high / low).ln()
    }

    /// Returns at most `max` ticks at equal distances. With many decades, only whole decades have ticks.
    pub fn ticks(&self, max: usize) -> Vec<f64> {
        let numbers = self.first..=self.last;
        let all = (self.last - self.first + 1) as usize;
        if all <= max.max(2) {
            return if self.ticks == Ticks::Decimal && all == 2 {
                self.between(max)
            } else {
                numbers.map(|number| self.ticks.value(number)).collect()
            };
        }
        let unit = if self.ticks == Ticks::Decimal { 3 } else { 1 };
        let step = (1..).map(|k| k * unit).find(|step| all.div_ceil(*step) <= max.max(2)).unwrap_or(all);
        numbers.filter(|n| n.rem_euclid(step as i32) == 0).map(|n| self.ticks.value(n)).collect()
    }

    /// Divides an axis between two neighbouring ticks into at most `max` equal steps.
    fn between(&self, max: usize) -> Vec<f64> {
        let [low, high] = self.bounds();
        let steps = match self.first.rem_euclid(3) {
            1 => 6, // 2, 2.5 .. 5
            _ => 5, // 1, 1.2 .. 2; 5, 6 .. 10
        };
        if max <= steps {
            return vec![low, high];
        }
        (0..=steps).map(|i| low + (high - low) * i as f64 / steps as f64).collect()
    }
}

/// Minimum and maximum number of ranges. Between them there is about one for each doubling of the number of values.
const RANGES: [usize; 2] = [4, 16];

/// Numbers of values by range.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Ends of the ranges in ascending order, one more than there are ranges.
    pub ends: Vec<f64>,
    /// Number of values from one end, included, to the next. The last end is included too.
    pub counts: Vec<usize>,
}

impl Histogram {
    /// Counts the values above 0. Equal values are one range. Returns `None` without values.
    pub fn new(values: impl Iterator<Item = f64> + Clone) -> Option<Histogram> {
        let known = values.filter(|value| *value > 0.0 && value.is_finite());
        let total = known.clone().count();
        let (low, high) = known.clone().fold((f64::MAX, 0f64), |(low, high), x| (low.min(x), high.max(x)));
        if total == 0 {
            return None;
        }
        if low == high {
            return Some(Histogram { ends: vec![low, high], counts: vec![total] });
        }
        let ranges = (total.ilog2() as usize + 1).clamp(RANGES[0], RANGES[1]);
        let step = (high / low).ln() / ranges as f64;
        let mut counts = vec![0; ranges];
        for value in known {
            counts[(((value / low).ln() / step) as usize).min(ranges - 1)] += 1;
        }
        let mut ends: Vec<f64> = (0..ranges).map(|at| low * (step * at as f64).exp()).collect();
        ends.push(high);
        Some(Histogram { ends, counts })
    }

    /// Returns the ends and the number of values of each range.
    pub fn ranges(&self) -> impl Iterator<Item = ([f64; 2], usize)> {
        self.ends.windows(2).map(|ends| [ends[0], ends[1]]).zip(self.counts.iter().copied())
    }

    /// Returns the largest number of values in a range.
    pub fn most(&self) -> usize {
        self.counts.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use crate::terminal::value_axis::*;

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

#[cfg(test)]
mod log_axis_tests {
    use proptest::prelude::*;

    use crate::terminal::value_axis::*;

    fn decimal(values: &[f64]) -> LogAxis {
        LogAxis::covering(values.iter().copied(), Ticks::Decimal).unwrap()
    }

    #[test]
    fn bounds_are_round_and_cover_all_values() {
        assert_eq!(decimal(&[0.37, 41.0]).bounds(), [0.2, 50.0]);
        assert_eq!(decimal(&[1.0, 10.0]).bounds(), [1.0, 10.0]);
        assert_eq!(decimal(&[1.01, 1.02]).bounds(), [1.0, 2.0]);
        assert_eq!(decimal(&[1000.0]).bounds(), [1000.0, 2000.0]);
        let sizes = LogAxis::covering([1.0, 4194304.0], Ticks::Binary).unwrap();
        assert_eq!(sizes.bounds(), [1.0, 4194304.0]);
        assert_eq!(LogAxis::covering([0.0, -1.0, f64::NAN, f64::INFINITY], Ticks::Decimal), None);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(decimal(&[0.37, 9.0]).ticks(9), [0.2, 0.5, 1.0, 2.0, 5.0, 10.0]);
        assert_eq!(decimal(&[0.37, 4100.0]).ticks(6), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(decimal(&[1.1, 1.9]).ticks(8), [1.0, 1.2, 1.4, 1.6, 1.8, 2.0]);
        assert_eq!(decimal(&[2.1, 4.9]).ticks(8).len(), 7);
        let sizes = LogAxis::covering([1.0, 1048576.0], Ticks::Binary).unwrap();
        assert_eq!(sizes.ticks(12).len(), 11, "every second");
    }

    #[test]
    fn distances_are_ratios() {
        let axis = decimal(&[1.0, 100.0]);
        assert_eq!((axis.position(1.0), axis.position(100.0)), (0.0, 1.0));
        assert!((axis.position(10.0) - 0.5).abs() < 1e-12);
    }

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
        #[test]
        fn every_value_is_within(values in prop::collection::vec(1e-12f64..1e18, 1..9), max in 2usize..14) {
            for ticks in [Ticks::Decimal, Ticks::Binary] {
                let axis = LogAxis::covering(values.iter().copied(), ticks).unwrap();
                for value in &values {
                    prop_assert!((-1e-9..=1.0 + 1e-9).contains(&axis.position(*value)), "{} of {:?}", value, axis.bounds());
                }
                let ticks = axis.ticks(max);
                prop_assert!(!ticks.is_empty() && ticks.len() <= max, "{:?} of {:?}", ticks, axis.bounds());
                prop_assert!(ticks.windows(2).all(|w| w[0] < w[1]));
            }
        }
    }

    #[test]
    fn ranges_grow_by_equal_factors_and_hold_all_values() {
        // Four ranges from 1 to 16: each is twice as long as the one before.
        let values = [1.0, 1.5, 1.9, 2.1, 3.9, 9.0, 16.0, 0.0, f64::NAN];
        let histogram = Histogram::new(values.into_iter()).unwrap();
        assert_eq!(histogram.counts, [3, 2, 0, 2]);
        assert_eq!(histogram.most(), 3);
        for (end, expected) in histogram.ends.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0]) {
            assert!((end - expected).abs() < 1e-9, "{end} is not {expected}");
        }
        let ranges: Vec<_> = histogram.ranges().collect();
        assert_eq!((ranges.len(), ranges[3].0[1], ranges[3].1), (4, 16.0, 2));
    }

    #[test]
    fn more_values_have_more_ranges_and_equal_values_one() {
        let of = |n: usize| Histogram::new((1..=n).map(|i| i as f64)).unwrap().counts;
        assert_eq!([1, 2, 100, 1000, 1 << 20].map(|n| of(n).len()), [1, 4, 7, 10, 16]);
        assert_eq!(of(1000).iter().sum::<usize>(), 1000);
        assert_eq!(Histogram::new([5.0; 12].into_iter()).unwrap().counts, [12]);
        assert!(Histogram::new([0.0, -1.0].into_iter()).is_none());
    }
}
