//! Times of links relative to others of their kind: links of one distance between their ends.

use std::collections::{BTreeMap, BTreeSet};

use ombx_estimate::number;
use ombx_record::{
    order::sort_by_value,
    stats,
    unit::counted,
    verdict::{Component, Evidence},
};

use crate::verdict::{Hosts, Link, LinkTimes, MIN_RETEST_FACTOR, MIN_RETEST_SPREADS, link_name};

/// Time of a link relative to its kind: the logarithm of its ratio to the median.
#[derive(Debug, Clone, Copy)]
pub(super) struct RelativeLink {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) log: f64,
    /// Distance of its ends, see [`Hosts::distance`].
    pub(super) distance: usize,
    /// Whether the link is in the sample. Only these say what is usual.
    pub(super) sampled: bool,
}

/// Converts the times of the sweep to logarithms relative to the median of their kind: the sample, then the slowest links outside.
pub(super) fn relative_times(times: &LinkTimes, hosts: &Hosts) -> Vec<RelativeLink> {
    let outside = logarithms(&times.outliers, hosts).map(|l| RelativeLink { sampled: false, ..l });
    let mut all: Vec<RelativeLink> = logarithms(&times.sweep, hosts).chain(outside).collect();
    recentre(&mut all);
    all
}

/// Converts times to logarithms relative to the median of their kind.
pub(super) fn relative_links(links: &[Link], hosts: &Hosts) -> Vec<RelativeLink> {
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
        distance: hosts.distance(l.from, l.to),
        sampled: true,
    })
}

/// Makes the median of the sampled links of each kind 0, also after links were removed.
pub(super) fn recentre(links: &mut [RelativeLink]) {
    let distances: BTreeSet<usize> = links.iter().map(|l| l.distance).collect();
    for distance in distances {
        let kind = links.iter().filter(|l| l.sampled && l.distance == distance);
        let centre = median(&kind.map(|l| l.log).collect::<Vec<_>>());
        links.iter_mut().filter(|l| l.distance == distance).for_each(|l| l.log -= centre);
    }
}

pub(super) fn median(values: &[f64]) -> f64 {
    stats::median(values).unwrap_or(0.0)
}

/// Links that are compared with each other: those inside hosts or groups of hosts, or those between them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    /// 0 for hosts, from 1 for levels of groups.
    pub(super) level: usize,
    pub(super) inside: bool,
}

impl Scope {
    /// Returns whether links over this distance belong to the scope.
    pub(super) fn has(self, distance: usize) -> bool {
        if self.inside { distance == self.level } else { distance > self.level }
    }

    /// Returns the component of a host or group.
    pub(super) fn component(self, unit: u32) -> Component {
        match (self.level.checked_sub(1), self.inside) {
            (None, false) => Component::HostBetween(unit),
            (None, true) => Component::HostWithin(unit),
            (Some(level), false) => Component::GroupBetween(level, unit),
            (Some(level), true) => Component::GroupWithin(level, unit),
        }
    }
}

/// Links that were measured again alone.
pub(super) struct Retested {
    /// Logarithms of their ratios to ordinary links.
    logs: BTreeMap<(u32, u32), f64>,
    /// Part of these that waiting for a CPU may explain, see [`LinkTimes::decisive`].
    delay: f64,
}

impl Retested {
    pub(super) fn new(times: &LinkTimes, hosts: &Hosts) -> Retested {
        let distances = 0..=hosts.levels() + 1;
        let usual: Vec<f64> = distances.map(|distance| usual_log(times, hosts, distance)).collect();
        // A link that was not slow each time is an ordinary one.
        let log = |l: &Link| {
            let log = f64::from(l.ns).ln() - usual[hosts.distance(l.from, l.to)];
            if times.given_up.contains(&(l.from, l.to)) { log.min(0.0) } else { log }
        };
        let logs = times.alone.iter().map(|l| ((l.from, l.to), log(l))).collect();
        Retested { logs, delay: times.delay }
    }

    /// Returns whether a link was slow alone, or was not measured.
    pub(super) fn is_slow(&self, from: u32, to: u32) -> bool {
        self.logs.get(&(from, to)).is_none_or(|log| *log >= MIN_RETEST_FACTOR.ln())
    }

    /// Returns the confirmed logarithm for links that were slow by `log` in the sweep, or `None` if they are not slow
    /// alone.
    ///
    /// Without a second measurement, the sweep counts.
    pub(super) fn confirms<'a>(
        &self,
        links: impl Iterator<Item = &'a RelativeLink>,
        log: f64,
        spread: f64,
    ) -> Option<f64> {
        if self.logs.is_empty() {
            return Some(log);
        }
        let known: Vec<f64> = links.filter_map(|l| self.logs.get(&(l.from, l.to)).copied()).collect();
        let alone = median(&known);
        let least = self.delay + MIN_RETEST_FACTOR.ln().max(MIN_RETEST_SPREADS * spread);
        (alone >= least).then_some(alone.min(log))
    }
}

/// Returns the median logarithm of the ordinary links over a distance, or without them of all links.
fn usual_log(times: &LinkTimes, hosts: &Hosts, distance: usize) -> f64 {
    let logs = |links: &[Link]| {
        let kind = links.iter().filter(|l| hosts.distance(l.from, l.to) == distance);
        kind.map(|l| f64::from(l.ns).ln()).collect::<Vec<_>>()
    };
    let reference = logs(&times.reference);
    median(&if reference.is_empty() { logs(&times.sweep) } else { reference })
}

/// Number of links that the evidence of a slow component lists.
const EVIDENCE_LINKS: usize = 4;
/// Number of ordinary links that it names.
const TYPICAL_LINKS: usize = 3;

/// Returns which links are slow, by what factor, and which ordinary links they are compared with.
pub(super) fn evidence_sentence(evidence: &Evidence, hosts: &Hosts) -> String {
    let mut links: Vec<String> = evidence
        .links
        .iter()
        .map(|(ends, ratio)| format!("{} {ratio:.2} x", link_name(*ends, hosts)))
        .collect();
    if evidence.count > links.len() {
        links.push(format!("and {} more", evidence.count - links.len()));
    }
    let again = if evidence.measured_again { "slow again when measured alone" } else { "measured once" };
    let typical: Vec<String> = evidence.typical.iter().map(|ends| link_name(*ends, hosts)).collect();
    let such_as = if evidence.typical.len() < evidence.ordinary { "such as " } else { "" };
    format!(
        "evidence: {}, against the median of {} ({such_as}{}: {}); {again}",
        links.join(", "),
        counted(evidence.ordinary, "ordinary link"),
        typical.join(", "),
        number::time(evidence.ordinary_ns)
    )
}

/// Returns the slowest links of each component, relative to the median of the links that no slow component has.
pub(super) fn of_components(times: &LinkTimes, hosts: &Hosts, slow: &[Component]) -> Vec<Evidence> {
    if slow.is_empty() {
        return Vec::new();
    }
    let kinds = ordinary(times, hosts, slow);
    let mut links: Vec<Link> = times.sweep.iter().chain(&times.outliers).copied().collect();
    links.sort_by_key(|l| (l.from, l.to));
    let distance = |l: &Link| hosts.distance(l.from, l.to);
    let evidence = |part: &Component| {
        let mut own = links_of(part, &links, hosts);
        // Only links over the same distance are compared. A host can have links over several.
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        own.iter().for_each(|l| *counts.entry(distance(l)).or_default() += 1);
        let kind = counts.into_iter().max_by_key(|(_, links)| *links).map_or(0, |(distance, _)| distance);
        own.retain(|l| distance(l) == kind);
        let Ordinary { count: ordinary, ns, typical } = &kinds[kind];
        sort_by_value(&mut own, |link| -f64::from(link.ns));
        let measured_again = own.iter().any(|l| times.retested(l.from, l.to).is_some());
        let slowest = own.iter().take(EVIDENCE_LINKS);
        let ratios: Vec<f64> = own.iter().map(|l| f64::from(l.ns) / ns).collect();
        Evidence {
            factor: (*ordinary > 0).then(|| median(&ratios)),
            links: slowest.map(|l| ([l.from, l.to], f64::from(l.ns) / ns)).collect(),
            count: own.len(),
            typical: typical.clone(),
            ordinary: *ordinary,
            ordinary_ns: *ns,
            measured_again,
        }
    };
    slow.iter().map(evidence).collect()
}

/// Returns the links of each distance that no slow component has.
pub(super) fn ordinary(times: &LinkTimes, hosts: &Hosts, slow: &[Component]) -> Vec<Ordinary> {
    let parts = Parts::new(slow);
    let is_ordinary = |l: &&Link| times.is_sampled(l, hosts) && !parts.contain([l.from, l.to], hosts);
    let links: Vec<&Link> = times.sweep.iter().filter(is_ordinary).collect();
    (0..=hosts.levels() + 1).map(|distance| Ordinary::new(&links, hosts, distance)).collect()
}

/// Returns the links of a component in the order of their ends, which is that of all `links`.
fn links_of(part: &Component, links: &[Link], hosts: &Hosts) -> Vec<Link> {
    let find = |ends: (u32, u32)| {
        let at = links.binary_search_by_key(&ends, |l| (l.from, l.to)).ok()?;
        Some(links[at])
    };
    match *part {
        Component::OneWay(from, to) => find((from, to)).into_iter().collect(),
        Component::Link(a, b) => find((a, b)).into_iter().chain(find((b, a))).collect(),
        _ => links.iter().filter(|l| hosts.has_link(part, [l.from, l.to])).copied().collect(),
    }
}

/// Slow components by what they are, to find whether one has a link. Units are hosts (level 0) or groups (levels from 1).
#[derive(Default)]
pub(super) struct Parts {
    between: BTreeSet<(usize, u32)>,
    within: BTreeSet<(usize, u32)>,
    ranks: BTreeSet<u32>,
    links: BTreeSet<(u32, u32)>,
}

impl Parts {
    pub(super) fn new(components: &[Component]) -> Parts {
        let mut parts = Parts::default();
        for component in components {
            match *component {
                Component::GroupBetween(level, group) => _ = parts.between.insert((level + 1, group)),
                Component::GroupWithin(level, group) => _ = parts.within.insert((level + 1, group)),
                Component::HostBetween(host) => _ = parts.between.insert((0, host)),
                Component::HostWithin(host) => _ = parts.within.insert((0, host)),
                Component::Rank(rank) => _ = parts.ranks.insert(rank),
                Component::Link(a, b) => parts.links.extend([(a, b), (b, a)]),
                Component::OneWay(from, to) => _ = parts.links.insert((from, to)),
            }
        }
        parts
    }

    /// Returns whether a component has the link between these ends.
    pub(super) fn contain(&self, ends: [u32; 2], hosts: &Hosts) -> bool {
        let [from, to] = ends;
        let distance = hosts.distance(from, to);
        let of_units = (0..=hosts.levels()).any(|level| {
            let [a, b] = ends.map(|rank| (level, hosts.unit(level, rank)));
            if a == b {
                distance == level && self.within.contains(&a)
            } else {
                self.between.contains(&a) || self.between.contains(&b)
            }
        });
        of_units || ends.iter().any(|rank| self.ranks.contains(rank)) || self.links.contains(&(from, to))
    }
}

/// Ordinary links of a kind.
pub(super) struct Ordinary {
    count: usize,
    /// Median time in nanoseconds; 0 without links.
    pub(super) ns: f64,
    /// Links next to it.
    typical: Vec<[u32; 2]>,
}

impl Ordinary {
    fn new(links: &[&Link], hosts: &Hosts, distance: usize) -> Ordinary {
        let mut kind: Vec<&Link> =
            links.iter().filter(|l| hosts.distance(l.from, l.to) == distance).copied().collect();
        let ns = median(&kind.iter().map(|l| f64::from(l.ns)).collect::<Vec<_>>());
        sort_by_value(&mut kind, |link| (f64::from(link.ns) - ns).abs());
        let typical = kind.iter().take(TYPICAL_LINKS).map(|l| [l.from, l.to]).collect();
        Ordinary { count: kind.len(), ns, typical }
    }
}
