//! Evidence of slow components: their slowest links, and the ordinary links that they are compared with.

use std::collections::BTreeSet;

use super::{Component, Evidence, Hosts, Link, LinkTimes, detection::median};

/// Number of links that the evidence of a slow component lists.
const EVIDENCE_LINKS: usize = 4;
/// Number of ordinary links that it names.
const TYPICAL_LINKS: usize = 3;

/// Returns the slowest links of each component, relative to the median of the links that no slow component has.
pub(super) fn of_components(times: &LinkTimes, hosts: &Hosts, slow: &[Component]) -> Vec<Evidence> {
    let parts = Parts::of(slow);
    let is_ordinary = |l: &Link| times.is_sampled(l) && !parts.contain(l, hosts);
    let ordinary: Vec<&Link> =
        if slow.is_empty() { Vec::new() } else { times.shortest.iter().filter(|l| is_ordinary(l)).collect() };
    let kinds = [false, true].map(|inside| Ordinary::of(&ordinary, hosts, inside));
    let evidence = |part: &Component| {
        let mut own = links_of(part, times, hosts);
        let inside = own.first().is_some_and(|l| hosts.same_host(l.from, l.to));
        let Ordinary { count: ordinary, ns, typical } = &kinds[usize::from(inside)];
        own.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        let measured_again = own.iter().any(|l| times.retested(l.from, l.to).is_some());
        let slowest = own.iter().take(EVIDENCE_LINKS);
        Evidence {
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

/// Returns the links of a component with their shortest times, in the order of their ends.
fn links_of(part: &Component, times: &LinkTimes, hosts: &Hosts) -> Vec<Link> {
    let links = &times.shortest;
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

/// Slow components by what they are, to find whether one has a link.
#[derive(Default)]
struct Parts {
    between: BTreeSet<u32>,
    within: BTreeSet<u32>,
    ranks: BTreeSet<u32>,
    links: BTreeSet<(u32, u32)>,
}

impl Parts {
    fn of(components: &[Component]) -> Parts {
        let mut parts = Parts::default();
        for component in components {
            match *component {
                Component::HostBetween(host) => _ = parts.between.insert(host),
                Component::HostWithin(host) => _ = parts.within.insert(host),
                Component::Rank(rank) => _ = parts.ranks.insert(rank),
                Component::Link(a, b) => parts.links.extend([(a, b), (b, a)]),
                Component::OneWay(from, to) => _ = parts.links.insert((from, to)),
            }
        }
        parts
    }

    fn contain(&self, l: &Link, hosts: &Hosts) -> bool {
        let ends = [hosts.number(l.from), hosts.number(l.to)];
        let of_hosts = match ends[0] == ends[1] {
            true => self.within.contains(&ends[0]),
            false => ends.iter().any(|host| self.between.contains(host)),
        };
        of_hosts
            || [l.from, l.to].iter().any(|rank| self.ranks.contains(rank))
            || self.links.contains(&(l.from, l.to))
    }
}

/// Ordinary links of a kind.
struct Ordinary {
    count: usize,
    /// Median time in nanoseconds.
    ns: f64,
    /// Links next to it.
    typical: Vec<[u32; 2]>,
}

impl Ordinary {
    fn of(links: &[&Link], hosts: &Hosts, inside: bool) -> Ordinary {
        let mut kind: Vec<&Link> =
            links.iter().filter(|l| hosts.same_host(l.from, l.to) == inside).copied().collect();
        let ns = median(&kind.iter().map(|l| f64::from(l.ns)).collect::<Vec<_>>());
        let apart = |l: &Link| (f64::from(l.ns) - ns).abs();
        kind.sort_by(|a, b| apart(a).total_cmp(&apart(b)));
        let typical = kind.iter().take(TYPICAL_LINKS).map(|l| [l.from, l.to]).collect();
        Ordinary { count: kind.len(), ns, typical }
    }
}
