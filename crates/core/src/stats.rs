//! Estimates from samples: the median, its distribution-free interval, percentiles only where they have a bound.

/// One less than this level is the chance that an interval misses, half of it on each side.
const TAIL: f64 = 0.025;
/// Lag-1 autocorrelation above which samples are not treated as independent.
const CORRELATED: f64 = 0.1;
/// Fewer samples have no interval.
const LEAST_FOR_INTERVAL: usize = 6;
/// Fewer block medians than this say too little about their own correlation.
const FEWEST_BLOCKS: usize = 10;

/// Fewer blocks than this say too little about how much more than by chance they vary.
const FEWEST_LONG_BLOCKS: usize = 16;
/// Standard errors by which they have to.
const SIGNIFICANT: f64 = 2.5;

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
        let lag1 = lag1(samples);
        let (ci95, block) = interval(samples, &sorted, lag1);
        let percentile = |q: f64| order_bounds(n, q).map(|_| sorted[rank_of(n, q)]);
        let mut summary = Summary {
            n,
            median,
            ci95,
            block,
            min: sorted[0],
            mean: samples.iter().sum::<f64>() / n as f64,
            max: sorted[n - 1],
            mad: 0.0,
            p95: percentile(0.95),
            p99: percentile(0.99),
            p999: percentile(0.999),
            lag1,
            bimodal: bimodal(&sorted),
        };
        let mut deviations = sorted;
        deviations.iter_mut().for_each(|x| *x = (*x - median).abs());
        deviations.sort_unstable_by(f64::total_cmp);
        summary.mad = middle(&deviations);
        Some(summary)
    }

    /// Half the interval's width as a fraction of the median; `None` where either does not exist.
    pub fn precision(&self) -> Option<f64> {
        self.ci95.filter(|_| self.median > 0.0).map(|[low, high]| (high - low) / 2.0 / self.median)
    }

    /// Whether the interval allows for dependence between samples, or need not; too few samples tell nothing of it.
    pub fn independent(&self) -> bool {
        self.ci95.is_some() || self.n < LEAST_FOR_INTERVAL
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

/// Values that do not depend on those before them, at most `most` and at least ten: the samples, or medians of blocks of them.
/// `None` where samples depend on each other however they are grouped.
pub fn independent(samples: &[f64], most: usize) -> Option<Vec<f64>> {
    let mut block = samples.len().div_ceil(most.max(FEWEST_BLOCKS)).max(1);
    loop {
        let values: Vec<f64> = samples.chunks_exact(block).map(|b| middle(&sorted(b))).collect();
        if lag1(&values) <= CORRELATED {
            return Some(values);
        }
        block *= 2;
        if samples.len() / block < FEWEST_BLOCKS {
            return None;
        }
    }
}

/// The median; `None` of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| middle(&sorted(values)))
}

/// The interval, from samples or, where they are correlated, from medians of blocks long enough not to be; and the length of blocks.
fn interval(samples: &[f64], sorted_samples: &[f64], correlation: f64) -> (Option<[f64; 2]>, usize) {
    if correlation <= CORRELATED {
        let unsure = 1.0 / (samples.len().max(1) as f64).sqrt();
        let known = if correlation > unsure { correlation } else { 0.0 };
        let wider = dependence(samples, middle(sorted_samples), known);
        return (bounded(sorted_samples, wider), 1);
    }
    let mut block = 2;
    while samples.len() / block >= FEWEST_BLOCKS {
        let medians: Vec<f64> = samples.chunks_exact(block).map(|b| middle(&sorted(b))).collect();
        let correlation = lag1(&medians);
        if correlation <= CORRELATED {
            // So few values read their own correlation low by about 1/n.
            let correlation = correlation + 1.0 / medians.len() as f64;
            let of_blocks = sorted(&medians);
            let wider = dependence(&medians, middle(&of_blocks), correlation);
            let ends = bounded(&of_blocks, wider);
            // Of a skewed sample the median of block medians lies elsewhere: the interval must hold the headline too.
            let median = middle(sorted_samples);
            return (ends.map(|[low, high]| [low.min(median), high.max(median)]), block);
        }
        block *= 2;
    }
    (None, block)
}

/// The order statistics about the median with 95 % confidence, so many times farther from it; `None` where there are none.
fn bounded(sorted: &[f64], wider: f64) -> Option<[f64; 2]> {
    let (lower, upper) = order_bounds(sorted.len(), 0.5)?;
    let more = ((upper - lower) as f64 / 2.0 * (wider - 1.0)).ceil() as usize;
    (more < lower).then(|| [sorted[lower - 1 - more], sorted[upper - 1 + more]])
}

/// How many times wider an interval has to be because values depend on each other: by their lag-1 correlation, which is small, and
/// by what is slower, as far as this many values show it.
///
/// What is slower shows in blocks: how many of a block's values lie above the median varies more than chance lets it.
fn dependence(values: &[f64], median: f64, correlation: f64) -> f64 {
    let near = correlation.max(0.0);
    let mut variance = (1.0 + near) / (1.0 - near);
    let sides: Vec<i8> = values.iter().map(|x| i8::from(*x > median) - i8::from(*x < median)).collect();
    let of_one = sides.iter().filter(|side| **side != 0).count() as f64 / sides.len().max(1) as f64;
    let mut block = 2;
    while of_one > 0.0 && values.len() / block >= FEWEST_LONG_BLOCKS {
        let sums =
            sides.chunks_exact(block).map(|sides| sides.iter().map(|side| f64::from(*side)).sum::<f64>());
        let count = (values.len() / block) as f64;
        let ratio = sums.map(|sum| sum * sum).sum::<f64>() / (count - 1.0) / (block as f64 * of_one);
        if ratio > 1.0 + SIGNIFICANT * (2.0 / (count - 1.0)).sqrt() {
            variance = variance.max(ratio);
        }
        block *= 2;
    }
    variance.sqrt()
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
mod tests;
