//! The rows of all jobs: the link matrix as CSV, and what is slow.

use std::{collections::BTreeMap, fs::File, io::BufReader};

use ombx_core::result::{Measurement, Outcome, Run};
use ombx_results::{
    file,
    verdict::{self, Hosts, RETEST, TimesBySize},
};

use super::{
    Cluster,
    plan::{Job, Stage},
    preflight::{Facts, one},
    record::Ending,
};
use crate::failure::{Failure, Result};

/// A run of ombx and its rows.
pub(super) struct Rows {
    pub(super) run: Run,
    pub(super) rows: Vec<Measurement>,
}

/// What a job measured, also in attempts that did not come to their end.
pub(super) fn rows(cluster: &Cluster, job: &Job) -> Vec<Rows> {
    let files = cluster.record.results(job).into_iter().filter_map(|path| File::open(path).ok());
    let runs = files.filter_map(|file| file::read(BufReader::new(file)).ok()).flat_map(|file| file.runs);
    runs.map(|run| Rows { run: run.run, rows: run.rows }).collect()
}

/// Numbers of hosts by what they call themselves.
struct Names(BTreeMap<String, usize>);

impl Names {
    fn of(facts: &[Facts]) -> Self {
        let names = facts.iter().enumerate();
        Self(names.filter_map(|(host, facts)| Some((one(facts, "hostname")?.to_owned(), host))).collect())
    }

    /// The host of a rank of a row.
    fn host(&self, run: &Run, row: &Measurement, axis: &str) -> Option<usize> {
        let rank: usize = row.axes.get(axis)?.parse().ok()?;
        self.0.get(&run.places.get(rank)?.host).copied()
    }
}

/// What is slow among pairs of hosts, by the jobs of single pairs.
pub(super) struct Slow {
    /// Pairs to measure once more, alone.
    pub(super) again: Vec<[usize; 2]>,
    pub(super) sentences: Vec<String>,
}

/// Judges the jobs of single pairs with one host for each rank of [`verdict`].
pub(super) fn judge_pairs(cluster: &Cluster, jobs: &[Job], facts: &[Facts]) -> Slow {
    let names = Names::of(facts);
    let mut times = TimesBySize::default();
    for job in jobs.iter().filter(|job| matches!(job.stage, Stage::Pairs | Stage::Again)) {
        for Rows { run, rows } in rows(cluster, job) {
            for mut row in rows {
                let (Some(from), Some(to)) = (names.host(&run, &row, "from"), names.host(&run, &row, "to"))
                else {
                    continue;
                };
                row.axes.insert("from".into(), from.to_string());
                row.axes.insert("to".into(), to.to_string());
                times.add(&row);
            }
        }
    }
    let hosts = Hosts::of(cluster.inventory.hosts.iter().map(|host| host.name.as_str()));
    let mut again: Vec<[usize; 2]> = Vec::new();
    for link in verdict::retest_candidates(&times.0, &hosts, AGAIN) {
        let pair = [link.from.min(link.to) as usize, link.from.max(link.to) as usize];
        if !again.contains(&pair) {
            again.push(pair);
        }
    }
    // A link is of two hosts here, and of nothing smaller.
    let sentences = verdict::find_slow(&times.0, &hosts)
        .iter()
        .map(|slow| without_ranks(&slow.sentence(&hosts)))
        .collect();
    Slow { again, sentences }
}

/// Slowest links of each size that are measured again, beside those that stand out.
const AGAIN: usize = 1;

/// `rank 3 on n4` is just `n4` where every host has one rank.
fn without_ranks(sentence: &str) -> String {
    let mut words = Vec::new();
    let mut rest = sentence.split(' ').peekable();
    while let Some(word) = rest.next() {
        if word == "rank" {
            rest.next();
            rest.next();
        } else {
            words.push(word);
        }
    }
    words.join(" ")
}

/// What `ombx links` itself finds slow in the jobs of all hosts together.
pub(super) fn judge_together(cluster: &Cluster, job: &Job) -> Vec<String> {
    let mut found = Vec::new();
    for Rows { run, rows } in rows(cluster, job) {
        let mut times = TimesBySize::default();
        rows.iter().for_each(|row| times.add(row));
        let hosts = Hosts::of(run.places.iter().map(|place| place.host.as_str()));
        found = verdict::find_slow(&times.0, &hosts).iter().map(|slow| slow.sentence(&hosts)).collect();
    }
    found
}

const COLUMNS: [&str; 17] = [
    "job",
    "stage",
    "from_host",
    "to_host",
    "from",
    "to",
    "bytes",
    "depth",
    "retest",
    "outcome",
    "reason",
    "check",
    "n",
    "median_us",
    "min_us",
    "mb_per_s",
    "trust",
];

/// The link matrix: one line for each direction of each link and size of each job; a failed job is a line for each direction.
pub(super) fn matrix(cluster: &Cluster, jobs: &[(Job, Ending)]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let bad = |e: csv::Error| Failure::Missing(format!("the link matrix: {e}"));
    writer.write_record(COLUMNS).map_err(bad)?;
    for (job, ending) in jobs {
        for Rows { run, rows } in rows(cluster, job) {
            for row in rows.iter().filter(|row| row.axes.contains_key("from")) {
                let axis = |name: &str| row.axes.get(name).cloned().unwrap_or_default();
                let host = |name: &str| {
                    let place = axis(name).parse::<usize>().ok().and_then(|rank| run.places.get(rank));
                    place.map_or(String::new(), |place| place.host.clone())
                };
                let (outcome, reason) = match &row.outcome {
                    Outcome::Ok => ("ok", ""),
                    Outcome::Skipped(why) => ("skipped", why.as_str()),
                    Outcome::Failed(why) => ("failed", why.as_str()),
                };
                let s = row.summary.as_ref();
                let us = |ns: Option<f64>| text(ns.map(|ns| ns / 1e3));
                let codes: Vec<&str> = row.trust.iter().map(|notice| notice.code.as_str()).collect();
                let line = [
                    job.name.clone(),
                    job.stage.name().into(),
                    host("from"),
                    host("to"),
                    axis("from"),
                    axis("to"),
                    text(row.bytes),
                    text(row.depth),
                    axis(RETEST),
                    outcome.into(),
                    reason.into(),
                    row.check.name().into(),
                    text(s.map(|s| s.n)),
                    us(s.map(|s| s.median)),
                    us(s.map(|s| s.min)),
                    text(row.mb_per_s().map(|rate| rate.median)),
                    codes.join(";"),
                ];
                writer.write_record(line).map_err(bad)?;
            }
        }
        if let (Ending::Failed(why), [a, b]) = (ending, &*job.hosts) {
            for (from, to) in [(*a, *b), (*b, *a)] {
                let name = |host: usize| cluster.inventory.hosts[host].name.as_str();
                let mut line = [""; COLUMNS.len()];
                (line[0], line[1], line[2], line[3]) = (&job.name, job.stage.name(), name(from), name(to));
                (line[9], line[10]) = ("failed", why);
                writer.write_record(line).map_err(bad)?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|e| Failure::Missing(format!("the link matrix: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_without_ranks() {
        let sentence = "the link between rank 0 on h1 and rank 12 on h3 is slow: it takes 2.00 times as long";
        assert_eq!(
            without_ranks(sentence),
            "the link between h1 and h3 is slow: it takes 2.00 times as long"
        );
    }
}
