//! The end of a run: matrix, report, checksums, and a summary that names slow and failed hosts and links.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::atomic::Ordering,
};

use super::{
    Cluster, INTERRUPTED, collect,
    plan::{Job, Stage},
    preflight::Facts,
    program::knows,
    record::Ending,
};
use crate::failure::Result;

/// Writes everything that is derived from the jobs, prints the summary and returns the exit code.
pub(super) fn conclude(cluster: &Cluster, facts: &[Facts], done: &[(Job, Ending)]) -> Result<ExitCode> {
    if cluster.suite == "links" {
        cluster.record.write("links.csv", &collect::matrix(cluster, done)?)?;
    }
    let text = summary(cluster, facts, done);
    cluster.record.write("summary.txt", &text)?;
    println!("\n{text}");
    report(cluster, done);
    cluster.record.checksums()?;
    println!("All is in {}", cluster.record.directory.display());
    Ok(ExitCode::from(exit_code(done, INTERRUPTED.load(Ordering::Relaxed))))
}

/// As of ombx: 6 where a job failed, else the worst of the jobs.
fn exit_code(done: &[(Job, Ending)], interrupted: bool) -> u8 {
    let of = |ending: &Ending| match ending {
        Ending::Failed(_) => 6,
        Ending::Complete(code) => u8::try_from(*code).unwrap_or(6),
    };
    let worst = done.iter().map(|(_, ending)| of(ending)).max().unwrap_or(0);
    if interrupted && worst == 6 { 130 } else { worst }
}

fn summary(cluster: &Cluster, facts: &[Facts], done: &[(Job, Ending)]) -> String {
    let failed: Vec<(&Job, &str)> = done
        .iter()
        .filter_map(
            |(job, ending)| if let Ending::Failed(why) = ending { Some((job, why.as_str())) } else { None },
        )
        .collect();
    let mut text = format!("{} of {} jobs complete\n", done.len() - failed.len(), done.len());
    for (job, why) in &failed {
        let names: Vec<&str> =
            job.hosts.iter().map(|host| cluster.inventory.hosts[*host].name.as_str()).collect();
        let _ = writeln!(text, "failed: {} ({}): {why}", job.name, names.join(", "));
    }
    for (host, count) in often(&failed) {
        let name = &cluster.inventory.hosts[host].name;
        let all =
            done.iter().filter(|(job, _)| job.stage == Stage::Pairs && job.hosts.contains(&host)).count();
        let _ = writeln!(text, "host {name} is in {count} failed pairs of its {all}");
    }
    if cluster.suite != "links" {
        return text;
    }
    let jobs: Vec<Job> = done.iter().map(|(job, _)| job.clone()).collect();
    let mut found: Vec<(String, String)> = Vec::new();
    let sentences = collect::judge_pairs(cluster, &jobs, facts).sentences;
    found.extend(sentences.into_iter().map(|sentence| ("pairs".to_owned(), sentence)));
    // Part of a sweep says little: what is left out could be what the rest is compared with.
    let whole = done.iter().filter(|(_, ending)| matches!(ending, Ending::Complete(_)));
    for (job, _) in whole.filter(|(job, _)| matches!(job.stage, Stage::Together | Stage::Crowded)) {
        let sentences = collect::judge_together(cluster, job);
        found.extend(sentences.into_iter().map(|sentence| (job.name.clone(), sentence)));
    }
    if found.is_empty() {
        text += "verdict: no host, rank or link stands out\n";
    }
    for (job, sentence) in found {
        let _ = writeln!(text, "verdict ({job}): {sentence}");
    }
    text
}

/// Hosts that are in more than one failed pair, with how many.
fn often(failed: &[(&Job, &str)]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for host in failed.iter().filter(|(job, _)| job.stage == Stage::Pairs).flat_map(|(job, _)| &job.hosts) {
        *counts.entry(*host).or_insert(0) += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    counts.retain(|_, count| *count > 1 && *count == most);
    counts
}

/// The report in HTML, by the ombx that measured.
fn report(cluster: &Cluster, done: &[(Job, Ending)]) {
    if !knows(&cluster.binary, "report") {
        println!("note: this ombx has no `report`: report.html is left out");
        return;
    }
    let has_run = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() > 0);
    let files = done.iter().flat_map(|(job, _)| cluster.record.results(job)).filter(has_run);
    let mut command = Command::new(&cluster.binary);
    command.arg("report").args(files).arg("-o").arg(cluster.record.directory.join("report.html"));
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            println!("note: report.html could not be made: {words}");
        }
        Err(e) => println!("note: report.html could not be made: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(stage: Stage, hosts: &[usize]) -> Job {
        Job { name: "j".into(), stage, hosts: hosts.to_vec(), per_host: 1 }
    }

    #[test]
    fn the_exit_code_tells_the_worst() {
        let of = |endings: &[Ending], interrupted| {
            let done: Vec<(Job, Ending)> =
                endings.iter().map(|e| (job(Stage::Pairs, &[0, 1]), e.clone())).collect();
            exit_code(&done, interrupted)
        };
        let failed = || Ending::Failed("x".into());
        assert_eq!(of(&[Ending::Complete(0), Ending::Complete(4)], false), 4);
        assert_eq!(of(&[Ending::Complete(5), failed()], false), 6);
        assert_eq!((of(&[failed()], true), of(&[Ending::Complete(0)], true)), (130, 0));
    }

    #[test]
    fn the_host_that_pairs_failed_with_is_named() {
        let jobs = [job(Stage::Pairs, &[0, 1]), job(Stage::Pairs, &[1, 2]), job(Stage::Together, &[0, 1, 2])];
        let failed: Vec<(&Job, &str)> = jobs.iter().map(|job| (job, "x")).collect();
        assert_eq!(often(&failed), BTreeMap::from([(1, 2)]));
    }
}
