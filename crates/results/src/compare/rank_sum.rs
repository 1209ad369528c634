//! Mann-Whitney test for two groups of values, and the matching interval of their shift.

use statrs::distribution::{ContinuousCDF, Normal};

/// Maximum number of values for the exact distribution of the rank sum. Larger groups use the normal approximation.
const COUNTED: usize = 40;

/// Returns the two-sided p value of the Mann-Whitney test, or `None` if a group is empty.
///
/// Equal values share the mean of their ranks. Small groups are tested exactly, including ties. Large groups use the
/// normal approximation with corrections for ties and continuity.
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

/// Returns the smallest possible p value for groups of these sizes: all values of one group exceed the other.
pub fn smallest_p(a: usize, b: usize) -> f64 {
    let (few, all) = (a.min(b), a + b);
    let ways = (0..few).fold(1.0, |ways, i| ways * (all - i) as f64 / (i + 1) as f64);
    (2.0 / ways).min(1.0)
}

/// Returns the 95 % Hodges-Lehmann interval of the shift from `a` to `b`.
///
/// It consists of the differences of pairs that the Mann-Whitney test does not reject. Returns `None` if the groups are
/// too small.
pub fn shift_interval(a: &[f64], b: &[f64]) -> Option<[f64; 2]> {
    let pairs = a.len() * b.len();
    let left_out = if a.len() + b.len() > COUNTED {
        let spread = (pairs as f64 * (a.len() + b.len() + 1) as f64 / 12.0).sqrt();
        (pairs as f64 / 2.0 - 1.96 * spread).floor() as usize
    } else {
        // Ranks are doubled. Starting at the smallest sum, each step of two is one more pair.
        let ranks: Vec<usize> = (1..=a.len() + b.len()).map(|rank| 2 * rank).collect();
        let weights = rank_sums(&ranks, a.len());
        let steps = weights.iter().skip(a.len() * (a.len() + 1)).step_by(2);
        let tail = steps.scan(0.0, |below, weight| {
            *below += weight;
            Some(*below)
        });
        tail.take_while(|below| *below <= super::comparison::TAIL).count()
    };
    let mut shifts: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
    shifts.sort_by(f64::total_cmp);
    (left_out > 0).then(|| [shifts[left_out - 1], shifts[pairs - left_out]])
}

/// Values of two groups, ranked together.
struct Ranked {
    /// Rank of each value, from 1, doubled: the mean of two ranks stays an integer.
    doubled: Vec<usize>,
    /// Sum of the doubled ranks of the first group.
    sum: usize,
    /// Size of the first group.
    first: usize,
    /// Sum of t^3 - t over all groups of t equal values.
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

/// Returns the probability of each sum of `take` ranks, when all choices are equally likely.
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

    /// Computes the exact p value by enumeration of all choices.
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
        // From tables of the test: five and five apart, two-sided 2/252. Three and four with U = 1, 2 x 2/35.
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
        // Ties: 30 and 30 values of two kinds, with 10 and 20 of the higher. By hand: z = (150 - 0.5) / 19.449.
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
        // Five and five: the test rejects U <= 2 (p = 4/126). Two differences are left out on each side.
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [11.0, 22.0, 33.0, 44.0, 55.0]);
        let mut shifts: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
        shifts.sort_by(f64::total_cmp);
        assert_eq!(shift_interval(&a, &b), Some([shifts[2], shifts[22]]));
        assert_eq!(shift_interval(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), None);
        assert!(shift_interval(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, 4.0]).is_some());
    }

    proptest! {
        #[test]
        fn exact_counts_match_enumeration(a in prop::collection::vec(0u8..6, 1..6), b in prop::collection::vec(0u8..6, 1..6)) {
            let of = |v: &[u8]| v.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            let (a, b) = (of(&a), of(&b));
            prop_assert!((mann_whitney(&a, &b).unwrap() - tried(&a, &b)).abs() < 1e-9);
            prop_assert!((mann_whitney(&a, &b).unwrap() - mann_whitney(&b, &a).unwrap()).abs() < 1e-9);
            prop_assert!(mann_whitney(&a, &b).unwrap() >= smallest_p(a.len(), b.len()) - 1e-12);
        }

        #[test]
        fn an_interval_without_zero_has_a_small_p_value(a in prop::collection::vec(0.0..10.0f64, 4..9), b in prop::collection::vec(0.0..20.0f64, 4..9)) {
            let p = mann_whitney(&a, &b).unwrap();
            if let Some([low, high]) = shift_interval(&a, &b) {
                prop_assert_eq!(low > 0.0 || high < 0.0, p <= 0.05);
            }
        }
    }
}
