//! Tests of `ombx check`: limits that hold and that cannot hold, good days, a busy host, mistakes, and ranks that do not start.

use std::{cell::Cell, fs, path::PathBuf};

use ombx_tests::{Done, Files, Job, mpi};
use serde_json::Value;

/// No time is shorter, and none is longer.
const IMPOSSIBLE: &str = "latency = '<1ns'";
const WIDE: &str = "latency = '<60000ms'";
/// Exit codes of a check that cannot decide: for people and programs, and for Nagios.
const UNDECIDED: i32 = 8;
const NAGIOS_WARNING: i32 = 1;

/// Returns a file with one entry over sockets, and keys of the whole file.
fn file(files: &Files, keys: &str, limits: &str) -> PathBuf {
    let text = format!(
        "budget = '60s'\npause = '1ms'\n{keys}\n[defaults]\nlaunches = 2\nmax-time = '5ms'\n\n[[entry]]\n\
         run = 'sockets.latency'\nsizes = 8\n{limits}\n"
    );
    files.write("node.toml", text)
}

fn check(path: &PathBuf, options: &str) -> Job {
    Job::new(mpi::ombx()).arg("check").arg(path).args(options.split_whitespace())
}

fn json(path: &PathBuf, code: i32) -> Value {
    let done = check(path, "--format json").run().expect(code);
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}\n{done}"))
}

/// Repeats a check until it decides. Launches in two states of the machine leave a row without an interval, and other programs disturb
/// it; neither misses a limit. `undecided` is the exit code of such a check. Says that the test is skipped where this does not end.
fn decided(undecided: i32, job: impl Fn() -> Job) -> Option<Done> {
    let mut tries = (0..5).map(|_| job().run());
    let done = tries.find(|done| done.code != Some(undecided));
    if done.is_none() {
        ombx_tests::skipped("other programs disturb the machine, or it has two states");
    }
    done
}

fn one_line(done: &Done, start: &str) {
    assert!(done.stdout.starts_with(start) && done.stdout.lines().count() == 1, "{done}");
}

#[test]
fn a_limit_that_holds() {
    let files = Files::default();
    let path = file(&files, "busy = 'never'", WIDE);
    let done = check(&path, "").run().expect(0);
    done.leaves_nothing();
    assert!(done.stdout.contains("OK: 1 limit is met") && done.stdout.contains("sockets.latency"), "{done}");
    let (rows, days) = (files.path("rows.jsonl"), files.path("days"));
    let done = check(&path, "--format nagios -o").arg(&rows).arg("--store").arg(&days).run().expect(0);
    one_line(&done, "OMBX CHECK OK - 1 limit is met | limits=1;");
    assert!(done.stdout.contains("us;;60000000;0"), "{done}");
    Job::ombx("show").arg(&rows).run().expect(0);
    let stored: Vec<_> = fs::read_dir(&days).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(fs::read(&stored[0]).unwrap(), fs::read(&rows).unwrap());
}

#[test]
fn a_limit_that_cannot_hold_is_measured_twice() {
    let files = Files::default();
    let path = file(&files, "busy = 'never'", IMPOSSIBLE);
    let Some(done) = decided(UNDECIDED, || check(&path, "--format json")) else { return };
    let result: Value = serde_json::from_str(&done.expect(9).stdout).unwrap();
    let finding = &result["findings"][0];
    assert_eq!((&finding["result"], &finding["measured"]), (&"missed".into(), &2.into()), "{result}");
    let rows = files.path("rows.jsonl");
    let nagios = || check(&path, "--format nagios --force -o").arg(&rows);
    let Some(done) = decided(NAGIOS_WARNING, nagios) else { return };
    let done = done.expect(2);
    done.leaves_nothing();
    one_line(&done, "OMBX CHECK CRITICAL - sockets.latency");
    assert!(done.stdout.contains("limit <1ns: missed (measured twice)"), "{done}");
    let runs = fs::read_to_string(&rows).unwrap().matches("\"kind\":\"run\"").count();
    assert_eq!(runs, 4, "two launches of each measurement");
}

#[test]
fn good_days_are_learnt_and_compared() {
    let files = Files::default();
    let keys = "busy = 'never'\nbaseline = 'good'";
    let path = file(&files, keys, "within = '100%'");
    let place = format!("{}:4: the baseline ", path.display());
    let done = check(&path, "").run().expect(2);
    assert!(done.stderr.contains(&place) && done.stderr.contains("--learn"), "{done}");
    let done = check(&path, "--format nagios").run().expect(3);
    one_line(&done, "OMBX CHECK UNKNOWN - ");
    for _ in 0..3 {
        let done = check(&path, "--learn").run().expect(0);
        assert!(done.stdout.contains("learnt in "), "{done}");
    }
    assert_eq!(fs::read_dir(files.path("good")).unwrap().count(), 3);
    // The machine may have changed within a second: one day cannot prove that it is slow, and says nothing about another state.
    let done = check(&path, "").run();
    let parts = match done.code {
        Some(10) => vec!["no good day was measured in this state of the machine"],
        _ => vec!["% of ", "(1 good day)", "the baseline is thin"],
    };
    assert!(matches!(done.code, Some(0 | 8 | 10)), "{done}");
    for part in parts {
        assert!(done.stdout.contains(part), "{part}: {done}");
    }
    // A day that misses a limit is no good day, and a row that no day has is not judged.
    let bad = file(&files, keys, IMPOSSIBLE);
    let days = || fs::read_dir(files.path("good")).unwrap().count();
    let before = Cell::new(0);
    let learn = || {
        before.set(days());
        check(&bad, "--learn")
    };
    let Some(done) = decided(UNDECIDED, learn) else { return };
    let done = done.expect(9);
    assert!(done.stdout.contains("not learnt"), "{done}");
    assert_eq!(days(), before.get());
    let other = file(&files, keys, "within = '20%'\ntransport = 'unix'");
    assert_eq!(json(&other, 10)["findings"][0]["result"], "no verdict");
}

#[test]
fn a_busy_host_is_left_alone() {
    let files = Files::default();
    let path = file(&files, "busy = '0%'", IMPOSSIBLE);
    let store = files.path("days");
    let done = check(&path, "--store").arg(&store).run().expect(11);
    assert!(done.stdout.starts_with("SKIPPED: ") && done.stdout.lines().count() == 1, "{done}");
    assert_eq!(fs::read_dir(&store).unwrap().count(), 0, "nothing was measured");
    one_line(&check(&path, "--format nagios").run().expect(3), "OMBX CHECK UNKNOWN - ");
}

#[test]
fn mistakes_have_a_line_and_start_nothing() {
    let recorder = crate::StartRecorder::new();
    let entry = "[[entry]]\nrun = 'p2p.latency'\nsizes = 8\n";
    for (text, line, part) in [
        (format!("{entry}latncy = '<5us'"), 4, "latency?"),
        (format!("{entry}latency = '5us'"), 4, "\"<5us\""),
        (format!("{entry}latency = '<5us'\nsizes = 9"), 5, "duplicate"),
        (format!("{entry}latency = '<5us'\nwithin = '20%'"), 5, "needs a baseline"),
        (format!("nice = 99\n{entry}latency = '<5us'"), 1, "0 to 19"),
        (format!("{entry}latency = '<5us'\npattern = 'all'"), 5, "--pattern"),
        (entry.to_owned(), 2, "needs a limit"),
    ] {
        let path = recorder.files.write("node.toml", &text);
        let done = recorder.refuses(&["check", path.to_str().unwrap()]);
        let place = format!("{}:{line}: ", path.display());
        assert!(done.stderr.contains(&place) && done.stderr.contains(part), "{text}\n{done}");
    }
    let nothing = check(&recorder.files.path("absent.toml"), "--format nagios").run().expect(3);
    one_line(&nothing, "OMBX CHECK UNKNOWN - cannot read");
}

#[test]
fn a_launcher_that_hangs_or_fails_ends_the_check() {
    let files = Files::default();
    let entry = format!("[[entry]]\nrun = 'p2p.latency'\nsizes = 8\n{WIDE}\n");
    let real = mpi::mpiexec();
    for (script, budget, part) in [("sleep 67", 2, "of --budget"), ("exit 3", 60, "exit code 3")] {
        let path = files.write("node.toml", format!("busy = 'never'\nbudget = '{budget}s'\n{entry}"));
        let text =
            format!("#!/bin/sh\n[ \"$1\" = --version ] && exec '{}' --version\n{script}\n", real.display());
        let launcher = files.write("mpiexec", text);
        fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let done = check(&path, "--format nagios").env("OMBX_MPIEXEC", &launcher).run().expect(2);
        done.leaves_nothing();
        one_line(&done, "OMBX CHECK CRITICAL - p2p.latency: ");
        assert!(done.stdout.contains(part), "{done}");
    }
}

#[test]
fn the_example_works_on_any_machine() {
    let files = Files::default();
    let example = include_str!("../../../suites/node-check.toml");
    // Ranks of a machine that other programs use too may wait for longer than the limit of the example.
    let text = example.replace("busy = \"10%\"", "busy = \"never\"").replace("<10ms", "<60000ms");
    let path = files.write("node.toml", text);
    let done = Job::new(mpi::ombx()).arg("check").arg(&path).env("OMBX_MPIEXEC", mpi::mpiexec()).run();
    done.leaves_nothing();
    // A row that was disturbed all the time has no interval; no row may be beyond its limit or fail.
    let is_undecided = done.code == Some(8) && done.stdout.contains("undecided: disturbed");
    assert!(is_undecided || done.code == Some(0) && done.stdout.contains("OK: 2 limits are met"), "{done}");
}
