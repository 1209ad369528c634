//! Evidence of slow components: their slowest links, and the ordinary ones that they are compared with.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Component, Hosts, Link, LinkTimes, count, link_name, relative::median};
use crate::number;

/// Number of links that the evidence of a slow component lists.
const EVIDENCE_LINKS: usize = 4;
/// Number of ordinary links that it names.
const TYPICAL_LINKS: usize = 3;

/// Links of a slow component, and the ordinary ones that they are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Median ratio of the links of the component to the ordinary ones; `None` without ordinary ones.
    pub factor: Option<f64>,
    /// Slowest links of the component and their ratios to the ordinary ones.
    pub links: Vec<([u32; 2], f64)>,
    /// Number of links of the component.
    pub count: usize,
    /// Ordinary links next to their median time.
    pub typical: Vec<[u32; 2]>,
    /// Number of ordinary links.
    pub ordinary: usize,
    /// Median time of the ordinary links in nanoseconds.
    pub ordinary_ns: f64,
    /// Whether links of the component were measured again alone.
    pub measured_again: bool,
}

impl Evidence {
    /// Returns which links are slow, by what factor, and which ordinary links they are compared with.
    pub(super) fn sentence(&self, hosts: &Hosts) -> String {
        let mut links: Vec<String> = self
            .links
            .iter()
            .map(|(ends, ratio)| format!("{} {ratio:.2} x", link_name(*ends, hosts)))
            .collect();
        if self.count > links.len() {
            links.push(format!("and {} more", self.count - links.len()));
        }
        let again = match self.measured_again {
            true => "slow again when measured alone",
            false => "measured once",
        };
        let typical: Vec<String> = self.typical.iter().map(|ends| link_name(*ends, hosts)).collect();
        let such_as = if self.typical.len() < self.ordinary { "such as " } else { "" };
        format!(
            "evidence: {}, against the median of {} ({such_as}{}: {}); {again}",
            links.join(", "),
            count(self.ordinary, "ordinary link"),
            typical.join(", "),
            number::time(self.ordinary_ns)
        )
    }
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
        own.sort_by(|a, b| b.ns.total_cmp(&a.ns));
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
    let parts = Parts::of(slow);
    let is_ordinary = |l: &&Link| times.is_sampled(l, hosts) && !parts.contain(l, hosts);
    let links: Vec<&Link> = times.sweep.iter().filter(is_ordinary).collect();
    (0..=hosts.levels() + 1).map(|distance| Ordinary::of(&links, hosts, distance)).collect()
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
        _ => links.iter().filter(|l| part.contains([l.from, l.to], hosts)).copied().collect(),
    }
}

/// Slow components by what they are, to find whether one has a link. Units are hosts (level 0) or groups (levels from 1).
#[derive(Default)]
struct Parts {
    between: BTreeSet<(usize, u32)>,
    within: BTreeSet<(usize, u32)>,
    ranks: BTreeSet<u32>,
    links: BTreeSet<(u32, u32)>,
}

impl Parts {
    fn of(components: &[Component]) -> Parts {
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

    fn contain(&self, l: &Link, hosts: &Hosts) -> bool {
        let distance = hosts.distance(l.from, l.to);
        let of_units = (0..=hosts.levels()).any(|level| {
            let [a, b] = [l.from, l.to].map(|rank| (level, hosts.unit(level, rank)));
            match a == b {
                true => distance == level && self.within.contains(&a),
                false => self.between.contains(&a) || self.between.contains(&b),
            }
        });
        of_units
            || [l.from, l.to].iter().any(|rank| self.ranks.contains(rank))
            || self.links.contains(&(l.from, l.to))
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
    fn of(links: &[&Link], hosts: &Hosts, distance: usize) -> Ordinary {
        let mut kind: Vec<&Link> =
            links.iter().filter(|l| hosts.distance(l.from, l.to) == distance).copied().collect();
        let ns = median(&kind.iter().map(|l| f64::from(l.ns)).collect::<Vec<_>>());
        let apart = |l: &Link| (f64::from(l.ns) - ns).abs();
        kind.sort_by(|a, b| apart(a).total_cmp(&apart(b)));
        let typical = kind.iter().take(TYPICAL_LINKS).map(|l| [l.from, l.to]).collect();
        Ordinary { count: kind.len(), ns, typical }
    }
}
