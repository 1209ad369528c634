//! Detection of slow groups of hosts, hosts, ranks and links, each compared with others of its kind.

use std::collections::{BTreeMap, BTreeSet};

use ombx_estimate::percentiles::upper_quantile;
use ombx_record::{
    order::{sort, sort_by_value},
    verdict::Component,
};

use crate::verdict::{
    Hosts, LEVEL, LinkTimes, MIN_FACTOR, MIN_LINKS, MIN_RETEST_FACTOR, MIN_RETEST_SPREADS, MIN_SPREAD,
    MIN_UNITS, MISSED, SlowComponent,
    few_units::{self, FewUnits, MAX_PARTS},
    relative::{self, RelativeLink, Retested, Scope, median, recentre, relative_times},
};

/// Part of the links of a slow group that are slow by at least half of its factor. With fewer, some of its hosts are slow.
const MOST: f64 = 0.8;

/// Returns the slow components of all message sizes, the slowest first. Each component is named once.
pub fn find_slow(times: &[LinkTimes], hosts: &Hosts) -> Vec<SlowComponent> {
    let averaged: Vec<LinkTimes> = times.iter().map(LinkTimes::averaged).collect();
    slow_of_sizes(averaged.iter().flat_map(|of_size| at_one_size(of_size, hosts, times.len()).slow).collect())
}

/// Returns for each message size the factor at which a slow link is named with a probability of 95 %; `None` if single links cannot be
/// compared.
pub fn nameable(times: &[LinkTimes], hosts: &Hosts) -> Vec<(u64, Option<f64>)> {
    let nameable_of = |one: &LinkTimes| {
        let found = at_one_size(&one.averaged(), hosts, times.len());
        (one.bytes, found.nameable)
    };
    times.iter().map(nameable_of).collect()
}

/// Combines the slow components of all message sizes: the slowest first, each once. A slow direction of a link that is slow in both at another
/// size is left out, unless it is slower.
pub(super) fn slow_of_sizes(slow: Vec<SlowComponent>) -> Vec<SlowComponent> {
    let mut found: BTreeMap<Component, SlowComponent> = BTreeMap::new();
    for slow in slow {
        let worst = found.entry(slow.component.clone()).or_insert_with(|| slow.clone());
        if slow.factor > worst.factor {
            *worst = slow;
        }
    }
    // A direction says nothing new if both directions are as slow at another size.
    let is_said_by_link = |slow: &SlowComponent| {
        let Component::OneWay(a, b) = slow.component else { return false };
        let both = found.get(&Component::Link(a.min(b), a.max(b)));
        both.is_some_and(|both| slow.factor <= both.factor)
    };
    let mut all: Vec<SlowComponent> = found.values().filter(|slow| !is_said_by_link(slow)).cloned().collect();
    sort_by_value(&mut all, |part| -part.factor);
    all
}

/// What was found at one message size.
pub(super) struct Detected {
    /// Message size.
    pub(super) bytes: u64,
    pub(super) slow: Vec<SlowComponent>,
    /// Links that stand out although links scatter too much for it, see [`few_units::too_coarse`]: faster than those that would surely be
    /// named.
    pub(super) unsure: Vec<SlowComponent>,
    /// Smallest factor of a slow link that is named in 95 of 100 runs, or `None` if single links cannot be compared.
    pub(super) nameable: Option<f64>,
    /// The same for a group of each level; `None` if the groups of the level cannot be compared.
    pub(super) nameable_groups: Vec<Option<f64>>,
}

/// Finds the slow components at one message size. `times` are averaged.
pub(super) fn at_one_size(times: &LinkTimes, hosts: &Hosts, sizes: usize) -> Detected {
    let mut search = Search {
        times,
        hosts,
        sizes,
        again: Retested::new(times, hosts),
        links: relative_times(times, hosts),
        slow: Vec::new(),
        nameable: None,
    };
    let levels = (1..=hosts.levels()).rev();
    let mut nameable_groups: Vec<Option<f64>> =
        levels.map(|level| search.test_groups(level).map(f64::exp)).collect();
    nameable_groups.reverse();
    search.test_hosts();
    search.test_ranks();
    search.test_links();
    let Search { slow, nameable, .. } = search;
    let nameable = nameable.map(f64::exp);
    let least = nameable.filter(|factor| *factor > few_units::MAX_NAMEABLE).unwrap_or(0.0);
    let (unsure, slow) = with_evidence(slow, times, hosts)
        .into_iter()
        .partition(|slow| slow.component.is_link() && slow.factor < least);
    Detected { bytes: times.bytes, slow, unsure, nameable, nameable_groups }
}

/// Finds two slow hosts among those with a possible cause, where the times alone name nothing: two slow hosts of four leave one ordinary
/// link, which may as well be the only fast one. `times` are averaged.
pub(super) fn among_suspects(
    times: &LinkTimes,
    hosts: &Hosts,
    sizes: usize,
    suspects: &BTreeSet<u32>,
) -> Vec<SlowComponent> {
    let few = FewUnits::among_suspects(times, hosts, sizes, suspects);
    let again = Retested::new(times, hosts);
    let found = few.map(|few| few.confirmed(times, hosts, &again)).unwrap_or_default();
    // Both or none: either would be judged by the other's links.
    let all = if found.len() == MAX_PARTS { found } else { Vec::new() };
    with_evidence(all, times, hosts)
}

/// Adds to components with the logarithms of their factors the links that show it.
fn with_evidence(slow: Vec<(Component, f64)>, times: &LinkTimes, hosts: &Hosts) -> Vec<SlowComponent> {
    let (parts, logs): (Vec<Component>, Vec<f64>) = slow.into_iter().unzip();
    let evidence = relative::of_components(times, hosts, &parts);
    let all = parts.into_iter().zip(logs).zip(evidence).map(|((component, log), evidence)| SlowComponent {
        component,
        factor: evidence.factor.unwrap_or(log.exp()),
        bytes: times.bytes,
        evidence,
    });
    all.collect()
}

/// Search for slow components at one size. What is found takes its links with it, so that each test sees only the others.
struct Search<'a> {
    times: &'a LinkTimes,
    hosts: &'a Hosts,
    sizes: usize,
    again: Retested,
    /// Links that no slow component has.
    links: Vec<RelativeLink>,
    /// Slow components with the logarithms of their factors.
    slow: Vec<(Component, f64)>,
    /// Logarithm of the smallest factor of a link that is named.
    nameable: Option<f64>,
}

impl Search<'_> {
    /// Tests the groups of a level. Returns the logarithm of the smallest factor that is named; `None` if they are too few.
    fn test_groups(&mut self, level: usize) -> Option<f64> {
        let mut nameable = None;
        for inside in [false, true] {
            let scope = Scope { level, inside };
            let few = FewUnits::new(self.times, self.hosts, scope, self.sizes, &self.slow);
            let (found, limit) = match &few {
                Some(few) => (few.confirmed(self.times, self.hosts, &self.again), Some(few.found.nameable)),
                None => self.many(scope),
            };
            for (part, log) in found {
                if self.is_of_most_hosts(&part, scope, log) {
                    self.take(part, log);
                }
            }
            if !inside {
                nameable = limit;
            }
            recentre(&mut self.links);
        }
        nameable
    }

    /// Tests the hosts.
    fn test_hosts(&mut self) {
        let (times, hosts) = (self.times, self.hosts);
        for inside in [false, true] {
            let scope = Scope { level: 0, inside };
            let Some(few) = FewUnits::new(times, hosts, scope, self.sizes, &self.slow) else {
                self.many(scope).0.into_iter().for_each(|(part, log)| self.take(part, log));
                continue;
            };
            few.confirmed(times, hosts, &self.again).into_iter().for_each(|(part, log)| self.take(part, log));
            if few.by_rank {
                self.links.retain(|l| !scope.has(l.distance));
                if inside == self.is_all_clear_inside() {
                    self.nameable = Some(few.found.nameable);
                }
            }
        }
        recentre(&mut self.links);
    }

    /// Tests the ranks of hosts with several.
    fn test_ranks(&mut self) {
        if self.hosts.count() == self.hosts.ranks() as usize {
            return;
        }
        let sampled: Vec<RelativeLink> = self.links.iter().filter(|l| l.sampled).copied().collect();
        let found = slow_units(&sampled, |l| [l.from, l.to], self.sizes, self.times.delay)
            .map_or(Vec::new(), |found| found.slow);
        for (rank, log) in found {
            let own = self.links.iter().filter(|l| l.from == rank || l.to == rank);
            if let Some(log) = self.again.confirms(own, log, 0.0) {
                self.take(Component::Rank(rank), log);
            }
        }
        recentre(&mut self.links);
    }

    /// Tests the single links that are left.
    fn test_links(&mut self) {
        let of_shortest = self.times.shortest_spreads();
        let tests_per_link = self.sizes as f64 * self.times.links_per_sampled();
        for distance in 0..=self.hosts.levels() + 1 {
            let Some(mut test) = LinkTest::new(&self.links, distance, tests_per_link) else { continue };
            test.limit += self.times.delay;
            let of_distance = || self.links.iter().filter(|l| l.distance == distance);
            let outlying = of_distance().filter(|l| l.log >= test.limit);
            let single: Vec<(RelativeLink, f64)> = outlying
                .filter_map(|l| {
                    Some((*l, self.again.confirms([l].into_iter(), l.log, test.spread * of_shortest)?))
                })
                .collect();
            let is_main = (distance == 0) == self.is_all_clear_inside() && of_distance().next().is_some();
            let ways: BTreeSet<(u32, u32)> = single.iter().map(|(l, _)| (l.from, l.to)).collect();
            for (l, log) in &single {
                let (a, b) = (l.from, l.to);
                let is_one_way = self.times.directed && !ways.contains(&(b, a));
                if is_one_way {
                    self.slow.push((Component::OneWay(a, b), *log));
                } else if !self.times.directed || a < b {
                    self.slow.push((Component::Link(a, b), *log));
                }
            }
            if is_main {
                let again = test.spread * of_shortest;
                let alone = self.times.delay + MIN_RETEST_FACTOR.ln().max(MIN_RETEST_SPREADS * again);
                let limit = test.nameable(alone, again);
                self.nameable = Some(self.nameable.map_or(limit, |other| other.max(limit)));
            }
        }
    }

    /// Returns whether an all-clear is about links inside a host, because there is only one, and not about those between hosts.
    fn is_all_clear_inside(&self) -> bool {
        self.hosts.count() == 1
    }

    /// Returns the units of a scope that stand out among many, and the logarithm of the smallest factor that is named.
    fn many(&self, scope: Scope) -> (Vec<(Component, f64)>, Option<f64>) {
        let hosts = self.hosts;
        let ends = |l: &RelativeLink| [hosts.unit(scope.level, l.from), hosts.unit(scope.level, l.to)];
        let own: Vec<RelativeLink> = self.links.iter().filter(|l| scope.has(l.distance)).copied().collect();
        let sampled: Vec<RelativeLink> = own.iter().filter(|l| l.sampled).copied().collect();
        let Some(found) = slow_units(&sampled, ends, self.sizes, self.times.delay) else {
            return (Vec::new(), None);
        };
        let confirmed = |(unit, log): &(u32, f64)| {
            let of_unit = own.iter().filter(|l| ends(l).contains(unit));
            Some((scope.component(*unit), self.again.confirms(of_unit, *log, 0.0)?))
        };
        (found.slow.iter().filter_map(confirmed).collect(), Some(found.nameable))
    }

    /// Returns whether a group as a whole is slow by this logarithm, not only some of its hosts. A group of one host is that host.
    fn is_of_most_hosts(&self, part: &Component, scope: Scope, log: f64) -> bool {
        let (Component::GroupBetween(level, group) | Component::GroupWithin(level, group)) = *part else {
            return false;
        };
        let (own, others): (Vec<&RelativeLink>, Vec<&RelativeLink>) = self
            .links
            .iter()
            .filter(|l| l.sampled && scope.has(l.distance))
            .partition(|l| self.hosts.has_link(part, [l.from, l.to]));
        let usual = median(&others.iter().map(|l| l.log).collect::<Vec<_>>());
        let slow = own.iter().filter(|l| l.log - usual >= 0.5 * log).count();
        self.hosts.of_group(level, group).len() > 1 && own.len() > 1 && slow as f64 >= MOST * own.len() as f64
    }

    /// Adds a slow component and removes its links.
    fn take(&mut self, part: Component, log: f64) {
        self.links.retain(|l| !self.hosts.has_link(&part, [l.from, l.to]));
        self.slow.push((part, log));
    }
}

/// Standard deviation of a normal distribution, in median absolute deviations.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Standard deviation of the median of many normal values, in standard deviations of their mean: the square root of π/2, rounded.
const MEDIAN_TO_MEAN: f64 = 1.2533;
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
    /// Returns the test of the links over a distance; `None` with too few. Links between hosts of a rare distance are compared with all
    /// links between hosts. `tests_per_link` is the number of tests for each link of the sample.
    pub(super) fn new(links: &[RelativeLink], distance: usize, tests_per_link: f64) -> Option<LinkTest> {
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

/// Returns how many robust standard deviations a value must lie above a limit, to exceed it with the probability 1 - `missed`. It is a
/// quantile of Student's t, because the deviation is estimated from `values` values. An estimate from absolute deviations is as good as one
/// from squares of [`EFFICIENCY`] as many values.
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

/// Returns the units (hosts, ranks or groups) most of whose links are slow by more than the logarithm `delay`, or `None` if there are too few to
/// compare.
pub(super) fn slow_units(
    links: &[RelativeLink],
    ends: impl Fn(&RelativeLink) -> [u32; 2],
    sizes: usize,
    delay: f64,
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
    // Inside a unit the partners are its own ranks; any number of them is enough.
    let apart = links.iter().any(|l| ends(l)[0] != ends(l)[1]);
    let least_partners = if apart { MIN_UNITS - 1 } else { 1 };
    values.retain(|_, (_, partners)| partners.len() >= least_partners);
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
    let noise = MEDIAN_TO_MEAN * spread(left.collect()) / (partners as f64).sqrt();
    let deviations = centres.values().map(|c| (c - middle).abs()).collect::<Vec<_>>();
    let spread = (MAD_TO_SIGMA * median(&deviations)).max(noise).max(MIN_SPREAD);
    let limit = delay + threshold((centres.len() * sizes) as f64, spread, centres.len());
    let slow = centres.keys().map(|unit| (*unit, above(*unit))).filter(|(_, log)| *log >= limit).collect();
    Some(SlowUnits { slow, nameable: limit + margin(MISSED, centres.len()) * spread })
}

/// Returns the limit for one of `tests` tests: Bonferroni's correction with the bound exp(-z²/2) of the normal tail.
///
/// The limit is wider if the standard deviation was estimated from few values.
pub(super) fn threshold(tests: f64, spread: f64, values: usize) -> f64 {
    let z = (2.0 * (tests / LEVEL).ln()).sqrt();
    (z * spread * (1.0 + 5.0 / values as f64)).max(MIN_FACTOR.ln())
}

/// Returns a robust standard deviation: from the median absolute deviation, or from the 84th percentile if that is
/// larger.
pub(super) fn spread(mut logs: Vec<f64>) -> f64 {
    if logs.is_empty() {
        return MIN_SPREAD;
    }
    sort(&mut logs);
    let upper = logs[(logs.len() - 1) * 84 / 100];
    let middle = median(&logs);
    let deviations = logs.iter().map(|x| (x - middle).abs()).collect::<Vec<_>>();
    (MAD_TO_SIGMA * median(&deviations)).max(upper - middle).max(MIN_SPREAD)
}

#[cfg(test)]
mod tests;
