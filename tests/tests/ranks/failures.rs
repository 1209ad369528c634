//! Tests of ranks and launchers that are killed, stopped, interrupted or too slow. The job ends, gives the reason and keeps its rows.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use ombx_results::file::RunOutcome;
use ombx_tests::{Done, Job, Running, mpi, results};
use rustix::process::Signal;

use crate::Kept;

/// Time within which a failed job ends.
const SOON: Duration = Duration::from_secs(10);

/// Options for many rows of about 50 ms, so that a test can act while the job measures.
const MANY_ROWS: &str = "rma.put_bw p2p.bw p2p.latency --sync all --sizes 1..64K --precision 0.0001% --max-time 50ms --format csv";

/// Options for one row that would take hours.
const ENDLESS: &str = "p2p.latency --sizes 8 --iterations 4294967296 --batch 1000000";

fn in_the_middle(kept: &Kept) -> Running {
    let mut job = kept.job(MANY_ROWS).start();
    let out = kept.out();
    job.until("two rows are in the file", |_| results::rows_so_far(&out) >= 2);
    job
}

/// Checks that the job ended soon, left no process, and kept its rows in the file.
fn assert_kept(kept: &Kept, harm: &str, done: &Done, took: Duration, outcome: RunOutcome) {
    assert!(took < SOON, "{harm}: it took {took:.1?}\n{done}");
    done.leaves_nothing();
    let run = kept.run();
    assert!(run.rows.len() >= 2, "{harm}: rows are lost\n{done}");
    let (ended, tally) = run.end.unwrap_or_else(|| panic!("{harm}: no end record\n{done}"));
    assert_eq!((ended, tally.cases as usize), (outcome, run.rows.len()), "{harm}\n{done}");
    let shown = Job::ombx("show --format csv").arg(kept.out()).run().expect(0);
    assert_eq!(shown.stdout.lines().count(), 1 + run.rows.len(), "{harm}: {shown}");
}

fn harmed(harm: &str, act: impl FnOnce(&Running)) {
    let kept = Kept::new();
    let job = in_the_middle(&kept);
    let since = ombx_core::system::clock::Since::now();
    act(&job);
    let done = job.wait().expect(6);
    let took = since.elapsed();
    done.complains(&["ombx: ", "measured rows are in"]);
    assert_kept(&kept, harm, &done, took, RunOutcome::Broken);
}

#[test]
fn the_first_rank_is_killed() {
    harmed("kill -9 of rank 0", |job| kill_rank(job, 0));
}

#[test]
fn another_rank_is_killed() {
    harmed("kill -9 of rank 1", |job| kill_rank(job, 1));
}

fn kill_rank(job: &Running, rank: u32) {
    let ranks = job.ranks();
    assert_eq!(ranks.len(), 2, "ranks that were found");
    ranks.iter().find(|p| p.rank() == Some(rank)).expect("the rank is there").signal(Signal::KILL);
}

#[test]
fn the_launcher_is_killed() {
    harmed("kill -9 of mpiexec", |job| {
        let processes = job.processes();
        let launcher = processes.iter().find(|p| p.is_called(&["mpiexec", "mpirun", "orterun", "prterun"]));
        launcher.expect("a launcher is there").signal(Signal::KILL);
    });
}

#[test]
fn a_signal_interrupts_the_run() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let kept = Kept::new();
        let job = in_the_middle(&kept);
        let since = ombx_core::system::clock::Since::now();
        job.signal(signal);
        let done = job.wait().expect(code);
        let took = since.elapsed();
        done.complains(&["ombx: interrupted", "measured rows are in"]);
        assert_kept(&kept, &format!("{signal:?}"), &done, took, RunOutcome::Interrupted);
    }
}

/// A killed ombx cannot end its ranks. They must notice that it is gone.
#[test]
fn ombx_itself_is_killed() {
    let kept = Kept::new();
    let job = in_the_middle(&kept);
    job.signal(Signal::KILL);
    let done = job.wait();
    assert_eq!(done.signal, Some(9), "{done}");
    done.leaves_nothing();
    Job::ombx("show").arg(kept.out()).run().expect(0);
}

#[test]
fn a_job_ends_at_its_time_limit() {
    let kept = Kept::new();
    let done = kept.job(ENDLESS).args(["--timeout", "1s"]).run().expect(6);
    assert!(done.elapsed < SOON, "{done}");
    done.complains(&["ombx: ", "1 s", "--timeout"]);
    done.leaves_nothing();
    assert_eq!(kept.run().end.unwrap().0, RunOutcome::Broken);
}

/// Returns a job with a launcher that reports its version and then runs a script.
fn launched_by(kept: &Kept, script: &str, options: &str) -> Job {
    let path = kept.files.path("mpiexec");
    let real = mpi::mpiexec();
    let text =
        format!("#!/bin/sh\n[ \"$1\" = --version ] && exec '{}' --version\n{script}\n", real.display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    kept.job(options).env("OMBX_MPIEXEC", path)
}

/// A launcher that prints without end defeats neither the time limit nor signals, and does not fill the memory.
#[test]
fn a_noisy_launcher_ends_at_once() {
    for noise in ["exec yes", "exec yes >&2", "yes & exec yes >&2", "exec tr '\\0' x </dev/zero"] {
        let kept = Kept::new();
        let done = launched_by(&kept, noise, "p2p.latency --sizes 8 --timeout 2s").run().expect(6);
        assert!(done.elapsed < SOON, "{noise}: {done}");
        done.complains(&["ombx: ", "2 s", "--timeout"]);
        done.leaves_nothing();
    }
    let kept = Kept::new();
    let mut job = launched_by(&kept, "yes & exec yes >&2", "p2p.latency --sizes 8").start();
    job.until("the noise has begun", |job| {
        job.processes().iter().filter(|p| p.is_called(&["yes"])).count() == 2
    });
    std::thread::sleep(Duration::from_secs(2));
    let status = fs::read_to_string(format!("/proc/{}/status", job.pid().as_raw_nonzero())).unwrap();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    assert!(kib.is_some_and(|kib: u64| kib < 200 << 10), "{kib:?} KiB");
    let since = ombx_core::system::clock::Since::now();
    job.signal(Signal::TERM);
    let done = job.wait().expect(143);
    assert!(since.elapsed() < SOON, "{done}");
    done.leaves_nothing();
}

#[test]
fn a_launcher_that_does_not_tell_its_version_is_named() {
    let kept = Kept::new();
    let path = kept.files.write("mpiexec", "#!/bin/sh\nsleep 60\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let job = kept.job("p2p.latency --sizes 8 --timeout 1s").env("OMBX_MPIEXEC", &path);
    let done = job.run().expect(6);
    assert!(done.elapsed < SOON, "{done}");
    done.complains(&["--version did not answer within 1 s", "OMBX_MPIEXEC"]);
    done.leaves_nothing();
}

#[test]
fn ranks_of_an_explicit_mpiexec_end_at_the_time_limit() {
    let done = Job::mpiexec(2, &format!("run {ENDLESS} --timeout 1s")).run();
    assert_ne!(done.code, Some(0), "{done}");
    assert!(done.elapsed < SOON, "{done}");
    done.complains(&["ombx: ", "no progress for 1 s in p2p.latency, 8 bytes"]);
    done.leaves_nothing();
}

/// A stopped rank gives no sign, so only the time limit ends it and its waiting peers.
#[test]
fn a_stopped_rank_is_ended_with_the_others() {
    for rank in [0, 1] {
        let kept = Kept::new();
        let done = stopped(kept.job(ENDLESS), rank).expect(6);
        done.complains(&["ombx: "]);
    }
}

#[test]
fn a_stopped_rank_of_an_explicit_mpiexec_is_ended_with_the_others() {
    for rank in [0, 1] {
        let done = stopped(Job::mpiexec(2, &format!("run {ENDLESS}")), rank);
        assert_ne!(done.code, Some(0), "{done}");
    }
}

fn stopped(job: Job, rank: u32) -> Done {
    let mut job = job.args(["--timeout", "3s"]).start();
    job.until("both ranks are there", |job| job.ranks().len() == 2);
    job.ranks().iter().find(|p| p.rank() == Some(rank)).expect("the rank is there").signal(Signal::STOP);
    let done = job.wait();
    assert!(done.elapsed < Duration::from_secs(3) + SOON, "rank {rank}: {done}");
    done.leaves_nothing();
    done
}
