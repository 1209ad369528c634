//! Histogram of links: how many there are in each of some ranges of times that grow by equal factors.

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
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Option<Histogram> {
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
    use super::*;

    #[test]
    fn ranges_grow_by_equal_factors_and_hold_all_values() {
        // Four ranges from 1 to 16: each is twice as long as the one before.
        let values = [1.0, 1.5, 1.9, 2.1, 3.9, 9.0, 16.0, 0.0, f64::NAN];
        let histogram = Histogram::of(values.into_iter()).unwrap();
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
        let of = |n: usize| Histogram::of((1..=n).map(|i| i as f64)).unwrap().counts;
        assert_eq!([1, 2, 100, 1000, 1 << 20].map(|n| of(n).len()), [1, 4, 7, 10, 16]);
        assert_eq!(of(1000).iter().sum::<usize>(), 1000);
        assert_eq!(Histogram::of([5.0; 12].into_iter()).unwrap().counts, [12]);
        assert!(Histogram::of([0.0, -1.0].into_iter()).is_none());
    }
}
