//! Measurement of one entry: `ombx run` as a process with a deadline, and the results that it prints.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Command, ExitStatus},
    thread,
    time::Duration,
};

use ombx_estimate::launches::{Cases, Group};
use ombx_host::{signals::Interruption, since::Since};
use ombx_launch::{
    job,
    launch::finite_run::{self, has_ended_by},
    this_process,
};
use ombx_record::{
    error::{Error, Exit, Result},
    file::{self, ResultFile},
    result::{Measurement, Run, RunOutcome},
};

use super::expectations::Entry;

/// Shortest time in which a measurement is started.
const LEAST: Duration = Duration::from_secs(1);
/// Time for ending ranks and writing results after the deadline of a measurement.
const AFTER: Duration = job::AFTER_JOB.saturating_add(Duration::from_secs(5));
/// Interval at which a pause looks for signals.
const POLL: Duration = Duration::from_millis(50);
/// Beginning of a message of ombx.
const OMBX: &str = "ombx: ";

/// Rows of one entry.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Each row over all launches, with the run that it comes from.
    pub(super) rows: Vec<(Run, Measurement)>,
    /// Lines of a result file.
    pub(super) contents: String,
    /// Why the measurement is not complete.
    pub(super) failure: Option<Failure>,
    pub(super) took: Duration,
}

/// Why a measurement has no rows, or too few.
#[derive(Debug)]
pub(super) struct Failure {
    /// Whether ranks could not be started or connected, or died. Otherwise the command could not be run at all.
    pub(super) is_broken: bool,
    pub(super) why: String,
}

/// Time for all measurements.
pub(super) struct Budget {
    since: Since,
    all: Duration,
    pub(super) interruption: Interruption,
}

impl Budget {
    /// Starts the time. From now on signals end the current measurement.
    pub(super) fn start(all: Duration) -> Result<Budget> {
        Ok(Budget { since: Since::now(), all, interruption: Interruption::new()? })
    }

    pub(super) fn spent(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns whether a measurement that takes this long fits after a pause.
    pub(super) fn has(&self, pause: Duration, took: Duration) -> bool {
        self.spent() + pause + took.max(LEAST) <= self.all
    }

    /// Waits, unless a signal arrives.
    pub(super) fn pause(&self, time: Duration) {
        let since = Since::now();
        while since.elapsed() < time && !self.interruption.has_arrived() {
            thread::sleep(POLL.min(time.saturating_sub(since.elapsed())));
        }
    }

    /// Measures an entry within what is left of the budget.
    ///
    /// # Errors
    /// This program cannot be located, or prints something other than results.
    pub(super) fn measure(&self, entry: &Entry) -> Result<Measured> {
        let left = self.all.saturating_sub(self.spent());
        if left < LEAST {
            let why = format!("the budget of {} was spent before", seconds(self.all));
            return Ok(Measured { failure: Some(Failure { is_broken: false, why }), ..Measured::default() });
        }
        let mut command = Command::new(this_process::executable()?);
        command.args(["run", "--quiet", "--color=never", "--format=jsonl"]);
        command.arg(format!("--timeout={}ms", left.as_millis())).args(&entry.options).arg("--");
        command.args(&entry.patterns);
        let since = Since::now();
        let ended = finite_run::run(command, left + AFTER, || self.interruption.has_arrived());
        let took = since.elapsed();
        let failure = match &ended {
            Ok(([contents, _], status)) if has_measured(*status, contents) => None,
            _ if took >= left => {
                let said = match &ended {
                    Ok((texts, _)) => last_message(&texts[1]),
                    Err(error) => error.to_string(),
                };
                Some(Failure {
                    is_broken: true,
                    why: format!("no end within the {} that were left of --budget: {said}", seconds(left)),
                })
            }
            Ok((texts, status)) => {
                let by_signal = status.signal().map(|signal| format!("ombx run ended by signal {signal}"));
                Some(Failure {
                    is_broken: by_signal.is_some() || has_ended_by(*status, &[Exit::Fabric, Exit::WrongData]),
                    why: by_signal.unwrap_or_else(|| last_message(&texts[1])),
                })
            }
            Err(error) => Some(Failure { is_broken: false, why: error.to_string() }),
        };
        let contents = ended.map(|([contents, _], _)| contents).unwrap_or_default();
        let file = file::read(contents.as_bytes());
        let file =
            file.map_err(|e| Error::fabric(format!("ombx run prints something other than results: {e}")))?;
        Ok(Measured { rows: rows(&file), contents, failure, took })
    }
}

/// Returns whether a process of `ombx run` has measured what it could. After a case has ended its ranks, new ranks measure the rest.
fn has_measured(status: ExitStatus, contents: &str) -> bool {
    has_ended_by(status, &[Exit::Success, Exit::Incomplete, Exit::WrongData])
        || has_ended_by(status, &[Exit::Fabric]) && is_complete(contents)
}

/// Returns whether the last run of these lines is complete.
fn is_complete(contents: &str) -> bool {
    let file = file::read(contents.as_bytes()).ok();
    let end = file.and_then(|file| file.runs.last()?.end);
    matches!(end, Some((RunOutcome::Complete, _)))
}

/// Returns each row over all launches of a result file.
fn rows(file: &ResultFile) -> Vec<(Run, Measurement)> {
    let mut cases = Cases::default();
    file.runs.iter().for_each(|run| cases.launch(run));
    let of_group =
        |group: &Group| group.estimates().into_iter().map(|row| (group.described(), row)).collect::<Vec<_>>();
    cases.groups().iter().flat_map(of_group).collect()
}

/// Returns the last message of ombx, or else the last line.
fn last_message(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines().rev().find_map(|line| line.strip_prefix(OMBX));
    message.or(lines().next_back()).unwrap_or("ombx run ended without a message").to_owned()
}

/// Formats a time in seconds.
pub(super) fn seconds(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_failure_is_found() {
        assert_eq!(last_message("  launcher: x\nombx: rank 1 ended early\nbye\n"), "rank 1 ended early");
        assert_eq!(last_message("no route\n\n"), "no route");
        assert_eq!(last_message(""), "ombx run ended without a message");
    }

    #[test]
    fn times_are_shown_in_seconds() {
        assert_eq!(
            ["2.0", "0.26"].map(|s| seconds(Duration::from_secs_f64(s.parse().unwrap()))),
            ["2 s", "0.3 s"]
        );
    }
}
