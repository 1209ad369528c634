//! Interval of the median over launches.

use ombx_core::stats::order_bounds;

/// Minimum number of launches for a 95 % interval.
const LEAST_LAUNCHES: usize = 6;

/// Least lag-1 autocorrelation that launches are taken to have. Launches of one run share seconds in which the machine keeps one of its
/// states, and 6 to 30 of them are too few to show how much.
const LEAST_CORRELATION: f64 = 0.5;

/// Largest correlation that widens an interval. Beyond it the launches have a trend, which is marked.
const MOST_CORRELATION: f64 = 0.9;

/// Standard errors of the autocorrelation above which launches are said to drift. Independent launches seldom exceed it; the
/// widening of the interval starts at 1.
const SURELY_DEPENDENT: f64 = 2.0;

/// Interval of the median of all launches, from the launches that were measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Low end, in the unit of the launches' values.
    pub low: f64,
    /// High end, in the same unit.
    pub high: f64,
    /// Probability that the interval contains the median of all launches, if they depend on each other as it assumes.
    pub coverage: f64,
    /// Whether the launches depend on each other by more than chance, and so much that even their range is too narrow for 95 %.
    pub drift: bool,
}

/// Returns the interval of the median, from values in the order of launches; `None` for fewer than 2.
///
/// The ends are order statistics, with ranks moved outward by sqrt((1 + q) / (1 - q)), where q is the lag-1 autocorrelation of the
/// launches' ranks plus 1 / n, if that exceeds 1 / sqrt(n), and 0.5 to 0.9. A rank below 1 continues the range by its mean step per
/// rank, but not from times to below 0. With fewer than 6 launches the interval is their range.
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
    let q = correlation(values) + 1.0 / n as f64;
    let sure = |errors: f64| q > errors / (n as f64).sqrt();
    let center = (n + 1) as f64 / 2.0;
    // The tolerance keeps a rank that rounding moves by a last digit.
    let rank = |q: f64| center - (center - lower as f64) * ((1.0 + q) / (1.0 - q)).sqrt() + 1e-9;
    let taken = if sure(1.0) { q } else { 0.0 };
    let moved = rank(taken.clamp(LEAST_CORRELATION, MOST_CORRELATION));
    let (low, high) = if moved < 1.0 {
        let beyond = (1.0 - moved) * (most - least) / (n - 1) as f64;
        (if least < 0.0 { least - beyond } else { (least - beyond).max(0.0) }, most + beyond)
    } else {
        let moved = moved as usize;
        (sorted[moved - 1], sorted[n - moved])
    };
    let drift = sure(SURELY_DEPENDENT) && rank(q.min(MOST_CORRELATION)) < 1.0;
    Some(Interval { low, high, coverage: coverage(n, lower), drift })
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

    /// Values whose ranks alternate, so that the order shows no dependence.
    fn alternating(n: usize) -> Vec<f64> {
        (0..n).map(|i| if i % 2 == 0 { i / 2 } else { n - 1 - i / 2 } as f64 + 1.0).collect()
    }

    #[test]
    fn ranks_and_coverage_are_those_of_the_method() {
        // Launches, distance of the ends from the median in ranks, coverage in percent.
        let table = [
            (2, 0.5, 50.0),
            (3, 1.0, 75.0),
            (4, 1.5, 87.5),
            (5, 2.0, 93.8),
            (6, 4.330, 96.9),
            (8, 6.062, 99.2),
            (9, 5.196, 96.1),
            (10, 6.062, 97.9),
            (12, 6.062, 96.1),
            (15, 7.0, 96.5),
            (20, 8.5, 95.9),
            (25, 9.0, 95.7),
            (30, 10.5, 95.7),
        ];
        for (n, distance, percent) in table {
            let found = interval(&alternating(n).iter().map(|x| x + 100.0).collect::<Vec<_>>()).unwrap();
            let center = 100.0 + (n + 1) as f64 / 2.0;
            assert!((found.high - center - distance).abs() < 1e-3, "{n}: {found:?}");
            assert!((center - found.low - distance).abs() < 1e-3, "{n}: {found:?}");
            assert!((found.coverage * 100.0 - percent).abs() < 0.1, "{n}: {}", found.coverage);
            assert!(!found.drift, "{n}");
        }
        assert_eq!(interval(&[1.0]), None);
    }

    #[test]
    fn dependence_widens_and_a_trend_is_a_drift() {
        // Ranks with a lag-1 autocorrelation of 0.6.
        let blocks = [12.0, 13.0, 15.0, 14.0, 11.0, 7.0, 3.0, 1.0, 2.0, 5.0, 9.0, 6.0, 8.0, 10.0, 4.0];
        let (plain, widened) = (interval(&alternating(15)).unwrap(), interval(&blocks).unwrap());
        assert!(widened.low < plain.low && widened.high > plain.high, "{plain:?} {widened:?}");
        let trend: Vec<f64> = (0..15).map(f64::from).collect();
        let found = interval(&trend).unwrap();
        assert!(found.drift && found.low == 0.0 && found.high > 14.0, "{found:?}");
    }

    #[test]
    fn equal_launches_have_an_interval_of_width_zero() {
        let found = interval(&[7.0; 9]).unwrap();
        assert_eq!((found.low, found.high, found.drift), (7.0, 7.0, false));
    }
}
