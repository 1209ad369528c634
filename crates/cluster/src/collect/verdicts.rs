//! Verdicts: which hosts and links are slow.

use std::collections::BTreeMap;

use ombx_core::result::{Measurement, Run};
use ombx_results::verdict::{self, Hosts, TimesBySize};

use crate::{cluster::Cluster, plan::Job};

/// Slowest links of each size that are measured again, besides outliers.
const SLOWEST: usize = 1;

/// Verdicts on pairs of hosts.
pub(crate) struct PairVerdicts {
    /// Sentences, one for each slow host or link.
    pub(crate) sentences: Vec<String>,
    /// Pairs to measure again; empty if nothing is slow.
    pub(crate) again: Vec<[usize; 2]>,
}

/// Judges the jobs of single pairs. Each host counts as one rank for [`verdict`].
pub(crate) fn judge_pairs<'a>(cluster: &Cluster, jobs: impl Iterator<Item = &'a Job>) -> PairVerdicts {
    let indices: BTreeMap<&str, usize> =
        (0..cluster.facts.len()).filter_map(|host| Some((cluster.fact(host, "hostname")?, host))).collect();
    // The index of the host of a rank, as text.
    let host = |run: &Run, row: &Measurement, axis: &str| {
        let rank: usize = row.axes.get(axis)?.parse().ok()?;
        indices.get(run.places.get(rank)?.host.as_str()).map(usize::to_string)
    };
    let mut times = TimesBySize::default();
    for run in jobs.filter(|job| job.is_pair()).flat_map(|job| cluster.record.runs(job)) {
        for mut row in run.rows {
            let ends = (host(&run.run, &row, "from"), host(&run.run, &row, "to"));
            let (Some(from), Some(to)) = ends else { continue };
            row.axes.extend([("from".into(), from), ("to".into(), to)]);
            times.add(&row);
        }
    }
    let hosts = Hosts::of(cluster.inventory.hosts.iter().map(|host| host.name.as_str()));
    let slow = verdict::find_slow(&times.0, &hosts);
    let sentences: Vec<String> = slow.iter().map(|slow| without_ranks(&slow.sentence(&hosts))).collect();
    let mut again: Vec<[usize; 2]> = Vec::new();
    if !sentences.is_empty() {
        for link in verdict::retest_candidates(&times.0, &hosts, SLOWEST) {
            let pair = [link.from.min(link.to) as usize, link.from.max(link.to) as usize];
            if !again.contains(&pair) {
                again.push(pair);
            }
        }
    }
    PairVerdicts { sentences, again }
}

/// Removes `rank N on` from a sentence: every host has one rank.
fn without_ranks(sentence: &str) -> String {
    let mut kept = Vec::new();
    let mut words = sentence.split(' ');
    while let Some(word) = words.next() {
        if word == "rank" {
            words.nth(1);
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// Judges the last run of a job of all hosts, as `ombx links` does.
pub(crate) fn judge_together(cluster: &Cluster, job: &Job) -> Vec<String> {
    let runs = cluster.record.runs(job);
    let Some(run) = runs.last() else { return Vec::new() };
    let mut times = TimesBySize::default();
    run.rows.iter().for_each(|row| times.add(row));
    let hosts = Hosts::of(run.run.places.iter().map(|place| place.host.as_str()));
    verdict::find_slow(&times.0, &hosts).iter().map(|slow| slow.sentence(&hosts)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_hosts_without_ranks() {
        let sentence = "the link between rank 0 on h1 and rank 12 on h3 is slow: it takes 2.00 times as long";
        assert_eq!(
            without_ranks(sentence),
            "the link between h1 and h3 is slow: it takes 2.00 times as long"
        );
    }
}
