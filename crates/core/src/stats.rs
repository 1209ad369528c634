//! Estimates from samples: the median, its distribution-free interval, percentiles only where they have a bound.

/// One less than this level is the chance that an interval misses, half of it on each side.
const TAIL: f64 = 0.025;
/// Lag-1 autocorrelation above which samples are not treated as independent.
const CORRELATED: f64 = 0.1;
/// Fewer block medians than this say too little about their own correlation.
const FEWEST_BLOCKS: usize = 10;

/// What samples say, in the unit of the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of samples.
    pub n: usize,
    /// Median of all samples.
    pub median: f64,
    /// Distribution-free 95 % interval of the median; `None` for fewer than 6 independent values.
    pub ci95: Option<[f64; 2]>,
    /// Samples in each block whose medians the interval was computed from; 1 where samples are independent.
    pub block: usize,
    /// Smallest sample.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Largest sample.
    pub max: f64,
    /// Median absolute deviation from the median.
    pub mad: f64,
    /// 95th percentile, where n has a two-sided 95 % bound for it (n >= 72).
    pub p95: Option<f64>,
    /// 99th percentile (n >= 368).
    pub p99: Option<f64>,
    /// 99.9th percentile (n >= 3688).
    pub p999: Option<f64>,
    /// Lag-1 autocorrelation of the samples in the order they were taken; 0 where they do not vary.
    pub lag1: f64,
    /// Whether the samples fall into two groups with a gap between them.
    pub bimodal: bool,
}

impl Summary {
    /// Summarises samples in the order in which they were taken; `None` of none.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let n = samples.len();
        if n == 0 {
            return None;
        }
        let sorted = sorted(samples);
        let median = middle(&sorted);
        let mut deviations: Vec<f64> = sorted.iter().map(|x| (x - median).abs()).collect();
        deviations.sort_by(f64::total_cmp);
        let lag1 = lag1(samples);
        let (ci95, block) = interval(samples, &sorted, lag1);
        let percentile = |q: f64| order_bounds(n, q).map(|_| sorted[rank_of(n, q)]);
        Some(Summary {
            n,
            median,
            ci95,
            block,
            min: sorted[0],
            mean: samples.iter().sum::<f64>() / n as f64,
            max: sorted[n - 1],
            mad: middle(&deviations),
            p95: percentile(0.95),
            p99: percentile(0.99),
            p999: percentile(0.999),
            lag1,
            bimodal: bimodal(&sorted),
        })
    }

    /// Half the interval's width as a fraction of the median; `None` where either does not exist.
    pub fn precision(&self) -> Option<f64> {
        self.ci95.filter(|_| self.median > 0.0).map(|[low, high]| (high - low) / 2.0 / self.median)
    }

    /// Whether the interval allows for dependence between samples, or need not.
    pub fn independent(&self) -> bool {
        self.ci95.is_some() || self.lag1 <= CORRELATED
    }
}

/// The ranks (l, u), from 1, of the order statistics that enclose quantile `q` of the distribution with 95 % confidence.
///
/// With B ~ Bin(n, q): l = max{j : P(B <= j-1) <= 2.5 %}, u = min{j : P(B >= j) <= 2.5 %}; `None` where one does not exist.
pub fn order_bounds(n: usize, q: f64) -> Option<(usize, usize)> {
    let pmf = Binomial::new(n, q);
    let (mut below, mut lower) = (0.0, pmf.from);
    for p in &pmf.p {
        below += p;
        if below > TAIL {
            break;
        }
        lower += 1;
    }
    let (mut above, mut upper) = (0.0, pmf.from + pmf.p.len());
    for p in pmf.p.iter().rev() {
        above += p;
        if above > TAIL {
            break;
        }
        upper -= 1;
    }
    (lower >= 1 && upper <= n).then_some((lower, upper))
}

/// Below this part of the largest probability, one is as good as none.
const NEGLIGIBLE: f64 = 1e-30;

/// Binomial probabilities, computed outwards from the mode so that no n underflows, and only as far as they count:
/// `p[i]` is that of `from + i`.
struct Binomial {
    from: usize,
    p: Vec<f64>,
}

impl Binomial {
    fn new(n: usize, q: f64) -> Binomial {
        let odds = q / (1.0 - q);
        let mode = (((n + 1) as f64) * q).floor().min(n as f64) as usize;
        let counts = |p: &f64| *p >= NEGLIGIBLE;
        let mut ratio = 1.0;
        let down = (0..mode).rev().map(|k| {
            ratio *= (k + 1) as f64 / (odds * (n - k) as f64);
            ratio
        });
        let mut p: Vec<f64> = down.take_while(counts).collect();
        let from = mode - p.len();
        p.reverse();
        p.push(1.0);
        ratio = 1.0;
        let up = (mode + 1..=n).map(|k| {
            ratio *= odds * (n + 1 - k) as f64 / k as f64;
            ratio
        });
        p.extend(up.take_while(counts));
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|x| *x /= total);
        Binomial { from, p }
    }
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Median of sorted values.
fn middle(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}

/// Index of the sample quantile (nearest rank).
fn rank_of(n: usize, q: f64) -> usize {
    ((n as f64 * q).ceil() as usize).clamp(1, n) - 1
}

/// Lag-1 autocorrelation; 0 for values that do not vary.
pub fn lag1(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let spread: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let joint: f64 = values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    if spread > 0.0 { joint / spread } else { 0.0 }
}

/// The interval, from samples or, where they are correlated, from medians of blocks long enough not to be.
fn interval(samples: &[f64], sorted_samples: &[f64], correlation: f64) -> (Option<[f64; 2]>, usize) {
    let of = |sorted: &[f64]| order_bounds(sorted.len(), 0.5).map(|(l, u)| [sorted[l - 1], sorted[u - 1]]);
    if correlation <= CORRELATED {
        return (of(sorted_samples), 1);
    }
    let mut block = 2;
    while samples.len() / block >= FEWEST_BLOCKS {
        let medians: Vec<f64> = samples.chunks_exact(block).map(|b| middle(&sorted(b))).collect();
        if lag1(&medians) <= CORRELATED {
            // Of a skewed sample the median of block medians lies elsewhere: the interval must hold the headline too.
            let median = middle(sorted_samples);
            return (of(&sorted(&medians)).map(|[low, high]| [low.min(median), high.max(median)]), block);
        }
        block *= 2;
    }
    (None, block)
}

/// Two groups, each at least a tenth of the samples, with a gap far wider than either's own spread and 5 % of the median.
fn bimodal(sorted: &[f64]) -> bool {
    let n = sorted.len();
    let edge = n.div_ceil(10).max(3);
    if n < 2 * edge + 2 {
        return false;
    }
    let gap = (edge..n - edge).map(|i| (sorted[i] - sorted[i - 1], i)).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((gap, at)) = gap else { return false };
    let inner = |group: &[f64]| group[group.len() * 9 / 10] - group[group.len() / 10];
    let widest = inner(&sorted[..at]).max(inner(&sorted[at..]));
    gap > 0.05 * middle(sorted) && gap > widest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_statistics_of_the_median() {
        for (n, bounds) in
            [(6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (30, (10, 21)), (100, (40, 61)), (1000, (469, 532))]
        {
            assert_eq!(order_bounds(n, 0.5), Some(bounds), "n = {n}");
        }
        for n in 0..6 {
            assert_eq!(order_bounds(n, 0.5), None, "n = {n}");
        }
    }

    #[test]
    fn percentiles_need_enough_samples() {
        for (q, least) in [(0.95, 72), (0.99, 368), (0.999, 3688)] {
            assert_eq!(order_bounds(least - 1, q), None, "{q}");
            assert!(order_bounds(least, q).is_some(), "{q}");
        }
        let samples: Vec<f64> = (0..400).map(|i| f64::from(i * 7919 % 400)).collect();
        let s = Summary::of(&samples).unwrap();
        assert_eq!((s.p95, s.p99, s.p999), (Some(379.0), Some(395.0), None));
    }

    #[test]
    fn many_samples_do_not_underflow() {
        let (l, u) = order_bounds(200_000, 0.5).unwrap();
        assert!(u - l < 1000 && l < 100_000 && u > 100_000);
    }

    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        // Bounds of the coverage itself: 95 % or more by construction, and not absurdly wide.
        for n in [6, 10, 31, 100, 365] {
            let (l, u) = order_bounds(n, 0.5).unwrap();
            let pmf = Binomial::new(n, 0.5);
            let covered: f64 = pmf.p[l - pmf.from..u - pmf.from].iter().sum();
            assert!((0.95..0.99).contains(&covered), "n = {n}: {covered}");
        }
    }

    #[test]
    fn correlated_samples_widen_the_interval_or_say_so() {
        let mut state = 1u64;
        let mut noise = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / (1u64 << 31) as f64 - 0.5
        };
        let mut x = 0.0;
        let walk: Vec<f64> = (0..4000)
            .map(|_| {
                x = 0.9 * x + noise();
                100.0 + x
            })
            .collect();
        let s = Summary::of(&walk).unwrap();
        assert!(s.lag1 > 0.8 && s.block > 1, "{s:?}");
        let naive =
            order_bounds(4000, 0.5).map(|(l, u)| sorted(&walk)[u - 1] - sorted(&walk)[l - 1]).unwrap();
        let [low, high] = s.ci95.unwrap();
        assert!(high - low > 2.0 * naive);
        let drift: Vec<f64> = (0..100).map(f64::from).collect();
        let s = Summary::of(&drift).unwrap();
        assert!(s.ci95.is_none() && !s.independent());
    }

    #[test]
    fn two_modes_are_seen_and_one_is_not() {
        let two: Vec<f64> =
            (0..200).map(|i| if i % 3 == 0 { 570.0 } else { 130.0 } + f64::from(i % 7)).collect();
        assert!(Summary::of(&two).unwrap().bimodal);
        let one: Vec<f64> = (0..200).map(|i| 130.0 + f64::from(i * 37 % 200) / 10.0).collect();
        assert!(!Summary::of(&one).unwrap().bimodal);
        let outlier: Vec<f64> =
            (0..200).map(|i| if i == 7 { 1e6 } else { 130.0 + f64::from(i % 5) }).collect();
        assert!(!Summary::of(&outlier).unwrap().bimodal);
    }

    #[test]
    fn one_outlier_moves_the_mean_and_not_the_median() {
        let mut samples = vec![10.0; 99];
        samples.push(1e5);
        let s = Summary::of(&samples).unwrap();
        assert_eq!((s.median, s.ci95, s.mad), (10.0, Some([10.0, 10.0]), 0.0));
        assert!(s.mean > 1000.0);
        assert_eq!(Summary::of(&[]), None);
    }

    proptest! {
        #[test]
        fn a_summary_is_ordered_whatever_the_samples(samples in prop::collection::vec(0.0f64..1e12, 1..400)) {
            let s = Summary::of(&samples).unwrap();
            prop_assert!(s.min <= s.median && s.median <= s.max);
            prop_assert!(s.min <= s.mean * (1.0 + 1e-12) && s.mean <= s.max * (1.0 + 1e-12));
            if let Some([low, high]) = s.ci95 {
                prop_assert!(s.min <= low && low <= high && high <= s.max);
            }
            prop_assert!((-1.0..=1.0).contains(&s.lag1));
            for p in [s.p95, s.p99, s.p999].into_iter().flatten() {
                prop_assert!(p >= s.median && p <= s.max);
            }
        }

        #[test]
        fn the_interval_holds_the_headline(seed in any::<u64>(), pull in 0.0f64..0.95, skew in 1i32..9) {
            let mut state = seed;
            let mut x = 0.0;
            let samples: Vec<f64> = (0..500).map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                x = pull * x + ((state >> 33) as f64 / (1u64 << 31) as f64).powi(skew);
                1.0 + x
            }).collect();
            let s = Summary::of(&samples).unwrap();
            if let Some([low, high]) = s.ci95 {
                prop_assert!(low <= s.median && s.median <= high);
            }
        }

        #[test]
        fn scaling_samples_scales_the_summary(samples in prop::collection::vec(1.0f64..1e6, 6..80)) {
            let doubled: Vec<f64> = samples.iter().map(|x| x * 2.0).collect();
            let (a, b) = (Summary::of(&samples).unwrap(), Summary::of(&doubled).unwrap());
            prop_assert!((b.median - 2.0 * a.median).abs() < 1e-6);
            prop_assert_eq!(a.ci95.is_some(), b.ci95.is_some());
        }

        #[test]
        fn bounds_match_their_definition(n in 6usize..300) {
            let (l, u) = order_bounds(n, 0.5).unwrap();
            prop_assert_eq!(l + u, n + 1);
            let Binomial { from, p } = Binomial::new(n, 0.5);
            let below = |j: usize| p[..j - from].iter().sum::<f64>();
            prop_assert!(below(l) <= TAIL && below(l + 1) > TAIL);
        }
    }
}
