//! Detection of slow groups of hosts, hosts, ranks and links, each compared with others of its kind.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Component, Hosts, LinkTimes, MIN_RETEST_FACTOR, MIN_RETEST_SPREADS, SlowComponent,
    few_units::FewUnits,
    outlying::{LinkTest, slow_units},
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
    let of_size = |of_size: &LinkTimes| {
        let found = at_one_size(&of_size.averaged(), hosts, times.len());
        (of_size.bytes, found.nameable)
    };
    times.iter().map(of_size).collect()
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
    /// The same for a group of each level; `None` if the groups of the level cannot be compared.
    pub(super) nameable_groups: Vec<Option<f64>>,
}

/// Finds the slow components at one message size. `times` are averaged.
pub(super) fn at_one_size(times: &LinkTimes, hosts: &Hosts, sizes: usize) -> Detected {
    let mut search = Search {
        times,
        hosts,
        sizes,
        again: Retested::of(times, hosts),
        links: relative_times(times, hosts),
        slow: Vec::new(),
        nameable: None,
    };
    let levels = (1..=hosts.levels()).rev();
    let mut nameable_groups: Vec<Option<f64>> =
        levels.map(|level| search.groups(level).map(f64::exp)).collect();
    nameable_groups.reverse();
    search.hosts();
    search.ranks();
    search.links();
    let Search { slow, nameable, .. } = search;
    let (parts, logs): (Vec<Component>, Vec<f64>) = slow.into_iter().unzip();
    let evidence = relative::of_components(times, hosts, &parts);
    let all = parts.into_iter().zip(logs).zip(evidence).map(|((component, log), evidence)| SlowComponent {
        component,
        factor: evidence.factor.unwrap_or(log.exp()),
        bytes: times.bytes,
        evidence,
    });
    Detected { slow: all.collect(), nameable: nameable.map(f64::exp), nameable_groups }
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
    fn groups(&mut self, level: usize) -> Option<f64> {
        let mut nameable = None;
        for inside in [false, true] {
            let scope = Scope { level, inside };
            let few = FewUnits::of(self.times, self.hosts, scope, self.sizes, &self.slow);
            let (found, limit) = match &few {
                Some(few) => (few.confirmed(self.times, self.hosts, &self.again), Some(few.nameable())),
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
    fn hosts(&mut self) {
        let (times, hosts) = (self.times, self.hosts);
        // The links that an all-clear is about: those between hosts, or those of the only host.
        let main_kind = hosts.count() == 1;
        for inside in [false, true] {
            let scope = Scope { level: 0, inside };
            let Some(few) = FewUnits::of(times, hosts, scope, self.sizes, &self.slow) else {
                self.many(scope).0.into_iter().for_each(|(part, log)| self.take(part, log));
                continue;
            };
            few.confirmed(times, hosts, &self.again).into_iter().for_each(|(part, log)| self.take(part, log));
            if few.by_rank {
                self.links.retain(|l| !scope.has(l.distance));
                if inside == main_kind {
                    self.nameable = Some(few.nameable());
                }
            }
        }
        recentre(&mut self.links);
    }

    /// Tests the ranks of hosts with several.
    fn ranks(&mut self) {
        if self.hosts.count() == self.hosts.ranks() as usize {
            return;
        }
        let sampled: Vec<RelativeLink> = self.links.iter().filter(|l| l.sampled).copied().collect();
        let found =
            slow_units(&sampled, |l| [l.from, l.to], self.sizes).map_or(Vec::new(), |found| found.slow);
        for (rank, log) in found {
            let own = self.links.iter().filter(|l| l.from == rank || l.to == rank);
            if let Some(log) = self.again.confirms(own, log, 0.0) {
                self.take(Component::Rank(rank), log);
            }
        }
        recentre(&mut self.links);
    }

    /// Tests the single links that are left.
    fn links(&mut self) {
        let of_shortest = self.times.shortest_spreads();
        let tests_per_link = self.sizes as f64 * self.times.links_per_sampled();
        for distance in 0..=self.hosts.levels() + 1 {
            let Some(test) = LinkTest::of(&self.links, distance, tests_per_link) else { continue };
            let of_distance = || self.links.iter().filter(|l| l.distance == distance);
            let outlying = of_distance().filter(|l| l.log >= test.limit);
            let single: Vec<(RelativeLink, f64)> = outlying
                .filter_map(|l| {
                    Some((*l, self.again.confirms([l].into_iter(), l.log, test.spread * of_shortest)?))
                })
                .collect();
            let is_main = (distance == 0) == (self.hosts.count() == 1) && of_distance().next().is_some();
            let ways: BTreeSet<(u32, u32)> = single.iter().map(|(l, _)| (l.from, l.to)).collect();
            for (l, log) in &single {
                let (a, b) = (l.from, l.to);
                match !self.times.directed || ways.contains(&(b, a)) {
                    true if self.times.directed && a > b => {}
                    true => self.slow.push((Component::Link(a, b), *log)),
                    false => self.slow.push((Component::OneWay(a, b), *log)),
                }
            }
            if is_main {
                let again = test.spread * of_shortest;
                let limit = test.nameable(MIN_RETEST_FACTOR.ln().max(MIN_RETEST_SPREADS * again), again);
                self.nameable = Some(self.nameable.map_or(limit, |other| other.max(limit)));
            }
        }
    }

    /// Returns the units of a scope that stand out among many, and the logarithm of the smallest factor that is named.
    fn many(&self, scope: Scope) -> (Vec<(Component, f64)>, Option<f64>) {
        let hosts = self.hosts;
        let ends = |l: &RelativeLink| [hosts.unit(scope.level, l.from), hosts.unit(scope.level, l.to)];
        let own: Vec<RelativeLink> = self.links.iter().filter(|l| scope.has(l.distance)).copied().collect();
        let sampled: Vec<RelativeLink> = own.iter().filter(|l| l.sampled).copied().collect();
        let Some(found) = slow_units(&sampled, ends, self.sizes) else { return (Vec::new(), None) };
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
            .partition(|l| part.contains([l.from, l.to], self.hosts));
        let usual = median(&others.iter().map(|l| l.log).collect::<Vec<_>>());
        let slow = own.iter().filter(|l| l.log - usual >= 0.5 * log).count();
        self.hosts.of_group(level, group).len() > 1 && own.len() > 1 && slow as f64 >= MOST * own.len() as f64
    }

    /// Adds a slow component and removes its links.
    fn take(&mut self, part: Component, log: f64) {
        self.links.retain(|l| !part.contains([l.from, l.to], self.hosts));
        self.slow.push((part, log));
    }
}

#[cfg(test)]
mod tests;
