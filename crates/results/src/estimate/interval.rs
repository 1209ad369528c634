//! Interval of the median over launches.

use ombx_core::stats::order_bounds;

/// Minimum number of launches for a 95 % interval.
const LEAST_LAUNCHES: usize = 6;

/// Standard errors of the autocorrelation above which launches are said to drift. Independent launches seldom exceed it; the
/// widening of the interval starts at 1.
const SURELY_DEPENDENT: f64 = 2.0;

/// What the launches of one run have in common, in distances of an end from the median. Intervals of nine launches in three seconds
/// contained the median of all launches of an hour in 32 of 40 runs without it, in 37 with it (docs/COVERAGE.md).
const SHARED: i32 = 2;

/// Interval of the median of all launches, from the launches that were measured.
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
/// launches' ranks plus 1 / n, if q exceeds 1 / sqrt(n). Then both ends move outward by twice the smaller of their distances from the
/// median, because the launches of one run share seconds in which the machine keeps one of its states: this triples a symmetric
/// interval, as a correlation of 0.8 would, and changes that of an outlier or of two modes less. The distances of positive values
/// are ratios, so that a time and its rate have the same interval. With fewer than 6 launches the interval is their range.
pub fn interval(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = (sorted[0], sorted[n - 1]);
    let Some((lower, _)) = order_bounds(n, 0.5).filter(|_| n >= LEAST_LAUNCHES) else {
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
    let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
    let (low, high) = if least > 0.0 {
        let ratio = (median / low).min(high / median);
        (low / ratio.powi(SHARED), high * ratio.powi(SHARED))
    } else {
        let further = (median - low).min(high - median);
        (low - f64::from(SHARED) * further, high + f64::from(SHARED) * further)
    };
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
            let lower = f64::from(lower);
            let (low, middle, high) = (100.0 + lower, 100.0 + (n + 1) as f64 / 2.0, 101.0 + n as f64 - lower);
            let factor = if n < 6 { 1.0 } else { (middle / low).min(high / middle).powi(2) };
            let near = |end: f64, expected: f64| (end - expected).abs() < 1e-9;
            assert!(near(found.low, low / factor) && near(found.high, high * factor), "{n}: {found:?}");
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
        assert!(found.drift && (found.low, found.high) == (-14.0, 28.0), "{found:?}");
    }

    #[test]
    fn outliers_and_modes_do_not_move_the_ends_far() {
        let outlier = [27.2, 27.0, 27.4, 307.0, 27.1, 27.3, 27.6, 27.5, 27.7];
        let found = interval(&outlier).unwrap();
        assert!(26.0 < found.low && found.high < 29.0, "{found:?}");
        let modes = [58.0, 17.0, 58.1, 17.1, 57.9, 58.2, 17.2, 58.3, 16.9];
        let found = interval(&modes).unwrap();
        assert!(16.0 < found.low && found.low < 17.1 && 58.1 < found.high && found.high < 59.0, "{found:?}");
    }

    #[test]
    fn a_time_and_its_rate_have_the_same_interval() {
        let times = [110.0, 300.0, 550.0, 120.0, 540.0, 310.0, 290.0];
        let (time, rate) = (interval(&times).unwrap(), interval(&times.map(|x| 1.0 / x)).unwrap());
        assert!(time.low > 0.0 && (time.low * rate.high - 1.0).abs() < 1e-12, "{time:?} {rate:?}");
        assert!((time.high * rate.low - 1.0).abs() < 1e-12, "{time:?} {rate:?}");
    }

    #[test]
    fn equal_launches_have_an_interval_of_width_zero() {
        let found = interval(&[7.0; 9]).unwrap();
        assert_eq!((found.low, found.high, found.drift), (7.0, 7.0, false));
    }
}
