//! Hosts and links that fail in the middle: the end comes in time, names the host, leaves nothing, and is gone on from.

use std::time::Duration;

use ombx_tests::{Running, results};
use rustix::process::Signal;

use crate::bed::Bed;

/// Long enough for something to happen to it.
const LONG: &str =
    "--timeout 25s --pairs h1-h2,h2-h3,h1-h3 -- --sizes 8 --max-time 2500ms --precision 0.0001% --retest 0";

/// Waits until the job of a pair has measured a row.
fn until_measured(running: &mut Running, bed: &Bed, pair: &str) {
    let file = bed.runs().join("latest/jobs").join(pair).join("results.jsonl");
    running.until("a row of the pair", |_| results::rows_so_far(&file) >= 1);
}

fn fails_and_resumes(programs: &[&str], harm: impl Fn(&Bed), mend: impl Fn(&Bed)) {
    let Some(bed) = Bed::with(programs, "--hosts 3") else { return };
    let mut running = bed.cluster_bench(LONG).limit(Duration::from_secs(240)).start();
    until_measured(&mut running, &bed, "pairs-h2-h3");
    harm(&bed);
    let done = running.wait().expect(6);
    let summary = bed.kept("summary.txt");
    assert!(summary.contains("failed: pairs-h2-h3 (h2, h3)"), "{summary}\n{done}");
    assert!(summary.contains("h3"), "{summary}");
    let complete = bed.kept("jobs/pairs-h1-h2/job.json");
    assert!(complete.contains("\"outcome\": \"complete\""), "{complete}\n{done}");
    let rows = results::rows_so_far(&bed.runs().join("latest/jobs/pairs-h2-h3/results.jsonl"));
    assert!(rows >= 1, "{done}");
    bed.has_nothing_left();
    mend(&bed);
    let again =
        bed.cluster_bench(&format!("--resume {LONG}")).limit(Duration::from_secs(240)).run().expect(0);
    assert!(again.stdout.contains("complete already"), "{again}");
    let summary = bed.kept("summary.txt");
    assert!(!summary.contains("failed"), "{summary}");
    bed.has_nothing_left();
}

#[test]
fn a_host_that_is_cut_off_is_named() {
    fails_and_resumes(
        &[],
        |bed| assert!(bed.xtask("cut", "h3").status.success()),
        |bed| assert!(bed.xtask("mend", "").status.success()),
    );
}

#[test]
fn a_rank_that_dies_is_no_hang() {
    fails_and_resumes(&["pkill"], |bed| drop(bed.xtask("exec", "h3 -- pkill -9 -o -x ombx")), |_| {});
}

#[test]
fn a_rank_that_is_stopped_is_no_hang() {
    fails_and_resumes(&["pkill"], |bed| drop(bed.xtask("exec", "h3 -- pkill -STOP -o -x ombx")), |_| {});
}

/// The sshd of a host of a bed is its first process: with it the host goes.
#[test]
fn a_host_that_dies_is_named() {
    fails_and_resumes(
        &[],
        |bed| bed.kill_host("h3"),
        |bed| {
            assert!(bed.xtask("down", "").status.success());
            assert!(bed.xtask("up", "--hosts 3").status.success());
        },
    );
}

#[test]
fn a_host_that_is_gone_before_the_start_is_told_at_once() {
    let Some(bed) = Bed::up("--hosts 3") else { return };
    bed.kill_host("h2");
    let done = bed.cluster_bench(LONG).run().expect(6);
    assert!(done.stderr.contains("host h2: cannot be reached by ssh"), "{done}");
    assert!(!bed.kept("preflight.json").is_empty() && bed.kept("summary.txt").is_empty());
}

/// Nobody is left to sweep: the next call does, before it runs the job again.
#[test]
fn a_call_that_is_killed_is_gone_on_from() {
    let Some(bed) = Bed::up("--hosts 2") else { return };
    let options = "--timeout 60s -- --sizes 8 --max-time 3s --precision 0.0001% --retest 0";
    let mut running = bed.cluster_bench(options).limit(Duration::from_secs(240)).start();
    until_measured(&mut running, &bed, "pairs-h1-h2");
    let own = running.processes().into_iter().filter(|process| process.is_called(&["xtask"]));
    own.for_each(|process| process.signal(Signal::KILL));
    drop(running.wait());
    bed.cluster_bench(&format!("--resume {options}")).limit(Duration::from_secs(240)).run().expect(0);
    assert!(bed.kept("summary.txt").starts_with("2 of 2 jobs complete"), "{}", bed.kept("summary.txt"));
    assert!(!bed.kept("jobs/pairs-h1-h2/results.1.jsonl").is_empty(), "rows of the first call are kept");
    bed.has_nothing_left();
}

/// Hydra's ranks need their helper no more once they run: what they measured is then complete. Open MPI ends the job.
#[test]
fn a_helper_of_the_launcher_that_dies_is_no_hang() {
    let Some(bed) = Bed::with(&["pkill"], "--hosts 3") else { return };
    let mut running = bed.cluster_bench(LONG).limit(Duration::from_secs(240)).start();
    until_measured(&mut running, &bed, "pairs-h2-h3");
    drop(bed.xtask("exec", "h3 -- pkill -9 hydra_pmi_proxy|orted"));
    let done = running.wait();
    let job = bed.kept("jobs/pairs-h2-h3/job.json");
    let complete = job.contains("\"outcome\": \"complete\"");
    assert!(
        complete || (done.code == Some(6) && bed.kept("summary.txt").contains("(h2, h3)")),
        "{job}\n{done}"
    );
    bed.has_nothing_left();
}
