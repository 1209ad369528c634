//! Two groups of values by their ranks: the Mann-Whitney test, and the interval of the shift between them that belongs to it.

use statrs::distribution::{ContinuousCDF, Normal};

/// Up to so many values in both groups the distribution of the rank sum is counted, beyond it is taken as normal.
const COUNTED: usize = 40;

/// The two-sided p of the Mann-Whitney test that two groups come from one distribution; `None` where one is empty.
///
/// Values that are equal share the mean of their ranks. Small groups: exact, every way of dealing the ranks counted, ties and
/// all. Large ones: normal, corrected for ties and continuity.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let ranked = Ranked::of(a, b);
    if a.len() + b.len() > COUNTED {
        return Some(ranked.normal());
    }
    let weights = rank_sums(&ranked.doubled, a.len());
    let below: f64 = weights[..=ranked.sum].iter().sum();
    let above: f64 = weights[ranked.sum..].iter().sum();
    Some((2.0 * below.min(above)).min(1.0))
}

/// The smallest p that groups of so many values can have: when all of one lie above all of the other.
pub fn smallest_p(a: usize, b: usize) -> f64 {
    let (few, all) = (a.min(b), a + b);
    let ways = (0..few).fold(1.0, |ways, i| ways * (all - i) as f64 / (i + 1) as f64);
    (2.0 / ways).min(1.0)
}

/// The 95 % interval of how far the values of `b` lie above those of `a` [Hodges & Lehmann]: differences of all pairs that the
/// Mann-Whitney test would not refuse. `None` where the groups are too small for any.
pub fn shift_interval(a: &[f64], b: &[f64]) -> Option<[f64; 2]> {
    let pairs = a.len() * b.len();
    let left_out = if a.len() + b.len() > COUNTED {
        let spread = (pairs as f64 * (a.len() + b.len() + 1) as f64 / 12.0).sqrt();
        (pairs as f64 / 2.0 - 1.96 * spread).floor() as usize
    } else {
        // Doubled ranks of values that all differ: the smallest sum, and one more pair in each step of two.
        let ranks: Vec<usize> = (1..=a.len() + b.len()).map(|rank| 2 * rank).collect();
        let weights = rank_sums(&ranks, a.len());
        let steps = weights.iter().skip(a.len() * (a.len() + 1)).step_by(2);
        let tail = steps.scan(0.0, |below, weight| {
            *below += weight;
            Some(*below)
        });
        tail.take_while(|below| *below <= super::TAIL).count()
    };
    let mut shifts: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
    shifts.sort_by(f64::total_cmp);
    (left_out > 0).then(|| [shifts[left_out - 1], shifts[pairs - left_out]])
}

/// Values of two groups put in one order.
struct Ranked {
    /// The rank of each value, from 1 and twice, so that the mean of two is a whole number.
    doubled: Vec<usize>,
    /// Sum of those of the first group.
    sum: usize,
    /// In the first group.
    first: usize,
    /// Sum over groups of equal values of t^3 - t.
    ties: f64,
}

impl Ranked {
    fn of(a: &[f64], b: &[f64]) -> Ranked {
        let mut all: Vec<(f64, bool)> =
            a.iter().map(|x| (*x, true)).chain(b.iter().map(|x| (*x, false))).collect();
        all.sort_by(|x, y| x.0.total_cmp(&y.0));
        let mut ranked = Ranked { doubled: Vec::with_capacity(all.len()), sum: 0, first: a.len(), ties: 0.0 };
        for equal in all.chunk_by(|x, y| x.0 == y.0) {
            let rank = 2 * ranked.doubled.len() + equal.len() + 1;
            ranked.sum += rank * equal.iter().filter(|(_, first)| *first).count();
            ranked.doubled.resize(ranked.doubled.len() + equal.len(), rank);
            let t = equal.len() as f64;
            ranked.ties += t * t * t - t;
        }
        ranked
    }

    fn normal(&self) -> f64 {
        let n = self.doubled.len() as f64;
        let (first, second) = (self.first as f64, n - self.first as f64);
        let variance = first * second / 12.0 * (n + 1.0 - self.ties / (n * (n - 1.0)));
        if variance <= 0.0 {
            return 1.0;
        }
        let off = (self.sum as f64 / 2.0 - first * (n + 1.0) / 2.0).abs();
        let z = (off - 0.5).max(0.0) / variance.sqrt();
        (2.0 * Normal::standard().sf(z)).min(1.0)
    }
}

/// The probability of each sum that `take` of these ranks can have, all choices alike.
fn rank_sums(ranks: &[usize], take: usize) -> Vec<f64> {
    let most: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0; most + 1]; take + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        for taken in (0..take).rev() {
            for sum in (0..=most - rank).rev() {
                let more = ways[taken][sum];
                ways[taken + 1][sum + rank] += more;
            }
        }
    }
    let mut ways = ways.swap_remove(take);
    let all: f64 = ways.iter().sum();
    ways.iter_mut().for_each(|way| *way /= all);
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6 * b.abs().max(1e-9), "{a} is not {b}");
    }

    /// Of a handful of values by trying every way to deal them out.
    fn tried(a: &[f64], b: &[f64]) -> f64 {
        let ranked = Ranked::of(a, b);
        let (mut below, mut above, mut all) = (0.0, 0.0, 0.0);
        for choice in 0u32..1 << ranked.doubled.len() {
            if choice.count_ones() as usize == a.len() {
                let sum: usize = ranked
                    .doubled
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| choice >> i & 1 == 1)
                    .map(|(_, r)| r)
                    .sum();
                all += 1.0;
                below += f64::from(u8::from(sum <= ranked.sum));
                above += f64::from(u8::from(sum >= ranked.sum));
            }
        }
        (2.0 * f64::min(below, above) / all).min(1.0)
    }

    #[test]
    fn small_groups_are_counted() {
        // Tables of the test: five and five apart, two-sided 2/252; three and four with U = 1, 2 x 2/35.
        close(mann_whitney(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]).unwrap(), 2.0 / 252.0);
        close(mann_whitney(&[1.0, 2.0, 4.0], &[3.0, 5.0, 6.0, 7.0]).unwrap(), 4.0 / 35.0);
        close(mann_whitney(&[1.0, 1.0], &[1.0, 1.0]).unwrap(), 1.0);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        close(smallest_p(5, 5), 2.0 / 252.0);
        close(smallest_p(1, 9), 0.2);
    }

    #[test]
    fn large_groups_are_normal_and_agree_with_the_count() {
        let of = |n: usize, step: f64| (0..n).map(|i| i as f64 * 7.0 % n as f64 + step).collect::<Vec<_>>();
        for step in [0.5, 3.5, 6.5] {
            let (a, b) = (of(20, 0.0), of(20, step));
            let (counted, normal) = (mann_whitney(&a, &b).unwrap(), Ranked::of(&a, &b).normal());
            assert!((counted - normal).abs() < 0.01, "{counted} {normal}");
        }
        // Ties: 30 and 30 values of two kinds, 10 against 20 of the higher; z by hand: (150 - 0.5) / 19.449.
        let mixed = |high: usize| (0..30).map(|i| f64::from(u8::from(i < high))).collect::<Vec<_>>();
        let p = mann_whitney(&mixed(10), &mixed(20)).unwrap();
        close(
            p,
            2.0 * Normal::standard()
                .sf(149.5 / (900.0_f64 / 12.0 * (61.0 - 2.0 * (27000.0 - 30.0) / 3540.0)).sqrt()),
        );
    }

    #[test]
    fn the_interval_belongs_to_the_test() {
        // Five and five: the test refuses U = 2 and below (p = 4/126), so two differences are left out on each side.
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [11.0, 22.0, 33.0, 44.0, 55.0]);
        let mut shifts: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
        shifts.sort_by(f64::total_cmp);
        assert_eq!(shift_interval(&a, &b), Some([shifts[2], shifts[22]]));
        assert_eq!(shift_interval(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), None);
        assert!(shift_interval(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, 4.0]).is_some());
    }

    proptest! {
        #[test]
        fn the_count_is_what_trying_gives(a in prop::collection::vec(0u8..6, 1..6), b in prop::collection::vec(0u8..6, 1..6)) {
            let of = |v: &[u8]| v.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            let (a, b) = (of(&a), of(&b));
            prop_assert!((mann_whitney(&a, &b).unwrap() - tried(&a, &b)).abs() < 1e-9);
            prop_assert!((mann_whitney(&a, &b).unwrap() - mann_whitney(&b, &a).unwrap()).abs() < 1e-9);
            prop_assert!(mann_whitney(&a, &b).unwrap() >= smallest_p(a.len(), b.len()) - 1e-12);
        }

        #[test]
        fn an_interval_without_zero_is_a_small_p(a in prop::collection::vec(0.0..10.0f64, 4..9), b in prop::collection::vec(0.0..20.0f64, 4..9)) {
            let p = mann_whitney(&a, &b).unwrap();
            if let Some([low, high]) = shift_interval(&a, &b) {
                prop_assert_eq!(low > 0.0 || high < 0.0, p <= 0.05);
            }
        }
    }
}
