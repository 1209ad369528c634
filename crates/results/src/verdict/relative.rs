//! Times of links relative to others of their kind: links of one distance between their ends.

use std::collections::{BTreeMap, BTreeSet};

use ombx_core::stats;

use super::{Component, Hosts, Link, LinkTimes, MIN_RETEST_FACTOR, MIN_RETEST_SPREADS};

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

/// Logarithms of the ratios of links measured again alone to ordinary links.
pub(super) struct Retested(BTreeMap<(u32, u32), f64>);

impl Retested {
    pub(super) fn of(times: &LinkTimes, hosts: &Hosts) -> Retested {
        let usual = |distance: usize| {
            let of = |links: &[Link]| {
                let kind = links.iter().filter(|l| hosts.distance(l.from, l.to) == distance);
                kind.map(|l| f64::from(l.ns).ln()).collect::<Vec<_>>()
            };
            let reference = of(&times.reference);
            median(&if reference.is_empty() { of(&times.sweep) } else { reference })
        };
        let usual: Vec<f64> = (0..=hosts.levels() + 1).map(usual).collect();
        // A link that was not slow each time is an ordinary one.
        let log = |l: &Link| {
            let log = f64::from(l.ns).ln() - usual[hosts.distance(l.from, l.to)];
            if times.given_up.contains(&(l.from, l.to)) { log.min(0.0) } else { log }
        };
        Retested(times.alone.iter().map(|l| ((l.from, l.to), log(l))).collect())
    }

    /// Returns whether a link was slow alone, or was not measured.
    pub(super) fn is_slow(&self, from: u32, to: u32) -> bool {
        self.0.get(&(from, to)).is_none_or(|log| *log >= MIN_RETEST_FACTOR.ln())
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
        if self.0.is_empty() {
            return Some(log);
        }
        let known: Vec<f64> = links.filter_map(|l| self.0.get(&(l.from, l.to)).copied()).collect();
        let alone = median(&known);
        (alone >= MIN_RETEST_FACTOR.ln().max(MIN_RETEST_SPREADS * spread)).then_some(alone.min(log))
    }
}
