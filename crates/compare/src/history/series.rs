//! One series per case over the results of a store, with its changes.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jiff::{SignedDuration, Timestamp};
use ombx_estimate::{launches::interval, runs::are_known, state};
use ombx_host::node_set;
use ombx_record::{order::sort_by_value, result::Metric};

use crate::{
    Ranks, Shifts,
    history::{
        change_point::{LEAST_RUNS, confirmed_changes},
        dated::{DatedResult, DatedRow, Difference, differences},
    },
};

/// Maximum number of runs on each side of a change from which its size is estimated: those next to it.
const MOST_COMPARED: usize = 100;

/// Beginning of the message size in the name of a row.
const SIZE: &str = "bytes=";

/// Which results form which series.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// Only results that started at this time or later, as a beginning of RFC 3339 in UTC.
    pub since: Option<&'a str>,
    /// Whether runs on different hosts are one series.
    pub any_hosts: bool,
    /// Only results that started at most an hour after this time, in RFC 3339. Clocks of hosts differ a little.
    pub now: Option<&'a str>,
}

/// What the runs of a series have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// Name of the row: benchmark, axes, size and depth.
    pub key: String,
    /// What connects the ranks.
    pub fabric: String,
    /// Number of ranks that took part.
    pub ranks: u32,
    /// Hosts as a node set; `None` for a link, and if they may differ.
    pub hosts: Option<String>,
    /// Timed and answering host of a link.
    pub ends: Option<[String; 2]>,
    /// Time of a cache line between two cores in the state of the machine, in nanoseconds; `None` if all runs are of one state, or if too
    /// few have a known one.
    pub core_to_core_ns: Option<u64>,
}

impl Case {
    /// Returns the name of the benchmark.
    pub fn bench(&self) -> &str {
        self.key.split('/').next().unwrap_or(&self.key)
    }

    /// Returns the message size; `None` if the benchmark has none.
    pub fn bytes(&self) -> Option<u64> {
        self.parts().find_map(|part| part.strip_prefix(SIZE)?.parse().ok())
    }

    /// Returns everything in the name of the row but benchmark and size, such as `sync=fence depth=64`.
    pub fn choices(&self) -> String {
        self.parts().filter(|part| !part.starts_with(SIZE)).collect::<Vec<_>>().join(" ")
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        self.key.split_once('/').map_or("", |(_, rest)| rest).split(',').filter(|part| !part.is_empty())
    }
}

/// Figure of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Its result, as an index of [`History::results`].
    pub result: usize,
    /// Headline, in the unit of the metric.
    pub value: f64,
    /// Its interval over launches.
    pub ci95: Option<[f64; 2]>,
}

/// Place where the level of a series changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the first run after the change.
    pub at: usize,
    /// Time after the change in multiples of the time before: above 1 is slower, for bandwidths too.
    pub ratio: f64,
    /// 90 % interval of the ratio; `None` if one side has too few runs.
    pub ci90: Option<[f64; 2]>,
    /// Provenance in which the runs on both sides of the change differ; if they do not, that of the runs before and after these.
    pub differences: Vec<Difference>,
}

/// One case over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The case.
    pub case: Case,
    /// Metric of the values.
    pub metric: Metric,
    /// Figure of each run, in the order of time.
    pub points: Vec<Point>,
    /// Changes, in the order of time.
    pub changes: Vec<Change>,
    /// Number of runs that are left out because their row has an invalid mark.
    pub left_out: usize,
}

/// All cases over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// Results in the order of time.
    pub results: Vec<DatedResult>,
    /// Series: those that changed last come first, then those that did not change in the order of names.
    pub series: Vec<Series>,
    /// Number of results that are copies of others.
    pub copies: usize,
    /// Number of results that have the name of another result and other content.
    pub namesakes: usize,
    /// Number of results that are left out because they start in the future.
    pub future: usize,
    /// Number of rows that are left out because the state of the machine in which they were measured is unknown, while other rows of the
    /// case were measured in several states.
    pub unknown_states: usize,
}

impl Series {
    /// Returns whether the series is long enough for a judgement.
    pub fn is_judged(&self) -> bool {
        self.points.len() >= LEAST_RUNS
    }

    /// Returns the last level: the median of the runs since the last change, and its interval. That of a single run is its own.
    pub fn level(&self) -> (f64, Option<[f64; 2]>) {
        let start = self.changes.last().map_or(0, |change| change.at);
        match &self.points[start..] {
            [one] => (one.value, one.ci95),
            several => {
                let values: Vec<f64> = several.iter().map(|point| point.value).collect();
                let middle = ombx_record::stats::median(&values).unwrap_or(f64::NAN);
                (middle, interval(&values).map(|found| [found.low, found.high]))
            }
        }
    }

    fn find_changes(&mut self, results: &[DatedResult]) {
        let sign = if self.metric == Metric::Bandwidth { -1.0 } else { 1.0 };
        let times: Vec<f64> = self.points.iter().map(|point| sign * point.value.ln()).collect();
        let places = confirmed_changes(&times);
        let ends = places.iter().copied().skip(1).chain([times.len()]);
        let starts = [0].into_iter().chain(places.iter().copied());
        for ((at, start), end) in places.iter().copied().zip(starts).zip(ends) {
            let before = times[start.max(at.saturating_sub(MOST_COMPARED))..at].to_vec();
            let after = times[at..end.min(at + MOST_COMPARED)].to_vec();
            let strata = [[before, after]];
            let shifts = Shifts::new(&strata);
            let Some(shift) = shifts.estimate() else { continue };
            let ci90 = shifts.interval(Ranks::default().rank(&strata)).map(|ends| ends.map(f64::exp));
            let facts = |point: usize| self.points.get(point).map(|point| &results[point.result].facts);
            let between = |before: Option<usize>, after: usize| {
                let sides = before.and_then(facts).zip(facts(after));
                sides.map_or_else(Vec::new, |(before, after)| differences(before, after))
            };
            let mut differences = between(at.checked_sub(1), at);
            if differences.is_empty() {
                // The place of a small step is uncertain by a run.
                differences = between(at.checked_sub(2), at + 1);
            }
            self.changes.push(Change { at, ratio: shift.exp(), ci90, differences });
        }
    }
}

impl History {
    /// Builds the series of all rows that `wanted` accepts, and finds their changes.
    pub fn new(
        mut results: Vec<DatedResult>,
        selection: Selection<'_>,
        wanted: impl Fn(&Case) -> bool,
    ) -> History {
        results.sort_by(|a, b| (&a.started, &a.run, &a.fabric).cmp(&(&b.started, &b.run, &b.fabric)));
        results.retain(|result| selection.since.is_none_or(|since| result.started.as_str() >= since));
        let all = results.len();
        if let Some(last) = selection.now.and_then(last_start) {
            results.retain(|result| result.started.parse::<Timestamp>().is_ok_and(|started| started <= last));
        }
        let future = all - results.len();
        let [copies, namesakes] = leave_out_repetitions(&mut results);
        let mut rows: BTreeMap<Case, Vec<(usize, &DatedRow)>> = BTreeMap::new();
        for (at, result) in results.iter().enumerate() {
            for row in &result.rows {
                rows.entry(case(result, row, selection)).or_default().push((at, row));
            }
        }
        let mut unknown_states = 0;
        let mut series: Vec<Series> = Vec::new();
        for (case, rows) in rows.into_iter().filter(|(case, _)| wanted(case)) {
            let (states, unknown) = state::divided_by_state(rows, |(_, row)| row.core_to_core_ns);
            unknown_states += unknown;
            series.extend(states.into_iter().map(|(ns, rows)| {
                let core_to_core_ns = ns.map(|ns| ns.round() as u64);
                Series::new(Case { core_to_core_ns, ..case.clone() }, rows)
            }));
        }
        series.iter_mut().for_each(|series| series.find_changes(&results));
        let last = |series: &Series| series.changes.last().map(|change| series.points[change.at].result);
        series.sort_by_cached_key(|series| {
            let case = &series.case;
            let setup = (
                case.fabric.clone(),
                case.ranks,
                case.hosts.clone(),
                case.ends.clone(),
                case.core_to_core_ns,
            );
            (Reverse(last(series)), case.bench().to_owned(), case.choices(), setup, case.bytes())
        });
        History { results, series, copies, namesakes, future, unknown_states }
    }

    /// Returns the start of a run of a series.
    pub fn started(&self, series: &Series, point: usize) -> &str {
        &self.results[series.points[point].result].started
    }
}

impl Series {
    /// Returns the series of these rows. Those with an invalid mark are left out if enough others remain.
    fn new(case: Case, rows: Vec<(usize, &DatedRow)>) -> Series {
        let all = rows.len();
        let valid = rows.iter().filter(|(_, row)| !row.invalid).count();
        let is_kept = |row: &DatedRow| !row.invalid || valid < LEAST_RUNS;
        let kept: Vec<_> = rows.into_iter().filter(|(_, row)| is_kept(row)).collect();
        let metric = kept.first().map_or(Metric::Latency, |(_, row)| row.metric);
        let point =
            |(result, row): &(usize, &DatedRow)| Point { result: *result, value: row.value, ci95: row.ci95 };
        let points: Vec<Point> = kept.iter().map(point).collect();
        Series { case, metric, left_out: all - points.len(), points, changes: Vec::new() }
    }
}

/// Returns the latest start of a result that is not in the future.
fn last_start(now: &str) -> Option<Timestamp> {
    now.parse::<Timestamp>().ok()?.checked_add(SignedDuration::from_hours(1)).ok()
}

/// Leaves out results whose launches are known from others, and results with the name of another one. Returns how many of each.
fn leave_out_repetitions(results: &mut Vec<DatedResult>) -> [usize; 2] {
    let (mut names, mut launches) = (BTreeMap::new(), BTreeSet::new());
    let [mut copies, mut namesakes] = [0, 0];
    results.retain(|result| {
        let name = (result.run.clone(), result.fabric.clone(), result.hosts.clone());
        let rows = names.get(&name);
        let is_copy = rows == Some(&result.rows) || are_known(&result.launches, &launches);
        copies += usize::from(is_copy);
        namesakes += usize::from(!is_copy && rows.is_some());
        let is_kept = !is_copy && rows.is_none();
        if is_kept {
            names.insert(name, result.rows.clone());
            launches.extend(result.launches.iter().copied());
        }
        is_kept
    });
    [copies, namesakes]
}

fn case(result: &DatedResult, row: &DatedRow, selection: Selection<'_>) -> Case {
    Case {
        key: row.key.clone(),
        fabric: result.fabric.clone(),
        ranks: row.ranks,
        hosts: (row.ends.is_none() && !selection.any_hosts).then(|| result.hosts.clone()),
        ends: row.ends.clone(),
        core_to_core_ns: None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::history::series::*;

    /// Returns a result of one row on a day of March, with a scatter of some percent.
    pub(crate) fn result(day: usize, key: &str, value: f64, metric: Metric) -> DatedResult {
        let value = value * (1.0 + 0.02 * ((day * 7 % 5) as f64 - 2.0) / 2.0);
        let key = key.to_owned();
        let row = DatedRow {
            key,
            ends: None,
            ranks: 2,
            metric,
            value,
            ci95: None,
            invalid: false,
            core_to_core_ns: None,
        };
        DatedResult {
            run: format!("r{day}"),
            started: format!("2026-03-{day:02}T02:00:00Z"),
            fabric: "mpi".into(),
            hosts: "n[01-02]".into(),
            facts: [("kernel".to_owned(), if day < 16 { "6.1" } else { "6.2" }.to_owned())].into(),
            rows: vec![row],
            launches: Vec::new(),
            is_large_sweep: false,
        }
    }

    fn month(metric: Metric, late: f64) -> Vec<DatedResult> {
        (1..=30).map(|day| result(day, "p2p.x/bytes=8", if day < 16 { 10.0 } else { late }, metric)).collect()
    }

    fn history(results: Vec<DatedResult>) -> History {
        History::new(results, Selection::default(), |_| true)
    }

    #[test]
    fn a_step_is_found_with_its_date_its_size_and_what_changed() {
        for (metric, late, ratio) in [
            (Metric::Latency, 12.0, 1.2),
            (Metric::Bandwidth, 12.0, 1.0 / 1.2),
            (Metric::Bandwidth, 8.0, 1.25),
        ] {
            let history = history(month(metric, late));
            let [series] = history.series.as_slice() else { panic!("{} series", history.series.len()) };
            let [change] = series.changes.as_slice() else { panic!("{:?}", series.changes) };
            assert_eq!(history.started(series, change.at), "2026-03-16T02:00:00Z");
            let [low, high] = change.ci90.unwrap();
            assert!((change.ratio / ratio - 1.0).abs() < 0.01, "{change:?}");
            assert!(low < change.ratio && change.ratio < high && high / low < 1.03, "{change:?}");
            let difference = Difference { name: "kernel".into(), before: "6.1".into(), after: "6.2".into() };
            assert_eq!(change.differences, [difference]);
            let (level, ends) = series.level();
            assert!((level / late - 1.0).abs() < 0.01 && ends.unwrap()[0] < level, "{level} {ends:?}");
        }
    }

    #[test]
    fn series_without_a_change_and_short_ones_say_so() {
        let steady = history(month(Metric::Latency, 10.0));
        assert!(steady.series[0].changes.is_empty() && steady.series[0].is_judged());
        let short = history(month(Metric::Latency, 30.0).split_off(22));
        assert!(short.series[0].changes.is_empty() && !short.series[0].is_judged());
    }

    #[test]
    fn order_copies_and_since_do_not_matter_or_are_counted() {
        let mut results = month(Metric::Latency, 12.0);
        results.extend(month(Metric::Latency, 12.0).drain(..3));
        results.reverse();
        let all = history(results.clone());
        assert_eq!((all.copies, all.series[0].points.len()), (3, 30));
        assert_eq!(all.series[0].changes[0].at, 15);
        let since = Selection { since: Some("2026-03-10"), ..Selection::default() };
        let late = History::new(results, since, |_| true);
        assert_eq!((late.series[0].points.len(), late.series[0].changes[0].at), (21, 6));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let mut results = month(Metric::Latency, 10.0);
        results.iter_mut().zip(1..).for_each(|(result, launch)| result.launches = vec![launch]);
        let renamed = DatedResult { run: "renamed".into(), ..results[3].clone() };
        let mut namesake = DatedResult { launches: vec![99], ..results[4].clone() };
        namesake.rows[0].value *= 2.0;
        results.extend([renamed, namesake]);
        let now = Selection { now: Some("2026-03-28T01:30:00Z"), ..Selection::default() };
        let history = History::new(results, now, |_| true);
        assert_eq!((history.copies, history.namesakes, history.future), (1, 1, 2));
        assert_eq!(history.series[0].points.len(), 28);
    }

    #[test]
    fn hosts_and_ranks_are_parts_of_a_case() {
        let mut results = month(Metric::Latency, 10.0);
        results.iter_mut().skip(10).for_each(|result| result.hosts = "n[03-04]".into());
        assert_eq!(history(results.clone()).series.len(), 2);
        let any = Selection { any_hosts: true, ..Selection::default() };
        assert_eq!(History::new(results, any, |_| true).series.len(), 1);
    }

    #[test]
    fn each_state_of_the_machine_has_its_own_series() {
        let mut results = month(Metric::Latency, 10.0);
        for (day, result) in results.iter_mut().enumerate() {
            let row = &mut result.rows[0];
            let slow = day % 2 == 1;
            row.core_to_core_ns = Some(if slow { 250.0 } else { 51.0 }).filter(|_| day != 7);
            row.value *= if slow { 4.0 } else { 1.0 };
        }
        // A step in one of the states.
        results.iter_mut().skip(15).step_by(2).for_each(|result| result.rows[0].value *= 1.5);
        let history = history(results);
        let of = |series: &Series| (series.case.core_to_core_ns, series.points.len(), series.changes.len());
        let found: Vec<_> = history.series.iter().map(of).collect();
        assert_eq!(found, [(Some(250), 14, 1), (Some(51), 15, 0)], "{history:?}");
        assert_eq!(history.unknown_states, 1);
    }

    #[test]
    fn cases_that_changed_come_first() {
        let mut results = month(Metric::Latency, 12.0);
        let steady = month(Metric::Latency, 10.0);
        for (result, other) in results.iter_mut().zip(steady) {
            let [row] = other.rows.try_into().unwrap();
            result.rows.insert(0, DatedRow { key: "a/bytes=8".into(), ..row });
        }
        let keys: Vec<String> = history(results).series.into_iter().map(|series| series.case.key).collect();
        assert_eq!(keys, ["p2p.x/bytes=8", "a/bytes=8"]);
    }

    #[test]
    fn rows_with_invalid_marks_are_left_out_if_others_remain() {
        let mut results = month(Metric::Latency, 10.0);
        results.iter_mut().take(5).for_each(|result| result.rows[0].invalid = true);
        let some = history(results.clone());
        assert_eq!((some.series[0].left_out, some.series[0].points.len()), (5, 25));
        results.iter_mut().for_each(|result| result.rows[0].invalid = true);
        assert_eq!(history(results).series[0].left_out, 0);
    }
}

/// Minimum number of links of one host that must change at the same time before the host is named.
const LEAST_LINKS: usize = 2;

/// Changes in one direction at the same time.
#[derive(Debug, Clone)]
pub struct ChangeEvent<'a> {
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
pub fn events(history: &History) -> Vec<ChangeEvent<'_>> {
    let mut all: Vec<(&str, &str, &Series, &Change)> = Vec::new();
    for series in &history.series {
        for change in &series.changes {
            let [before, since] = [change.at - 1, change.at].map(|at| history.started(series, at));
            all.push((since, before, series, change));
        }
    }
    all.sort_by_key(|(since, before, ..)| (*since, *before));
    let mut events: Vec<ChangeEvent<'_>> = Vec::new();
    for (since, before, series, change) in all {
        let slower = change.ratio > 1.0;
        let same = events.iter_mut().rev().find(|event| event.slower == slower);
        match same.filter(|event| before <= event.since) {
            Some(event) => event.changes.push((series, change)),
            None => {
                let (differences, hosts) = (BTreeSet::new(), None);
                let changes = vec![(series, change)];
                events.push(ChangeEvent { since, before, slower, changes, differences, hosts });
            }
        }
    }
    for event in &mut events {
        let size = |change: &Change| change.ratio.ln().abs();
        sort_by_value(&mut event.changes, |(_, change)| -size(change));
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
mod tests_of_events {
    use ombx_record::result::Metric;

    use crate::history::{DatedRow, Selection, result, series::*};

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
        History::new(results, Selection::default(), |_| true)
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
        let history = History::new(results, Selection::default(), |_| true);
        let events = events(&history);
        let found: Vec<(&str, bool)> = events.iter().map(|event| (event.since, event.slower)).collect();
        assert_eq!(found, [("2026-03-21T02:00:00Z", false), ("2026-03-11T02:00:00Z", true)]);
    }
}
