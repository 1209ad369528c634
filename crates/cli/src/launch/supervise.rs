//! Watching over a job: its records, its words, its end, the user's signals and the deadline.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    time::Duration,
};

use ombx_core::{
    error::{Error, Kind, Result},
    system::clock::Since,
};
use ombx_results::file::{self, Record, RunOutcome};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{
    args::OutputArgs,
    launch::{crew::Crew, orphans, session},
    output::{CREW, LOST, Output, PROGRESS},
    progress::Progress,
};

/// After being told to end, a launcher has this long.
const GRACE: Duration = Duration::from_secs(5);
/// After the launcher has ended, what is still in its pipes has this long; an orphan may hold them open for ever.
const DRAIN: Duration = Duration::from_secs(2);
/// After the last record of a complete run, ranks and launcher have this long: MPICH over TCP can hang in MPI_Finalize.
const FINISH: Duration = Duration::from_secs(8);
/// So often, while nothing happens, it is seen whether ranks on this host are there: a launcher may have lost its helper and wait for
/// ever. Twice is sure.
const LOOK: Duration = Duration::from_secs(5);
/// Of a launcher's own words, the last so many lines are shown when a job fails without a sentence of ours.
const LAST_WORDS: usize = 12;
/// What ranks of ours begin their sentences with.
const OURS: &str = "ombx: ";

enum Event {
    Out(Vec<u8>),
    Err(String),
    Closed,
    Exit(std::io::Result<ExitStatus>),
    Signal(i32),
}

/// Why the job was told to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Signal(i32),
    Deadline,
    /// A rank is gone, and its launcher has not noticed.
    Gone,
    /// All is measured, but its processes stayed.
    Finished,
    Storage,
}

/// What was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    /// A launcher, whose exit code says little.
    Launcher,
    /// This program again, whose exit code is the job's.
    Itself,
}

/// Runs the launcher to its end. Success is a complete run, whatever the launcher's own exit code.
pub(crate) fn supervise(
    mut command: Command,
    started: Started,
    limit: Duration,
    args: &OutputArgs,
    output: &mut Output,
    progress: &Progress,
) -> Result<u8> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let (sender, events) = mpsc::channel();
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|e| Error::fabric(format!("signals: {e}")))?;
    orphans::adopt();
    let mut child =
        command.spawn().map_err(|e| Error::fabric(format!("{program} could not be started: {e}")))?;
    let (group, launcher) = (Pid::from_child(&child), child.id());
    let handle = signals.handle();
    let to_main = sender.clone();
    std::thread::spawn(move || signals.forever().for_each(|s| drop(to_main.send(Event::Signal(s)))));
    read_lines(child.stdout.take(), sender.clone(), Event::Out);
    read_lines(child.stderr.take(), sender.clone(), |line| {
        Event::Err(String::from_utf8_lossy(&line).into_owned())
    });
    std::thread::spawn(move || drop(sender.send(Event::Exit(child.wait()))));

    let mut job = Watched {
        output,
        progress,
        args,
        words: Vec::new(),
        sentences: 0,
        complete: false,
        told: None,
        trouble: None,
        lost: None,
        scene: None,
        crew: Crew::default(),
    };
    let since = Since::now();
    let (mut status, mut open): (Option<ExitStatus>, u32) = (None, 2);
    let (mut due, mut missing) = (limit, 0);
    while open > 0 || status.is_none() {
        let left = due.saturating_sub(since.elapsed());
        match events.recv_timeout(left.min(LOOK)) {
            Err(RecvTimeoutError::Timeout) if left > LOOK => {
                missing = if job.complete || job.told.is_some() || !job.crew.is_missing() {
                    0
                } else {
                    missing + 1
                };
                if missing == 2 {
                    job.tell(Told::Gone, group);
                    due = since.elapsed() + GRACE;
                }
            }
            Ok(Event::Out(line)) => {
                let before = job.complete;
                job.out(&line);
                if job.complete && !before && job.told.is_none() {
                    due = due.min(since.elapsed() + FINISH);
                }
            }
            Ok(Event::Err(line)) => job.err(line),
            Ok(Event::Closed) => open -= 1,
            Ok(Event::Exit(ended)) => {
                status = Some(ended.map_err(|e| Error::fabric(format!("{program}: {e}")))?);
                due = since.elapsed() + DRAIN;
            }
            Ok(Event::Signal(signal)) if job.told.is_none() => {
                job.tell(Told::Signal(signal), group);
                due = since.elapsed() + GRACE;
            }
            Ok(Event::Signal(_)) => drop(kill_process_group(group, Signal::KILL)),
            Err(RecvTimeoutError::Timeout) if status.is_some() => break,
            Err(RecvTimeoutError::Timeout) if job.told.is_none() => {
                job.tell(if job.complete { Told::Finished } else { Told::Deadline }, group);
                due = since.elapsed() + GRACE;
            }
            Err(RecvTimeoutError::Timeout) => {
                let _ = kill_process_group(group, Signal::KILL);
                due = since.elapsed() + GRACE;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if job.trouble.is_some() && job.told.is_none() {
            job.tell(Told::Storage, group);
            due = since.elapsed() + GRACE;
        }
    }
    handle.close();
    // Whoever is left of the job, launcher or rank, must not outlive it.
    let _ = kill_process_group(group, Signal::KILL);
    orphans::end();
    session::remove(launcher);
    progress.done();
    job.conclude((started, status), limit)
}

/// Sends every line of a pipe, then that it has closed.
fn read_lines(pipe: Option<impl Read + Send + 'static>, to: Sender<Event>, event: fn(Vec<u8>) -> Event) {
    std::thread::spawn(move || {
        let mut lines = pipe.map(BufReader::new);
        while let Some(reader) = &mut lines {
            let mut line = Vec::new();
            match reader.read_until(b'\n', &mut line) {
                Ok(1..) => drop(to.send(event(line))),
                Ok(0) | Err(_) => break,
            }
        }
        drop(to.send(Event::Closed));
    });
}

/// What has been seen of a job.
struct Watched<'a> {
    output: &'a mut Output,
    progress: &'a Progress,
    args: &'a OutputArgs,
    words: Vec<String>,
    sentences: u32,
    complete: bool,
    /// Why it was told to end, if it was.
    told: Option<Told>,
    trouble: Option<Error>,
    /// Why a launcher of ours says that the job failed.
    lost: Option<String>,
    /// Which case runs, or ran when the job was told to end: a rank that was stopped goes on then.
    scene: Option<String>,
    /// Process and host of each rank.
    crew: Crew,
}

impl Watched<'_> {
    /// Tells the job to end.
    fn tell(&mut self, why: Told, group: Pid) {
        self.told = Some(why);
        let _ = kill_process_group(group, Signal::TERM);
    }

    /// A line of the ranks: a record, news, or something that a library printed.
    fn out(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        match file::parse(text.trim_end(), 1) {
            Ok(Some(record)) => {
                if let Record::End(RunOutcome::Complete, sent) = &record {
                    let arrived = self.output.tally().cases;
                    self.complete = sent.cases == arrived;
                    if !self.complete {
                        let lost = format!("{} rows were measured, {arrived} arrived", sent.cases);
                        self.trouble.get_or_insert(Error::fabric(lost));
                    }
                }
                if matches!(record, Record::Case(_)) {
                    self.progress.row();
                    self.scene.take_if(|_| self.told.is_none());
                }
                let Watched { progress, output, .. } = self;
                if let Err(error) = progress.aside(|| output.record(&record)) {
                    self.trouble.get_or_insert(error);
                }
            }
            Ok(None) => {
                let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
                match value["kind"].as_str() {
                    Some(PROGRESS) => {
                        let bench = value["bench"].as_str().unwrap_or_default();
                        let bytes = value["bytes"].as_u64().unwrap_or(0);
                        if self.told.is_none() {
                            self.scene = Some(format!("{bench}, {bytes} bytes"));
                        }
                        self.progress.starting(bench, bytes);
                    }
                    Some(LOST) => self.lost = value["why"].as_str().map(str::to_owned),
                    Some(CREW) => self.crew = Crew::of(&value),
                    _ => {}
                }
            }
            Err(_) => self.err(text.into_owned()),
        }
    }

    /// A line of words: ours at once, a launcher's when it matters.
    fn err(&mut self, line: String) {
        let line = line.trim_end().to_owned();
        let ours = line.find(OURS).filter(|at| *at < 40);
        self.sentences += u32::from(ours.is_some());
        if ours.is_some() || self.args.verbose {
            self.progress.aside(|| tell!("{}", &line[ours.unwrap_or(0)..]));
        } else if !line.is_empty() {
            self.words.push(line);
        }
    }

    /// The exit code, and one sentence if the job did not complete.
    fn conclude(mut self, (started, status): (Started, Option<ExitStatus>), limit: Duration) -> Result<u8> {
        let told = self.told;
        if self.complete && matches!(told, None | Some(Told::Finished)) {
            return Ok(self.output.tally().exit_code(self.args.allow_skips));
        }
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let tally = self.output.tally();
        let outcome =
            if matches!(told, Some(Told::Signal(_))) { RunOutcome::Interrupted } else { RunOutcome::Broken };
        self.output.record(&Record::End(outcome, tally))?;
        let kept = match &self.args.out {
            Some(path) => format!("{} measured rows are in {}", self.output.rows(), path.display()),
            None => format!("{} rows had been measured", self.output.rows()),
        };
        let scene = self.scene.take().map(|scene| format!(" in {scene}")).unwrap_or_default();
        match told {
            Some(Told::Signal(signal)) => {
                tell!("{OURS}interrupted; {kept}");
                Ok(128u8.saturating_add(u8::try_from(signal).unwrap_or(0)))
            }
            Some(Told::Deadline) => Err(Error::fabric(format!(
                "the job did not end within {} s and was ended{scene}; {kept}; --timeout gives it longer",
                limit.as_secs()
            ))),
            Some(Told::Storage | Told::Finished | Told::Gone) | None if self.lost.is_some() => {
                Err(Error::fabric(format!("{}{scene}; {kept}", self.lost.unwrap_or_default())))
            }
            Some(Told::Storage | Told::Finished | Told::Gone) | None => {
                let own = status
                    .and_then(|s| s.code())
                    .filter(|_| started == Started::Itself && self.sentences > 0);
                if let Some(code @ 2..=7) = own {
                    // It has said what went wrong.
                    return Ok(code as u8);
                }
                if self.sentences == 0 {
                    let from = self.words.len().saturating_sub(LAST_WORDS);
                    self.words[from..].iter().for_each(|line| tell!("  {line}"));
                }
                let how = status.map_or("in an unknown way".into(), |status| ended(started, status));
                let who = self
                    .crew
                    .lost(&self.words)
                    .or_else(|| self.crew.gone().filter(|_| told == Some(Told::Gone)));
                let who = who.unwrap_or_else(|| "the job".into());
                Err(Error::new(Kind::Fabric, format!("{who} ended early{scene}, {how}; {kept}")))
            }
        }
    }
}

fn ended(started: Started, status: ExitStatus) -> String {
    let who = if started == Started::Launcher { "its launcher" } else { "its first process" };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("{who} with exit code {code}"),
        (None, Some(signal)) => format!("{who} by signal {signal}"),
        (None, None) => "in an unknown way".into(),
    }
}
