//! What a series needs of a result file: dated results with the figures of their rows.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::BufRead,
};

use jiff::{SignedDuration, Timestamp};
use ombx_estimate::{
    launches::{Cases, Group, interval},
    state::{self, States},
};
use ombx_host::node_set;
use ombx_links::verdict::Hosts;
use ombx_record::{
    event::Event,
    fact::{HostFacts, title_of},
    file::Records,
    link::{self, MOST_RANKS},
    order::grouped,
    result::{Level, LoadedFiles, Measurement, Metric, Placement, Run, StateFigure},
    runs::{hosts, library, number},
    stats::median,
};
use serde::Serialize;

use crate::is_of_setup;

/// Launches with the same number that start farther apart belong to different results.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(1);

/// The launches of one setup, and when they were measured.
#[derive(Debug, Clone, PartialEq)]
pub struct DatedResult {
    /// Name of the first run.
    pub run: String,
    /// Start of the first run in UTC, RFC 3339.
    pub started: String,
    /// What connects the ranks: `mpi` or `sockets`.
    pub fabric: String,
    /// Hosts, as a node set.
    pub hosts: String,
    /// Provenance by name.
    pub facts: BTreeMap<String, String>,
    /// Rows that were measured.
    pub rows: Vec<DatedRow>,
    /// A number for each launch that copies of it share; 0 if its samples are too few.
    pub launches: Vec<u64>,
    /// Whether it is a sweep over too many ranks: only links that were measured again are rows.
    pub is_large_sweep: bool,
}

/// Figure of a row, over all launches.
#[derive(Debug, Clone, PartialEq)]
pub struct DatedRow {
    /// Name of the row; that of a link names no ranks.
    pub key: String,
    /// Hosts of the timed and of the answering rank; `None` unless the row is a link.
    pub ends: Option<[String; 2]>,
    /// Number of ranks that took part.
    pub ranks: u32,
    /// Metric of the figure.
    pub metric: Metric,
    /// Headline, in the unit of the metric; above 0.
    pub value: f64,
    /// Its interval.
    pub ci95: Option<[f64; 2]>,
    /// Whether the row has an invalid mark.
    pub invalid: bool,
    /// Time of a cache line between two cores in the state of the machine in which it was measured, in nanoseconds; `None` if it is
    /// unknown, or if the row has ranks on several hosts.
    pub core_to_core_ns: Option<f64>,
}

/// Reads a result file, and returns its results in the order of the file.
///
/// A file may hold the launches of several days (`--append`). A new result begins where the number of the launch decreases, or where
/// it does not increase and more than an hour has passed.
///
/// # Errors
/// Why the file is not a result file of ombx.
pub fn read(input: impl BufRead) -> Result<Vec<DatedResult>, String> {
    results_of(Records::new(input))
}

/// Returns the results of records, as [`read`] does.
pub(super) fn results_of(records: Records<impl BufRead>) -> Result<Vec<DatedResult>, String> {
    let (mut results, mut cases) = (Vec::new(), Cases::default());
    let mut last: Option<(u64, Timestamp)> = None;
    let (mut run_id, mut is_large) = (String::new(), false);
    let mut large = BTreeSet::new();
    for record in records {
        let record = record.map_err(|e| e.to_string())?;
        if let Event::Run(run) = &record {
            let this = (number(run, "launch").unwrap_or(1), start(run)?);
            if last.is_some_and(|last| is_another_result(last, this)) {
                add(&mut results, &std::mem::take(&mut cases), &large);
            }
            last = Some(this);
            run_id.clone_from(&run.id);
            is_large = run.places.len() > MOST_RANKS;
        }
        if is_large && matches!(record, Event::Round(_)) {
            large.insert(run_id.clone());
        } else {
            cases.event(&record);
        }
    }
    add(&mut results, &cases, &large);
    Ok(results)
}

fn is_another_result((last, before): (u64, Timestamp), (launch, started): (u64, Timestamp)) -> bool {
    launch < last || (launch == last && started.duration_since(before) > LONGEST_PAUSE)
}

fn start(run: &Run) -> Result<Timestamp, String> {
    run.started.parse().map_err(|_| format!("its start {:?} is not a date of RFC 3339", run.started))
}

/// Adds the results of cases, of which large sweeps have these runs.
fn add(results: &mut Vec<DatedResult>, cases: &Cases, large: &BTreeSet<String>) {
    let dated = cases.groups().iter().filter_map(dated);
    let dated = dated.map(|result| DatedResult { is_large_sweep: large.contains(&result.run), ..result });
    results.extend(dated.filter(|result| !result.rows.is_empty() || result.is_large_sweep));
}

fn dated(group: &Group) -> Option<DatedResult> {
    let run = &group.run;
    Some(DatedResult {
        run: run.id.clone(),
        // Files of other programs may have another offset from UTC.
        started: start(run).ok()?.to_string(),
        fabric: run.fabric.clone(),
        hosts: node_set::fold(hosts(run)),
        facts: provenance(run),
        rows: rows(group),
        launches: group.fingerprints(),
        is_large_sweep: false,
    })
}

/// Returns the rows of a setup, one for each state of the machine. Of a case that was measured several times in a state, the median.
fn rows(group: &Group) -> Vec<DatedRow> {
    let (hosts, states) = (Hosts::of_run(&group.run), group.states());
    let named = |row: DatedRow| {
        let state = row.core_to_core_ns.map(f64::to_bits);
        ((row.key.clone(), row.ends.clone(), row.ranks, state), row)
    };
    let estimates = group.estimates();
    let rows = estimates.iter().flat_map(|row| dated_rows(row, &hosts, &states)).map(named);
    grouped(rows).into_iter().filter_map(|(_, rows)| combined(rows)).collect()
}

fn combined(mut rows: Vec<DatedRow>) -> Option<DatedRow> {
    let values: Vec<f64> = rows.iter().map(|row| row.value).collect();
    let invalid = rows.iter().any(|row| row.invalid);
    let first = rows.pop()?;
    if rows.is_empty() {
        return Some(first);
    }
    let ci95 = interval(&values).map(|found| [found.low, found.high]);
    Some(DatedRow { value: median(&values)?, ci95, invalid, ..first })
}

/// Returns the figures of a row in each state of the machine; none if it was not measured, or if it belongs to the second measurement of
/// slow links.
fn dated_rows(row: &Measurement, hosts: &Hosts, states: &States) -> Vec<DatedRow> {
    let Some(headline) = row.headline().filter(|_| !row.axes.contains_key(link::RETEST)) else {
        return Vec::new();
    };
    let ends = link::ends_of(row).filter(|_| row.bench == link::BENCH);
    let key = ends.map_or_else(|| row.key.clone(), |ends| key_of_link(&row.key, ends, hosts));
    let mut figures = state::state_figures(row, states).into_iter();
    let core_to_core_ns = figures.next().and_then(|first| first.core_to_core_ns);
    let first = DatedRow {
        key,
        ends: ends.map(|ends| ends.map(|rank| hosts.name(rank).to_owned())),
        ranks: row.ranks,
        metric: row.metric,
        value: headline.value,
        ci95: headline.ci95,
        invalid: row.trust.iter().any(|mark| mark.level == Level::Invalid),
        core_to_core_ns,
    };
    let other = |StateFigure { median_ns, ends_ns, core_to_core_ns, .. }: StateFigure| {
        let ends = ends_ns.and_then(|[a, b]| Some([row.in_unit(a)?, row.in_unit(b)?]));
        let ci95 = ends.map(|[a, b]| [a.min(b), a.max(b)]);
        Some(DatedRow { value: row.in_unit(median_ns)?, ci95, core_to_core_ns, ..first.clone() })
    };
    let others: Vec<DatedRow> = figures.filter_map(other).collect();
    std::iter::once(first).chain(others).collect()
}

/// Returns the name of a link without its ranks. They have other numbers in a job on other hosts. Of several ranks on a host, their
/// places on it are named.
fn key_of_link(key: &str, ends: [u32; 2], hosts: &Hosts) -> String {
    let (bench, rest) = key.split_once('/').unwrap_or((key, ""));
    let is_kept = |part: &&str| !part.starts_with("from=") && !part.starts_with("to=");
    let mut parts: Vec<String> = rest.split(',').filter(is_kept).map(str::to_owned).collect();
    if hosts.count() < hosts.ranks() as usize {
        let [from, to] = ends.map(|rank| hosts.position(rank));
        parts.push(format!("ranks={from}-{to}"));
    }
    format!("{bench}/{}", parts.join(","))
}

/// Beginning of the names of options.
const OPTION: &str = "option ";
/// Beginning of the names of environment variables.
const VARIABLE: &str = "variable ";
/// Beginning of the names of loaded files, which are followed by their paths. A value names their contents.
const FILE: &str = "contents of ";
/// Value of an option or variable that only the other side has.
const UNSET: &str = "unset";

/// A fact that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// Name, such as `kernel`.
    pub name: String,
    /// Value in the earlier run.
    pub before: String,
    /// Value in the later run.
    pub after: String,
}

/// Returns the provenance of a run by name.
pub(super) fn provenance(run: &Run) -> BTreeMap<String, String> {
    let mut facts: BTreeMap<String, String> = [
        ("library", library(run)),
        ("ombx", format!("{} ({})", run.version, run.profile)),
        ("hosts", node_set::fold(hosts(run))),
        ("placement", Placement::from_places(&run.places).name().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let known =
        run.software.iter().filter_map(|(name, fact)| Some((title_of(name), fact.known()?.to_owned())));
    facts.extend(known);
    facts.extend(of_hosts(&run.hosts));
    let loaded = run.loaded.iter().flat_map(LoadedFiles::listed);
    facts.extend(loaded.map(|file| (format!("{FILE}{}", file.path), file.identity())));
    facts.extend(run.env.iter().map(|(name, value)| (format!("{VARIABLE}{name}"), value.clone())));
    let options = run.plan.iter().filter(|(name, _)| is_of_setup(name));
    facts.extend(options.map(|(name, value)| (format!("{OPTION}{name}"), value.clone())));
    facts
}

/// Returns the known facts of hosts. A value that not all hosts have is followed by those that have it.
fn of_hosts(groups: &[HostFacts]) -> BTreeMap<String, String> {
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for group in groups {
        for (name, fact) in &group.facts {
            let Some(value) = fact.known() else { continue };
            let hosts = values.entry(name).or_default().entry(value).or_default();
            hosts.extend(group.hosts.iter().map(String::as_str));
        }
    }
    values.into_iter().map(|(name, values)| (title_of(name), with_hosts(values))).collect()
}

/// Returns the only value, or each value with its hosts.
fn with_hosts(values: BTreeMap<&str, Vec<&str>>) -> String {
    if values.len() == 1 {
        return values.into_keys().collect();
    }
    let each = values.into_iter().map(|(value, hosts)| format!("{value} on {}", node_set::fold(hosts)));
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the facts that both runs know and that differ, and options and variables that one of them lacks.
pub(super) fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<Difference> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |facts: &BTreeMap<String, String>, name: &str| {
        let can_be_unset = name.starts_with(OPTION) || name.starts_with(VARIABLE);
        facts.get(name).cloned().or_else(|| can_be_unset.then(|| UNSET.to_owned()))
    };
    let differs = |name: &String| {
        let (before, after) = (value(before, name)?, value(after, name)?);
        (before != after).then(|| Difference { name: name.clone(), before, after })
    };
    names.into_iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use ombx_record::{event::Round, fact::Fact, file, result::LoadedFile};
    use ombx_testkit::golden;

    use crate::history::dated::*;

    /// Lines without checksums.
    const OF_LAUNCHES: &str = include_str!("../../../record/tests/golden/three_launches.jsonl");

    /// Returns a file with the launches of the golden file on each of these days.
    fn on_days(days: &[&str]) -> String {
        days.iter().map(|day| OF_LAUNCHES.replace("2026-11-22", day)).collect()
    }

    #[test]
    fn a_row_is_the_estimate_over_launches() {
        let results = read(OF_LAUNCHES.as_bytes()).unwrap();
        let [result] = results.as_slice() else { panic!("{results:?}") };
        assert_eq!(
            (result.started.as_str(), result.hosts.as_str()),
            ("2026-11-22T03:36:03Z", "vm"),
            "{result:?}"
        );
        let row = result.rows.iter().find(|row| row.key == "p2p.latency/bytes=8").unwrap();
        assert_eq!((row.value, row.ci95, row.ranks), (0.5605, Some([0.5505, 0.5755]), 2));
        assert!(row.invalid && row.ends.is_none(), "{row:?}");
        assert_eq!(result.facts["library"], "MPICH Version: 4.0.2");
    }

    #[test]
    fn launches_of_another_day_are_another_result() {
        let results = read(on_days(&["2026-11-22", "2026-11-23"]).as_bytes()).unwrap();
        let started: Vec<&str> = results.iter().map(|result| result.started.as_str()).collect();
        assert_eq!(started, ["2026-11-22T03:36:03Z", "2026-11-23T03:36:03Z"]);
    }

    #[test]
    fn links_of_a_large_sweep_are_no_cases_and_the_result_says_so() {
        let of_ranks = |ranks: usize| {
            let mut run = golden().run;
            run.places = vec![run.places[0].clone(); ranks];
            let row =
                Measurement { bytes: Some(8), ..Measurement::new(link::BENCH, "links", Metric::Latency, 2) };
            let (from, to, median_ns) = (vec![0], vec![1], vec![900.0]);
            let round = Round { row, number: Some(0), from, to, median_ns, marks: Vec::new() };
            let mut text = Vec::new();
            for record in [Event::Run(Cow::Owned(run)), Event::Round(Cow::Owned(round))] {
                file::write(&mut text, &record).unwrap();
            }
            let result = read(&text[..]).unwrap().remove(0);
            (result.rows.len(), result.is_large_sweep)
        };
        assert_eq!([MOST_RANKS, MOST_RANKS + 1].map(of_ranks), [(1, false), (0, true)]);
    }

    #[test]
    fn a_date_that_is_none_is_refused() {
        let refused = read(OF_LAUNCHES.replace("2026-11-22T", "yesterday ").as_bytes()).unwrap_err();
        assert!(refused.contains("yesterday"), "{refused}");
        assert!(read(&b"{}\n"[..]).is_err() && read(&b""[..]).unwrap().is_empty());
    }

    #[test]
    fn a_link_is_named_by_its_hosts() {
        let hosts = Hosts::new(["n01", "n02", "n03"]);
        let key = key_of_link("links/from=0,pattern=pingpong,to=2,bytes=8", [0, 2], &hosts);
        assert_eq!(key, "links/pattern=pingpong,bytes=8");
        let hosts = Hosts::new(["n01", "n01", "n02"]);
        let key = key_of_link("links/from=1,pattern=pingpong,to=2,bytes=8", [1, 2], &hosts);
        assert_eq!(key, "links/pattern=pingpong,bytes=8,ranks=1-0");
    }

    fn host(name: &str, kernel: &str) -> HostFacts {
        let facts = [("kernel".to_owned(), Fact::Known(kernel.into()))].into();
        HostFacts { hosts: vec![name.into()], facts }
    }

    fn loaded(build_id: &str) -> Option<LoadedFiles> {
        let library =
            LoadedFile { path: "/libmpi.so".into(), build_id: Some(build_id.into()), contents: None };
        Some(LoadedFiles { libraries: vec![library], ..LoadedFiles::default() })
    }

    #[test]
    fn facts_that_differ_are_named_with_both_values() {
        let mut run = golden().run;
        run.hosts = vec![host("n01", "6.1"), host("n02", "6.1")];
        run.loaded = loaded("1");
        let before = provenance(&run);
        run.hosts = vec![host("n01", "6.1"), host("n02", "6.2")];
        run.library = "MPICH Version: 4.2.0".into();
        run.env.insert("UCX_NET_DEVICES".into(), "mlx5_0".into());
        run.plan.insert("launch".into(), "7".into());
        run.loaded = loaded("2");
        let found = differences(&before, &provenance(&run));
        let texts: Vec<String> =
            found.iter().map(|d| format!("{}: {} -> {}", d.name, d.before, d.after)).collect();
        assert_eq!(
            texts,
            [
                "contents of /libmpi.so: build ID 1 -> build ID 2",
                "kernel: 6.1 -> 6.1 on n01, 6.2 on n02",
                "library: MPICH Version: 4.0.2 -> MPICH Version: 4.2.0",
                "variable UCX_NET_DEVICES: unset -> mlx5_0",
            ]
        );
        assert!(differences(&before, &before).is_empty());
    }

    #[test]
    fn a_fact_that_one_run_lacks_is_no_difference() {
        let before = provenance(&golden().run);
        let mut run = golden().run;
        run.hosts = vec![host("n01", "6.1")];
        assert!(differences(&before, &provenance(&run)).is_empty());
    }
}
