//! Jobs of single pairs as one sweep over all hosts, each of which counts as one rank.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use ombx_links::verdict::{self, LinkSweep};
use ombx_record::{
    error::{Error, Result},
    fact::{Facts, HostFacts},
    file::{self, RunWithRows},
    link::{ALONE, RETEST, ROUND, ends_of, key_of_link},
    result::{Check, Growth, Measurement, Outcome, Place, Run, RunOutcome, Tally},
    verdict::{Conclusion, Verdict},
};

use crate::{
    cluster::Cluster,
    plan::{Job, Stage},
    record::{Ending, FinishedJob},
};

/// Name of the result file in the directory of the run.
pub(crate) const FILE: &str = "pairs.jsonl";
/// Slowest links of each size that are measured again, besides outliers.
const SLOWEST: usize = 1;
/// Options that only the jobs have: numbers of their launches, and the job that new ranks continue.
const OF_JOBS: [&str; 4] = ["launch", "launches", "order", ombx_record::runs::CONTINUES];

/// Sweep over all pairs of hosts.
#[derive(Debug, Default)]
pub(crate) struct PairSweep {
    /// The sweep with its rows; `None` if no pair has a row.
    run: Option<RunWithRows>,
    /// Whether the job of a pair has failed.
    is_broken: bool,
}

/// Returns the rows of all jobs of pairs, with the numbers of the hosts in the inventory instead of those of the ranks. A pair whose job
/// failed has failed rows in place of those that are missing.
pub(crate) fn collect(cluster: &Cluster, finished: &[FinishedJob]) -> PairSweep {
    let hosts = HostNames::new(cluster);
    let mut places: BTreeMap<usize, Place> = BTreeMap::new();
    let mut facts: BTreeMap<usize, Facts> = BTreeMap::new();
    let mut sweep: Option<RunWithRows> = None;
    for job in finished.iter().map(|finished| &finished.job).filter(|job| job.is_pair()) {
        for run in cluster.record.runs(job) {
            let sweep = sweep.get_or_insert_with(|| RunWithRows::new(of_all_hosts(cluster, &run.run)));
            for place in &run.run.places {
                if let Some(host) = hosts.index(&place.host) {
                    places.entry(host).or_insert_with(|| place.clone());
                }
            }
            for group in &run.run.hosts {
                for host in group.hosts.iter().filter_map(|host| hosts.index(host)) {
                    facts.entry(host).or_insert_with(|| group.facts.clone());
                }
            }
            let rows = run.each_row().map(Cow::into_owned);
            sweep.rows.extend(rows.filter_map(|row| hosts.renumbered(row, &run.run, job)));
            sweep.grown.extend(run.grown.iter().map(|one| hosts.renamed(one)));
        }
    }
    let Some(mut sweep) = sweep.filter(|sweep| !sweep.rows.is_empty()) else { return PairSweep::default() };
    let failed = failed_rows(&sweep.rows, finished);
    sweep.rows.extend(failed);
    let place = |host: usize| {
        let unknown =
            Place { host: String::new(), cpus: String::new(), online: 0, governor: None, quota: None };
        Place { host: hosts.name(host).to_owned(), ..places.remove(&host).unwrap_or(unknown) }
    };
    sweep.run.places = (0..hosts.len()).map(place).collect();
    let named = facts.into_iter().map(|(host, facts)| (hosts.name(host).to_owned(), facts));
    sweep.run.hosts = HostFacts::grouped(named);
    sweep.grown = Growth::summed(sweep.grown);
    let is_failed = |one: &FinishedJob| one.job.is_pair() && matches!(one.ending, Ending::Failed { .. });
    PairSweep { run: Some(sweep), is_broken: finished.iter().any(is_failed) }
}

/// Returns the run of a job as one over all hosts, without its places and facts.
fn of_all_hosts(cluster: &Cluster, of_job: &Run) -> Run {
    let mut run = of_job.clone();
    run.id = format!("{}-{}", cluster.record.id, Stage::Pairs.name());
    run.argv = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    run.plan.retain(|name, _| !OF_JOBS.contains(&name.as_str()));
    // In a history the sweeps of single pairs and of all hosts together are different setups.
    run.plan.insert("stage".into(), Stage::Pairs.name().into());
    run
}

/// Returns a failed row for each direction and message size that the failed job of a pair has not measured.
fn failed_rows(rows: &[Measurement], finished: &[FinishedJob]) -> Vec<Measurement> {
    let mut sizes: BTreeMap<Option<u64>, &Measurement> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.axes.contains_key(RETEST)) {
        sizes.entry(row.bytes).or_insert(row);
    }
    let measured: BTreeSet<_> = rows.iter().filter_map(|row| Some((ends_of(row)?, row.bytes))).collect();
    let mut failed = Vec::new();
    for FinishedJob { job, ending } in finished.iter().filter(|finished| finished.job.stage == Stage::Pairs) {
        let (Ending::Failed { reason }, [one, other]) = (ending, &*job.hosts) else { continue };
        for ends in [[*one as u32, *other as u32], [*other as u32, *one as u32]] {
            let missing = sizes.iter().filter(|(bytes, _)| !measured.contains(&(ends, **bytes)));
            failed.extend(missing.map(|(_, alike)| failed_row(alike, ends, reason)));
        }
    }
    failed
}

/// Returns a row like another one, of a link that was not measured.
fn failed_row(alike: &Measurement, ends: [u32; 2], reason: &str) -> Measurement {
    let row = Measurement {
        outcome: Outcome::Failed(reason.to_owned()),
        check: Check::Off,
        checked: 0,
        summary: None,
        trust: Vec::new(),
        grown: Vec::new(),
        phases: Default::default(),
        figures: Default::default(),
        ..alike.clone()
    };
    between(row, ends)
}

/// Returns a row as that of another link.
fn between(mut row: Measurement, ends: [u32; 2]) -> Measurement {
    row.axes.extend(["from", "to"].map(str::to_owned).into_iter().zip(ends.map(|end| end.to_string())));
    row.key = key_of_link(&row.axes, row.bytes, row.depth);
    row
}

/// Names of the hosts in the inventory, and what the hosts call themselves.
struct HostNames<'a> {
    cluster: &'a Cluster,
    indices: BTreeMap<&'a str, usize>,
}

impl<'a> HostNames<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let own = |host: usize| Some((cluster.fact(host, "hostname")?, host));
        HostNames { cluster, indices: (0..cluster.facts.len()).filter_map(own).collect() }
    }

    /// Returns the number of hosts.
    fn len(&self) -> usize {
        self.cluster.inventory.hosts.len()
    }

    /// Returns the index in the inventory of a host that calls itself so.
    fn index(&self, own: &str) -> Option<usize> {
        self.indices.get(own).copied()
    }

    fn name(&self, host: usize) -> &str {
        self.cluster.host_name(host)
    }

    /// Returns a counter with the name that its host has in the inventory.
    fn renamed(&self, growth: &Growth) -> Growth {
        let host = self.index(&growth.host).map_or(growth.host.as_str(), |host| self.name(host));
        Growth { host: host.to_owned(), ..growth.clone() }
    }

    /// Returns a row of a job as one of the sweep, without its samples, which the file of the job has; `None` if a host is not in the inventory.
    fn renumbered(&self, row: Measurement, run: &Run, job: &Job) -> Option<Measurement> {
        let host = |rank: u32| self.index(&run.places.get(rank as usize)?.host).map(|host| host as u32);
        let [from, to] = ends_of(&row)?.map(host);
        let mut row = between(row, [from?, to?]);
        // Pairs of a round start one by one: no round has a time of its own.
        row.axes.remove(ROUND);
        if job.stage == Stage::Again {
            row.axes.insert(RETEST.into(), ALONE.into());
        }
        row.key = key_of_link(&row.axes, row.bytes, row.depth);
        row.ranks = self.len() as u32;
        row.grown = row.grown.iter().map(|one| self.renamed(one)).collect();
        (row.samples, row.tail) = (Vec::new(), Vec::new());
        Some(row)
    }
}

impl PairSweep {
    fn links(&self) -> LinkSweep {
        let mut links = LinkSweep::default();
        if let Some(run) = &self.run {
            links.add_run(run);
        }
        links
    }

    /// Judges the links.
    pub(crate) fn verdict(&self) -> Verdict {
        self.links().verdict()
    }

    /// Returns the pairs to measure again; none if nothing is slow.
    pub(crate) fn again(&self) -> Vec<[usize; 2]> {
        let links = self.links();
        let mut again: Vec<[usize; 2]> = Vec::new();
        if links.verdict().conclusion == Conclusion::Slow {
            for link in verdict::retest_candidates(&links.times().0, &links.hosts, SLOWEST) {
                let pair = [link.from.min(link.to) as usize, link.from.max(link.to) as usize];
                if !again.contains(&pair) {
                    again.push(pair);
                }
            }
        }
        again
    }

    /// Returns the hosts of all pairs; none if no pair has a row.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.run.iter().flat_map(|sweep| &sweep.run.places).map(|place| place.host.clone()).collect()
    }

    /// Returns the text of a result file with the sweep and its verdict; `None` if no pair has a row.
    pub(crate) fn result_file(self, verdict: &Verdict) -> Result<Option<String>> {
        let outcome = if self.is_broken { RunOutcome::Broken } else { RunOutcome::Complete };
        let text = self.run.map(|sweep| text_of(sweep, outcome, verdict));
        text.transpose().map_err(|e| Error::storage(format!("{FILE}: {e}")))
    }
}

/// Returns the lines of a result file.
fn text_of(mut sweep: RunWithRows, outcome: RunOutcome, verdict: &Verdict) -> std::io::Result<String> {
    let mut tally = Tally::default();
    sweep.rows.iter().for_each(|row| tally.add(row));
    sweep.end = Some((outcome, tally));
    sweep.verdict = Some(Box::new(verdict.clone()));
    let mut text = Vec::new();
    sweep.in_rounds().events().try_for_each(|event| file::write(&mut text, &event))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
