//! Tests of many units (hosts, ranks or groups of hosts) and of single links, by robust estimates of their scatter.

use std::collections::{BTreeMap, BTreeSet};

use crate::percentiles::upper_quantile;

use super::{
    LEVEL, MIN_FACTOR, MIN_LINKS, MIN_SPREAD, MIN_UNITS, MISSED,
    relative::{RelativeLink, median},
};

/// Standard deviation of a normal distribution, in median absolute deviations.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Efficiency of the median absolute deviation as an estimate of the standard deviation (Rousseeuw and Croux, JASA 1993).
const EFFICIENCY: f64 = 0.37;

/// Test of single links of a kind.
pub(super) struct LinkTest {
    pub(super) spread: f64,
    pub(super) limit: f64,
    /// Number of links that tell the spread.
    count: usize,
}

impl LinkTest {
    /// Returns `None` with too few links. Links of a kind that has too few are compared with those of all distances.
    /// `tests_per_link` is the number of tests for each link of the sample.
    pub(super) fn of(links: &[RelativeLink], distance: usize, tests_per_link: f64) -> Option<LinkTest> {
        let sampled = || links.iter().filter(|l| l.sampled);
        let logs = |is_kind: &dyn Fn(usize) -> bool| {
            sampled().filter(|l| is_kind(l.distance)).map(|l| l.log).collect::<Vec<f64>>()
        };
        let kind = logs(&|of| of == distance);
        let (few, kind) = match kind.len() {
            0..MIN_LINKS if distance > 0 => (Some(spread(kind)), logs(&|of| of > 0)),
            _ => (None, kind),
        };
        let count = kind.len();
        (count >= MIN_LINKS).then(|| {
            let spread = spread(kind).max(few.unwrap_or(0.0));
            let tests = sampled().count() as f64 * tests_per_link;
            LinkTest { spread, limit: threshold(tests, spread, count), count }
        })
    }

    /// Returns the logarithm of the factor at which a slow link is named with the probability 1 - [`MISSED`]: in the sweep, and with the
    /// limit `alone` when it is measured again, where its standard deviation is `again`. Each misses it half as often.
    pub(super) fn nameable(&self, alone: f64, again: f64) -> f64 {
        let margin = margin(MISSED / 2.0, self.count);
        (self.limit + margin * self.spread).max(alone + margin * again)
    }
}

/// Returns how many robust standard deviations above a limit a value exceeds it but for a probability. That they are estimated from few
/// values counts as in Student's t. An estimate from absolute deviations is as good as one from squares of [`EFFICIENCY`] as many values.
fn margin(missed: f64, values: usize) -> f64 {
    upper_quantile(((values as f64 * EFFICIENCY) as usize).max(1), missed)
}

/// Hosts, ranks or groups that stand out.
pub(super) struct SlowUnits {
    /// Their numbers, and the logarithms of their factors.
    pub(super) slow: Vec<(u32, f64)>,
    /// Logarithm of the smallest factor that is named in 95 of 100 runs.
    pub(super) nameable: f64,
}

/// Returns the units (hosts, ranks or groups) most of whose links are slow, or `None` if there are too few to compare.
pub(super) fn slow_units(
    links: &[RelativeLink],
    ends: impl Fn(&RelativeLink) -> [u32; 2],
    sizes: usize,
) -> Option<SlowUnits> {
    let mut values: BTreeMap<u32, (Vec<f64>, BTreeSet<u32>)> = BTreeMap::new();
    for l in links {
        let [a, b] = ends(l);
        for (unit, other) in if a == b { vec![(a, l.from), (a, l.to)] } else { vec![(a, b), (b, a)] } {
            let (logs, partners) = values.entry(unit).or_default();
            logs.push(l.log);
            partners.insert(other);
        }
    }
    // Links inside a host or group have no partners.
    let apart = links.iter().any(|l| ends(l)[0] != ends(l)[1]);
    let few = if apart { MIN_UNITS - 1 } else { 1 };
    values.retain(|_, (_, partners)| partners.len() >= few);
    if values.len() < MIN_UNITS {
        return None;
    }
    let partners = values.values().map(|(_, partners)| partners.len()).min().unwrap_or(1);
    let centres: BTreeMap<u32, f64> =
        values.into_iter().map(|(unit, (logs, _))| (unit, median(&logs))).collect();
    let middle = median(&centres.values().copied().collect::<Vec<_>>());
    let above = |unit: u32| centres.get(&unit).map_or(0.0, |c| c - middle);
    // Noise of a link: the part that its two ends do not explain.
    let left = links.iter().map(|l| {
        let [a, b] = ends(l);
        l.log - if a == b { above(a) } else { above(a) + above(b) }
    });
    let noise = 1.2533 * spread(left.collect()) / (partners as f64).sqrt();
    let deviations = centres.values().map(|c| (c - middle).abs()).collect::<Vec<_>>();
    let spread = (MAD_TO_SIGMA * median(&deviations)).max(noise).max(MIN_SPREAD);
    let limit = threshold((centres.len() * sizes) as f64, spread, centres.len());
    let slow = centres.keys().map(|unit| (*unit, above(*unit))).filter(|(_, log)| *log >= limit).collect();
    Some(SlowUnits { slow, nameable: limit + margin(MISSED, centres.len()) * spread })
}

/// Returns the limit for one of `tests` tests: Bonferroni's correction with the bound exp(-z²/2) of the normal tail.
///
/// The limit is wider if the standard deviation was estimated from few values.
fn threshold(tests: f64, spread: f64, values: usize) -> f64 {
    let z = (2.0 * (tests / LEVEL).ln()).sqrt();
    (z * spread * (1.0 + 5.0 / values as f64)).max(MIN_FACTOR.ln())
}

/// Returns a robust standard deviation: from the median absolute deviation, or from the 84th percentile if that is
/// larger.
fn spread(mut logs: Vec<f64>) -> f64 {
    if logs.is_empty() {
        return MIN_SPREAD;
    }
    logs.sort_unstable_by(f64::total_cmp);
    let upper = logs[(logs.len() - 1) * 84 / 100];
    let middle = median(&logs);
    let deviations = logs.iter().map(|x| (x - middle).abs()).collect::<Vec<_>>();
    (MAD_TO_SIGMA * median(&deviations)).max(upper - middle).max(MIN_SPREAD)
}
