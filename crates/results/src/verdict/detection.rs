//! Detection of slow hosts, ranks and links, each compared with others of its kind.

use std::collections::{BTreeMap, BTreeSet};

use ombx_core::stats;

use super::{
    Component, Hosts, Link, LinkTimes, SlowComponent, evidence,
    search::{self, Explanation, PairTime, Part},
};

/// Probability of a false verdict on a healthy machine with normally distributed times.
pub(super) const LEVEL: f64 = 0.01;
/// Smallest ratio with a verdict.
pub(super) const MIN_FACTOR: f64 = 1.15;
/// Smallest ratio that confirms a slow link when it is measured again alone.
const MIN_RETEST_FACTOR: f64 = 1.1;
/// The same limit in standard deviations of one row.
const MIN_RETEST_SPREADS: f64 = 4.0;
/// Smallest standard deviation of logarithms: repeated runs differ by as much.
pub(super) const MIN_SPREAD: f64 = 0.01;
/// Minimum number of links of a kind for tests of single links, and for the verdict that nothing is slow.
pub(super) const MIN_LINKS: usize = 10;
/// Minimum number of hosts or ranks for tests of hosts or ranks. Each needs one partner fewer.
pub(super) const MIN_GROUPS: usize = 4;
/// Standard deviation of a normal distribution, in median absolute deviations.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Standard deviations above a limit at which a slow link exceeds it in 95 of 100 runs.
const POWER: f64 = 1.645;

/// Time of a link relative to its kind: the logarithm of its ratio to the median.
#[derive(Debug, Clone, Copy)]
pub(super) struct RelativeLink {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) log: f64,
    pub(super) inside: bool,
    /// Whether the link is in the sample. Only these say what is usual.
    pub(super) sampled: bool,
}

/// Returns the slow components of all message sizes, the slowest first. Each component is named once.
pub fn find_slow(times: &[LinkTimes], hosts: &Hosts) -> Vec<SlowComponent> {
    let averaged: Vec<LinkTimes> = times.iter().map(LinkTimes::averaged).collect();
    slow_of_sizes(averaged.iter().flat_map(|of_size| at_one_size(of_size, hosts, times.len()).slow).collect())
}

/// Combines the slow components of all message sizes: the slowest first, each once.
pub(super) fn slow_of_sizes(slow: Vec<SlowComponent>) -> Vec<SlowComponent> {
    let mut found: BTreeMap<Component, SlowComponent> = BTreeMap::new();
    for slow in slow {
        let worst = found.entry(slow.component.clone()).or_insert_with(|| slow.clone());
        if slow.factor > worst.factor {
            *worst = slow;
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

/// What was found at one message size.
pub(super) struct Detected {
    pub(super) slow: Vec<SlowComponent>,
    /// Smallest factor of a slow link that is named in 95 of 100 runs, or `None` if single links cannot be compared.
    pub(super) nameable: Option<f64>,
}

/// Finds the slow components at one message size. `times` are averaged.
pub(super) fn at_one_size(times: &LinkTimes, hosts: &Hosts, sizes: usize) -> Detected {
    let again = Retested::of(times, hosts);
    let mut links = relative_times(times, hosts);
    let per_sampled = times.links_per_sampled();
    let mut slow: Vec<(Component, f64)> = Vec::new();
    // The links that the all-clear speaks of: those between hosts, or those of the only host.
    let main_kind = hosts.count() == 1;
    let mut nameable = None;
    let rows = row_spreads(times);

    for inside in [false, true] {
        let kind: Vec<RelativeLink> =
            links.iter().copied().filter(|l| l.sampled && l.inside == inside).collect();
        if let Some(few) = FewGroups::of(times, hosts, inside, sizes) {
            slow.extend(few.confirmed(times, hosts, &again));
            links.retain(|l| !slow.iter().any(|(part, _)| part.contains([l.from, l.to], hosts)));
            if few.by_rank {
                links.retain(|l| l.inside != inside);
                if inside == main_kind {
                    nameable = Some(few.found.limit + POWER * few.found.spread);
                }
            }
            continue;
        }
        let ends = |l: &RelativeLink| [hosts.number(l.from), hosts.number(l.to)];
        for (host, log) in slow_groups(&kind, ends, sizes) {
            let of_host = |l: &RelativeLink| l.inside == inside && ends(l).contains(&host);
            if let Some(log) = again.confirms(links.iter().filter(|l| of_host(l)), log, 0.0) {
                let part = if inside { Component::HostWithin(host) } else { Component::HostBetween(host) };
                slow.push((part, log));
                links.retain(|l| !of_host(l));
            }
        }
    }
    recentre(&mut links);
    if hosts.count() < hosts.ranks() as usize {
        let sampled: Vec<RelativeLink> = links.iter().copied().filter(|l| l.sampled).collect();
        for (rank, log) in slow_groups(&sampled, |l| [l.from, l.to], sizes) {
            let of_rank = |l: &RelativeLink| l.from == rank || l.to == rank;
            if let Some(log) = again.confirms(links.iter().filter(|l| of_rank(l)), log, 0.0) {
                slow.push((Component::Rank(rank), log));
                links.retain(|l| !of_rank(l));
            }
        }
        recentre(&mut links);
    }
    for inside in [false, true] {
        let Some(test) = LinkTest::of(&links, inside, sizes as f64 * per_sampled) else { continue };
        let single: Vec<(&RelativeLink, f64)> = links
            .iter()
            .filter(|l| l.inside == inside && l.log >= test.limit)
            .filter_map(|l| Some((l, again.confirms([l].into_iter(), l.log, test.spread * rows)?)))
            .collect();
        let ways: BTreeSet<(u32, u32)> = single.iter().map(|(l, _)| (l.from, l.to)).collect();
        for (l, log) in &single {
            let (a, b) = (l.from, l.to);
            match !times.directed || ways.contains(&(b, a)) {
                true if times.directed && a > b => {}
                true => slow.push((Component::Link(a, b), *log)),
                false => slow.push((Component::OneWay(a, b), *log)),
            }
        }
        if inside == main_kind {
            let limit = test.limit.max(MIN_RETEST_SPREADS * test.spread * rows);
            nameable = Some(limit + POWER * test.spread);
        }
    }
    let (parts, logs): (Vec<Component>, Vec<f64>) = slow.into_iter().unzip();
    let evidence = evidence::of_components(times, hosts, &parts);
    let slow = parts.into_iter().zip(logs).zip(evidence).map(|((component, log), evidence)| SlowComponent {
        component,
        factor: log.exp(),
        bytes: times.bytes,
        evidence,
    });
    Detected { slow: slow.collect(), nameable: nameable.map(f64::exp) }
}

/// Returns the standard deviation of one row in those of a link. Without directed traffic a link is the mean of two rows in
/// the sweep, and one row when it is measured again.
fn row_spreads(times: &LinkTimes) -> f64 {
    if times.directed { 1.0 } else { std::f64::consts::SQRT_2 }
}

/// Slow parts of few hosts or ranks, found by [`search`].
struct FewGroups {
    found: Explanation,
    /// Whether the groups are ranks: each host has one rank, or there is one host.
    by_rank: bool,
    inside: bool,
    /// Whether every link was measured again. The search is then in the shortest times.
    is_repeat: bool,
}

impl FewGroups {
    /// Returns `None` if these links are too few or too many for a search.
    fn of(times: &LinkTimes, hosts: &Hosts, inside: bool, sizes: usize) -> Option<FewGroups> {
        let one_each = hosts.count() == hosts.ranks() as usize;
        let groups = if inside { hosts.ranks() as usize } else { hosts.count() };
        if groups > search::MAX_GROUPS || inside && hosts.count() > 1 {
            return None;
        }
        let is_repeat = times.alone.len() + times.reference.len() == times.sweep.len();
        let links = if is_repeat { &times.shortest } else { &times.sweep };
        let found = search::explain(&pair_times(links, hosts, inside), sizes, times.row_error)?;
        Some(FewGroups { found, by_rank: inside || one_each, inside, is_repeat })
    }

    /// Returns the slow parts. Without a repeat of all links, the links that were measured again must confirm them.
    fn confirmed(&self, times: &LinkTimes, hosts: &Hosts, again: &Retested) -> Vec<(Component, f64)> {
        let best = relative_links(&times.shortest, hosts);
        let ends = |l: &RelativeLink| group_ends([l.from, l.to], hosts, self.inside);
        let confirmed = |(part, log): &(Part, f64)| {
            let own = || best.iter().filter(|l| l.inside == self.inside && part.contains(ends(l)));
            let spread = if matches!(part, Part::Link(_)) { self.found.spread } else { 0.0 };
            let log = match self.is_repeat {
                true => *log,
                false => again.confirms(own(), *log, spread * row_spreads(times))?,
            };
            Some(match part {
                Part::Group(rank) if self.inside => (Component::Rank(*rank), log),
                Part::Group(host) => (Component::HostBetween(*host), log),
                // Between hosts with several ranks, the links of ranks are tested one by one.
                Part::Link(_) if !self.by_rank => return None,
                Part::Link([a, b]) => {
                    let mut ways: Vec<&RelativeLink> = own().collect();
                    ways.sort_by(|a, b| b.log.total_cmp(&a.log));
                    // The part has the mean of both directions.
                    match ways[..] {
                        [slow, other] if slow.log - other.log > log => {
                            (Component::OneWay(slow.from, slow.to), log + 0.5 * (slow.log - other.log))
                        }
                        _ => {
                            let ranks = ways.first().map_or((*a, *b), |l| (l.from, l.to));
                            (Component::Link(ranks.0.min(ranks.1), ranks.0.max(ranks.1)), log)
                        }
                    }
                }
            })
        };
        self.found.slow.iter().filter_map(confirmed).collect()
    }
}

/// Returns the host numbers of the two ends, or the ranks inside the only host; the lower first.
fn group_ends([from, to]: [u32; 2], hosts: &Hosts, inside: bool) -> [u32; 2] {
    let [a, b] = if inside { [from, to] } else { [hosts.number(from), hosts.number(to)] };
    [a.min(b), a.max(b)]
}

/// Returns the median time between every two hosts, or between every two ranks of the only host.
fn pair_times(links: &[Link], hosts: &Hosts, inside: bool) -> Vec<PairTime> {
    let mut logs: BTreeMap<[u32; 2], Vec<f64>> = BTreeMap::new();
    for l in links.iter().filter(|l| hosts.same_host(l.from, l.to) == inside) {
        logs.entry(group_ends([l.from, l.to], hosts, inside)).or_default().push(f64::from(l.ns).ln());
    }
    logs.into_iter().map(|(ends, logs)| PairTime { ends, log: median(&logs) }).collect()
}

/// Converts the times of the sweep to logarithms relative to the median of their kind: the sample, then the slowest links outside.
pub(super) fn relative_times(times: &LinkTimes, hosts: &Hosts) -> Vec<RelativeLink> {
    let outside = logarithms(&times.outliers, hosts).map(|l| RelativeLink { sampled: false, ..l });
    let mut all: Vec<RelativeLink> = logarithms(&times.sweep, hosts).chain(outside).collect();
    recentre(&mut all);
    all
}

/// Converts times to logarithms relative to the median of their kind.
fn relative_links(links: &[Link], hosts: &Hosts) -> Vec<RelativeLink> {
    let mut all: Vec<RelativeLink> = logarithms(links, hosts).collect();
    recentre(&mut all);
    all
}

fn logarithms(links: &[Link], hosts: &Hosts) -> impl Iterator<Item = RelativeLink> {
    let known = links.iter().filter(|l| l.ns.is_finite() && l.ns > 0.0);
    known.map(|l| RelativeLink {
        from: l.from,
        to: l.to,
        log: f64::from(l.ns).ln(),
        inside: hosts.same_host(l.from, l.to),
        sampled: true,
    })
}

/// Makes the median of the sampled links of each kind 0.
fn recentre(links: &mut [RelativeLink]) {
    for inside in [false, true] {
        let kind = links.iter().filter(|l| l.sampled && l.inside == inside);
        let centre = median(&kind.map(|l| l.log).collect::<Vec<_>>());
        links.iter_mut().filter(|l| l.inside == inside).for_each(|l| l.log -= centre);
    }
}

/// Test of single links of a kind.
struct LinkTest {
    spread: f64,
    limit: f64,
}

impl LinkTest {
    /// Returns `None` with too few links. `tests_per_link` is the number of tests for each link of the sample.
    fn of(links: &[RelativeLink], inside: bool, tests_per_link: f64) -> Option<LinkTest> {
        let sampled = || links.iter().filter(|l| l.sampled);
        let kind: Vec<f64> = sampled().filter(|l| l.inside == inside).map(|l| l.log).collect();
        let count = kind.len();
        (count >= MIN_LINKS).then(|| {
            let (spread, tests) = (spread(kind), sampled().count() as f64 * tests_per_link);
            LinkTest { spread, limit: threshold(tests, spread, count) }
        })
    }
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
    let limit = threshold((centres.len() * sizes) as f64, spread, centres.len());
    centres.keys().map(|group| (*group, above(*group))).filter(|(_, log)| *log >= limit).collect()
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
