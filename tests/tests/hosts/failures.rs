//! Tests of hosts and links that fail during a run. The run ends in time, names the host, leaves no process and can be resumed.

use std::time::Duration;

use ombx_tests::{Running, results};
use rustix::process::Signal;

use crate::testbed::Bed;

/// Options of a run that lasts long enough to be disturbed: the job of all hosts has 12 rows, of 1.5 s each on two cores.
const LONG: &str = "--timeout 45s --pairs h1-h2,h2-h3,h1-h3 --fail-on nothing -- --sizes 8,16 --max-time \
                    1s --precision 0.0001% --retest 0";

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
    assert!(summary.contains("failed: pairs-h2-h3 (h[2-3])"), "{summary}\n{done}");
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
fn a_killed_rank_ends_its_job() {
    fails_and_resumes(&["pkill"], |bed| drop(bed.xtask("exec", "h3 -- pkill -9 -o -x ombx")), |_| {});
}

#[test]
fn a_stopped_rank_ends_its_job() {
    fails_and_resumes(&["pkill"], |bed| drop(bed.xtask("exec", "h3 -- pkill -STOP -o -x ombx")), |_| {});
}

/// sshd is the first process of a host of a test bed, so killing it ends the host.
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
fn a_host_that_is_down_before_the_start_is_an_error() {
    let Some(bed) = Bed::up("--hosts 3") else { return };
    bed.kill_host("h2");
    let done = bed.cluster_bench(LONG).run().expect(6);
    assert!(done.stderr.contains("host h2: cannot be reached by ssh"), "{done}");
    assert!(!bed.kept("preflight.json").is_empty() && bed.kept("summary.txt").is_empty());
}

/// A killed call leaves processes on the hosts. The next call ends them before it repeats the job.
#[test]
fn a_killed_call_can_be_resumed() {
    let Some(bed) = Bed::up("--hosts 2") else { return };
    // The first record is that of one size. The job goes on with the other.
    let options =
        "--timeout 60s --fail-on nothing -- --sizes 8,16 --max-time 3s --precision 0.0001% --retest 0";
    let mut running = bed.cluster_bench(options).limit(Duration::from_secs(240)).start();
    until_measured(&mut running, &bed, "pairs-h1-h2");
    let own = running.processes().into_iter().filter(|process| process.is_called(&["ombx-cluster-bench"]));
    own.for_each(|process| process.signal(Signal::KILL));
    assert_eq!(running.wait().code, None);
    bed.cluster_bench(&format!("--resume {options}")).limit(Duration::from_secs(240)).run().expect(0);
    assert!(bed.kept("summary.txt").starts_with("2 of 2 jobs complete"), "{}", bed.kept("summary.txt"));
    assert!(!bed.kept("jobs/pairs-h1-h2/results.1.jsonl").is_empty(), "rows of the first call are kept");
    bed.has_nothing_left();
}

/// Ranks of Hydra do not need the daemon once they run, so their job completes. Open MPI ends the job.
#[test]
fn a_killed_launcher_daemon_does_not_hang_the_job() {
    let Some(bed) = Bed::with(&["pkill"], "--hosts 3") else { return };
    let mut running = bed.cluster_bench(LONG).limit(Duration::from_secs(240)).start();
    until_measured(&mut running, &bed, "pairs-h2-h3");
    drop(bed.xtask("exec", "h3 -- pkill -9 hydra_pmi_proxy|orted"));
    let done = running.wait();
    let job = bed.kept("jobs/pairs-h2-h3/job.json");
    let complete = job.contains("\"outcome\": \"complete\"");
    assert!(
        complete || (done.code == Some(6) && bed.kept("summary.txt").contains("(h[2-3])")),
        "{job}\n{done}"
    );
    bed.has_nothing_left();
}
