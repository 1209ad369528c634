//! Hodges-Lehmann estimate of the shift between two groups, and its distribution-free interval.

use std::collections::HashMap;

use ombx_core::stats::median;
use statrs::distribution::{ContinuousCDF, Normal};

/// Probability on each side of a 90 % interval.
const TAIL: f64 = 0.05;
/// Maximum number of pairs for the exact distribution of the rank sum. Larger groups use the normal approximation.
const COUNTED: usize = 10_000;

/// Differences of all pairs of values of two groups, from the first to the second, in ascending order.
pub(super) struct Shifts(Vec<f64>);

impl Shifts {
    pub(super) fn of(a: &[f64], b: &[f64]) -> Shifts {
        let mut all: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
        all.sort_unstable_by(f64::total_cmp);
        Shifts(all)
    }

    /// Returns the median of the differences; `None` if a group is empty.
    pub(super) fn estimate(&self) -> Option<f64> {
        median(&self.0)
    }

    /// Returns the 90 % interval of the shift, which consists of the shifts that the Mann-Whitney test does not reject. `rank` is that
    /// of the sizes of the groups. Returns `None` if the groups are too small.
    pub(super) fn interval(&self, rank: usize) -> Option<[f64; 2]> {
        (rank > 0).then(|| [self.0[rank - 1], self.0[self.0.len() - rank]])
    }
}

/// Ranks of the ends of intervals, by the sizes of the groups. Most cases of a comparison have the same sizes.
#[derive(Default)]
pub(super) struct Ranks(HashMap<(usize, usize), usize>);

impl Ranks {
    pub(super) fn of(&mut self, a: usize, b: usize) -> usize {
        *self.0.entry((a, b)).or_insert_with(|| rank(a, b))
    }
}

/// Returns the rank, from 1, of the difference that is the lower end of the interval. 0 if there is none.
fn rank(a: usize, b: usize) -> usize {
    let pairs = a * b;
    if pairs > COUNTED {
        let spread = (pairs as f64 * (a + b + 1) as f64 / 12.0).sqrt();
        return (pairs as f64 / 2.0 - Normal::standard().inverse_cdf(1.0 - TAIL) * spread).floor() as usize;
    }
    // Number of arrangements for each count of pairs whose second value is smaller: a Gaussian binomial coefficient.
    let mut ways = vec![0.0; pairs + 1];
    ways[0] = 1.0;
    for i in 1..=a {
        (b + i..=pairs).rev().for_each(|count| ways[count] -= ways[count - b - i]);
        (i..=pairs).for_each(|count| ways[count] += ways[count - i]);
    }
    let all: f64 = ways.iter().sum();
    let below = ways.iter().scan(0.0, |below, ways| {
        *below += ways / all;
        Some(*below)
    });
    below.take_while(|below| *below <= TAIL).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_match_the_table_of_the_test() {
        // Critical values of U, one-sided 5 %, are one smaller: 1, 4, 7, 21, 138, 6; three and two have none.
        for (a, b, expected) in
            [(3, 2, 0), (4, 4, 2), (5, 5, 5), (6, 6, 8), (9, 9, 22), (20, 20, 139), (4, 9, 7)]
        {
            assert_eq!((rank(a, b), rank(b, a)), (expected, expected), "{a} and {b}");
        }
    }

    #[test]
    fn the_count_and_the_normal_approximation_agree() {
        let spread = (2500.0_f64 * 101.0 / 12.0).sqrt();
        let normal = 1250.0 - 1.6449 * spread;
        assert!((rank(50, 50) as f64 - normal).abs() < 2.0);
        assert!((rank(100, 100) as f64 - rank(101, 101) as f64).abs() < 100.0);
    }

    #[test]
    fn the_interval_contains_the_estimate() {
        let (a, b) = ([1.0, 2.0, 4.0, 8.0], [11.0, 12.0, 14.0, 18.0]);
        let shifts = Shifts::of(&a, &b);
        let mut ranks = Ranks::default();
        assert_eq!(shifts.estimate(), Some(10.0));
        // Sorted differences: 3 4 6 7 8 9 10 10 10 10 11 12 13 14 16 17.
        assert_eq!(shifts.interval(ranks.of(4, 4)), Some([4.0, 16.0]));
        assert_eq!(Shifts::of(&a[..2], &b[..3]).interval(ranks.of(2, 3)), None);
        assert_eq!(Shifts::of(&[], &b).estimate(), None);
    }
}
