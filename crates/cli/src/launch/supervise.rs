//! Watching over a job: its records, its words, its end, the user's signals and the deadline.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    time::Duration,
};

use ombx_core::{
    clock::Since,
    error::{Error, Kind, Result},
    wire::{self, Outcome, Record},
};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{
    args::OutputArgs,
    output::{Output, PROGRESS},
    progress::Progress,
};

/// After being told to end, a launcher has this long.
const GRACE: Duration = Duration::from_secs(5);
/// After the launcher has ended, what is still in its pipes has this long; an orphan may hold them open for ever.
const DRAIN: Duration = Duration::from_secs(2);
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
    Storage,
}

/// Runs the launcher to its end. Success is a complete run, whatever the launcher's own exit code.
pub(crate) fn supervise(
    mut command: Command,
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
    let mut child =
        command.spawn().map_err(|e| Error::fabric(format!("{program} could not be started: {e}")))?;
    let group = Pid::from_child(&child);
    let handle = signals.handle();
    let to_main = sender.clone();
    std::thread::spawn(move || signals.forever().for_each(|s| drop(to_main.send(Event::Signal(s)))));
    read_lines(child.stdout.take(), sender.clone(), Event::Out);
    read_lines(child.stderr.take(), sender.clone(), |line| {
        Event::Err(String::from_utf8_lossy(&line).into_owned())
    });
    std::thread::spawn(move || drop(sender.send(Event::Exit(child.wait()))));

    let mut job =
        Watched { output, progress, args, words: Vec::new(), sentences: 0, complete: false, trouble: None };
    let since = Since::now();
    let (mut told, mut status, mut open): (Option<Told>, Option<ExitStatus>, u32) = (None, None, 2);
    let mut due = limit;
    while open > 0 || status.is_none() {
        match events.recv_timeout(due.saturating_sub(since.elapsed())) {
            Ok(Event::Out(line)) => job.out(&line),
            Ok(Event::Err(line)) => job.err(line),
            Ok(Event::Closed) => open -= 1,
            Ok(Event::Exit(ended)) => {
                status = Some(ended.map_err(|e| Error::fabric(format!("{program}: {e}")))?);
                due = since.elapsed() + DRAIN;
            }
            Ok(Event::Signal(signal)) if told.is_none() => {
                told = Some(Told::Signal(signal));
                let _ = kill_process_group(group, Signal::TERM);
                due = since.elapsed() + GRACE;
            }
            Ok(Event::Signal(_)) => drop(kill_process_group(group, Signal::KILL)),
            Err(RecvTimeoutError::Timeout) if status.is_some() => break,
            Err(RecvTimeoutError::Timeout) if told.is_none() => {
                told = Some(Told::Deadline);
                let _ = kill_process_group(group, Signal::TERM);
                due = since.elapsed() + GRACE;
            }
            Err(RecvTimeoutError::Timeout) => {
                let _ = kill_process_group(group, Signal::KILL);
                due = since.elapsed() + GRACE;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if job.trouble.is_some() && told.is_none() {
            told = Some(Told::Storage);
            let _ = kill_process_group(group, Signal::TERM);
            due = since.elapsed() + GRACE;
        }
    }
    handle.close();
    // Whoever is left of the job, launcher or rank, must not outlive it.
    let _ = kill_process_group(group, Signal::KILL);
    progress.done();
    job.conclude(told, status, limit)
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
    trouble: Option<Error>,
}

impl Watched<'_> {
    /// A line of the ranks: a record, news, or something that a library printed.
    fn out(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let news = text.starts_with("{\"bench\"") || text.contains(PROGRESS);
        match wire::parse(text.trim_end(), 1) {
            Ok(Some(record)) => {
                if let Record::End(Outcome::Complete, sent) = &record {
                    let arrived = self.output.tally().cases;
                    self.complete = sent.cases == arrived;
                    if !self.complete {
                        let lost = format!("{} rows were measured, {arrived} arrived", sent.cases);
                        self.trouble.get_or_insert(Error::fabric(lost));
                    }
                }
                if matches!(record, Record::Case(_)) {
                    self.progress.row();
                }
                let Watched { progress, output, .. } = self;
                if let Err(error) = progress.aside(|| output.record(&record)) {
                    self.trouble.get_or_insert(error);
                }
            }
            Ok(None) if news => {
                let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
                self.progress.starting(
                    value["bench"].as_str().unwrap_or_default(),
                    value["bytes"].as_u64().unwrap_or(0),
                );
            }
            Ok(None) => {}
            Err(_) => self.err(text.into_owned()),
        }
    }

    /// A line of words: ours at once, a launcher's when it matters.
    fn err(&mut self, line: String) {
        let line = line.trim_end().to_owned();
        let ours = line.find(OURS).filter(|at| *at < 40);
        self.sentences += u32::from(ours.is_some());
        if ours.is_some() || self.args.verbose {
            self.progress.aside(|| eprintln!("{}", &line[ours.unwrap_or(0)..]));
        } else if !line.is_empty() {
            self.words.push(line);
        }
    }

    /// The exit code, and one sentence if the job did not complete.
    fn conclude(mut self, told: Option<Told>, status: Option<ExitStatus>, limit: Duration) -> Result<u8> {
        if self.complete && told.is_none() {
            return Ok(self.output.tally().exit_code(self.args.allow_skips));
        }
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let tally = self.output.tally();
        let outcome =
            if matches!(told, Some(Told::Signal(_))) { Outcome::Interrupted } else { Outcome::Broken };
        self.output.record(&Record::End(outcome, tally))?;
        let kept = match &self.args.out {
            Some(path) => format!("{} measured rows are in {}", tally.cases, path.display()),
            None => format!("{} rows had been measured", tally.cases),
        };
        match told {
            Some(Told::Signal(signal)) => {
                eprintln!("{OURS}interrupted; {kept}");
                Ok(128u8.saturating_add(u8::try_from(signal).unwrap_or(0)))
            }
            Some(Told::Deadline) => Err(Error::fabric(format!(
                "the job did not end within {} s and was ended; {kept}; --timeout gives it longer",
                limit.as_secs()
            ))),
            Some(Told::Storage) | None => {
                if self.sentences == 0 {
                    let from = self.words.len().saturating_sub(LAST_WORDS);
                    self.words[from..].iter().for_each(|line| eprintln!("  {line}"));
                }
                let how = status.map_or("in an unknown way".into(), ended);
                Err(Error::new(Kind::Fabric, format!("the job ended early, {how}; {kept}")))
            }
        }
    }
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its launcher with exit code {code}"),
        (None, Some(signal)) => format!("its launcher by signal {signal}"),
        (None, None) => "in an unknown way".into(),
    }
}
