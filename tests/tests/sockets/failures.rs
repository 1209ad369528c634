//! Tests of killed processes of a session. The others end soon, one error names the process, and rows are kept.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use ombx_core::system::clock::Since;
use ombx_tests::{Done, Files, Running, results};
use rustix::process::Signal;

use crate::{Kept, in_the_middle, ombx, workers};

/// A failed job ends within this time.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Makes a job fail while it measures. Checks its exit code, the time until it ends, and its result file.
fn failed(fault: &str, code: i32, act: impl FnOnce(&Running)) -> Done {
    let kept = Kept::new();
    let job = in_the_middle(&kept);
    let since = Since::now();
    act(&job);
    let done = job.wait().expect(code);
    assert!(since.elapsed() < END_LIMIT, "{fault}: it took {:.1?}\n{done}", since.elapsed());
    done.leaves_nothing();
    let (file, rows) = (results::lines_of(&kept.out()), kept.rows());
    assert!(rows.len() >= 2 && file.last().unwrap()["kind"] == "end", "{fault}: {done}");
    done
}

#[test]
fn a_rank_is_killed() {
    for rank in [0, 1] {
        let done = failed("kill -9 of a rank", 6, |job| workers(job)[rank].signal(Signal::KILL));
        let sentence = done.sentence();
        assert!(sentence.starts_with(&format!("rank {rank} on ")) && sentence.contains("signal 9"), "{done}");
    }
}

#[test]
fn an_idle_rank_is_killed() {
    let kept = Kept::new();
    let mut job =
        kept.job("run sockets.latency -n 3 --sizes 8 --iterations 4294967296 --batch 1000000").start();
    job.until("three ranks run", |job| workers(job).len() == 3);
    std::thread::sleep(Duration::from_millis(500));
    workers(&job)[2].signal(Signal::KILL);
    let done = job.wait().expect(6);
    assert!(done.sentence().starts_with("rank 2 on ") && done.elapsed < END_LIMIT, "{done}");
    done.leaves_nothing();
}

#[test]
fn the_coordinator_is_killed() {
    failed("kill -9 of the coordinator", 6, |job| {
        job.processes().iter().filter(|p| p.is_coordinator()).for_each(|p| p.signal(Signal::KILL));
    })
    .complains(&["signal 9", "measured rows are in"]);
}

#[test]
fn a_job_is_interrupted() {
    failed("Ctrl-C", 130, |job| job.signal(Signal::INT));
}

#[test]
fn the_starting_process_is_killed() {
    let kept = Kept::new();
    let job = in_the_middle(&kept);
    job.signal(Signal::KILL);
    job.wait().leaves_nothing();
    assert!(kept.rows().len() >= 2);
}

#[test]
fn a_job_times_out() {
    let job = "run sockets.latency --sizes 8 --iterations 4294967296 --batch 1000000 --timeout 2s";
    let done = ombx(job).run().expect(6);
    assert!(done.sentence().contains("--timeout") && done.elapsed < END_LIMIT, "{done}");
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
        let job =
            ombx("run sockets.latency --hosts elsewhere.invalid,localhost --sizes 8").env("OMBX_SSH", ssh);
        let done = job.run().expect(6);
        assert!(done.sentence().starts_with(start), "{done}");
        done.leaves_nothing();
    }
}
