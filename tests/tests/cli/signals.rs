//! Tests of signals: those that are ignored, and what becomes of processes whose parent is killed.

use std::{fs, os::unix::fs::PermissionsExt};

use ombx_tests::{Files, Job, Running, mpi};
use rustix::process::Signal;

/// A row that takes longer than any test.
const ENDLESS: &str = "--sizes 8 --iterations 4294967296 --batch 1000000";

/// Starts a command that measures, and waits until its ranks run.
fn measuring(job: Job) -> Running {
    let mut job = job.env("OMBX_MPIEXEC", mpi::mpiexec()).start();
    job.until("ranks run", |job| job.processes().iter().any(|process| process.is_rank_of(mpi::ombx())));
    job
}

fn over_mpi() -> String {
    format!("run p2p.latency {ENDLESS}")
}

#[test]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    for command in [&over_mpi(), &format!("ab --allow-equal p2p.latency {ENDLESS}"), "model"] {
        let script = format!("trap '' HUP INT QUIT; exec '{}' {command}", mpi::ombx().display());
        let job = measuring(Job::new("sh").args(["-c", &script]));
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
            job.signal(signal);
        }
        job.wait().expect(143).leaves_nothing();
    }
}

#[test]
fn the_exit_code_is_that_of_the_signal() {
    for (signal, code) in [(Signal::HUP, 129), (Signal::QUIT, 131)] {
        for command in [over_mpi(), format!("ab --allow-equal p2p.latency {ENDLESS}"), "model".into()] {
            let job = measuring(Job::ombx(&command));
            job.signal(signal);
            job.wait().expect(code).leaves_nothing();
        }
    }
}

/// UCX catches SIGHUP before `main`.
#[test]
fn a_server_ends_by_a_hang_up() {
    let files = Files::default();
    let token = files.path("token");
    let mut job = Job::ombx("sockets serve --port 0 --token-file").arg(&token).start();
    job.until("the server listens", |_| token.exists());
    job.signal(Signal::HUP);
    let done = job.wait();
    assert_eq!(done.signal, Some(1), "{done}");
}

#[test]
fn children_end_with_the_process_that_starts_them() {
    let files = Files::default();
    let entries = format!("[[entry]]\nrun = [\"p2p.latency\"]\nsizes = \"8\"\niterations = {}\n", u32::MAX);
    let check = files.write("check.toml", format!("busy = \"never\"\n{entries}latency = \"<9ms\"\n"));
    let suite = |command: &str| format!("{command} {}", check.display());
    for command in [
        over_mpi(),
        format!("ab --allow-equal p2p.latency {ENDLESS}"),
        "model".into(),
        suite("check --budget 60s"),
    ] {
        for signal in [Signal::KILL, Signal::ABORT] {
            let job = measuring(Job::ombx(&command));
            job.signal(signal);
            job.wait().leaves_nothing();
        }
    }
}

/// A script that starts the launcher of MPI is the parent of the processes to end.
#[test]
fn the_family_of_a_launcher_ends_with_the_process_that_starts_it() {
    let files = Files::default();
    let script = format!("#!/bin/sh\n'{}' \"$@\"\nexit $?\n", mpi::mpiexec().display());
    let launcher = files.write("mpiexec", script);
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
    let mut job = Job::ombx(&over_mpi()).env("OMBX_MPIEXEC", &launcher).start();
    job.until("ranks run", |job| !job.ranks().is_empty());
    job.signal(Signal::KILL);
    job.wait().leaves_nothing();
}
