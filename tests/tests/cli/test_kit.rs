//! Tests of the test kit: it reports and kills processes that hang or outlive their job, and masks figures.

use std::{panic::catch_unwind, thread, time::Duration};

use ombx_tests::{Job, osu::masked};

/// Limits of a job in seconds, tried in turn. On a busy machine its processes may need longer to start than the first ones.
const LIMITS: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// Returns the command of a process that sleeps for longer than any test, and that no other program runs.
fn sleep(number: u32) -> String {
    format!("sleep {number}{:07}", std::process::id())
}

fn shell(script: &str, limit: u64) -> Job {
    Job::new("sh").args(["-c", script]).limit(Duration::from_secs(limit))
}

fn panics(body: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let why = catch_unwind(body).expect_err("it should have failed");
    why.downcast_ref::<String>().expect("a sentence").clone()
}

#[test]
fn a_hanging_job_is_killed_and_reported() {
    let sleep = sleep(1);
    let script = format!("echo before; {sleep} & wait");
    let is_reported = |limit: u64| {
        let why = panics(|| drop(shell(&script, limit).run()));
        assert!(why.contains("not ended after its deadline"), "{why}");
        why.contains("before") && why.contains(&sleep)
    };
    assert!(LIMITS.into_iter().any(is_reported), "the output or the processes are missing");
    ends(&sleep);
}

#[test]
fn a_process_that_outlives_its_job_is_killed_and_reported() {
    let sleep = sleep(2);
    let script = format!("setsid {sleep} >/dev/null 2>&1 &");
    let is_reported = |limit: u64| {
        let why = panics(|| shell(&script, limit).run().expect(0).leaves_nothing());
        why.contains("still running") && why.contains(&sleep)
    };
    assert!(LIMITS.into_iter().any(is_reported), "the process is missing");
    ends(&sleep);
}

#[test]
fn the_last_job_of_a_limit_has_no_exit_code() {
    let sleep = sleep(3);
    let done = shell(&sleep, 1).run_to_limit();
    assert!(done.code.is_none() && done.signal.is_none(), "{done}");
    ends(&sleep);
    assert_eq!(shell("exit 3", 30).run_to_limit().code, Some(3));
}

/// A number that is longer than its column makes the column wider, and is as long only by chance.
#[test]
fn figures_are_masked_by_their_width() {
    assert_eq!(masked("8                    123.45"), "8<26>\n");
    let of = |number: &str| masked(&format!("8           5.00  {number}"));
    assert_eq!(of("1234567.89"), "8<15><12>\n");
    assert_eq!(of("12345678901.00"), of("1234567.89"));
    assert_eq!(masked("# Size  12.50 (ombx 0.1.0)"), "# Size  12.50\n");
}

/// Waits until no process runs a command.
fn ends(command: &str) {
    let command = command.replace(' ', "\0") + "\0";
    let is_running = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter_map(|p| std::fs::read(p.path().join("cmdline")).ok())
            .any(|argv| argv == command.as_bytes())
    };
    // A process that was killed may be there for another moment.
    let has_ended = (0..6000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        !is_running()
    });
    assert!(has_ended, "{command:?} is still running");
}
