//! Links that are not judged, because ranks waited for a CPU while they were measured.

use std::collections::BTreeSet;

use crate::verdict::{
    Hosts, Link, LinkTimes, SlowComponent,
    detection::{at_one_size, slow_of_sizes},
    link_name,
};

/// Number of links that a clause names.
const NAMED: usize = 3;

/// Links whose rows decide nothing at some size, because ranks waited for a CPU in too many of them.
pub(super) struct Undecided(Vec<BTreeSet<(u32, u32)>>);

impl Undecided {
    /// Returns the links of which only all rows, and not the decisive ones, have a time. Both are averaged.
    pub(super) fn new(all: &[LinkTimes], decisive: &[LinkTimes]) -> Undecided {
        let of_size = |(all, decisive): (&LinkTimes, &LinkTimes)| all.missing_in(decisive);
        Undecided(all.iter().zip(decisive).map(of_size).collect())
    }

    /// Returns whether a link is one of these at the size with this place.
    pub(super) fn has(&self, size: usize, link: &Link) -> bool {
        self.0.get(size).is_some_and(|links| links.contains(&(link.from, link.to)))
    }

    /// Returns the parts with such a link that would be slow if all rows decided, the slowest first.
    pub(super) fn slow(&self, all: &[LinkTimes], hosts: &Hosts, tests: usize) -> Vec<SlowComponent> {
        let found =
            all.iter().zip(&self.0).filter(|(_, links)| !links.is_empty()).flat_map(|(times, links)| {
                let is_undecided = |slow: &SlowComponent| {
                    links.iter().any(|(a, b)| hosts.has_link(&slow.component, [*a, *b]))
                };
                let found = at_one_size(times, hosts, tests);
                [found.slow, found.unsure].concat().into_iter().filter(is_undecided).collect::<Vec<_>>()
            });
        slow_of_sizes(found.collect())
    }

    /// Returns a clause that names the links; `None` without any.
    pub(super) fn clause(&self, hosts: &Hosts) -> Option<String> {
        let links: BTreeSet<(u32, u32)> = self.0.iter().flatten().copied().collect();
        let names = links.iter().take(NAMED).map(|(a, b)| link_name([*a, *b], hosts));
        let more = links.len().checked_sub(NAMED).filter(|more| *more > 0);
        let names: Vec<String> = names.chain(more.map(|more| format!("{more} more"))).collect();
        (!links.is_empty()).then(|| {
            format!(
                "{} not judged, because ranks waited for a CPU while they were measured: {}",
                if links.len() == 1 {
                    "1 link was".to_owned()
                } else {
                    format!("{} links were", links.len())
                },
                names.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests;
