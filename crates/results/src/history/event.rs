//! Changes of several cases at the same time, and the hosts whose links changed.

use std::collections::{BTreeMap, BTreeSet};

use ombx_core::system::node_set;

use super::{
    facts::Difference,
    series::{Change, History, Series},
};

/// Minimum number of links of one host that must change at the same time before the host is named.
const LEAST_LINKS: usize = 2;

/// Changes in one direction at the same time.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// Start of the first run after the change.
    pub since: &'a str,
    /// Start of the last run before the change.
    pub before: &'a str,
    /// Whether the cases are slower since then; faster otherwise.
    pub slower: bool,
    /// Cases with their changes, the largest change first.
    pub changes: Vec<(&'a Series, &'a Change)>,
    /// Provenance that changed at that time.
    pub differences: BTreeSet<&'a Difference>,
    /// Hosts of which several links changed, as a node set.
    pub hosts: Option<String>,
}

/// Returns the changes of a history by time, the last first. Changes whose places differ by one run are one event.
pub fn events(history: &History) -> Vec<Event<'_>> {
    let mut all: Vec<(&str, &str, &Series, &Change)> = Vec::new();
    for series in &history.series {
        for change in &series.changes {
            let [before, since] = [change.at - 1, change.at].map(|at| history.started(series, at));
            all.push((since, before, series, change));
        }
    }
    all.sort_by_key(|(since, before, ..)| (*since, *before));
    let mut events: Vec<Event<'_>> = Vec::new();
    for (since, before, series, change) in all {
        let slower = change.ratio > 1.0;
        let same = events.iter_mut().rev().find(|event| event.slower == slower);
        match same.filter(|event| before <= event.since) {
            Some(event) => event.changes.push((series, change)),
            None => {
                let (differences, hosts) = (BTreeSet::new(), None);
                let changes = vec![(series, change)];
                events.push(Event { since, before, slower, changes, differences, hosts });
            }
        }
    }
    for event in &mut events {
        let size = |change: &Change| change.ratio.ln().abs();
        event.changes.sort_by(|(_, a), (_, b)| size(b).total_cmp(&size(a)));
        event.differences = event.changes.iter().flat_map(|(_, change)| &change.differences).collect();
        event.hosts = hosts(event.changes.iter().filter_map(|(series, _)| series.case.ends.as_ref()));
    }
    events.reverse();
    events
}

/// Returns the hosts that explain most of the links: that of which most links changed, then that of most of the remaining links, and
/// so on, as long as a host has several.
fn hosts<'a>(links: impl Iterator<Item = &'a [String; 2]>) -> Option<String> {
    // Both directions, and all sizes, are one link.
    let mut links: BTreeSet<[&str; 2]> =
        links.map(|[a, b]| if a < b { [a.as_str(), b] } else { [b.as_str(), a] }).collect();
    let mut named = Vec::new();
    loop {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        links.iter().flatten().for_each(|host| *counts.entry(host).or_default() += 1);
        let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        let Some((host, _)) = most.filter(|(_, count)| *count >= LEAST_LINKS) else { break };
        named.push(host);
        links.retain(|ends| !ends.contains(&host));
    }
    (!named.is_empty()).then(|| node_set::fold(named))
}

#[cfg(test)]
mod tests {
    use ombx_core::benchmark::Metric;

    use super::*;
    use crate::history::{DatedRow, Selection, result};

    /// Returns 30 sweeps over four hosts. Links of the third host, and of the link between the first two, become slower on the 16th
    /// or one run later.
    fn sweeps() -> History {
        let mut results = Vec::new();
        for day in 1..=30 {
            let mut sweep = result(day, "links/bytes=8", 10.0, Metric::Latency);
            let row = sweep.rows.remove(0);
            for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
                if from != to {
                    let since = if from < to { 16 } else { 17 };
                    let slow = (from == 2 || to == 2) && day >= since;
                    let value = row.value * if slow { 1.5 } else { 1.0 };
                    let ends = Some([from, to].map(|host| format!("n{:02}", host + 1)));
                    sweep.rows.push(DatedRow { value, ends, ..row.clone() });
                }
            }
            results.push(sweep);
        }
        History::of(results, Selection::default(), |_| true)
    }

    #[test]
    fn a_host_whose_links_changed_is_named_once() {
        let history = sweeps();
        assert_eq!(history.series.len(), 12);
        let events = events(&history);
        let [event] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((event.since, event.before), ("2026-03-16T02:00:00Z", "2026-03-15T02:00:00Z"));
        assert!(event.slower && event.changes.len() == 6, "{event:?}");
        assert_eq!(event.hosts.as_deref(), Some("n03"));
        assert_eq!(event.differences.len(), 1, "{event:?}");
    }

    #[test]
    fn a_single_link_names_no_host() {
        let link = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let named = |links: &[[String; 2]]| hosts(links.iter());
        assert_eq!(named(&[link("n01", "n02"), link("n02", "n01")]), None);
        assert_eq!(named(&[link("n01", "n02"), link("n03", "n02")]).as_deref(), Some("n02"));
        let two = [("n01", "n09"), ("n02", "n09"), ("n03", "n08"), ("n04", "n08")].map(|(a, b)| link(a, b));
        assert_eq!(named(&two).as_deref(), Some("n[08-09]"));
    }

    #[test]
    fn a_recovery_is_another_event() {
        let mut results: Vec<_> =
            (1..=30).map(|day| result(day, "a/bytes=8", 10.0, Metric::Latency)).collect();
        results[10..20].iter_mut().for_each(|result| result.rows[0].value *= 2.0);
        let history = History::of(results, Selection::default(), |_| true);
        let events = events(&history);
        let found: Vec<(&str, bool)> = events.iter().map(|event| (event.since, event.slower)).collect();
        assert_eq!(found, [("2026-03-21T02:00:00Z", false), ("2026-03-11T02:00:00Z", true)]);
    }
}
