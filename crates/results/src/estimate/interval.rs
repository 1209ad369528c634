//! Interval of the median over launches.

use ombx_core::stats::order_bounds;

use super::schedule::LEAST_LONG_LAUNCHES;

/// Standard errors of the autocorrelation above which launches are said to drift. Independent launches seldom exceed it; the
/// widening of the interval starts at 1.
const SURELY_DEPENDENT: f64 = 2.0;

/// Interval of the median within a run, from launches in one state of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Low end, in the unit of the launches' values.
    pub low: f64,
    /// High end, in the same unit.
    pub high: f64,
    /// Probability that order statistics at its ranks contain the median of all launches, if they are independent.
    pub coverage: f64,
    /// Whether the launches depend on each other by more than chance, and so much that even their range is too narrow for 95 %.
    pub drift: bool,
}

/// Returns the interval of the median, from values in the order of launches; `None` for fewer than 2.
///
/// The ends are order statistics, with ranks moved outward by sqrt((1 + q) / (1 - q)), where q is the lag-1 autocorrelation of the
/// launches' ranks plus 1 / n, if q exceeds 1 / sqrt(n). Nothing else widens them: the scatter within a run cannot tell how much runs
/// differ. With fewer than 6 launches the interval is their range, and with 6 to 8 the order statistics of 95 % are.
pub fn interval(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = (sorted[0], sorted[n - 1]);
    let Some((lower, _)) = order_bounds(n, 0.5).filter(|_| n >= LEAST_LONG_LAUNCHES as usize) else {
        return Some(Interval { low: least, high: most, coverage: coverage(n, 1), drift: false });
    };
    let center = (n + 1) as f64 / 2.0;
    let q = correlation(values) + 1.0 / n as f64;
    let exceeds = |errors: f64| q > errors / (n as f64).sqrt();
    let widening = if exceeds(1.0) { ((1.0 + q) / (1.0 - q).max(f64::EPSILON)).sqrt() } else { 1.0 };
    // The tolerance keeps a rank that rounding moves by a last digit.
    let moved = (center - (center - lower as f64) * widening + 1e-9).floor();
    let rank = moved.max(1.0) as usize;
    let (low, high) = (sorted[rank - 1], sorted[n - rank]);
    Some(Interval {
        low,
        high,
        coverage: coverage(n, if moved < 1.0 { 1 } else { lower }),
        drift: moved < 1.0 && exceeds(SURELY_DEPENDENT),
    })
}

/// Returns the probability that order statistics `lower` and `n + 1 - lower` enclose the median of independent launches.
fn coverage(n: usize, lower: usize) -> f64 {
    let mut term = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut outside = 0.0;
    for k in 0..lower {
        outside += term;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    1.0 - 2.0 * outside
}

/// Returns the lag-1 autocorrelation of the ranks of the values. Equal values share the mean of their ranks.
fn correlation(values: &[f64]) -> f64 {
    let rank = |x: f64| {
        let (below, equal) = values.iter().fold((0, 0), |(below, equal), other| {
            (below + usize::from(*other < x), equal + usize::from(*other == x))
        });
        below as f64 + (equal - 1) as f64 / 2.0
    };
    let mean = (values.len() - 1) as f64 / 2.0;
    let deviations: Vec<f64> = values.iter().map(|x| rank(*x) - mean).collect();
    let variance: f64 = deviations.iter().map(|d| d * d).sum();
    let products: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if variance > 0.0 { products / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 101 to 100 + n in an order that shows no dependence.
    fn alternating(n: usize) -> Vec<f64> {
        (0..n).map(|i| if i % 2 == 0 { i / 2 } else { n - 1 - i / 2 } as f64 + 101.0).collect()
    }

    #[test]
    fn ranks_and_coverage_are_those_of_the_method() {
        let table = [
            (2, 1, 50.0),
            (3, 1, 75.0),
            (4, 1, 87.5),
            (5, 1, 93.8),
            (6, 1, 96.9),
            (8, 1, 99.2),
            (9, 2, 96.1),
            (10, 2, 97.9),
            (12, 3, 96.1),
            (15, 4, 96.5),
            (20, 6, 95.9),
            (25, 8, 95.7),
            (30, 10, 95.7),
        ];
        for (n, lower, percent) in table {
            let found = interval(&alternating(n)).unwrap();
            let (low, high) = (100.0 + f64::from(lower), 101.0 + n as f64 - f64::from(lower));
            assert_eq!((found.low, found.high), (low, high), "{n}");
            assert!((found.coverage * 100.0 - percent).abs() < 0.1, "{n}: {}", found.coverage);
            assert!(!found.drift, "{n}");
        }
        assert_eq!(interval(&[1.0]), None);
    }

    #[test]
    fn dependence_widens_and_a_trend_is_a_drift() {
        // Ranks with a lag-1 autocorrelation of 0.3.
        let blocks = [12, 7, 13, 14, 2, 1, 3, 9, 6, 5, 8, 11, 15, 10, 4].map(|rank| f64::from(100 + rank));
        let (plain, widened) = (interval(&alternating(15)).unwrap(), interval(&blocks).unwrap());
        assert!(widened.low < plain.low && widened.high > plain.high && !widened.drift, "{widened:?}");
        let trend: Vec<f64> = (0..15).map(f64::from).collect();
        let found = interval(&trend).unwrap();
        assert!(found.drift && (found.low, found.high) == (0.0, 14.0), "{found:?}");
    }

    #[test]
    fn an_interval_lies_within_the_range_of_its_launches() {
        let outlier = [27.2, 27.0, 27.4, 307.0, 27.1, 27.3, 27.6, 27.5, 27.7];
        let found = interval(&outlier).unwrap();
        assert_eq!((found.low, found.high), (27.1, 27.7));
        let times = [110.0, 300.0, 550.0, 120.0, 540.0, 310.0, 290.0];
        let (time, rate) = (interval(&times).unwrap(), interval(&times.map(|x| 1.0 / x)).unwrap());
        assert_eq!([time.low, time.high], [1.0 / rate.high, 1.0 / rate.low]);
    }

    #[test]
    fn equal_launches_have_an_interval_of_width_zero() {
        let found = interval(&[7.0; 9]).unwrap();
        assert_eq!((found.low, found.high, found.drift), (7.0, 7.0, false));
    }
}
