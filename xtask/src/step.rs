//! Running commands one after another, visibly and timed, and the table that sums them up.

use std::{
    fmt,
    io::{BufRead, BufReader, Read},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    failure::{Failure, Result},
    tally::{Skipped, Tally},
};

/// After a command has ended, what it wrote to standard error has arrived within this time.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// One line of the summary.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) what: String,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
    pub(crate) tally: Tally,
}

impl Step {
    /// A step that was not run, and why.
    pub(crate) fn skipped(what: impl Into<String>, why: impl Into<String>) -> Self {
        let (what, why) = (what.into(), why.into());
        println!("\n-- {what}: skipped, {why}");
        Self { what, outcome: Outcome::Skipped(why), took: Duration::ZERO, tally: Tally::default() }
    }

    /// Times work that runs in this process.
    pub(crate) fn of(what: impl Into<String>, work: impl FnOnce() -> Result<Outcome>) -> Self {
        let what = what.into();
        println!("\n-- {what}");
        #[expect(clippy::disallowed_methods, reason = "how long a step took is no measurement of ombx")]
        let start = Instant::now();
        let outcome = work().unwrap_or_else(|failure| Outcome::Failed(failure.to_string()));
        if let Outcome::Failed(why) = &outcome {
            println!("-- {what}: failed, {why}");
        }
        Self { what, outcome, took: start.elapsed(), tally: Tally::default() }
    }

    /// Runs a command whose output goes straight to the terminal.
    pub(crate) fn run(what: impl Into<String>, command: &mut Command) -> Self {
        Self::of(what, || {
            println!("   $ {}", shown(command));
            let status = command.status().map_err(|source| cannot_run(command, source))?;
            Ok(ended(status))
        })
    }

    /// Runs a test command: echoes its output, adds up its `test result:` lines, and counts as skipped those that say so.
    pub(crate) fn count(what: impl Into<String>, command: &mut Command) -> Self {
        let (mut tally, mut skipped) = (Tally::default(), Skipped::default());
        let step = Self::of(what, || {
            println!("   $ {}", shown(command));
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().map_err(|source| cannot_run(command, source))?;
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let (send, said) = mpsc::channel();
            thread::spawn(move || {
                for line in stderr.into_iter().flat_map(lines) {
                    eprintln!("{line}");
                    let _ = send.send(line);
                }
            });
            for line in stdout.into_iter().flat_map(lines) {
                println!("{line}");
                tally += Tally::of_line(&line);
            }
            let ended = ended(child.wait().map_err(|source| cannot_run(command, source))?);
            // What has stayed behind may hold standard error open.
            while let Ok(line) = said.recv_timeout(LAST_WORDS) {
                skipped.see(&line);
            }
            Ok(ended)
        });
        // A command that failed without naming a failed test (it did not compile, say) is one failure.
        if step.failed() && tally.failed == 0 {
            tally.failed = 1;
        }
        Self { tally: skipped.out_of(tally), ..step }
    }

    pub(crate) fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    /// An error where what it builds was not built.
    pub(crate) fn built(&self) -> Result<()> {
        if self.failed() {
            return Err(Failure::Missing(format!("{} was not built (see above)", self.what)));
        }
        Ok(())
    }
}

/// Bytes, not lines of text: a program under test may print anything.
fn lines(of: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(of).split(b'\n').map_while(std::result::Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// The summary of several steps, one line each.
pub(crate) struct Summary<'a>(pub(crate) &'a [Step]);

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

/// A command as one would type it, with the environment that was set for it.
pub(crate) fn shown(command: &Command) -> String {
    let environment = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())))
    });
    let program = command.get_program().to_string_lossy();
    let program = if program.ends_with("/cargo") { "cargo".to_owned() } else { quoted(&program) };
    let arguments = command.get_args().map(|argument| quoted(&argument.to_string_lossy()));
    environment.chain([program]).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

fn cannot_run(command: &Command, source: std::io::Error) -> Failure {
    Failure::Run { program: command.get_program().to_string_lossy().into_owned(), source }
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
    fn tests_that_test_nothing_are_skipped_not_passed() {
        let line = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out";
        let said = "test a::b ... a::b: skipped: no root";
        let script = format!(
            "echo '{line}'; echo '{said}' >&2; echo 'a::b: skipped: no disk' >&2; echo 'c: found 1' >&2"
        );
        let step = Step::count("t", &mut shell(&script));
        assert_eq!(step.tally, Tally { passed: 2, failed: 0, skipped: 2 });
    }

    #[test]
    fn a_failure_without_a_failed_test_counts_once() {
        let step = Step::count("t", &mut shell("exit 101"));
        assert!(step.failed());
        assert_eq!(step.tally.failed, 1);
    }

    #[test]
    fn a_program_that_does_not_exist_is_a_failed_step() {
        let step = Step::run("t", &mut Command::new("/nonexistent/program"));
        assert!(step.failed());
    }

    #[test]
    fn the_summary_names_what_failed_and_what_was_skipped() {
        let steps = [
            Step {
                what: "mpich".into(),
                outcome: Outcome::Passed,
                took: Duration::from_secs(2),
                tally: Tally::default(),
            },
            Step::skipped("openmpi", "not installed"),
        ];
        let text = Summary(&steps).to_string();
        assert!(text.contains("mpich    passed       2.0 s"), "{text}");
        assert!(text.contains("openmpi  skipped             not installed"), "{text}");
    }

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = shell("a b");
        command.env("MPICC", "mpicc.mpich").env_remove("CRAY_MPICH_DIR");
        assert_eq!(shown(&command), "MPICC=mpicc.mpich sh -c 'a b'");
    }
}
