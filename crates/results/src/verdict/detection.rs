//! Detection of slow hosts, ranks and links, each compared with others of its kind.

use std::collections::{BTreeMap, BTreeSet};

use ombx_core::stats;

use super::{Component, Hosts, Link, LinkTimes, SlowComponent};

/// Probability of a false verdict on a healthy machine with normally distributed times.
const LEVEL: f64 = 0.01;
/// Smallest ratio with a verdict.
const MIN_FACTOR: f64 = 1.15;
/// Smallest ratio that confirms a slow link when it is measured again alone.
const MIN_RETEST_FACTOR: f64 = 1.1;
/// The same limit in standard deviations of the kind.
const MIN_RETEST_SPREADS: f64 = 4.0;
/// Smallest standard deviation of logarithms: repeated runs differ by as much.
const MIN_SPREAD: f64 = 0.01;
/// Minimum number of links of a kind for tests of single links.
const MIN_LINKS: usize = 10;
/// Minimum number of hosts or ranks for tests of hosts or ranks. Each needs one partner fewer.
const MIN_GROUPS: usize = 4;
/// Standard deviation of a normal distribution, in median absolute deviations.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Time of a link relative to its kind: the logarithm of its ratio to the median.
#[derive(Debug, Clone, Copy)]
pub(super) struct RelativeLink {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) log: f64,
    pub(super) inside: bool,
}

/// Returns the slow components of all message sizes, the slowest first. Each component is named once.
pub fn find_slow(times: &[LinkTimes], hosts: &Hosts) -> Vec<SlowComponent> {
    let mut found: BTreeMap<Component, SlowComponent> = BTreeMap::new();
    for of_size in times {
        for slow in at_one_size(of_size, hosts, times.len().max(1)) {
            let worst = found.entry(slow.component.clone()).or_insert_with(|| slow.clone());
            if slow.factor > worst.factor {
                *worst = slow;
            }
        }
    }
    // A link whose directions are slow at different sizes is named once.
    let links: Vec<(u32, u32)> = found
        .keys()
        .filter_map(|w| if let Component::Link(a, b) = w { Some((*a, *b)) } else { None })
        .collect();
    let one =
        |what: &Component| matches!(what, Component::OneWay(a, b) if links.contains(&(*a.min(b), *a.max(b))));
    let mut all: Vec<SlowComponent> = found.into_values().filter(|s| !one(&s.component)).collect();
    all.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    all
}

pub(super) fn at_one_size(times: &LinkTimes, hosts: &Hosts, sizes: usize) -> Vec<SlowComponent> {
    let again = Retested::of(times, hosts);
    let mut links = relative_links(&times.sweep, hosts);
    let mut slow = Vec::new();
    let mut name =
        |component, log: f64| slow.push(SlowComponent { component, factor: log.exp(), bytes: times.bytes });

    for inside in [false, true] {
        let kind: Vec<RelativeLink> = links.iter().copied().filter(|l| l.inside == inside).collect();
        let ends = |l: &RelativeLink| [hosts.number(l.from), hosts.number(l.to)];
        for (host, log) in slow_groups(&kind, ends, sizes) {
            let of_host = |l: &RelativeLink| l.inside == inside && ends(l).contains(&host);
            if let Some(log) = again.confirms(links.iter().filter(|l| of_host(l)), log, 0.0) {
                name(if inside { Component::HostWithin(host) } else { Component::HostBetween(host) }, log);
                links.retain(|l| !of_host(l));
            }
        }
    }
    recentre(&mut links);
    if hosts.count() < hosts.ranks() as usize {
        for (rank, log) in slow_groups(&links, |l| [l.from, l.to], sizes) {
            let of_rank = |l: &RelativeLink| l.from == rank || l.to == rank;
            if let Some(log) = again.confirms(links.iter().filter(|l| of_rank(l)), log, 0.0) {
                name(Component::Rank(rank), log);
                links.retain(|l| !of_rank(l));
            }
        }
        recentre(&mut links);
    }
    let confirmed = |(l, spread): (RelativeLink, f64)| {
        again.confirms([&l].into_iter(), l.log, spread).map(|log| RelativeLink { log, ..l })
    };
    let single: Vec<RelativeLink> = slow_links(&links, sizes).into_iter().filter_map(confirmed).collect();
    let ways: BTreeSet<(u32, u32)> = single.iter().map(|l| (l.from, l.to)).collect();
    for l in &single {
        match ways.contains(&(l.to, l.from)) {
            true if l.from > l.to => {}
            true => name(Component::Link(l.from, l.to), l.log),
            false => name(Component::OneWay(l.from, l.to), l.log),
        }
    }
    slow
}

/// Converts times to logarithms relative to the median of their kind.
pub(super) fn relative_links(links: &[Link], hosts: &Hosts) -> Vec<RelativeLink> {
    let known = links.iter().filter(|l| l.ns.is_finite() && l.ns > 0.0);
    let mut all: Vec<RelativeLink> = known
        .map(|l| RelativeLink {
            from: l.from,
            to: l.to,
            log: f64::from(l.ns).ln(),
            inside: hosts.same_host(l.from, l.to),
        })
        .collect();
    recentre(&mut all);
    all
}

fn recentre(links: &mut [RelativeLink]) {
    for inside in [false, true] {
        let centre = median(&links.iter().filter(|l| l.inside == inside).map(|l| l.log).collect::<Vec<_>>());
        links.iter_mut().filter(|l| l.inside == inside).for_each(|l| l.log -= centre);
    }
}

/// Returns slow single links and the standard deviation of their kind.
fn slow_links(links: &[RelativeLink], sizes: usize) -> Vec<(RelativeLink, f64)> {
    let mut found = Vec::new();
    for inside in [false, true] {
        let kind: Vec<&RelativeLink> = links.iter().filter(|l| l.inside == inside).collect();
        if kind.len() < MIN_LINKS {
            continue;
        }
        let spread = spread(kind.iter().map(|l| l.log).collect());
        let limit = threshold(links.len() * sizes, spread, kind.len());
        found.extend(kind.into_iter().filter(|l| l.log >= limit).map(|l| (*l, spread)));
    }
    found
}

/// Returns hosts or ranks most of whose links are slow, with the logarithm of the ratio.
fn slow_groups(
    links: &[RelativeLink],
    ends: impl Fn(&RelativeLink) -> [u32; 2],
    sizes: usize,
) -> Vec<(u32, f64)> {
    let mut values: BTreeMap<u32, (Vec<f64>, BTreeSet<u32>)> = BTreeMap::new();
    for l in links {
        let [a, b] = ends(l);
        for (group, other) in if a == b { vec![(a, l.from), (a, l.to)] } else { vec![(a, b), (b, a)] } {
            let (logs, partners) = values.entry(group).or_default();
            logs.push(l.log);
            partners.insert(other);
        }
    }
    // Links inside a host have no partner hosts.
    let apart = links.iter().any(|l| ends(l)[0] != ends(l)[1]);
    let few = if apart { MIN_GROUPS - 1 } else { 1 };
    values.retain(|_, (_, partners)| partners.len() >= few);
    if values.len() < MIN_GROUPS {
        return Vec::new();
    }
    let partners = values.values().map(|(_, partners)| partners.len()).min().unwrap_or(1);
    let centres: BTreeMap<u32, f64> =
        values.into_iter().map(|(group, (logs, _))| (group, median(&logs))).collect();
    let middle = median(&centres.values().copied().collect::<Vec<_>>());
    let above = |group: u32| centres.get(&group).map_or(0.0, |c| c - middle);
    // Noise of a link: the part that its two ends do not explain.
    let left = links.iter().map(|l| {
        let [a, b] = ends(l);
        l.log - if a == b { above(a) } else { above(a) + above(b) }
    });
    let noise = 1.2533 * spread(left.collect()) / (partners as f64).sqrt();
    let deviations = centres.values().map(|c| (c - middle).abs()).collect::<Vec<_>>();
    let spread = (MAD_TO_SIGMA * median(&deviations)).max(noise).max(MIN_SPREAD);
    let limit = threshold(centres.len() * sizes, spread, centres.len());
    centres.keys().map(|group| (*group, above(*group))).filter(|(_, log)| *log >= limit).collect()
}

/// Returns the limit for one of `tests` tests: Bonferroni's correction with the bound exp(-z²/2) of the normal tail.
///
/// The limit is wider if the standard deviation was estimated from few values.
fn threshold(tests: usize, spread: f64, values: usize) -> f64 {
    let z = (2.0 * (tests as f64 / LEVEL).ln()).sqrt();
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

pub(super) fn median(values: &[f64]) -> f64 {
    stats::median(values).unwrap_or(0.0)
}

/// Logarithms of the ratios of links measured again alone to ordinary links.
struct Retested(BTreeMap<(u32, u32), f64>);

impl Retested {
    fn of(times: &LinkTimes, hosts: &Hosts) -> Retested {
        let usual = |inside: bool| {
            let of = |links: &[Link]| {
                let kind = links.iter().filter(|l| hosts.same_host(l.from, l.to) == inside);
                kind.map(|l| f64::from(l.ns).ln()).collect::<Vec<_>>()
            };
            let reference = of(&times.reference);
            median(&if reference.is_empty() { of(&times.sweep) } else { reference })
        };
        let usual = [usual(false), usual(true)];
        let log = |l: &Link| f64::from(l.ns).ln() - usual[usize::from(hosts.same_host(l.from, l.to))];
        Retested(times.alone.iter().map(|l| ((l.from, l.to), log(l))).collect())
    }

    /// Returns the confirmed logarithm for links that were slow by `log` in the sweep, or `None` if they are not slow
    /// alone.
    ///
    /// Without a second measurement, the sweep counts.
    fn confirms<'a>(
        &self,
        links: impl Iterator<Item = &'a RelativeLink>,
        log: f64,
        spread: f64,
    ) -> Option<f64> {
        if self.0.is_empty() {
            return Some(log);
        }
        let known: Vec<f64> = links.filter_map(|l| self.0.get(&(l.from, l.to)).copied()).collect();
        let alone = median(&known);
        (alone >= MIN_RETEST_FACTOR.ln().max(MIN_RETEST_SPREADS * spread)).then_some(alone.min(log))
    }
}

#[cfg(test)]
mod tests;
