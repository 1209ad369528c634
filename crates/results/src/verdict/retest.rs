//! Side links are measured again alone: the slowest, those that stand out, and a few ordinary ones to compare with.

use super::{
    Component, Hosts, Link, LinkTimes,
    detection::{RelativeLink, at_one_size, median, relative_links},
};

/// At one size, single links that are measured again at the most, beyond those that the user asks for: this, or two for each
/// rank, which takes about as long as the sweep.
const MAX_SINGLE_LINKS: usize = 32;
/// Links of a host or rank that seems slow.
const LINKS_PER_GROUP: usize = 4;
/// Ordinary links of each kind.
const REFERENCE_LINKS: usize = 3;

/// A link to be measured again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retest {
    /// The timed rank.
    pub from: u32,
    /// The one that answers.
    pub to: u32,
    /// Message size.
    pub bytes: u64,
    /// Whether it is a suspect; else it is an ordinary link.
    pub suspect: bool,
}

/// The slowest `count` links of each size and those that stand out, and ordinary ones of the same kinds.
pub fn retest_candidates(times: &[LinkTimes], hosts: &Hosts, count: usize) -> Vec<Retest> {
    let mut all = Vec::new();
    if count == 0 {
        return all;
    }
    for of_size in times {
        let mut links = relative_links(&of_size.sweep, hosts);
        links.sort_by(|a, b| b.log.total_cmp(&a.log));
        let mut slowest: Vec<RelativeLink> = links.iter().take(count).copied().collect();
        let mut add = |links: Vec<RelativeLink>| {
            let new = |l: &RelativeLink| slowest.iter().all(|s| (s.from, s.to) != (l.from, l.to));
            let new: Vec<RelativeLink> = links.into_iter().filter(new).collect();
            slowest.extend(new);
        };
        // Of a slow host, links that are not measured again are no more ordinary than the others.
        let mut named: Vec<(u32, u32)> = Vec::new();
        let (mut singles, most) = (0, MAX_SINGLE_LINKS.max(2 * hosts.ranks() as usize));
        let mut found = at_one_size(of_size, hosts, times.len());
        found.sort_by(|a, b| b.factor.total_cmp(&a.factor));
        for slow in found {
            let mut of = |is: &dyn Fn(&RelativeLink) -> bool| {
                let all: Vec<RelativeLink> = links.iter().filter(|l| is(l)).copied().collect();
                named.extend(all.iter().map(|l| (l.from, l.to)));
                all.into_iter().take(LINKS_PER_GROUP).collect()
            };
            match slow.component {
                Component::HostBetween(h) => {
                    add(of(&|l| !l.inside && [l.from, l.to].iter().any(|r| hosts.number(*r) == h)))
                }
                Component::HostWithin(h) => add(of(&|l| l.inside && hosts.number(l.from) == h)),
                Component::Rank(r) => add(of(&|l| l.from == r || l.to == r)),
                Component::Link(..) | Component::OneWay(..) if singles >= most => {}
                Component::Link(a, b) => {
                    singles += 2;
                    add(of(&|l| [(a, b), (b, a)].contains(&(l.from, l.to))));
                }
                Component::OneWay(a, b) => {
                    singles += 1;
                    add(of(&|l| (l.from, l.to) == (a, b)));
                }
            }
        }
        let again =
            |l: &RelativeLink, suspect| Retest { from: l.from, to: l.to, bytes: of_size.bytes, suspect };
        all.extend(slowest.iter().map(|l| again(l, true)));
        for inside in [false, true] {
            if slowest.iter().all(|l| l.inside != inside) {
                continue;
            }
            let again_anyway = |l: &RelativeLink| slowest.iter().any(|s| (s.from, s.to) == (l.from, l.to));
            let mut usual: Vec<&RelativeLink> =
                links.iter().filter(|l| l.inside == inside && !again_anyway(l)).collect();
            if usual.iter().any(|l| !named.contains(&(l.from, l.to))) {
                usual.retain(|l| !named.contains(&(l.from, l.to)));
            }
            let centre = median(&usual.iter().map(|l| l.log).collect::<Vec<_>>());
            usual.sort_by(|a, b| (a.log - centre).abs().total_cmp(&(b.log - centre).abs()));
            all.extend(usual.into_iter().take(REFERENCE_LINKS).map(|l| again(l, false)));
        }
    }
    all
}

/// The slowest links relative to their kind, and how many times its median they take.
pub fn slowest(times: &LinkTimes, hosts: &Hosts, count: usize) -> Vec<(Link, f64)> {
    let mut links = relative_links(&times.sweep, hosts);
    links.sort_by(|a, b| b.log.total_cmp(&a.log));
    let ns = |l: &RelativeLink| {
        times.sweep.iter().find(|s| (s.from, s.to) == (l.from, l.to)).map_or(0.0, |s| s.ns)
    };
    links.iter().take(count).map(|l| (Link { from: l.from, to: l.to, ns: ns(l) }, l.log.exp())).collect()
}
