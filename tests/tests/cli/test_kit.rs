//! Tests of the test kit: it reports and kills processes that hang or outlive their job.

use std::{panic::catch_unwind, time::Duration};

use ombx_tests::Job;

fn panics(body: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let why = catch_unwind(body).expect_err("it should have failed");
    why.downcast_ref::<String>().expect("a sentence").clone()
}

#[test]
fn a_hanging_job_is_killed_and_reported() {
    let why = panics(|| {
        let script = "echo before; sleep 97 & wait";
        Job::of("sh").args(["-c", script]).limit(Duration::from_secs(3)).run();
    });
    assert!(why.contains("not ended after its deadline") && why.contains("before"), "{why}");
    assert!(why.contains("sleep 97"), "the processes are named: {why}");
    assert!(!running("sleep 97"));
}

#[test]
fn a_process_that_outlives_its_job_is_killed_and_reported() {
    let why = panics(|| {
        let script = "setsid sleep 98 >/dev/null 2>&1 &";
        Job::of("sh").args(["-c", script]).run().expect(0).leaves_nothing();
    });
    assert!(why.contains("still running") && why.contains("sleep 98"), "{why}");
    assert!(!running("sleep 98"));
}

fn running(command: &str) -> bool {
    let command = command.replace(' ', "\0") + "\0";
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|p| std::fs::read(p.path().join("cmdline")).ok())
        .any(|argv| argv == command.as_bytes())
}
