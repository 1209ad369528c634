//! Confirmation of what is slow by the links that were measured again alone.

use std::collections::BTreeMap;

use super::{
    Hosts, Link, LinkTimes, MIN_RETEST_FACTOR, MIN_RETEST_SPREADS,
    relative::{RelativeLink, median},
};

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
