//! State of a supervised job: what its processes report, and how it ended.

use std::{os::unix::process::ExitStatusExt, path::PathBuf, process::ExitStatus, time::Duration};

use ombx_estimate::text::plain;
use ombx_host::{environment::hostname, limits::KilledForMemory, node_set};
use ombx_record::{
    error::{Error, Exit, Result},
    event::Event,
    file,
    result::{Outcome, RunOutcome},
};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    launch::{
        history::{EndReason, History},
        orphans::{self, RankTable},
        preflight::{self, RankHost},
        repetition::{Arrived, Early},
        start::Launcher,
        timeline::{Phase, Timeline},
    },
    output::{Output, destination::Destination, progress::Progress},
};

/// Start of the messages of ombx. Launchers may put up to this many bytes before it.
const OMBX: &str = "ombx: ";
const LONGEST_PREFIX: usize = 40;

/// The process that is supervised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Child {
    /// A launcher, whose exit code is not reliable.
    Launcher,
    /// This binary in another role, whose exit code is that of the job.
    Ombx,
}

/// How ranks ended, with the exit code.
pub(super) enum RanksEnd {
    /// All their rows have arrived.
    Complete(u8),
    /// A signal or a failure, which is already reported, ended them early.
    Stopped(u8),
    /// A benchmark ended them early. Others may run.
    Early(Early),
}

/// What has been seen of a job.
pub(super) struct JobState<'a> {
    pub(super) output: &'a mut Output,
    pub(super) progress: &'a Progress,
    pub(super) timeline: &'a Timeline,
    pub(super) args: &'a Destination,
    /// Rows of this launch.
    pub(super) arrived: &'a mut Arrived,
    /// Process group of the launcher.
    pub(super) group: Pid,
    /// Program that starts the ranks.
    pub(super) launcher: PathBuf,
    pub(super) history: History,
}

impl JobState<'_> {
    /// Returns whether the end of the job was requested.
    pub(super) fn is_ending(&self) -> bool {
        self.history.end.reason.is_some()
    }

    /// Returns whether the ranks have not connected yet.
    pub(super) fn is_starting(&self) -> bool {
        self.history.processes.ranks.0.is_empty() && self.history.run.is_empty()
    }

    /// Says what a launcher does that has not connected its ranks. Ends it if none of its processes is left. One that
    /// the user describes may wait in a queue.
    pub(super) fn examine_start(&mut self, elapsed: Duration, launcher: &Launcher) {
        if !self.is_starting() {
            return;
        }
        let what = format!(
            "the ranks have not connected after {} s: {}",
            elapsed.as_secs(),
            plain(&orphans::examined(self.group))
        );
        if orphans::waits_for_ended(self.group) && !matches!(launcher, Launcher::Command(_)) {
            self.history.end.failure = Some(what);
            self.end(EndReason::LostRank);
        } else {
            self.progress.suspend(|| stderr_line!("{OMBX}{what}"));
        }
    }

    /// Asks the launcher to end the job.
    pub(super) fn end(&mut self, reason: EndReason) {
        if self.is_starting() {
            self.history.end.examined = orphans::examined(self.group);
        }
        self.history.end(reason);
        let _ = kill_process_group(self.group, Signal::TERM);
    }

    /// Ends a job that has lost a rank, which its launcher has not noticed.
    pub(super) fn end_without_rank(&mut self, at_start: bool) {
        if at_start {
            self.history.end.failure = Some("a rank on this host ended before all had started".into());
        }
        self.end(EndReason::LostRank);
    }

    /// Ends a job of which some hosts have not started a rank within a limit.
    pub(super) fn end_without_ranks(&mut self, hosts: &[RankHost], limit: Duration) {
        let missing = hosts.iter().filter(|host| !self.history.processes.hosts.contains(&host.name));
        let (here, elsewhere): (Vec<&RankHost>, Vec<&RankHost>) =
            missing.partition(|host| host.name == hostname());
        // Open MPI starts no rank anywhere before it has reached all hosts.
        let missing = if elsewhere.is_empty() { here } else { elsewhere };
        let missing: Vec<&str> = missing.iter().map(|host| host.typed.as_str()).collect();
        if missing.is_empty() || !self.history.processes.ranks.0.is_empty() {
            return;
        }
        let words = self.history.printed.last_line().map(|line| format!(": {line}")).unwrap_or_default();
        let what = format!("no rank on {} after {} s{words}", node_set::fold(missing), limit.as_secs());
        self.history.end.failure = Some(what);
        self.history.end.starts_slowly = true;
        self.end(EndReason::LostRank);
    }

    /// Kills the launcher and all processes of its group.
    pub(super) fn kill(&self) {
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    /// Takes a line of standard output: an event, or text that a library printed.
    pub(super) fn read_stdout(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        match file::parse(text.trim_end(), 1) {
            Ok(Some(event)) => self.read_event(event),
            Ok(None) => {}
            Err(_) => self.read_stderr(&text),
        }
    }

    fn read_event(&mut self, event: Event<'static>) {
        match event {
            Event::Benchmark { number, bench } if !self.is_ending() => {
                self.history.position.enter(number, bench.into_owned());
                self.arrived.enter(number);
            }
            Event::Starting(row) => {
                self.progress.starting(&row.bench, row.bytes.unwrap_or(0));
                self.history.position.note_progress();
                if !self.is_ending() {
                    self.history.position.start(row.into_owned());
                }
            }
            Event::Alive => self.history.position.note_progress(),
            Event::Status { line, .. } => self.progress.status(&line),
            Event::Failed { why } => self.history.end.failure = Some(why.into_owned()),
            Event::Ranks { ranks } => {
                let processes = &mut self.history.processes;
                processes.ranks = RankTable(ranks);
                processes.shared_memory.add_job(self.group.as_raw_nonzero().get().unsigned_abs());
                processes.killed = KilledForMemory::among(processes.ranks.here());
            }
            Event::Started { host } => self.host_started(host.into_owned()),
            event => self.read_result(&event),
        }
    }

    fn host_started(&mut self, host: String) {
        self.timeline.rank_started();
        self.history.processes.hosts.insert(host);
    }

    /// Takes an event that the output gets.
    fn read_result(&mut self, event: &Event<'_>) {
        if let Err(why) = self.check_order(event) {
            let why = format!(
                "a line of the ranks arrived in the wrong place: {why}; the launcher may repeat, move or lose lines"
            );
            self.history.error.get_or_insert(Error::fabric(why));
            return;
        }
        match event {
            Event::Run(run) => {
                self.timeline.enter(Phase::Rows);
                self.history.run.clone_from(&run.id);
            }
            Event::End { .. } => self.timeline.enter(Phase::End),
            _ => {}
        }
        self.history.complete |= matches!(event, Event::End { outcome: RunOutcome::Complete, .. });
        // Repeated rows are not in the file, and the number of rows at its end does not count them.
        let own_end;
        let event = match event {
            Event::End { outcome: RunOutcome::Complete, .. } if self.history.repeated > 0 => {
                own_end = Event::End { outcome: RunOutcome::Complete, tally: self.output.tally() };
                &own_end
            }
            event => event,
        };
        let is_repeated = match event {
            Event::Row(row) => self.history.position.benchmark.is_some() && !self.arrived.add(&row.key),
            _ => false,
        };
        let JobState { progress, output, .. } = self;
        if is_repeated {
            self.history.repeated += 1;
        } else if let Err(error) = progress.suspend(|| output.event(event)) {
            self.history.error.get_or_insert(error);
        }
        if let Event::Row(row) = event {
            self.history.position.note_progress();
            self.progress.row(self.output.cases().so_far(&row.key).as_ref().unwrap_or(row));
            self.progress.follow(|widest| self.output.map(widest));
            // A row that was complete before its ranks were ended is not measured again.
            if !self.is_ending() || row.outcome == Outcome::Ok {
                self.history.position.finish_case();
            }
        }
    }

    /// Returns what is wrong with the place of a result among the lines of these ranks.
    fn check_order(&mut self, event: &Event<'_>) -> std::result::Result<(), String> {
        match event {
            Event::Run(run) if run.id == self.history.run => Err("the run begins twice".into()),
            event if event.is_kept() => self.history.order.check(event),
            _ => Ok(()),
        }
    }

    /// Takes a line of standard error. Messages of ombx are printed at once, others until the ranks have connected.
    /// Later ones are printed if the job fails.
    pub(super) fn read_stderr(&mut self, line: &str) {
        let line = line.trim_end();
        if let Ok(Some(Event::Started { host })) = file::parse(line, 1) {
            self.host_started(host.into_owned());
            return;
        }
        let message = line.find(OMBX).filter(|at| *at < LONGEST_PREFIX);
        if let Some(at) = message {
            self.history.printed.add_message(&line[at + OMBX.len()..]);
        }
        let is_of_start = message.is_none() && self.is_starting() && self.history.printed.has_room();
        if message.is_some() || self.args.verbose {
            // Libraries and remote shells print colours, and could move the cursor.
            self.progress.suspend(|| stderr_line!("{}", plain(&line[message.unwrap_or(0)..])));
        } else if !line.is_empty() {
            self.history.printed.add_line(line);
            if is_of_start {
                self.history.printed.note_shown();
                self.progress.suspend(|| stderr_line!("  {}", plain(line)));
            }
        }
    }

    /// Returns how the launch ended, or the reason why the job is incomplete.
    pub(super) fn conclude(
        mut self,
        child: Child,
        status: Option<ExitStatus>,
        limit: Duration,
        row_limit: Option<Duration>,
        unreachable: &dyn Fn() -> Option<String>,
    ) -> Result<RanksEnd> {
        let is_good = self.history.complete && self.history.error.is_none();
        if is_good && matches!(self.history.end.reason, None | Some(EndReason::Complete)) {
            let code = self.output.exit_code(self.args.allow_skips);
            return Ok(RanksEnd::Complete(code.max(self.late_end(child, status))));
        }
        if let Some(error) = self.history.error.take() {
            return Err(error);
        }
        if let Some(early) = self.early(child, status) {
            return Ok(RanksEnd::Early(early));
        }
        let tally = self.output.tally();
        let interrupted = matches!(self.history.end.reason, Some(EndReason::Signal(_)));
        let outcome = if interrupted { RunOutcome::Interrupted } else { RunOutcome::Broken };
        self.progress.done();
        self.output.event(&Event::End { outcome, tally })?;
        let kept = self.output.kept();
        let case = self.history.last_case().map_or(String::new(), |case| format!(" in {case}"));
        match self.history.end.reason {
            Some(EndReason::Signal(signal)) => {
                self.progress.suspend(|| stderr_line!("{OMBX}interrupted; {kept}"));
                return Ok(RanksEnd::Stopped(Exit::SIGNAL.saturating_add(u8::try_from(signal).unwrap_or(0))));
            }
            Some(EndReason::TimeLimit) => {
                let quiet = self.history.end.quiet;
                let advice = unreachable().unwrap_or_else(|| {
                    if self.is_starting() && child == Child::Launcher {
                        format!("the ranks had not connected: {}", plain(&self.history.end.examined))
                    } else if row_limit.is_some_and(|limit| quiet > limit) {
                        format!(
                            "the ranks reported no progress in the last {} s: they may hang, or need a \
                             longer --timeout",
                            quiet.as_secs()
                        )
                    } else {
                        "give a longer --timeout".into()
                    }
                });
                return Err(Error::fabric(format!(
                    "the job did not end within {} s and was ended{case}; {kept}; {advice}",
                    limit.as_secs()
                )));
            }
            _ => {}
        }
        if let Some(why) = self.history.end.failure.take() {
            let slow =
                || self.history.end.starts_slowly.then(|| "a longer --timeout waits longer".to_owned());
            let advice = unreachable().or_else(slow).map_or(String::new(), |advice| format!("; {advice}"));
            let memory = self.history.processes.killed.since();
            return Err(Error::fabric(format!("{why}{case}; {kept}{memory}{advice}")));
        }
        let code = status.and_then(|status| status.code());
        if let Some(code @ 2..=7) =
            code.filter(|_| child == Child::Ombx && self.history.printed.has_messages())
        {
            // The process has printed what went wrong.
            return Ok(RanksEnd::Stopped(code as u8));
        }
        self.print_launcher_output();
        let end = match self.history.death() {
            Some(death) => format!("{death}{case}"),
            None => format!("{} ended early{case}, {}", self.history.what_ended(), ended(child, status)),
        };
        let has_started = child == Child::Ombx || !self.history.processes.ranks.0.is_empty();
        let why =
            if has_started { preflight::seen_later() } else { preflight::seen_at_start(&self.launcher) };
        let memory = self.history.processes.killed.since();
        let silent = unreachable().map_or(String::new(), |words| format!("; {words}"));
        Err(Error::fabric(format!("{end}; {kept}{why}{memory}{silent}")))
    }

    /// Prints the first and the last lines of the launcher if no rank has said anything.
    fn print_launcher_output(&mut self) {
        if !self.history.printed.has_messages() {
            let lines = self.history.printed.first_and_last_lines();
            self.progress.suspend(|| lines.iter().for_each(|line| stderr_line!("  {}", plain(line))));
        }
    }

    /// Says how ranks have failed after their last row, and returns the exit code for it.
    fn late_end(&mut self, child: Child, status: Option<ExitStatus>) -> u8 {
        let is_killed = self.is_ending();
        let sentence = if is_killed {
            "ranks did not end after their last row and were killed".into()
        } else if self.history.printed.has_failure() {
            "a rank failed at its end".into()
        } else if status.is_some_and(|status| !status.success()) {
            format!("{} failed at its end, {}", self.history.what_ended(), ended(child, status))
        } else {
            return 0;
        };
        self.progress.suspend(|| stderr_line!("{OMBX}{sentence}; all rows had arrived"));
        if is_killed { 0 } else { Exit::Fabric.code() }
    }

    /// Returns how a benchmark has ended its ranks, if it has: no signal of the user and no time limit did, nobody killed the launcher,
    /// and the ranks have begun a benchmark.
    fn early(&mut self, child: Child, status: Option<ExitStatus>) -> Option<Early> {
        let (number, bench) = self.history.position.benchmark.clone()?;
        let is_killed = !self.is_ending() && status.is_some_and(|status| status.signal().is_some());
        // The process has found another error than that of a connection or a rank.
        let is_other = child == Child::Ombx
            && matches!(
                status.and_then(|status| Exit::from_code(status.code()?)),
                Some(Exit::Usage | Exit::Incomplete | Exit::WrongData | Exit::Storage)
            );
        let is_ended = matches!(self.history.end.reason, Some(EndReason::Signal(_) | EndReason::TimeLimit));
        if is_killed || is_other || is_ended {
            return None;
        }
        let last = self.history.printed.take_last_message().filter(|_| child == Child::Ombx);
        let said = self.history.printed.take_failure().or(last);
        let is_said = said.is_some();
        let quiet = self.history.end.quiet.as_secs();
        let hangs = self.history.end.reason == Some(EndReason::Hanging);
        let hanging = hangs.then(|| format!("no progress for {quiet} s"));
        let why = hanging.or_else(|| self.history.end.failure.take()).or(said);
        let why = why.or_else(|| self.history.death()).unwrap_or_else(|| {
            self.print_launcher_output();
            format!("{} ended early, {}", self.history.what_ended(), ended(child, status))
        });
        let tally = self.output.tally();
        let memory = self.history.processes.killed.since();
        Some(Early {
            is_said: is_said && memory.is_empty(),
            why: format!("{why}{memory}"),
            case: self.history.position.case.take(),
            number,
            done: self.history.position.done,
            bench,
            run: std::mem::take(&mut self.history.run),
            measured: tally.cases - tally.skipped - tally.failed - tally.corrupt,
        })
    }
}

fn ended(child: Child, status: Option<ExitStatus>) -> String {
    let what = if child == Child::Launcher { "its launcher" } else { "its first process" };
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("{what} with exit code {code}"),
        Some((None, Some(signal))) => format!("{what} by signal {signal}"),
        _ => "in an unknown way".into(),
    }
}
