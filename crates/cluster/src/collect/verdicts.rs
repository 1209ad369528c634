//! Verdicts: which hosts and links are slow.

use std::collections::BTreeMap;

use ombx_core::result::{Measurement, Run};
use ombx_results::verdict::{self, ALONE, Conclusion, Groups, Hosts, LinkSweep, RETEST, Verdict};

use crate::{
    cluster::Cluster,
    plan::{Job, Stage},
};

/// Slowest links of each size that are measured again, besides outliers.
const SLOWEST: usize = 1;

/// Verdict on pairs of hosts.
pub(crate) struct PairVerdict {
    /// The verdict and the hosts that its sentences name.
    pub(crate) verdict: Verdict,
    pub(crate) hosts: Hosts,
    /// Pairs to measure again; empty if nothing is slow.
    pub(crate) again: Vec<[usize; 2]>,
}

/// Judges the jobs of single pairs. Each host counts as one rank for [`verdict`].
pub(crate) fn judge_pairs<'a>(cluster: &Cluster, jobs: impl Iterator<Item = &'a Job>) -> PairVerdict {
    let indices: BTreeMap<&str, usize> =
        (0..cluster.facts.len()).filter_map(|host| Some((cluster.fact(host, "hostname")?, host))).collect();
    // The index of the host of a rank, as text.
    let host = |run: &Run, row: &Measurement, axis: &str| {
        let rank: usize = row.axes.get(axis)?.parse().ok()?;
        indices.get(run.places.get(rank)?.host.as_str()).map(usize::to_string)
    };
    let mut hosts = Hosts::of(cluster.inventory.hosts.iter().map(|host| host.name.as_str()));
    let mut sweep = LinkSweep::default();
    for job in jobs.filter(|job| job.is_pair()) {
        for run in cluster.record.runs(job) {
            if sweep.hosts.ranks() == 0 {
                sweep = LinkSweep::of_run(&run.run);
                hosts = hosts.grouped(&Groups::of_plan(&run.run.plan));
                sweep.hosts = hosts.clone();
            }
            for mut row in run.rows {
                let ends = (host(&run.run, &row, "from"), host(&run.run, &row, "to"));
                let (Some(from), Some(to)) = ends else { continue };
                row.axes.extend([("from".into(), from), ("to".into(), to)]);
                if job.stage == Stage::Again {
                    row.axes.insert(RETEST.into(), ALONE.into());
                }
                sweep.add(&row);
            }
        }
    }
    let verdict = sweep.verdict();
    let mut again: Vec<[usize; 2]> = Vec::new();
    if verdict.conclusion() == Conclusion::Slow {
        for link in verdict::retest_candidates(&sweep.times().0, &hosts, SLOWEST) {
            let pair = [link.from.min(link.to) as usize, link.from.max(link.to) as usize];
            if !again.contains(&pair) {
                again.push(pair);
            }
        }
    }
    PairVerdict { verdict, hosts, again }
}

/// Judges the last sweep of a job of all hosts, as `ombx links` does.
pub(crate) fn judge_together(cluster: &Cluster, job: &Job) -> Option<(Verdict, Hosts)> {
    let runs = cluster.record.runs(job);
    let mut sweep = LinkSweep::default();
    for run in &runs {
        sweep.begin(&run.run);
        run.rows.iter().for_each(|row| sweep.add(row));
    }
    (!runs.is_empty()).then(|| (sweep.verdict(), sweep.hosts))
}
