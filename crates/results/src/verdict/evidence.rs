//! Evidence of a slow component: its slowest links, and the ordinary ones that they are compared with.

use std::collections::BTreeMap;

use super::{Component, Hosts, Link, LinkTimes, count, link_name, relative::median};

/// Number of links that the evidence of a slow component lists.
const EVIDENCE_LINKS: usize = 4;
/// Number of ordinary links that it names.
const TYPICAL_LINKS: usize = 3;

/// Links of a slow component, and the ordinary ones that they are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Slowest links of the component and their ratios to the ordinary ones in the sweep.
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
    /// Returns the slowest links of a component, relative to the median of the links that no slow component has.
    pub(super) fn of(
        times: &LinkTimes,
        hosts: &Hosts,
        part: &Component,
        slow: &[(Component, f64)],
    ) -> Evidence {
        let distance = |l: &Link| hosts.distance(l.from, l.to);
        let of_part = |l: &&Link| part.contains([l.from, l.to], hosts);
        let mut own: Vec<Link> = times.shortest.iter().filter(of_part).copied().collect();
        // Only links over the same distance are compared. A host can have links over several.
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        own.iter().for_each(|l| *counts.entry(distance(l)).or_default() += 1);
        let kind = counts.into_iter().max_by_key(|(_, links)| *links).map_or(0, |(distance, _)| distance);
        own.retain(|l| distance(l) == kind);
        let is_slow = |l: &Link| slow.iter().any(|(part, _)| part.contains([l.from, l.to], hosts));
        let mut ordinary: Vec<&Link> =
            times.shortest.iter().filter(|l| distance(l) == kind && !is_slow(l)).collect();
        let ordinary_ns = median(&ordinary.iter().map(|l| f64::from(l.ns)).collect::<Vec<_>>());
        ordinary.sort_by(|a, b| {
            let apart = |l: &Link| (f64::from(l.ns) - ordinary_ns).abs();
            apart(a).total_cmp(&apart(b))
        });
        own.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        let again = own.iter().any(|l| times.retested(l.from, l.to).is_some());
        let count = own.len();
        own.truncate(EVIDENCE_LINKS);
        let links = own.iter().map(|l| ([l.from, l.to], f64::from(l.ns) / ordinary_ns)).collect();
        let typical = ordinary.iter().take(TYPICAL_LINKS).map(|l| [l.from, l.to]).collect();
        Evidence { links, count, typical, ordinary: ordinary.len(), ordinary_ns, measured_again: again }
    }

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
            "evidence: {}, against the median of {} ({such_as}{}: {:.2} us); {again}",
            links.join(", "),
            count(self.ordinary, "ordinary link"),
            typical.join(", "),
            self.ordinary_ns / 1e3
        )
    }
}
