//! Estimates from samples: the median and percentiles, with distribution-free intervals.

use serde::{Deserialize, Serialize};

use crate::order::sort;

mod disturbance;

pub use self::disturbance::HeadlineOf;

/// Probability that the true value lies beyond one end of an interval.
const TAIL: f64 = 0.025;
/// Minimum number of samples that have an interval.
const LEAST_FOR_INTERVAL: usize = 6;
/// Minimum number of independent samples that dependent samples must be worth.
const LEAST_WORTH: f64 = 10.0;
/// Lag-1 autocorrelation of medians of blocks above which longer blocks are needed.
const CORRELATED: f64 = 0.1;
/// Rounds that are spread over the queues of a library together.
pub const SPREAD: usize = 8;
/// Autocorrelation of the levels of rounds above which the machine drifted.
pub const DRIFT: f64 = 0.5;
/// Minimum number of block medians from which their correlation is estimated.
const FEWEST_BLOCKS: usize = 10;

/// Estimates from samples, in the unit of the samples. In result files that is a nanosecond.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Number of samples.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub n: usize,
    /// Median of all samples; in rounds, the mean of their levels.
    #[serde(rename = "median_ns")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub median: f64,
    /// Distribution-free 95 % interval of the median; `None` for fewer than 6 samples, or where dependent samples are worth fewer
    /// than 10 independent ones.
    #[serde(default, rename = "ci95_ns", skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Smallest sample.
    #[serde(rename = "min_ns")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub min: f64,
    /// Arithmetic mean.
    #[serde(rename = "mean_ns")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub mean: f64,
    /// Largest sample.
    #[serde(rename = "max_ns")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub max: f64,
    /// Median absolute deviation from the median.
    #[serde(rename = "mad_ns")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub mad: f64,
    /// Number of samples of single iterations, from which the percentiles come; 0 without such samples.
    #[serde(default)]
    pub tail_n: usize,
    /// 95th percentile, if its two-sided 95 % bounds exist (n >= 72, more for dependent samples).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<Percentile>,
    /// 99th percentile, likewise (n >= 368).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Percentile>,
    /// 99.9th percentile, likewise (n >= 3688).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<Percentile>,
    /// Percentiles that the user chose: each number, and its value if its bounds exist. Not in result files, whose samples give them.
    #[serde(skip)]
    pub chosen: Vec<(f64, Option<Percentile>)>,
    /// Lag-1 autocorrelation of the samples in the order of time; 0 for constant samples.
    pub lag1: f64,
    /// Whether the samples fall into two groups with a gap between them.
    #[serde(default)]
    pub bimodal: bool,
}

/// A percentile, in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentile {
    /// Sample at the nearest rank.
    #[serde(rename = "value_ns")]
    pub value: f64,
    /// Distribution-free 95 % interval; `None` over launches that are too few for one.
    #[serde(default, rename = "ci95_ns", skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
}

impl Summary {
    /// Summarises samples of single iterations in the order of time; `None` without samples.
    pub fn new(samples: &[f64]) -> Option<Summary> {
        let mut summary = Summary::of_batches(samples)?;
        summary.take_percentiles(samples);
        Some(summary)
    }

    /// Summarises samples of batches in the order of time, without percentiles; `None` without samples.
    ///
    /// A percentile of means of several iterations is no percentile of iterations.
    pub fn of_batches(samples: &[f64]) -> Option<Summary> {
        let n = samples.len();
        if n == 0 {
            return None;
        }
        let Ranked { sorted, ranks } = Ranked::new(samples);
        let median = median_of_sorted(&sorted);
        Some(Summary {
            n,
            median,
            ci95: interval(samples, &sorted, &ranks),
            min: sorted[0],
            mean: samples.iter().sum::<f64>() / n as f64,
            max: sorted[n - 1],
            mad: median_deviation(&sorted, median),
            lag1: lag1(samples),
            bimodal: bimodal(&sorted),
            ..Summary::default()
        })
    }

    /// Summarises samples of batches that are divided into rounds, in the order of time, without percentiles; `None` without samples.
    ///
    /// The headline (the field `median`) is the mean of the rounds' levels: all positions in the queues of the library count equally. Its
    /// interval is that of Student's distribution for means of [`SPREAD`] rounds, of which each set starts at a random position; for fewer
    /// than six sets, for the levels of rounds. Deviation, autocorrelation and groups are those of samples relative to their round.
    pub fn of_rounds(rounds: &[Vec<f64>]) -> Option<Summary> {
        let levels: Vec<f64> = rounds.iter().filter_map(|round| level(round)).collect();
        let extreme = |pick: fn(f64, f64) -> f64, values: &[f64]| values.iter().copied().reduce(pick);
        // Rounding must not move the mean beyond them.
        let headline = mean(&levels).clamp(extreme(f64::min, &levels)?, extreme(f64::max, &levels)?);
        let within = Summary::of_batches(&moved_to(headline, rounds, &levels))?;
        let samples = rounds.concat();
        let sets: Vec<f64> = levels.chunks_exact(SPREAD).map(mean).collect();
        let independent = if sets.len() < LEAST_FOR_INTERVAL { &levels } else { &sets };
        // A machine that changes within the row does not change back and forth with each round.
        let drifts = lag1(independent) > DRIFT;
        Some(Summary {
            median: headline,
            ci95: interval_of_mean(independent, headline),
            min: extreme(f64::min, &samples)?,
            mean: mean(&samples),
            max: extreme(f64::max, &samples)?,
            bimodal: if drifts { bimodal(&sorted(&samples)) } else { within.bimodal },
            ..within
        })
    }

    /// Takes the percentiles of samples of single iterations, in the order of time.
    pub fn take_percentiles(&mut self, samples: &[f64]) {
        let sorted = sorted(samples);
        self.tail_n = samples.len();
        [self.p95, self.p99, self.p999] = [0.95, 0.99, 0.999].map(|q| percentile(samples, &sorted, q));
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

/// Samples in the order of size, and the rank of each in the order of time. Equal samples share the mean of their ranks.
struct Ranked {
    sorted: Vec<f64>,
    ranks: Vec<f64>,
}

impl Ranked {
    fn new(samples: &[f64]) -> Ranked {
        let mut order: Vec<(f64, usize)> = samples.iter().copied().zip(0..).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut ranks = vec![0.0; samples.len()];
        let mut before = 0;
        for equal in order.chunk_by(|a, b| a.0 == b.0) {
            let rank = before as f64 + (equal.len() + 1) as f64 / 2.0;
            equal.iter().for_each(|(_, at)| ranks[*at] = rank);
            before += equal.len();
        }
        Ranked { sorted: order.into_iter().map(|(x, _)| x).collect(), ranks }
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
    sort(&mut sorted);
    sorted
}

/// Returns the median of sorted values.
fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}

/// Returns the index of a sample quantile among `n` sorted samples, at least one, by the nearest-rank method.
pub fn quantile_index(n: usize, q: f64) -> usize {
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

/// Returns the 95 % interval of the median: order statistics, farther apart for dependent samples.
fn interval(samples: &[f64], sorted: &[f64], ranks: &[f64]) -> Option<[f64; 2]> {
    let n = samples.len();
    let (lower, upper) = order_bounds(n, 0.5)?;
    let median = median_of_sorted(sorted);
    let sides = samples.iter().map(|x| f64::from(i8::from(*x > median) - i8::from(*x < median)));
    let variance = inflation(sides.collect()).max(inflation_by_lag1(lag1(ranks), n));
    if variance > 1.0 && (n as f64) < LEAST_WORTH * variance {
        return None;
    }
    let more = ((upper - lower) as f64 / 2.0 * (variance.sqrt() - 1.0)).ceil() as usize;
    (more < lower).then(|| [sorted[lower - 1 - more], sorted[upper - 1 + more]])
}

/// Returns the level of a round: the median of the means of all pairs of its samples, each also with itself; `None` without samples.
///
/// Less than 29 % of the samples do not move it, however long they took. A round in a long ring meets several positions: the median of
/// such samples is one of the positions, and this is their mean.
///
/// Source: Hodges and Lehmann, "Estimates of Location Based on Rank Tests" (1963).
pub fn level(round: &[f64]) -> Option<f64> {
    let mut means = disturbance::means_of_pairs(round);
    let (middle, is_even) = (means.len() / 2, means.len().is_multiple_of(2));
    if means.is_empty() {
        return None;
    }
    let (below, upper, _) = means.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().filter(|_| is_even).reduce(f64::max).unwrap_or(*upper);
    Some((lower + *upper) / 2.0)
}

/// Returns the samples of rounds with these levels as if all were at a headline.
fn moved_to(headline: f64, rounds: &[Vec<f64>], levels: &[f64]) -> Vec<f64> {
    let factors = levels.iter().map(|level| if *level > 0.0 { headline / level } else { 1.0 });
    let of_round =
        |(round, factor): (&Vec<f64>, f64)| round.iter().map(|sample| sample * factor).collect::<Vec<f64>>();
    rounds.iter().zip(factors).flat_map(of_round).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the 95 % interval of the mean of values in the order of time; `None` for few values, or where they depend on each other so much
/// that they are worth few independent ones.
fn interval_of_mean(values: &[f64], headline: f64) -> Option<[f64; 2]> {
    let n = values.len();
    let widening = inflation(values.to_vec());
    if n < LEAST_FOR_INTERVAL || widening > 1.0 && (n as f64) < LEAST_WORTH * widening {
        return None;
    }
    let freedom = (n - 1) as f64;
    let middle = mean(values);
    let variance = values.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / freedom;
    let half = student975(freedom) * (variance * widening / n as f64).sqrt();
    // A time is positive, and so is each value.
    let least = values.iter().copied().fold(headline, f64::min);
    Some([if half < headline { headline - half } else { least }, headline + half])
}

/// Returns the quantile 0.975 of Student's distribution with at least 5 degrees of freedom, to 0.1 %.
///
/// Method: Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.5.
fn student975(freedom: f64) -> f64 {
    let z = Z95;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
        (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z)
            / 92_160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + z
}

/// Returns the sample quantiles of samples in the order of time; `None` for those whose 95 % bounds lie beyond the samples.
pub fn percentiles(samples: &[f64], quantiles: &[f64]) -> Vec<Option<Percentile>> {
    let sorted = sorted(samples);
    quantiles.iter().map(|q| percentile(samples, &sorted, *q)).collect()
}

/// Returns the number of independent samples from which the 95 % bounds of a quantile exist.
pub fn least_samples(quantile: f64) -> u64 {
    (TAIL.ln() / quantile.max(1.0 - quantile).ln()).ceil() as u64
}

/// Returns a percentile; `None` if its 95 % bounds lie beyond the samples.
fn percentile(samples: &[f64], sorted: &[f64], q: f64) -> Option<Percentile> {
    let n = samples.len();
    let (lower, upper) = order_bounds(n, q)?;
    let at = quantile_index(n, q);
    let value = sorted[at];
    let above = samples.iter().map(|x| f64::from(u8::from(*x > value)));
    let widening = inflation(above.collect()).sqrt();
    let outward = |ranks: usize| (ranks as f64 * widening).ceil() as usize;
    let (below, above) = (outward((at + 1).abs_diff(lower)), outward(upper.abs_diff(at + 1)));
    let ends = (below <= at && above < n - at).then(|| [sorted[at - below], sorted[at + above]])?;
    Some(Percentile { value, ci95: Some(ends) })
}

/// Returns the median of the absolute deviations of sorted values from their median.
fn median_deviation(sorted: &[f64], median: f64) -> f64 {
    let n = sorted.len();
    let middle = sorted.partition_point(|x| *x < median);
    let mut below = sorted[..middle].iter().rev().map(|x| median - x).peekable();
    let mut above = sorted[middle..].iter().map(|x| x - median).peekable();
    // Both sides ascend: the deviations are merged up to the median.
    let mut next = || match (below.peek(), above.peek()) {
        (Some(a), Some(b)) if a < b => below.next(),
        (_, Some(_)) => above.next(),
        _ => below.next(),
    };
    let lower = (0..=(n - 1) / 2).fold(0.0, |last, _| next().unwrap_or(last));
    let upper = if n.is_multiple_of(2) { next().unwrap_or(lower) } else { lower };
    (lower + upper) / 2.0
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

/// Normal quantile of intervals of 95 %.
const Z95: f64 = 1.959_964;

/// Returns the 95 % interval of the probability of success after `part` successes in `all` independent trials (Wilson 1927); `None`
/// without trials.
pub fn proportion_interval(part: u64, all: u64) -> Option<[f64; 2]> {
    let (n, p) = (all as f64, part.min(all) as f64 / all as f64);
    let square = Z95 * Z95 / n;
    let (middle, width) = (p + square / 2.0, Z95 * (p * (1.0 - p) / n + square / (4.0 * n)).sqrt());
    // Rounding must not leave the share outside.
    let ends = [(middle - width) / (1.0 + square), (middle + width) / (1.0 + square)];
    (all > 0).then(|| [ends[0].clamp(0.0, p), ends[1].clamp(p, 1.0)])
}

/// Number of groups of consecutive samples from which the interval is estimated.
const GROUPS: usize = 12;
/// Probability of the median of the groups.
const HALF: f64 = 0.5;

impl Summary {
    /// Summarises samples like [`Summary::new`], except that the headline (the field `median`) is their mean.
    ///
    /// The mean is total time over total work: a pause of one pair counts with its length, however rare it is. The interval is
    /// that of the median of 12 means of consecutive samples, and extends to the mean if that lies outside.
    pub fn of_total(samples: &[f64]) -> Option<Summary> {
        let summary = Summary::new(samples)?;
        let (n, groups) = (samples.len(), samples.len().min(GROUPS));
        let mean = |group: usize| {
            let part = &samples[group * n / groups..(group + 1) * n / groups];
            part.iter().sum::<f64>() / part.len() as f64
        };
        let means = sorted(&(0..groups).map(mean).collect::<Vec<f64>>());
        let ci95 = order_bounds(groups, HALF)
            .map(|(low, high)| [means[low - 1].min(summary.mean), means[high - 1].max(summary.mean)]);
        Some(Summary { median: summary.mean, ci95, ..summary })
    }
}

/// Minimum number of blocks from which a variance is estimated.
const LEAST_SUMS: usize = 16;
/// Standard errors by which a variance must exceed that of independent values to count.
const SIGNIFICANT: f64 = 2.5;

/// Returns the factor by which dependence raises the variance of the mean of values; at least 1.
///
/// Fast dependence shows in the lag-1 autocorrelation. Slow dependence shows in sums of blocks of 2, 4, 8 ... values, which vary more
/// than sums of independent values.
fn inflation(mut values: Vec<f64>) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter_mut().for_each(|x| *x -= mean);
    let power = values.iter().map(|x| x * x).sum::<f64>() / n;
    if power.is_nan() || power <= 0.0 {
        return 1.0;
    }
    let excess = values.iter().map(|x| x.powi(4)).sum::<f64>() / n / (power * power) - 3.0;
    let joint: f64 = values.windows(2).map(|w| w[0] * w[1]).sum();
    let mut largest = inflation_by_lag1(joint / (n * power), values.len());
    let (mut sums, mut block) = (values, 1.0);
    while sums.len() / 2 >= LEAST_SUMS {
        let blocks = sums.len() / 2;
        (0..blocks).for_each(|at| sums[at] = sums[2 * at] + sums[2 * at + 1]);
        sums.truncate(blocks);
        block *= 2.0;
        let freedom = (blocks - 1) as f64;
        let ratio = sums.iter().map(|sum| sum * sum).sum::<f64>() / freedom / (block * power);
        // Variance of a variance, with the excess kurtosis of a sum of `block` independent values.
        let by_chance = ((2.0 + excess / block).max(0.0) / freedom).sqrt();
        if ratio > 1.0 + SIGNIFICANT * by_chance {
            let joint: f64 = sums.windows(2).map(|w| w[0] * w[1]).sum();
            let lag1 = joint / sums.iter().map(|sum| sum * sum).sum::<f64>();
            largest = largest.max(ratio * inflation_by_lag1(lag1, blocks));
        }
    }
    largest
}

/// Returns the factor for a first-order autoregression of `n` values with lag-1 autocorrelation `r`; 1 if `r` can be chance.
fn inflation_by_lag1(r: f64, n: usize) -> f64 {
    let n = n.max(1) as f64;
    // The estimate of the correlation of n values is biased by about -1/n.
    let r = r + 1.0 / n;
    if r.is_nan() || r <= 1.0 / n.sqrt() {
        return 1.0;
    }
    if r < 1.0 { (1.0 + r) / (1.0 - r) } else { f64::INFINITY }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod proportion_tests {
    use crate::stats::*;

    #[test]
    fn intervals_of_proportions_are_wilsons() {
        // Brown, Cai and DasGupta (2001): 10 of 100.
        let [low, high] = proportion_interval(10, 100).unwrap();
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        assert_eq!(proportion_interval(0, 0), None);
        assert!(proportion_interval(0, 5).unwrap()[0] == 0.0 && proportion_interval(5, 5).unwrap()[1] == 1.0);
    }
}

#[cfg(test)]
mod total_tests {
    use crate::stats::*;

    #[test]
    fn the_headline_is_the_total_and_lies_in_its_interval() {
        // Two of 60 samples contain a pause.
        let times: Vec<f64> = (0..60).map(|i| if i % 30 == 17 { 300.0 } else { 10.0 }).collect();
        let summary = Summary::of_total(&times).unwrap();
        let [low, high] = summary.ci95.unwrap();
        assert_eq!((summary.n, summary.median), (60, (58.0 * 10.0 + 600.0) / 60.0));
        assert!((low, high) == (10.0, summary.median), "{low} {high}");
        assert_eq!(Summary::of_total(&[1.0, 2.0, 3.0, 4.0, 5.0, 9.0]).unwrap().ci95, Some([1.0, 9.0]));
        assert_eq!(Summary::of_total(&[1.0; 5]).unwrap().ci95, None);
        assert_eq!(Summary::of_total(&[]), None);
    }
}

#[cfg(test)]
mod dependence_tests {
    use crate::stats::*;

    #[test]
    fn alternating_values_do_not_narrow_an_interval() {
        assert_eq!(inflation((0..1000).map(|i| f64::from(i % 2)).collect()), 1.0);
        assert_eq!(inflation(vec![3.0; 100]), 1.0);
        assert_eq!(inflation(Vec::new()), 1.0);
    }

    #[test]
    fn a_lag_counts_only_beyond_chance() {
        assert_eq!(inflation_by_lag1(0.08, 100), 1.0);
        assert!((inflation_by_lag1(0.49, 100) - 3.0).abs() < 1e-12);
        assert_eq!(inflation_by_lag1(0.999, 100), f64::INFINITY);
    }

    #[test]
    fn slow_changes_show_in_long_blocks() {
        // Runs of 64 equal values: a mean of n of them varies like one of n / 64.
        let mut state = 1u64;
        let mut coin = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((state >> 60) as u8 & 1)
        };
        let runs: Vec<f64> = (0..256).flat_map(|_| [coin(); 64]).collect();
        assert!(inflation(runs) > 50.0);
    }
}
