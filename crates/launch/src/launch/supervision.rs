//! Supervision of a launcher: its records, its messages, its end, the user's signals and the time limit.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender},
    time::Duration,
};

use ombx_host::{signals, since::Since};
use ombx_record::error::{Error, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::iterator::Signals;

use crate::{
    launch::{
        finite_run::{cannot_start, spawn_thread},
        guard::Guard,
        history::{EndReason, History},
        job_state::{Child, JobState, RanksEnd},
        orphans::{self, StartingRanks},
        preflight::RankHost,
        repetition::Arrived,
        shared_memory::{self, OfOthers},
        start::Launcher,
        timeline::Timeline,
    },
    output::{Output, destination::Destination, progress::Progress},
};

/// Time for a launcher to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// The same time before the ranks have reported themselves: nothing is measured yet.
const START_GRACE: Duration = Duration::from_secs(3);
/// Time for reading what is left in the pipes after the launcher has ended. An orphan may hold them open forever.
const DRAIN: Duration = Duration::from_secs(2);
/// Time for ranks and launcher to end after the last record. MPICH over TCP can hang in MPI_Finalize.
const FINISH: Duration = Duration::from_secs(8);
/// Interval at which the ranks on this host are checked while nothing happens. A launcher that has lost its helper may wait forever.
const POLL: Duration = Duration::from_secs(5);
/// The same interval before the ranks have reported themselves. Nothing is measured then.
const START_POLL: Duration = Duration::from_secs(1);
/// A rank is reported as lost after this many polls without it: a launcher may still be about to report it.
const POLLS_WITHOUT_RANK: u32 = 2;
/// Lines that wait to be read. A launcher that prints faster waits.
const QUEUE: usize = 8;
/// Maximum length of a record in bytes, which has all samples of a row. Longer lines are split.
const LONGEST_RECORD: u64 = 1 << 28;
/// Maximum length of any other line.
const LONGEST_MESSAGE: u64 = 1 << 16;

enum Notice {
    Stdout(Vec<u8>),
    Stderr(String),
    Closed,
    Exit(std::io::Result<ExitStatus>),
    /// A signal is waiting.
    Signal,
}

/// Polls in a row without a line of the ranks after which their silence counts: a process that was stopped has not read yet what they wrote.
const QUIET_POLLS: u32 = 2;

/// What the supervision of one launcher needs.
pub(super) struct Supervision<'a> {
    pub(super) args: &'a Destination,
    /// Hosts that must start a rank within `start_limit`.
    pub(super) hosts: &'a [RankHost],
    pub(super) start_limit: Duration,
    pub(super) launcher: &'a Launcher,
    /// Number of ranks, if all are on this host.
    pub(super) ranks_here: Option<u32>,
    /// Time limit of the job, for its message.
    pub(super) limit: Duration,
    /// What earlier launches left of it.
    pub(super) time_left: Duration,
    /// Time within which each row should end, if rows have such a time.
    pub(super) row_limit: Option<Duration>,
    /// Time for which a case may make no progress.
    pub(super) silence: Duration,
    /// Asks the hosts again and returns a sentence about those that do not answer.
    pub(super) unreachable: &'a dyn Fn() -> Option<String>,
    pub(super) output: &'a mut Output,
    pub(super) arrived: &'a mut Arrived,
    pub(super) progress: &'a Progress,
    pub(super) timeline: &'a Timeline,
}

impl Supervision<'_> {
    /// Runs a launcher to its end and returns how it ended. A complete run is a success, even if the launcher's exit code is not 0.
    pub(super) fn run(self, mut command: Command, which: Child) -> Result<RanksEnd> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let (sender, events) = mpsc::sync_channel(QUEUE);
        let (signal_sender, user_signals) = mpsc::channel();
        signals::end_with_this_thread(&mut command);
        let signals = Signals::new(signals::of_user()).map_err(|e| Error::fabric(format!("signals: {e}")))?;
        orphans::adopt();
        let others = OfOthers::now();
        let mut guard = Guard::start();
        let mut child = command.spawn().map_err(|e| cannot_start(&program, &e))?;
        let (group, leader) = (Pid::from_child(&child), child.id());
        let launcher = PathBuf::from(&program);
        guard.watch(group, &others);
        let handle = signals.handle();
        let waker = sender.clone();
        let stderr = |line: Vec<u8>| Notice::Stderr(String::from_utf8_lossy(&line).into_owned());
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let started = spawn_thread("signals", move || pass_on(signals, signal_sender, waker))
            .and_then(|_| read_lines(out, sender.clone(), Notice::Stdout))
            .and_then(|()| read_lines(err, sender.clone(), stderr))
            .and_then(|()| spawn_thread("launcher", move || drop(sender.send(Notice::Exit(child.wait())))));
        if let Err(error) = started {
            handle.close();
            let _ = kill_process_group(group, Signal::KILL);
            orphans::end();
            shared_memory::remove_session_directory(leader);
            return Err(error);
        }

        let Supervision { args, output, arrived, progress, timeline, hosts, start_limit, .. } = self;
        let mut starting = StartingRanks::new(group, self.ranks_here);
        let mut job = JobState {
            args,
            output,
            arrived,
            progress,
            timeline,
            group,
            launcher,
            history: History::default(),
        };
        let since = Since::now();
        let (mut status, mut open_pipes): (Option<ExitStatus>, u32) = (None, 2);
        // The next action is due at this time.
        let (mut due, mut polls_without_rank) = (self.time_left, 0);
        let mut quiet_polls = 0;
        let mut examination_due = orphans::EXAMINATION;
        let mut start_due = (!hosts.is_empty()).then_some(start_limit);
        while open_pipes > 0 || status.is_none() {
            let was_ending = job.is_ending();
            let left = due.saturating_sub(since.elapsed());
            // Signals and the deadline come first: a launcher may print without end.
            if let Ok(signal) = user_signals.try_recv() {
                if was_ending { job.kill() } else { job.end(EndReason::Signal(signal)) }
            } else if left.is_zero() {
                if status.is_some() {
                    break;
                }
                if was_ending {
                    job.kill();
                    due = since.elapsed() + GRACE;
                } else {
                    job.end(if job.history.complete { EndReason::Complete } else { EndReason::TimeLimit });
                }
            } else if start_due.is_some_and(|limit| since.elapsed() >= limit) {
                start_due = None;
                if !was_ending {
                    job.end_without_ranks(hosts, start_limit);
                }
            } else if since.elapsed() >= examination_due {
                examination_due = 2 * since.elapsed();
                if which == Child::Launcher && status.is_none() && !was_ending {
                    job.examine_start(since.elapsed(), self.launcher);
                }
            } else if !was_ending && quiet_polls >= QUIET_POLLS && job.history.hangs(self.silence) {
                job.end(EndReason::Hanging);
            } else {
                // The first process of other ranks watches them itself.
                let is_starting = which == Child::Launcher && job.history.processes.ranks.0.is_empty();
                let poll = if is_starting { START_POLL } else { POLL };
                let wait = left.min(poll);
                let until_start = start_due.map(|limit| limit.saturating_sub(since.elapsed()));
                let event = events.recv_timeout(until_start.map_or(wait, |until| until.min(wait)));
                quiet_polls = match &event {
                    Err(RecvTimeoutError::Timeout) => quiet_polls + 1,
                    Ok(Notice::Stdout(_)) => 0,
                    _ => quiet_polls,
                };
                match event {
                    Err(RecvTimeoutError::Timeout)
                        if left > poll && until_start.is_none_or(|until| until > poll) =>
                    {
                        let missing = !job.history.complete
                            && !was_ending
                            && if is_starting {
                                starting.is_one_missing()
                            } else {
                                job.history.processes.ranks.ended_here().is_some()
                            };
                        polls_without_rank = if missing { polls_without_rank + 1 } else { 0 };
                        if polls_without_rank == POLLS_WITHOUT_RANK {
                            job.end_without_rank(is_starting);
                        }
                    }
                    Ok(Notice::Stdout(line)) => {
                        if status.is_some() {
                            // What the job has printed is read to its end, however slowly the results are taken.
                            due = since.elapsed() + DRAIN;
                        }
                        let before = job.history.complete;
                        job.read_stdout(&line);
                        if job.history.complete && !before && !was_ending {
                            due = due.min(since.elapsed() + FINISH);
                        }
                    }
                    Ok(Notice::Stderr(line)) => job.read_stderr(&line),
                    Ok(Notice::Closed) => open_pipes -= 1,
                    Ok(Notice::Exit(ended)) => {
                        status = Some(ended.map_err(|e| Error::fabric(format!("{program}: {e}")))?);
                        due = since.elapsed() + DRAIN;
                    }
                    Ok(Notice::Signal) | Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            if job.history.error.is_some() && !job.is_ending() {
                job.end(EndReason::Error);
            }
            if job.is_ending() && !was_ending {
                let is_starting = job.history.processes.ranks.0.is_empty();
                due = since.elapsed() + if is_starting { START_GRACE } else { GRACE };
            }
        }
        handle.close();
        // No process of the job, launcher or rank, may outlive it.
        let shared_memory = std::mem::take(&mut job.history.processes.shared_memory);
        job.kill();
        orphans::end();
        shared_memory::remove_session_directory(leader);
        shared_memory.remove();
        if job.history.processes.ranks.0.is_empty() {
            others.remove_new();
        }
        job.conclude(which, status, self.limit, self.row_limit, self.unreachable)
    }
}

/// Passes signals on, and wakes the main thread for each.
fn pass_on(mut signals: Signals, to: Sender<i32>, waker: SyncSender<Notice>) {
    signals.forever().for_each(|signal| {
        let _ = to.send(signal);
        // A full queue keeps the main thread awake.
        let _ = waker.try_send(Notice::Signal);
    });
}

/// Sends each line of a pipe, then that it has closed.
fn read_lines(
    pipe: Option<impl Read + Send + 'static>,
    to: SyncSender<Notice>,
    event: fn(Vec<u8>) -> Notice,
) -> Result<()> {
    spawn_thread("lines", move || send_lines(pipe, to, event)).map(drop)
}

/// Sends the lines of a pipe on the thread that calls this.
fn send_lines(pipe: Option<impl Read>, to: SyncSender<Notice>, event: fn(Vec<u8>) -> Notice) {
    let mut lines = pipe.map(BufReader::new);
    while let Some(reader) = &mut lines {
        let mut line = Vec::new();
        // An error ends the lines as the end of the pipe does.
        let _ = reader.by_ref().take(LONGEST_MESSAGE).read_until(b'\n', &mut line);
        if line.starts_with(b"{") && !line.ends_with(b"\n") {
            let _ = reader.by_ref().take(LONGEST_RECORD).read_until(b'\n', &mut line);
        }
        // The queue is closed when nobody supervises the job any more.
        if line.is_empty() || to.send(event(line)).is_err() {
            break;
        }
    }
    drop(to.send(Notice::Closed));
}
