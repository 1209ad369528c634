//! Logarithmic axes: how far one reaches, where a value stands on it, and which round values are marked.

/// Side values are round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticks {
    /// 1, 2, 5, 10, 20 ...: times and rates.
    Decimal,
    /// 1, 2, 4, 8 ...: sizes.
    Binary,
}

/// A logarithmic axis. Its bounds are round and at least a factor of two apart, so that noise is never spread over all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogAxis {
    ticks: Ticks,
    /// Numbers of the round values at its bounds.
    first: i32,
    last: i32,
}

impl Ticks {
    /// The round value of this number: 1 is number 0.
    fn value(self, number: i32) -> f64 {
        match self {
            Ticks::Binary => f64::from(number).exp2(),
            Ticks::Decimal => [1.0, 2.0, 5.0][number.rem_euclid(3) as usize] * power(number.div_euclid(3)),
        }
    }

    /// The number of the largest round value that is not above this one.
    fn below(self, value: f64) -> i32 {
        let guess = match self {
            Ticks::Binary => value.log2().floor() as i32,
            Ticks::Decimal => value.log10().floor() as i32 * 3 + 2,
        };
        // Logarithms are off by a rounding at max.
        (guess - 3..=guess + 1).rev().find(|at| self.value(*at) <= value).unwrap_or(guess)
    }
}

/// A power of ten as it would be written: 1e-1 is nearer to 0.1 than 10 multiplied by itself.
fn power(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::MAX)
}

impl LogAxis {
    /// The shortest that holds all values above 0; `None` where there are none.
    pub fn covering(values: impl IntoIterator<Item = f64>, ticks: Ticks) -> Option<LogAxis> {
        // Beyond these nothing is measured, and round values would overflow.
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

    /// The values at its bounds.
    pub fn bounds(&self) -> [f64; 2] {
        [self.ticks.value(self.first), self.ticks.value(self.last)]
    }

    /// Where a value stands: 0 at the low end, 1 at the high one.
    pub fn position(&self, value: f64) -> f64 {
        let [low, high] = self.bounds();
        (value / low).ln() / (high / low).ln()
    }

    /// Round values to mark, `most` or fewer; they are equally far apart or become so by decades.
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

    /// Of an axis from one round value to the next: as many equal steps as there is room for.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(values: &[f64]) -> LogAxis {
        LogAxis::covering(values.iter().copied(), Ticks::Decimal).unwrap()
    }

    #[test]
    fn ends_are_round_and_hold_everything() {
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
}
