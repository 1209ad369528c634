//! End of a run: link matrix, summary, HTML report and checksums.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use ombx_fleet::fitness::{Fitness, Listed};
use ombx_host::node_set;
use ombx_record::{
    error::{Exit, Result},
    verdict::{Conclusion, Verdict},
};

use crate::{
    cluster::{Cluster, FailOn},
    collect, pair_sweep, parallel,
    plan::{Job, Stage},
    record::{self, Ending, FinishedJob},
};

/// Exit code after a failure of a host, a launcher or a job.
const FAILED: u8 = Exit::Fabric.code();

/// Writes all files that are derived from the jobs, prints the summary and returns the exit code.
pub(crate) fn conclude(cluster: &Cluster, finished: &[FinishedJob]) -> Result<u8> {
    if cluster.options.suite == "links" {
        cluster.record.write("links.csv", &collect::matrix(cluster, finished)?)?;
    }
    let of_pairs = judge_pairs(cluster, finished)?;
    let (text, conclusion) = summary(cluster, finished, of_pairs);
    cluster.record.write("summary.txt", &text)?;
    record::print_line(format_args!("\n{text}"));
    if let Err(reason) = report(cluster, finished) {
        record::print_line(format_args!("note: report.html is missing: {reason}"));
    }
    cluster.record.write_checksums()?;
    record::print_line(format_args!("All results are in {}", cluster.record.directory.display()));
    let code = interrupted(exit_code(finished), parallel::exit_code());
    Ok(match (code, cluster.options.fail_on, conclusion) {
        (0, FailOn::Slow, Some(Conclusion::Errors)) => Exit::Errors.code(),
        (0, FailOn::Slow, Some(found)) if found.is_finding() => Exit::Slow.code(),
        (0, FailOn::Slow, Some(Conclusion::None)) => Exit::NoVerdict.code(),
        (code, ..) => code,
    })
}

/// Returns 6 if a job failed, else the largest exit code of the jobs.
fn exit_code(finished: &[FinishedJob]) -> u8 {
    let code = |finished: &FinishedJob| match finished.ending {
        Ending::Failed { .. } => FAILED,
        Ending::Complete { exit_code } => u8::try_from(exit_code).unwrap_or(FAILED),
    };
    finished.iter().map(code).max().unwrap_or(0)
}

/// Returns the exit code of a signal if it has ended jobs, else that of the jobs.
fn interrupted(code: u8, by_signal: Option<u8>) -> u8 {
    by_signal.filter(|_| code == FAILED).unwrap_or(code)
}

/// Judges the pairs of hosts, and writes them as one result file. Returns `None` without pairs.
fn judge_pairs(cluster: &Cluster, finished: &[FinishedJob]) -> Result<Option<Verdict>> {
    if cluster.options.suite != "links" || !finished.iter().any(|finished| finished.job.is_pair()) {
        return Ok(None);
    }
    let sweep = pair_sweep::collect(cluster, finished);
    let verdict = sweep.verdict();
    let fitness = Fitness::new(&sweep.hosts(), &cluster.left_out, &verdict);
    let all = cluster.inventory.hosts.len() + cluster.left_out.len();
    for (name, listed) in [("fit.txt", Listed::Fit), ("unfit.txt", Listed::Unfit)] {
        cluster.record.write(name, &fitness.list(listed, all))?;
    }
    if let Some(text) = sweep.result_file(&verdict)? {
        cluster.record.write(pair_sweep::FILE, &text)?;
    }
    Ok(Some(verdict))
}

/// Returns the text of the summary, and the conclusion on the links if they were measured.
fn summary(
    cluster: &Cluster,
    finished: &[FinishedJob],
    of_pairs: Option<Verdict>,
) -> (String, Option<Conclusion>) {
    let failed: Vec<(&Job, &str)> = finished
        .iter()
        .filter_map(|FinishedJob { job, ending }| match ending {
            Ending::Failed { reason } => Some((job, reason.as_str())),
            Ending::Complete { .. } => None,
        })
        .collect();
    let mut text = format!("{} of {} jobs complete\n", finished.len() - failed.len(), finished.len());
    for (job, reason) in &failed {
        let _ =
            writeln!(text, "failed: {} ({}): {reason}", job.name, node_set::fold(cluster.host_names(job)));
    }
    let is_pair_of = |host: usize| move |job: &&Job| job.stage == Stage::Pairs && job.hosts.contains(&host);
    for (host, count) in often_failed(&failed) {
        let pairs = finished.iter().map(|finished| &finished.job).filter(is_pair_of(host)).count();
        let _ = writeln!(text, "host {} is in {count} failed pairs of its {pairs}", cluster.host_name(host));
    }
    let conclusion =
        (cluster.options.suite == "links").then(|| verdicts(cluster, finished, of_pairs, &mut text));
    if !cluster.left_out.is_empty() {
        let hosts = node_set::fold(cluster.left_out.iter().map(String::as_str));
        let _ = writeln!(text, "note: all this is without {hosts}, which could not be reached");
    }
    (text, conclusion)
}

/// Adds the verdicts, each with the name of its job, and returns the conclusion: a finding if one has one, else none if no job has a
/// verdict on all hosts.
fn verdicts(
    cluster: &Cluster,
    finished: &[FinishedJob],
    of_pairs: Option<Verdict>,
    text: &mut String,
) -> Conclusion {
    let mut found: Vec<(&str, Verdict)> = of_pairs.into_iter().map(|verdict| ("pairs", verdict)).collect();
    for FinishedJob { job, ending } in finished {
        // An incomplete sweep may lack the links that the others are compared with.
        if !matches!(ending, Ending::Complete { .. }) || job.is_pair() {
            continue;
        }
        if let Some(verdict) = cluster.record.runs(job).into_iter().filter_map(|run| run.verdict).next_back()
        {
            found.push((job.name.as_str(), *verdict));
        }
    }
    for (job, verdict) in &found {
        for line in verdict.lines() {
            let _ = match line.split_once(": ").filter(|(start, _)| start.ends_with("verdict")) {
                Some((start, sentence)) => writeln!(text, "{start} ({job}): {sentence}"),
                None => writeln!(text, "{line}"),
            };
        }
    }
    let conclusions: Vec<Conclusion> = found.iter().map(|(_, verdict)| verdict.conclusion).collect();
    let order =
        [Conclusion::Slow, Conclusion::Errors, Conclusion::Unsteady, Conclusion::Shared, Conclusion::Clear];
    order.into_iter().find(|conclusion| conclusions.contains(conclusion)).unwrap_or(Conclusion::None)
}

/// Returns the hosts with the most failed pairs, at least two, and their number.
fn often_failed(failed: &[(&Job, &str)]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for host in failed.iter().filter(|(job, _)| job.stage == Stage::Pairs).flat_map(|(job, _)| &job.hosts) {
        *counts.entry(*host).or_insert(0) += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    counts.retain(|_, count| *count > 1 && *count == most);
    counts
}

/// Writes `report.html` with `ombx report`: the pairs as one sweep, and each other job.
fn report(cluster: &Cluster, finished: &[FinishedJob]) -> std::result::Result<(), String> {
    let has_run = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() > 0);
    let directory = &cluster.record.directory;
    let pairs = Some(directory.join(pair_sweep::FILE)).filter(has_run);
    let is_own = |finished: &&FinishedJob| pairs.is_none() || !finished.job.is_pair();
    let of_jobs = finished.iter().filter(is_own).flat_map(|finished| cluster.record.results(&finished.job));
    let files: Vec<PathBuf> = pairs.iter().cloned().chain(of_jobs.filter(has_run)).collect();
    if files.is_empty() {
        return Err("no job has written a result".into());
    }
    // The page names each file by its path in the directory of the run.
    let named = files.iter().map(|file| file.strip_prefix(directory).unwrap_or(file));
    let binary = std::path::absolute(&cluster.binary).map_err(|e| e.to_string())?;
    let mut command = Command::new(binary);
    command.current_dir(directory).args(["report", "--force"]).args(named).args(["-o", "report.html"]);
    let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        Err(if words.is_empty() { format!("ombx report ended with {}", output.status) } else { words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(stage: Stage, hosts: &[usize]) -> Job {
        Job { name: "j".into(), stage, hosts: hosts.to_vec(), ranks_per_host: 1 }
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_job() {
        let code = |endings: &[Ending]| {
            let finished =
                |ending: &Ending| FinishedJob { job: job(Stage::Pairs, &[0, 1]), ending: ending.clone() };
            exit_code(&endings.iter().map(finished).collect::<Vec<_>>())
        };
        let complete = |exit_code| Ending::Complete { exit_code };
        let failed = || Ending::Failed { reason: "x".into() };
        assert_eq!(code(&[complete(0), complete(4)]), 4);
        assert_eq!(code(&[complete(5), failed()]), 6);
        for (signal, expected) in [(Some(143), [143, 0]), (None, [FAILED, 0])] {
            let ended = [failed(), complete(0)].map(|ending| interrupted(code(&[ending]), signal));
            assert_eq!(ended, expected, "{signal:?}");
        }
    }

    #[test]
    fn the_host_of_most_failed_pairs_is_named() {
        let jobs = [job(Stage::Pairs, &[0, 1]), job(Stage::Pairs, &[1, 2]), job(Stage::Together, &[0, 1, 2])];
        let failed: Vec<(&Job, &str)> = jobs.iter().map(|job| (job, "x")).collect();
        assert_eq!(often_failed(&failed), BTreeMap::from([(1, 2)]));
    }
}
