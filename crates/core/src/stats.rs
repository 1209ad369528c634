//! Estimates from samples: the median, its distribution-free interval, and percentiles that have a bound.

mod total;

/// Probability that the true value lies beyond one end of an interval.
const TAIL: f64 = 0.025;
/// Lag-1 autocorrelation above which samples are treated as dependent.
const CORRELATED: f64 = 0.1;
/// Minimum number of samples that have an interval.
const LEAST_FOR_INTERVAL: usize = 6;
/// Minimum number of block medians from which their correlation is estimated.
const FEWEST_BLOCKS: usize = 10;

/// Minimum number of blocks from which their excess variance is estimated.
const FEWEST_LONG_BLOCKS: usize = 16;
/// Standard errors by which the excess variance must differ from chance.
const SIGNIFICANT: f64 = 2.5;

/// Estimates from samples, in the unit of the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of samples.
    pub n: usize,
    /// Median of all samples.
    pub median: f64,
    /// Distribution-free 95 % interval of the median; `None` for fewer than 6 independent values.
    pub ci95: Option<[f64; 2]>,
    /// Samples per block, if the interval was computed from medians of blocks; 1 for independent samples.
    pub block: usize,
    /// Smallest sample.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Largest sample.
    pub max: f64,
    /// Median absolute deviation from the median.
    pub mad: f64,
    /// 95th percentile, if its two-sided 95 % bounds exist (n >= 72).
    pub p95: Option<f64>,
    /// 99th percentile, likewise (n >= 368).
    pub p99: Option<f64>,
    /// 99.9th percentile, likewise (n >= 3688).
    pub p999: Option<f64>,
    /// Lag-1 autocorrelation of the samples in the order of time; 0 for constant samples.
    pub lag1: f64,
    /// Whether the samples fall into two groups with a gap between them.
    pub bimodal: bool,
}

impl Summary {
    /// Summarises samples in the order of time; `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let n = samples.len();
        if n == 0 {
            return None;
        }
        let sorted = sorted(samples);
        let median = median_of_sorted(&sorted);
        let lag1 = lag1(samples);
        let (ci95, block) = interval(samples, &sorted, lag1);
        let percentile = |q: f64| order_bounds(n, q).map(|_| sorted[quantile_index(n, q)]);
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
        summary.mad = median_of_sorted(&deviations);
        Some(summary)
    }

    /// Returns half the interval's width as a fraction of the median; `None` without interval or with a median of 0.
    pub fn precision(&self) -> Option<f64> {
        self.ci95.filter(|_| self.median > 0.0).map(|[low, high]| (high - low) / 2.0 / self.median)
    }

    /// Returns whether dependence between samples is accounted for; true for samples too few to show dependence.
    pub fn independent(&self) -> bool {
        self.ci95.is_some() || self.n < LEAST_FOR_INTERVAL
    }
}

/// Returns the ranks (l, u), from 1, of the order statistics that enclose quantile `q` with 95 % confidence.
///
/// With B ~ Bin(n, q): l = max{j : P(B <= j-1) <= 2.5 %}, u = min{j : P(B >= j) <= 2.5 %}. `None` if one does not exist.
///
/// Method: David and Nagaraja, "Order Statistics", section 7.1.
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

/// Probabilities below this fraction of the largest one are ignored.
const NEGLIGIBLE: f64 = 1e-30;

/// Binomial probabilities that are not negligible: `p[i]` is that of `from + i`.
///
/// They are computed outwards from the mode, so that no `n` underflows.
struct Binomial {
    from: usize,
    p: Vec<f64>,
}

impl Binomial {
    fn new(n: usize, q: f64) -> Binomial {
        let odds = q / (1.0 - q);
        let mode = (((n + 1) as f64) * q).floor().min(n as f64) as usize;
        let relevant = |p: &f64| *p >= NEGLIGIBLE;
        let mut ratio = 1.0;
        let down = (0..mode).rev().map(|k| {
            ratio *= (k + 1) as f64 / (odds * (n - k) as f64);
            ratio
        });
        let mut p: Vec<f64> = down.take_while(relevant).collect();
        let from = mode - p.len();
        p.reverse();
        p.push(1.0);
        ratio = 1.0;
        let up = (mode + 1..=n).map(|k| {
            ratio *= odds * (n + 1 - k) as f64 / k as f64;
            ratio
        });
        p.extend(up.take_while(relevant));
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

/// Returns the median of sorted values.
fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}

/// Returns the index of a sample quantile by the nearest-rank method.
fn quantile_index(n: usize, q: f64) -> usize {
    ((n as f64 * q).ceil() as usize).clamp(1, n) - 1
}

/// Returns the lag-1 autocorrelation; 0 for constant values.
pub fn lag1(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let spread: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let joint: f64 = values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    if spread > 0.0 { joint / spread } else { 0.0 }
}

/// Returns independent values: the samples, or medians of blocks of samples; at most `most` and at least ten.
///
/// `None` if medians of blocks of every length depend on each other.
pub fn independent(samples: &[f64], most: usize) -> Option<Vec<f64>> {
    let mut block = samples.len().div_ceil(most.max(FEWEST_BLOCKS)).max(1);
    loop {
        let values: Vec<f64> = samples.chunks_exact(block).map(|b| median_of_sorted(&sorted(b))).collect();
        if lag1(&values) <= CORRELATED {
            return Some(values);
        }
        block *= 2;
        if samples.len() / block < FEWEST_BLOCKS {
            return None;
        }
    }
}

/// Returns the quantile `q` of sorted values, interpolated between neighbours so that 1/2 gives the median; `None` without
/// values.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let at = q * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[at as usize], sorted[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

/// Returns the median; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| median_of_sorted(&sorted(values)))
}

/// Returns the interval and the length of blocks.
///
/// Correlated samples are replaced by medians of blocks that are long enough to be uncorrelated.
fn interval(samples: &[f64], sorted_samples: &[f64], correlation: f64) -> (Option<[f64; 2]>, usize) {
    if correlation <= CORRELATED {
        let standard_error = 1.0 / (samples.len().max(1) as f64).sqrt();
        let known = if correlation > standard_error { correlation } else { 0.0 };
        let widening = widening_by_dependence(samples, median_of_sorted(sorted_samples), known);
        return (widened_bounds(sorted_samples, widening), 1);
    }
    let mut block = 2;
    while samples.len() / block >= FEWEST_BLOCKS {
        let medians: Vec<f64> = samples.chunks_exact(block).map(|b| median_of_sorted(&sorted(b))).collect();
        let correlation = lag1(&medians);
        if correlation <= CORRELATED {
            // The estimate of the correlation of n values is biased by about -1/n.
            let correlation = correlation + 1.0 / medians.len() as f64;
            let of_blocks = sorted(&medians);
            let widening = widening_by_dependence(&medians, median_of_sorted(&of_blocks), correlation);
            let ends = widened_bounds(&of_blocks, widening);
            // For skewed samples the median of block medians differs from the median, which the interval must contain too.
            let median = median_of_sorted(sorted_samples);
            return (ends.map(|[low, high]| [low.min(median), high.max(median)]), block);
        }
        block *= 2;
    }
    (None, block)
}

/// Returns the order statistics that enclose the median with 95 % confidence, `widening` times farther apart; `None` if they do
/// not exist.
fn widened_bounds(sorted: &[f64], widening: f64) -> Option<[f64; 2]> {
    let (lower, upper) = order_bounds(sorted.len(), 0.5)?;
    let more = ((upper - lower) as f64 / 2.0 * (widening - 1.0)).ceil() as usize;
    (more < lower).then(|| [sorted[lower - 1 - more], sorted[upper - 1 + more]])
}

/// Returns the factor by which dependence between values widens an interval.
///
/// Fast dependence shows in the lag-1 correlation. Slow dependence shows in blocks: the number of values above the median varies
/// between blocks by more than chance.
fn widening_by_dependence(values: &[f64], median: f64, correlation: f64) -> f64 {
    let correlation = correlation.max(0.0);
    let mut variance = (1.0 + correlation) / (1.0 - correlation);
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

/// Returns whether sorted samples fall into two groups.
///
/// Each group has at least a tenth of the samples. The gap is wider than the 10 % to 90 % range of either and than 5 % of the
/// median.
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
    gap > 0.05 * median_of_sorted(sorted) && gap > widest
}

#[cfg(test)]
mod tests;
