//! Logarithmic axes: how far one reaches, where a value stands on it, and which round values are marked.

/// Which values are round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// 1, 2, 5, 10, 20 ...: times and rates.
    Decimal,
    /// 1, 2, 4, 8 ...: sizes.
    Binary,
}

/// A logarithmic axis. Its ends are round and at least a factor of two apart, so that noise is never spread over all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogAxis {
    round: Round,
    /// Numbers of the round values at its ends.
    first: i32,
    last: i32,
}

impl Round {
    /// The round value of this number: 1 is number 0.
    fn value(self, number: i32) -> f64 {
        match self {
            Round::Binary => f64::from(number).exp2(),
            Round::Decimal => [1.0, 2.0, 5.0][number.rem_euclid(3) as usize] * power(number.div_euclid(3)),
        }
    }

    /// The number of the largest round value that is not above this one.
    fn below(self, value: f64) -> i32 {
        let guess = match self {
            Round::Binary => value.log2().floor() as i32,
            Round::Decimal => value.log10().floor() as i32 * 3 + 2,
        };
        // Logarithms are off by a rounding at most.
        (guess - 3..=guess + 1).rev().find(|at| self.value(*at) <= value).unwrap_or(guess)
    }
}

/// A power of ten as it would be written: 1e-1 is nearer to 0.1 than 10 multiplied by itself.
fn power(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::MAX)
}

impl LogAxis {
    /// The shortest that holds all values above 0; `None` where there are none.
    pub fn holding(values: impl IntoIterator<Item = f64>, round: Round) -> Option<LogAxis> {
        // Beyond these nothing is measured, and round values would overflow.
        let known = values.into_iter().filter(|v| *v > 1e-100 && *v < 1e100);
        let (low, high) =
            known.fold((f64::MAX, 0f64), |(low, high), value| (low.min(value), high.max(value)));
        if high == 0.0 {
            return None;
        }
        let (first, below) = (round.below(low), round.below(high));
        let last = if round.value(below) < high { below + 1 } else { below };
        Some(LogAxis { round, first, last: last.max(first + 1) })
    }

    /// The values at its ends.
    pub fn ends(&self) -> [f64; 2] {
        [self.round.value(self.first), self.round.value(self.last)]
    }

    /// Where a value stands: 0 at the low end, 1 at the high one.
    pub fn at(&self, value: f64) -> f64 {
        let [low, high] = self.ends();
        (value / low).ln() / (high / low).ln()
    }

    /// Round values to mark, `most` or fewer; they are equally far apart or become so by decades.
    pub fn marks(&self, most: usize) -> Vec<f64> {
        let numbers = self.first..=self.last;
        let all = (self.last - self.first + 1) as usize;
        if all <= most.max(2) {
            return if self.round == Round::Decimal && all == 2 {
                self.between(most)
            } else {
                numbers.map(|number| self.round.value(number)).collect()
            };
        }
        let unit = if self.round == Round::Decimal { 3 } else { 1 };
        let step = (1..).map(|k| k * unit).find(|step| all.div_ceil(*step) <= most.max(2)).unwrap_or(all);
        numbers.filter(|n| n.rem_euclid(step as i32) == 0).map(|n| self.round.value(n)).collect()
    }

    /// Of an axis from one round value to the next: as many equal steps as there is room for.
    fn between(&self, most: usize) -> Vec<f64> {
        let [low, high] = self.ends();
        let steps = match self.first.rem_euclid(3) {
            1 => 6, // 2, 2.5 .. 5
            _ => 5, // 1, 1.2 .. 2; 5, 6 .. 10
        };
        if most <= steps {
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
        LogAxis::holding(values.iter().copied(), Round::Decimal).unwrap()
    }

    #[test]
    fn ends_are_round_and_hold_everything() {
        assert_eq!(decimal(&[0.37, 41.0]).ends(), [0.2, 50.0]);
        assert_eq!(decimal(&[1.0, 10.0]).ends(), [1.0, 10.0]);
        assert_eq!(decimal(&[1.01, 1.02]).ends(), [1.0, 2.0]);
        assert_eq!(decimal(&[1000.0]).ends(), [1000.0, 2000.0]);
        let sizes = LogAxis::holding([1.0, 4194304.0], Round::Binary).unwrap();
        assert_eq!(sizes.ends(), [1.0, 4194304.0]);
        assert_eq!(LogAxis::holding([0.0, -1.0, f64::NAN, f64::INFINITY], Round::Decimal), None);
    }

    #[test]
    fn marks_are_round_and_few() {
        assert_eq!(decimal(&[0.37, 9.0]).marks(9), [0.2, 0.5, 1.0, 2.0, 5.0, 10.0]);
        assert_eq!(decimal(&[0.37, 4100.0]).marks(6), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(decimal(&[1.1, 1.9]).marks(8), [1.0, 1.2, 1.4, 1.6, 1.8, 2.0]);
        assert_eq!(decimal(&[2.1, 4.9]).marks(8).len(), 7);
        let sizes = LogAxis::holding([1.0, 1048576.0], Round::Binary).unwrap();
        assert_eq!(sizes.marks(12).len(), 11, "every second");
    }

    #[test]
    fn distances_are_ratios() {
        let axis = decimal(&[1.0, 100.0]);
        assert_eq!((axis.at(1.0), axis.at(100.0)), (0.0, 1.0));
        assert!((axis.at(10.0) - 0.5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn every_value_is_within(values in prop::collection::vec(1e-12f64..1e18, 1..9), most in 2usize..14) {
            for round in [Round::Decimal, Round::Binary] {
                let axis = LogAxis::holding(values.iter().copied(), round).unwrap();
                for value in &values {
                    prop_assert!((-1e-9..=1.0 + 1e-9).contains(&axis.at(*value)), "{} of {:?}", value, axis.ends());
                }
                let marks = axis.marks(most);
                prop_assert!(!marks.is_empty() && marks.len() <= most, "{:?} of {:?}", marks, axis.ends());
                prop_assert!(marks.windows(2).all(|w| w[0] < w[1]));
            }
        }
    }
}
