//! Steps: commands that run one after another, visibly and timed, and their summary.

use std::{
    fmt,
    io::{BufRead, BufReader, Read},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    command::{cannot_run, shown},
    failure::{Failure, Result},
    tally::{Skipped, Tally},
};

/// Time within which the standard error of an ended command arrives.
const LAST_ERRORS: Duration = Duration::from_secs(5);
/// Reason of a test command that ran no test.
pub const NO_TEST: &str = "no test was selected";

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Passed,
    /// The step failed. The text is the reason.
    Failed(String),
    /// It was not run, with the reason.
    Skipped(String),
}

/// Step of a task: a line of the summary.
#[derive(Clone, Debug)]
pub struct Step {
    /// Name in the summary.
    pub what: String,
    /// Outcome of the step.
    pub outcome: Outcome,
    /// Wall time of the step.
    pub took: Duration,
    /// Numbers of tests that the step ran.
    pub tally: Tally,
    /// Names of the tests that failed.
    pub failed_tests: Vec<String>,
}

impl Step {
    /// Prints and returns a step that is not run.
    pub fn skipped(what: impl Into<String>, why: impl Into<String>) -> Self {
        let (what, why) = (what.into(), why.into());
        println!("\n-- {what}: skipped, {why}");
        Self::new(what, Outcome::Skipped(why), Duration::ZERO)
    }

    fn new(what: String, outcome: Outcome, took: Duration) -> Self {
        Self { what, outcome, took, tally: Tally::default(), failed_tests: Vec::new() }
    }

    /// Runs and times work of this process.
    pub fn timed(what: impl Into<String>, work: impl FnOnce() -> Result<Outcome>) -> Self {
        let what = what.into();
        println!("\n-- {what}");
        #[expect(clippy::disallowed_methods, reason = "how long a step took is no measurement of ombx")]
        let start = Instant::now();
        let outcome = work().unwrap_or_else(|failure| Outcome::Failed(failure.to_string()));
        if let Outcome::Failed(why) = &outcome {
            println!("-- {what}: failed, {why}");
        }
        Self::new(what, outcome, start.elapsed())
    }

    /// Runs a command whose output goes to the terminal.
    pub fn run(what: impl Into<String>, command: &mut Command) -> Self {
        Self::timed(what, || {
            println!("   $ {}", shown(command));
            let status = command.status().map_err(|source| cannot_run(command, source))?;
            Ok(ended(status))
        })
    }

    /// Runs a test command: echoes its output, adds up its `test result:` lines, and counts tests that report a skip. A command that
    /// runs no test fails: its filter selects nothing.
    pub fn count(what: impl Into<String>, command: &mut Command) -> Self {
        let (mut tally, mut skipped) = (Tally::default(), Skipped::default());
        let mut failed_tests = Vec::new();
        let mut step = Self::timed(what, || {
            println!("   $ {}", shown(command));
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().map_err(|source| cannot_run(command, source))?;
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let (send, errors) = mpsc::channel();
            thread::spawn(move || {
                for line in stderr.into_iter().flat_map(lines) {
                    eprintln!("{line}");
                    let _ = send.send(line);
                }
            });
            for line in stdout.into_iter().flat_map(lines) {
                println!("{line}");
                tally += Tally::of_line(&line);
                failed_tests.extend(failed_test(&line));
            }
            let ended = ended(child.wait().map_err(|source| cannot_run(command, source))?);
            // A process that it left behind may hold standard error open.
            while let Ok(line) = errors.recv_timeout(LAST_ERRORS) {
                skipped.read(&line);
            }
            Ok(ended)
        });
        if !step.failed() && tally == Tally::default() {
            println!("-- {}: failed, {NO_TEST}", step.what);
            step.outcome = Outcome::Failed(NO_TEST.into());
        }
        // A command that failed without a failed test, for example a compiler error, counts as one failure.
        if step.failed() && tally.failed == 0 {
            tally.failed = 1;
        }
        let tally = skipped.moved_in(tally);
        if !step.failed() && tally.passed == 0 {
            step.outcome = Outcome::Skipped("every test was skipped".into());
        }
        Self { tally, failed_tests, ..step }
    }

    /// Returns whether the step failed.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    /// Returns an error if this build step failed.
    pub fn built(&self) -> Result<()> {
        if self.failed() {
            return Err(Failure::Missing(format!("{} was not built (see above)", self.what)));
        }
        Ok(())
    }
}

/// Returns the name of the test that a line of a test harness calls failed.
fn failed_test(line: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix("FAILED")?;
    // The harness prints `test NAME ... FAILED`, after `- should panic` in some cases.
    Some(name.split_whitespace().next()?.to_owned())
}

/// Returns the lines of a stream; bytes that are not UTF-8 are replaced.
fn lines(of: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(of).split(b'\n').map_while(std::result::Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// Summary of several steps, one line each.
pub struct Summary<'a>(pub &'a [Step]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|step| step.what.len()).max().unwrap_or(0);
        for step in self.0 {
            write!(f, "{:width$}  ", step.what)?;
            match &step.outcome {
                Outcome::Passed => write!(f, "passed   {:7.1} s", step.took.as_secs_f64())?,
                Outcome::Failed(why) => write!(f, "FAILED   {:7.1} s  {why}", step.took.as_secs_f64())?,
                Outcome::Skipped(why) => write!(f, "skipped             {why}")?,
            }
            if step.tally != Tally::default() {
                write!(f, "  ({})", step.tally)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn ended(status: ExitStatus) -> Outcome {
    if status.success() { Outcome::Passed } else { Outcome::Failed(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn test_results_are_added_up() {
        let line = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out";
        let step = Step::count("t", &mut shell(&format!("echo '{line}'; echo '{line}'")));
        assert_eq!(step.outcome, Outcome::Passed);
        assert_eq!(step.tally, Tally { passed: 6, failed: 0, skipped: 2 });
    }

    #[test]
    fn tests_that_cannot_run_count_as_skipped() {
        let line = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out";
        let said = "test a::b ... a::b: skipped: no root";
        let script = format!(
            "echo '{line}'; echo '{said}' >&2; echo 'a::b: skipped: no disk' >&2; echo 'c: found 1' >&2"
        );
        let step = Step::count("t", &mut shell(&script));
        assert_eq!(step.tally, Tally { passed: 2, failed: 0, skipped: 2 });
    }

    #[test]
    fn a_command_whose_tests_are_all_skipped_did_not_pass() {
        let line = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let step = Step::count("t", &mut shell(&format!("echo '{line}'; echo 'a::b: skipped: no root' >&2")));
        assert_eq!(step.outcome, Outcome::Skipped("every test was skipped".into()));
    }

    #[test]
    fn a_failure_without_a_failed_test_counts_once() {
        let step = Step::count("t", &mut shell("exit 101"));
        assert!(step.failed());
        assert_eq!(step.tally.failed, 1);
    }

    #[test]
    fn a_command_that_selects_no_test_fails() {
        let line = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out";
        let step = Step::count("t", &mut shell(&format!("echo '{line}'")));
        assert_eq!(step.outcome, Outcome::Failed(NO_TEST.into()));
        assert_eq!(step.tally.failed, 1);
    }

    #[test]
    fn failed_tests_are_named() {
        let script = "echo 'test a::b ... ok'; echo 'test a::c ... FAILED'; echo 'test result: FAILED. 1 \
                      passed; 1 failed'";
        let step = Step::count("t", &mut shell(script));
        assert_eq!(step.failed_tests, ["a::c"]);
        assert_eq!(step.tally, Tally { passed: 1, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_program_that_does_not_exist_is_a_failed_step() {
        let directory = tempfile::tempdir().unwrap();
        let step = Step::run("t", &mut Command::new(directory.path().join("program")));
        assert!(step.failed());
    }

    #[test]
    fn the_summary_lists_failed_and_skipped_steps() {
        let steps = [
            Step::new("mpich".into(), Outcome::Passed, Duration::from_secs(2)),
            Step::skipped("openmpi", "not installed"),
        ];
        let text = Summary(&steps).to_string();
        assert!(text.contains("mpich    passed       2.0 s"), "{text}");
        assert!(text.contains("openmpi  skipped             not installed"), "{text}");
    }
}
