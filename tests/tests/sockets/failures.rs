//! Tests of killed processes of a session. The others end, one error names the process, and rows are kept.

use std::{fs, os::unix::fs::PermissionsExt};

use ombx_record::result::RunOutcome;
use ombx_tests::{
    Done, Files, Job, Running,
    kept::Kept,
    results,
    sockets::{in_an_endless_row, in_the_middle, workers},
};
use rustix::process::Signal;

/// Makes a job fail while it measures. Checks its exit code and its result file.
fn failed(code: i32, act: impl FnOnce(&Running)) -> Done {
    let kept = Kept::new();
    let job = in_the_middle(&kept, "--fail-fast");
    act(&job);
    let done = job.wait().expect(code);
    done.leaves_nothing();
    let run = kept.run();
    let (outcome, _) = run.end.expect("an end record");
    assert_ne!(outcome, RunOutcome::Complete, "{done}");
    assert!(run.rows.len() >= 2, "{done}");
    done
}

#[test]
fn a_rank_is_killed() {
    for rank in [0, 1] {
        let done = failed(6, |job| workers(job)[rank].signal(Signal::KILL));
        let sentence = done.sentence();
        assert!(sentence.starts_with(&format!("rank {rank} on ")) && sentence.contains("signal 9"), "{done}");
    }
}

#[test]
fn an_idle_rank_is_killed() {
    let job = in_an_endless_row("sockets.latency -n 3");
    workers(&job)[2].signal(Signal::KILL);
    let done = job.wait().expect(6);
    assert!(done.stderr.contains("ombx: rank 2 on "), "{done}");
    done.leaves_nothing();
}

#[test]
fn the_coordinator_is_killed() {
    failed(6, |job| {
        job.processes().iter().filter(|p| p.is_coordinator()).for_each(|p| p.signal(Signal::KILL));
    })
    .complains(&["signal 9", "measured row"]);
}

#[test]
fn a_job_is_interrupted() {
    failed(130, |job| job.signal(Signal::INT));
}

#[test]
fn the_starting_process_is_killed() {
    let kept = Kept::new();
    let job = in_the_middle(&kept, "");
    job.signal(Signal::KILL);
    job.wait().leaves_nothing();
    assert!(results::rows_so_far(&kept.out()) >= 2);
}

#[test]
fn a_job_times_out() {
    let line = "run sockets.latency --sizes 8 --iterations 4294967296 --batch 1000000 --timeout 1s";
    let done = Job::ombx(line).run().expect(6);
    assert!(done.sentence().contains("--timeout"), "{done}");
    done.leaves_nothing();
}

#[test]
fn a_rank_that_does_not_start_is_named() {
    // The program that replaces ssh fails at once, or after the host was reached.
    let files = Files::default();
    let late = files.write("ssh", "#!/bin/sh\ncase \"$*\" in *kernel/hostname*) exit 0;; esac\nexit 1\n");
    fs::set_permissions(&late, fs::Permissions::from_mode(0o755)).expect("a program");
    let ssh = late.display().to_string();
    for (ssh, start) in
        [("false", "cannot reach elsewhere.invalid: "), (ssh.as_str(), "rank 0 on elsewhere.invalid ")]
    {
        let job = Job::ombx("run sockets.latency --hosts elsewhere.invalid,localhost --sizes 8");
        let done = job.env("OMBX_SSH", ssh).run().expect(6);
        assert!(done.sentence().starts_with(start), "{done}");
        done.leaves_nothing();
    }
}
