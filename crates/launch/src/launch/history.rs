//! What has happened in a supervised job: what was printed, which processes it has, which case runs, and why it is ending.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use ombx_estimate::text::plain;
use ombx_host::{limits::KilledForMemory, since::Since};
use ombx_record::{
    error::Error,
    file::RecordOrder,
    result::{Measurement, RowName},
};

use crate::launch::{orphans::RankTable, repetition::named, shared_memory::OfRanks};

/// Number of lines of the launcher's output that are shown if a job fails without a message of ombx.
const LAST_LINES: usize = 12;
/// Number of its first lines, of which one often says what went wrong.
const FIRST_LINES: usize = 6;
/// Number of lines of the launcher's output that are kept, to find the rank that it names as lost.
const KEPT_LINES: usize = 200;
/// Number of characters that are kept of each.
const KEPT_CHARACTERS: usize = 4096;

/// What has happened in a job so far.
#[derive(Default)]
pub(super) struct History {
    pub(super) printed: Printed,
    pub(super) processes: JobProcesses,
    pub(super) position: Position,
    pub(super) end: JobEnd,
    /// All rows of the run have arrived.
    pub(super) complete: bool,
    pub(super) error: Option<Error>,
    /// Order in which the results of these ranks arrive.
    pub(super) order: RecordOrder,
    /// Run of these ranks.
    pub(super) run: String,
    /// Number of rows that earlier ranks of this launch had measured already.
    pub(super) repeated: u64,
}

impl History {
    /// Returns whether a case has made no progress for this long.
    pub(super) fn hangs(&self, silence: Duration) -> bool {
        !self.complete
            && self.position.benchmark.is_some()
            && self.position.progress.as_ref().is_some_and(|since| since.elapsed() > silence)
    }

    /// Notes why the job ends, and what runs now.
    pub(super) fn end(&mut self, reason: EndReason) {
        self.end.reason = Some(reason);
        self.end.quiet = self.position.progress.as_ref().map_or(Duration::ZERO, Since::elapsed);
        self.end.case = self.position.case_name();
        self.processes.shared_memory.look();
    }

    /// Returns benchmark and size of the case that ran when the end of the job was requested, or that runs.
    pub(super) fn last_case(&self) -> Option<String> {
        self.end.case.clone().or_else(|| self.position.case_name())
    }

    /// Returns the rank that has ended, or the job.
    pub(super) fn what_ended(&mut self) -> String {
        let unnoticed = self.end.reason == Some(EndReason::LostRank);
        let ranks = &self.processes.ranks;
        let rank = ranks.lost(self.printed.launcher_lines());
        rank.or_else(|| ranks.ended_here().filter(|_| unnoticed)).unwrap_or_else(|| "the job".into())
    }

    /// Returns a phrase about the rank that has died, if the launcher names one.
    pub(super) fn death(&mut self) -> Option<String> {
        self.processes.ranks.death(self.printed.launcher_lines())
    }
}

/// What the launcher and the ranks have printed on standard error.
#[derive(Default)]
pub(super) struct Printed {
    /// First and last lines of the launcher.
    launcher: VecDeque<String>,
    /// Number of the first of them that are shown already.
    shown: usize,
    /// Number of messages of ombx.
    messages: u32,
    /// The first message of a rank about its failure.
    failure: Option<String>,
    last_message: Option<String>,
}

impl Printed {
    /// Adds a message of ombx.
    pub(super) fn add_message(&mut self, said: &str) {
        self.messages += 1;
        if said.starts_with("rank ") || said.starts_with("process ") {
            self.failure.get_or_insert_with(|| plain(said));
        }
        self.last_message = Some(plain(said));
    }

    /// Adds a line of the launcher.
    pub(super) fn add_line(&mut self, line: &str) {
        self.launcher.push_back(line.chars().take(KEPT_CHARACTERS).collect());
        if self.launcher.len() > KEPT_LINES {
            self.launcher.remove(FIRST_LINES);
            self.shown -= usize::from(self.shown > FIRST_LINES);
        }
    }

    /// Returns whether a further line of the launcher may be shown: one that prints without end is not shown to the
    /// end.
    pub(super) fn has_room(&self) -> bool {
        self.launcher.len() < KEPT_LINES
    }

    /// Notes that all lines of the launcher are shown.
    pub(super) fn note_shown(&mut self) {
        self.shown = self.launcher.len();
    }

    pub(super) fn has_messages(&self) -> bool {
        self.messages > 0
    }

    pub(super) fn has_failure(&self) -> bool {
        self.failure.is_some()
    }

    /// Takes the first message of a rank about its failure.
    pub(super) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Takes the last message of ombx.
    pub(super) fn take_last_message(&mut self) -> Option<String> {
        self.last_message.take()
    }

    pub(super) fn last_line(&self) -> Option<&str> {
        self.launcher.back().map(String::as_str)
    }

    fn launcher_lines(&mut self) -> &[String] {
        self.launcher.make_contiguous()
    }

    /// Returns lines of the launcher that are not shown yet: all if they are few, else the first and the last ones.
    pub(super) fn first_and_last_lines(&mut self) -> Vec<&str> {
        let shown = self.shown;
        let lines = &self.launcher_lines()[shown..];
        let all = lines.iter().map(String::as_str);
        if lines.len() <= FIRST_LINES + LAST_LINES + 1 {
            return all.collect();
        }
        let last = all.clone().skip(lines.len() - LAST_LINES);
        all.take(FIRST_LINES).chain([".."]).chain(last).collect()
    }
}

/// Ranks of a job, and what they have on this host.
#[derive(Default)]
pub(super) struct JobProcesses {
    pub(super) ranks: RankTable,
    /// Hosts that have started a rank.
    pub(super) hosts: BTreeSet<String>,
    /// Processes that the kernel had killed when the ranks began.
    pub(super) killed: KilledForMemory,
    /// Files of the ranks, as far as they are known.
    pub(super) shared_memory: OfRanks,
}

/// Position in a launch: the benchmark and the case that run.
#[derive(Default)]
pub(super) struct Position {
    /// Benchmark that runs, with its number in the order of the launch.
    pub(super) benchmark: Option<(usize, String)>,
    /// Its last case that has started, and the last one whose rows have arrived.
    last: Option<RowName>,
    pub(super) done: Option<RowName>,
    /// Case that runs, or that ran when the end of the job was requested. A stopped rank may continue then and report another case.
    pub(super) case: Option<Box<Measurement>>,
    /// Time since a case began, made progress or ended.
    progress: Option<Since>,
}

impl Position {
    pub(super) fn enter(&mut self, number: usize, bench: String) {
        self.benchmark = Some((number, bench));
        (self.last, self.done) = (None, None);
        self.note_progress();
    }

    pub(super) fn start(&mut self, case: Measurement) {
        self.last = Some(RowName::new(&case.key));
        self.case = Some(Box::new(case));
    }

    /// Ends the case that runs: its rows have arrived.
    pub(super) fn finish_case(&mut self) {
        self.case = None;
        self.done = self.last;
    }

    pub(super) fn note_progress(&mut self) {
        self.progress = Some(Since::now());
    }

    /// Returns benchmark and size of the case.
    fn case_name(&self) -> Option<String> {
        self.case.as_deref().map(named)
    }
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

/// Why a job is ending, and what ran when its end was requested.
#[derive(Default)]
pub(super) struct JobEnd {
    pub(super) reason: Option<EndReason>,
    /// Time without a sign of progress.
    pub(super) quiet: Duration,
    /// Benchmark and size of the case that ran. It may have ended since.
    case: Option<String>,
    /// What the launcher did when it was ended before its ranks had connected.
    pub(super) examined: String,
    /// The coordinator's reason of a failure.
    pub(super) failure: Option<String>,
    /// Whether hosts may only need more time to start their ranks.
    pub(super) starts_slowly: bool,
}
