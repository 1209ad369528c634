//! State of a supervised job: what its processes have reported, why it is ending, and how it ended.

use std::{
    collections::{BTreeSet, VecDeque},
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    time::Duration,
};

use ombx_estimate::text::plain;
use ombx_host::{environment::hostname, limits::KilledForMemory, node_set, since::Since};
use ombx_record::{
    error::{Error, Exit, Result},
    event::Event,
    file,
    result::{Measurement, Outcome, RowName, RunOutcome},
};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    launch::{
        orphans::RankTable,
        preflight::{self, RankHost},
        repetition::{Arrived, Early, named},
        shared_memory::OfRanks,
        timeline::{Phase, Timeline},
    },
    output::{Output, destination::Destination, progress::Progress},
};

/// Number of lines of the launcher's output that are shown if a job fails without a message of ombx.
const LAST_LINES: usize = 12;
/// Number of its first lines, of which one often says what went wrong.
const FIRST_LINES: usize = 6;
/// Number of lines of the launcher's output that are kept, to find the rank that it names as lost.
const KEPT_LINES: usize = 200;
/// Number of characters that are kept of each.
const KEPT_CHARACTERS: usize = 4096;
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

/// Why the launching process ends a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EndReason {
    Signal(i32),
    TimeLimit,
    /// A case makes no progress.
    Hanging,
    /// A rank has ended and its launcher has not noticed.
    LostRank,
    /// Everything is measured, but processes are left.
    Complete,
    /// Results cannot be written, or records were lost.
    Error,
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
    pub(super) history: History,
}

/// What has happened in a job so far.
#[derive(Default)]
pub(super) struct History {
    /// Last lines of the launcher.
    launcher_output: VecDeque<String>,
    /// Number of messages that ranks have printed.
    messages: u32,
    /// The first message of a rank about its failure, and the last message.
    said: Option<String>,
    last_said: Option<String>,
    /// All rows of the run have arrived.
    pub(super) complete: bool,
    pub(super) end_reason: Option<EndReason>,
    pub(super) error: Option<Error>,
    /// The coordinator's reason of a failure.
    failure: Option<String>,
    /// Whether hosts may only need more time to start their ranks.
    starts_slowly: bool,
    /// Time since a case began, made progress or ended.
    progress: Option<Since>,
    /// Time without a sign of progress when the end of the job was requested.
    quiet: Duration,
    /// Case that runs, or that ran when the end of the job was requested. A stopped rank may continue then and report another case.
    case: Option<Box<Measurement>>,
    /// Benchmark and size of the case that ran when the end of the job was requested. It may have ended since.
    ended_in: Option<String>,
    /// Benchmark that runs, with its number in the order of the launch.
    benchmark: Option<(usize, String)>,
    /// Its last case that has started, and the last one whose rows have arrived.
    last: Option<RowName>,
    done: Option<RowName>,
    /// Run of these ranks.
    run: String,
    pub(super) ranks: RankTable,
    /// Hosts that have started a rank.
    started: BTreeSet<String>,
    /// Number of rows that earlier ranks of this launch had measured already.
    repeated: u64,
    /// Processes that the kernel had killed when the ranks began.
    killed: KilledForMemory,
    /// Files of the ranks, as far as they are known.
    pub(super) shared_memory: OfRanks,
}

impl History {
    /// Returns whether a case has made no progress for this long.
    pub(super) fn hangs(&self, silence: Duration) -> bool {
        !self.complete
            && self.benchmark.is_some()
            && self.progress.as_ref().is_some_and(|since| since.elapsed() > silence)
    }
}

impl JobState<'_> {
    /// Asks the launcher to end the job.
    pub(super) fn end(&mut self, reason: EndReason) {
        self.history.end_reason = Some(reason);
        self.history.quiet = self.history.progress.as_ref().map_or(Duration::ZERO, Since::elapsed);
        self.history.ended_in = self.history.case.as_deref().map(named);
        self.history.shared_memory.look();
        let _ = kill_process_group(self.group, Signal::TERM);
    }

    /// Ends a job that has lost a rank, which its launcher has not noticed.
    pub(super) fn end_without_rank(&mut self, at_start: bool) {
        if at_start {
            self.history.failure = Some("a rank on this host ended before all had started".into());
        }
        self.end(EndReason::LostRank);
    }

    /// Ends a job of which some hosts have not started a rank within a limit.
    pub(super) fn end_without_ranks(&mut self, hosts: &[RankHost], limit: Duration) {
        let missing = hosts.iter().filter(|host| !self.history.started.contains(&host.name));
        let (here, elsewhere): (Vec<&RankHost>, Vec<&RankHost>) =
            missing.partition(|host| host.name == hostname());
        // Open MPI starts no rank anywhere before it has reached all hosts.
        let missing = if elsewhere.is_empty() { here } else { elsewhere };
        let missing: Vec<&str> = missing.iter().map(|host| host.typed.as_str()).collect();
        if missing.is_empty() || !self.history.ranks.0.is_empty() {
            return;
        }
        let words = self.history.launcher_output.back().map(|line| format!(": {line}")).unwrap_or_default();
        let what = format!("no rank on {} after {} s{words}", node_set::fold(missing), limit.as_secs());
        self.history.failure = Some(what);
        self.history.starts_slowly = true;
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
            Event::Benchmark { number, bench } if self.history.end_reason.is_none() => {
                self.history.benchmark = Some((number, bench.into_owned()));
                self.arrived.enter(number);
                (self.history.last, self.history.done) = (None, None);
                self.history.progress = Some(Since::now());
            }
            Event::Starting(row) => {
                self.progress.starting(&row.bench, row.bytes.unwrap_or(0));
                self.history.progress = Some(Since::now());
                if self.history.end_reason.is_none() {
                    self.history.last = Some(RowName::new(&row.key));
                    self.history.case = Some(Box::new(row.into_owned()));
                }
            }
            Event::Alive => self.history.progress = Some(Since::now()),
            Event::Status { line, .. } => self.progress.status(&line),
            Event::Failed { why } => self.history.failure = Some(why.into_owned()),
            Event::Ranks { ranks } => {
                self.history.ranks = RankTable(ranks);
                self.history.shared_memory.add_job(self.group.as_raw_nonzero().get().unsigned_abs());
                self.history.killed = KilledForMemory::among(self.history.ranks.here());
            }
            Event::Started { host } => self.host_started(host.into_owned()),
            event => self.read_result(&event),
        }
    }

    fn host_started(&mut self, host: String) {
        self.timeline.rank_started();
        self.history.started.insert(host);
    }

    /// Takes an event that the output gets.
    fn read_result(&mut self, event: &Event<'_>) {
        match event {
            Event::Run(run) => {
                self.timeline.enter(Phase::Rows);
                self.history.run.clone_from(&run.id);
            }
            Event::End { .. } => self.timeline.enter(Phase::End),
            _ => {}
        }
        if let Event::End { outcome: RunOutcome::Complete, tally: sent } = event {
            let arrived = self.output.tally().cases + self.history.repeated;
            self.history.complete = sent.cases == arrived;
            if !self.history.complete {
                let lost = format!("{} rows were measured, but only {arrived} arrived", sent.cases);
                self.history.error.get_or_insert(Error::fabric(lost));
            }
        }
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
            Event::Row(row) => self.history.benchmark.is_some() && !self.arrived.add(&row.key),
            _ => false,
        };
        let JobState { progress, output, .. } = self;
        if is_repeated {
            self.history.repeated += 1;
        } else if let Err(error) = progress.suspend(|| output.event(event)) {
            self.history.error.get_or_insert(error);
        }
        if let Event::Row(row) = event {
            self.history.progress = Some(Since::now());
            self.progress.row(self.output.cases().so_far(&row.key).as_ref().unwrap_or(row));
            self.progress.follow(|widest| self.output.map(widest));
            // A row that was complete before its ranks were ended is not measured again.
            if self.history.end_reason.is_none() || row.outcome == Outcome::Ok {
                self.history.case = None;
                self.history.done = self.history.last;
            }
        }
    }

    /// Takes a line of standard error. Messages of ombx are printed at once, those of the launcher only if the job fails.
    pub(super) fn read_stderr(&mut self, line: &str) {
        let line = line.trim_end();
        if let Ok(Some(Event::Started { host })) = file::parse(line, 1) {
            self.host_started(host.into_owned());
            return;
        }
        let message = line.find(OMBX).filter(|at| *at < LONGEST_PREFIX);
        self.history.messages += u32::from(message.is_some());
        let said = message.map(|at| &line[at + OMBX.len()..]);
        if let Some(said) = said.filter(|said| said.starts_with("rank ") || said.starts_with("process ")) {
            self.history.said.get_or_insert_with(|| plain(said));
        }
        self.history.last_said = said.map(plain).or_else(|| self.history.last_said.take());
        if message.is_some() || self.args.verbose {
            // Libraries and remote shells print colours, and could move the cursor.
            self.progress.suspend(|| stderr_line!("{}", plain(&line[message.unwrap_or(0)..])));
        } else if !line.is_empty() {
            let kept = &mut self.history.launcher_output;
            kept.push_back(line.chars().take(KEPT_CHARACTERS).collect());
            if kept.len() > KEPT_LINES {
                kept.remove(FIRST_LINES);
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
        if self.history.complete && matches!(self.history.end_reason, None | Some(EndReason::Complete)) {
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
        let interrupted = matches!(self.history.end_reason, Some(EndReason::Signal(_)));
        let outcome = if interrupted { RunOutcome::Interrupted } else { RunOutcome::Broken };
        self.progress.done();
        self.output.event(&Event::End { outcome, tally })?;
        let kept = self.output.kept();
        let case = self.history.ended_in.take().or_else(|| self.history.case.as_deref().map(named));
        let case = case.map_or(String::new(), |case| format!(" in {case}"));
        match self.history.end_reason {
            Some(EndReason::Signal(signal)) => {
                self.progress.suspend(|| stderr_line!("{OMBX}interrupted; {kept}"));
                return Ok(RanksEnd::Stopped(Exit::SIGNAL.saturating_add(u8::try_from(signal).unwrap_or(0))));
            }
            Some(EndReason::TimeLimit) => {
                let quiet = self.history.quiet;
                let advice = unreachable().unwrap_or_else(|| {
                    if row_limit.is_some_and(|limit| quiet > limit) {
                        format!(
                            "nothing was measured in the last {} s: a rank or a link hangs",
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
        if let Some(why) = self.history.failure {
            let slow = || self.history.starts_slowly.then(|| "a longer --timeout waits longer".to_owned());
            let advice = unreachable().or_else(slow).map_or(String::new(), |advice| format!("; {advice}"));
            let memory = self.history.killed.since();
            return Err(Error::fabric(format!("{why}{case}; {kept}{memory}{advice}")));
        }
        let code = status.and_then(|status| status.code());
        if let Some(code @ 2..=7) = code.filter(|_| child == Child::Ombx && self.history.messages > 0) {
            // The process has printed what went wrong.
            return Ok(RanksEnd::Stopped(code as u8));
        }
        self.print_launcher_output();
        let end = match self.death() {
            Some(death) => format!("{death}{case}"),
            None => format!("{} ended early{case}, {}", self.what_ended(), ended(child, status)),
        };
        let has_started = child == Child::Ombx || !self.history.ranks.0.is_empty();
        let why = if has_started { preflight::suspected_later() } else { preflight::suspected_at_start() };
        let memory = self.history.killed.since();
        let silent = unreachable().map_or(String::new(), |words| format!("; {words}"));
        Err(Error::fabric(format!("{end}; {kept}{why}{memory}{silent}")))
    }

    /// Prints the first and the last lines of the launcher if no rank has said anything.
    fn print_launcher_output(&mut self) {
        if self.history.messages == 0 {
            let lines = first_and_last(self.history.launcher_output.make_contiguous());
            self.progress.suspend(|| lines.iter().for_each(|line| stderr_line!("  {}", plain(line))));
        }
    }

    /// Says how ranks have failed after their last row, and returns the exit code for it.
    fn late_end(&mut self, child: Child, status: Option<ExitStatus>) -> u8 {
        let is_killed = self.history.end_reason.is_some();
        let sentence = if is_killed {
            "ranks did not end after their last row and were killed".into()
        } else if self.history.said.is_some() {
            "a rank failed at its end".into()
        } else if status.is_some_and(|status| !status.success()) {
            format!("{} failed at its end, {}", self.what_ended(), ended(child, status))
        } else {
            return 0;
        };
        self.progress.suspend(|| stderr_line!("{OMBX}{sentence}; all rows had arrived"));
        if is_killed { 0 } else { Exit::Fabric.code() }
    }

    /// Returns the rank that has ended, or the job.
    fn what_ended(&mut self) -> String {
        let unnoticed = self.history.end_reason == Some(EndReason::LostRank);
        let rank = self.history.ranks.lost(self.history.launcher_output.make_contiguous());
        let rank = rank.or_else(|| self.history.ranks.ended_here().filter(|_| unnoticed));
        rank.unwrap_or_else(|| "the job".into())
    }

    fn death(&mut self) -> Option<String> {
        self.history.ranks.death(self.history.launcher_output.make_contiguous())
    }

    /// Returns how a benchmark has ended its ranks, if it has: no signal of the user and no time limit did, nobody killed the launcher,
    /// and the ranks have begun a benchmark.
    fn early(&mut self, child: Child, status: Option<ExitStatus>) -> Option<Early> {
        let (number, bench) = self.history.benchmark.clone()?;
        let is_killed =
            self.history.end_reason.is_none() && status.is_some_and(|status| status.signal().is_some());
        // The process has found another error than that of a connection or a rank.
        let is_other = child == Child::Ombx
            && matches!(
                status.and_then(|status| Exit::from_code(status.code()?)),
                Some(Exit::Usage | Exit::Incomplete | Exit::WrongData | Exit::Storage)
            );
        let is_ended = matches!(self.history.end_reason, Some(EndReason::Signal(_) | EndReason::TimeLimit));
        if is_killed || is_other || is_ended {
            return None;
        }
        let last = self.history.last_said.take().filter(|_| child == Child::Ombx);
        let said = self.history.said.take().or(last);
        let is_said = said.is_some();
        let quiet = self.history.quiet.as_secs();
        let hangs = self.history.end_reason == Some(EndReason::Hanging);
        let hanging = hangs.then(|| format!("no progress for {quiet} s"));
        let why = hanging.or_else(|| self.history.failure.take()).or(said);
        let why = why.or_else(|| self.death()).unwrap_or_else(|| {
            self.print_launcher_output();
            format!("{} ended early, {}", self.what_ended(), ended(child, status))
        });
        let tally = self.output.tally();
        let memory = self.history.killed.since();
        Some(Early {
            is_said: is_said && memory.is_empty(),
            why: format!("{why}{memory}"),
            case: self.history.case.take(),
            number,
            done: self.history.done,
            bench,
            run: std::mem::take(&mut self.history.run),
            measured: tally.cases - tally.skipped - tally.failed - tally.corrupt,
        })
    }
}

/// Returns the lines of a launcher that are printed: all if they are few, else the first and the last ones.
fn first_and_last(lines: &[String]) -> Vec<&str> {
    let all = lines.iter().map(String::as_str);
    if lines.len() <= FIRST_LINES + LAST_LINES + 1 {
        return all.collect();
    }
    let last = all.clone().skip(lines.len() - LAST_LINES);
    all.take(FIRST_LINES).chain([".."]).chain(last).collect()
}

fn ended(child: Child, status: Option<ExitStatus>) -> String {
    let what = if child == Child::Launcher { "its launcher" } else { "its first process" };
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("{what} with exit code {code}"),
        Some((None, Some(signal))) => format!("{what} by signal {signal}"),
        _ => "in an unknown way".into(),
    }
}
