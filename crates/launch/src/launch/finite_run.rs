//! Commands that are run to their end for what they print, within a time limit.

use std::{
    fmt::Display,
    io::{self, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, Sender},
    thread::{self, Builder, JoinHandle},
    time::Duration,
};

use ombx_estimate::text::plain;
use ombx_host::{
    limits::{is_limit, start_error},
    signals,
    since::Since,
};
use ombx_record::{
    error::{Error, Exit, Result},
    regular_file::standard_input_again,
};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::launch::{
    orphans,
    shared_memory::{self, OfRanks},
};

/// Interval at which the caller may interrupt.
const POLL: Duration = Duration::from_millis(50);

/// Time in which a command may end by itself after a signal. `ombx run` gives its launcher nearly as long, and then removes files of the ranks.
const GRACE: Duration = Duration::from_secs(8);

/// Maximum number of bytes that are read of each pipe.
const LONGEST: u64 = 1 << 26;

/// Returns whether a process of ombx ended in one of these ways.
pub fn has_ended_by(status: ExitStatus, ways: &[Exit]) -> bool {
    ways.iter().any(|way| status.code() == Some(way.code().into()))
}

/// Runs a launcher and returns what it prints, standard output first. Says what it does while it does not end.
///
/// # Errors
/// Those of [`run`], and none of the launcher's processes is left. They end with its words.
pub fn texts_of_launcher(
    command: Command,
    limit: Duration,
    interrupted: impl Fn() -> bool,
) -> Result<[String; 2]> {
    let since = Since::now();
    let mut due = orphans::EXAMINATION;
    let ended = end(command, limit, |launcher| {
        if interrupted() {
            return Some("was interrupted".to_owned());
        }
        if since.elapsed() < due {
            return None;
        }
        due = 2 * since.elapsed();
        let examined = plain(&orphans::examined(launcher));
        let what = format!("has not ended after {} s: {examined}", since.elapsed().as_secs());
        if orphans::waits_for_ended(launcher) {
            return Some(what);
        }
        stderr_line!("ombx: the launcher {what}");
        None
    });
    ended.map(|(texts, _)| texts).map_err(|Unended { why, texts }| {
        Error::fabric(format!("{why}; {}", words(texts.iter().rev().flatten(), |_| true)))
    })
}

/// Returns a clause with the first and the last line of these texts that is not empty and is one of the launcher's own.
pub fn words<'a>(texts: impl IntoIterator<Item = &'a String>, is_own: impl Fn(&str) -> bool) -> String {
    let lines = texts.into_iter().flat_map(|text| text.lines()).map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && is_own(line));
    match (lines.next(), lines.last()) {
        (Some(first), Some(last)) => format!("it says: {} .. {}", plain(first), plain(last)),
        (Some(only), None) => format!("it says: {}", plain(only)),
        (None, _) => "it says nothing".to_owned(),
    }
}

/// Runs a command and returns what it prints, standard output first, and how it ended. No process of it outlives the call.
///
/// # Errors
/// The command cannot be started, prints without end, does not close its output within `limit`, or is `interrupted`.
pub fn run(
    command: Command,
    limit: Duration,
    interrupted: impl Fn() -> bool,
) -> Result<([String; 2], ExitStatus)> {
    end(command, limit, |_| interrupted().then(|| "was interrupted".to_owned()))
        .map_err(|Unended { why, .. }| Error::fabric(why))
}

/// A command that could not be run to its end.
struct Unended {
    why: String,
    /// What it has printed, standard output first.
    texts: [Option<String>; 2],
}

impl Unended {
    fn new(error: &Error) -> Unended {
        Unended { why: error.to_string(), texts: [None, None] }
    }
}

/// Runs a command to its end, or until `stop` returns a clause that says why it is ended.
fn end(
    mut command: Command,
    limit: Duration,
    mut stop: impl FnMut(Pid) -> Option<String>,
) -> std::result::Result<([String; 2], ExitStatus), Unended> {
    let program = command.get_program().to_string_lossy().into_owned();
    let not_started = |e: io::Error| Unended::new(&cannot_start(&program, &e));
    command.stdin(standard_input_again().map_err(not_started)?);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    signals::end_with_this_thread(&mut command);
    let mut child = command.spawn().map_err(not_started)?;
    let group = Pid::from_child(&child);
    let since = Since::now();
    let (received, reading) = read(&mut child, LONGEST);
    let mut texts = [None, None];
    let why = loop {
        if let Err(error) = &reading {
            break Some(error.to_string());
        }
        if texts.iter().flatten().any(|text: &String| text.len() as u64 >= LONGEST) {
            break Some(format!("{program} prints without end"));
        }
        if texts.iter().all(Option::is_some) {
            break None;
        }
        match received.recv_timeout(POLL) {
            Ok((at, text)) => texts[at] = Some(text),
            Err(_) if since.elapsed() > limit => {
                let seconds = limit.as_secs_f64();
                break Some(format!("{program} did not end within {seconds} s: give a longer --timeout"));
            }
            Err(_) => {
                if let Some(clause) = stop(group) {
                    break Some(format!("{program} {clause}"));
                }
            }
        }
    };
    let mut shared_memory = OfRanks::default();
    if why.is_some() {
        shared_memory.look();
        // A launcher removes its files if it may.
        ask_to_end(&mut child, GRACE);
    }
    orphans::end_family(group);
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait();
    shared_memory::remove_session_directory(child.id());
    shared_memory.remove();
    match why {
        None => {
            let status =
                status.map_err(|e| Unended { why: format!("{program}: {e}"), texts: [None, None] })?;
            Ok((texts.map(Option::unwrap_or_default), status))
        }
        Some(why) => {
            // The pipes of processes that are gone end at once.
            while texts.iter().any(Option::is_none)
                && let Ok((at, text)) = received.recv_timeout(GRACE)
            {
                texts[at] = Some(text);
            }
            Err(Unended { why, texts })
        }
    }
}

/// Reads what a process prints, up to this many bytes of each pipe. Returns where each text arrives with its number, standard output first.
fn read(child: &mut Child, longest: u64) -> (Receiver<(usize, String)>, Result<()>) {
    let (sender, received) = mpsc::channel();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let reading = read_pipe(0, out.map(|pipe| Box::new(pipe) as _), longest, sender.clone());
    let reading = reading.and_then(|()| read_pipe(1, err.map(|pipe| Box::new(pipe) as _), longest, sender));
    (received, reading)
}

/// Starts a thread that reads a pipe and sends its text with the number of the pipe.
fn read_pipe(
    number: usize,
    pipe: Option<Box<dyn Read + Send>>,
    longest: u64,
    sender: Sender<(usize, String)>,
) -> Result<()> {
    let read = move || {
        let mut text = Vec::new();
        let _ = pipe.map(|pipe| pipe.take(longest).read_to_end(&mut text));
        drop(sender.send((number, String::from_utf8_lossy(&text).into_owned())));
    };
    spawn_thread("text", read).map(drop)
}

/// Asks a process and its group to end, and waits up to a time for the process.
pub fn ask_to_end(child: &mut Child, grace: Duration) {
    let _ = kill_process_group(Pid::from_child(child), Signal::TERM);
    let since = Since::now();
    while since.elapsed() < grace && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(POLL);
    }
}

/// Maximum wait for the version of a program.
pub(super) const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of bytes that are read of a version.
const LONGEST_VERSION: u64 = 1 << 16;

/// Answer of a program to `--version`.
pub(super) enum Version {
    /// What it prints.
    Printed(String),
    /// It cannot be started.
    None,
    /// It has not answered in time, and was killed.
    Late,
}

impl Version {
    /// Asks a program for its version.
    ///
    /// # Errors
    /// The system allows no further process or thread.
    pub(super) fn new(path: &Path, limit: Duration) -> Result<Version> {
        let mut command = Command::new(path);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        signals::end_with_this_thread(&mut command);
        let since = Since::now();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(e) if is_limit(&e) => return Err(cannot_start(path.display(), &e)),
            Err(_) => return Ok(Version::None),
        };
        let (texts, reading) = read(&mut child, LONGEST_VERSION);
        let answers = (0..2).map_while(|_| texts.recv_timeout(limit.saturating_sub(since.elapsed())).ok());
        let answers: Vec<String> = answers.map(|(_, text)| text).collect();
        // A program that has closed its pipes has nothing more to say. A script has processes of its own.
        orphans::end_family(Pid::from_child(&child));
        let _ = child.wait();
        reading.map(|()| match answers.len() {
            2 => Version::Printed(answers.concat()),
            _ => Version::Late,
        })
    }

    /// Returns whether the version has one of these words, which are in lower case.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        matches!(self, Version::Printed(text) if {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word))
        })
    }

    /// Returns the first line that it prints.
    pub(super) fn first_line(&self) -> Option<&str> {
        match self {
            Version::Printed(text) => text.lines().map(str::trim).find(|line| !line.is_empty()),
            Version::None | Version::Late => None,
        }
    }
}

/// Starts a thread.
///
/// # Errors
/// The system allows no further thread.
pub fn spawn_thread<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>> {
    Builder::new().name(name.into()).spawn(work).map_err(|e| cannot_start("a thread", &e))
}

/// Returns the error about something that cannot be started.
pub fn cannot_start(what: impl Display, error: &io::Error) -> Error {
    Error::fabric(format!("cannot start {what}: {}", start_error(error)))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use crate::launch::finite_run::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_prints_ends_late_or_is_interrupted() {
        let long = Duration::from_secs(60);
        let texts = run(shell("echo a; echo b >&2"), long, || false).unwrap().0;
        assert_eq!(texts, ["a\n", "b\n"]);
        let endless = run(shell("yes & exec yes >&2"), long, || false).unwrap_err().to_string();
        assert!(endless.ends_with("prints without end"), "{endless}");
        let late = run(shell("sleep 90 & sleep 90"), Duration::from_millis(100), || false);
        assert!(late.unwrap_err().to_string().contains("did not end within 0.1 s"));
        let interrupted = run(shell("sleep 90"), long, || true);
        assert!(interrupted.unwrap_err().to_string().contains("interrupted"));
        let directory = tempfile::tempdir().unwrap();
        assert!(run(Command::new(directory.path().join("absent")), long, || false).is_err());
    }

    #[test]
    fn the_words_of_a_launcher_stand_in_its_error() {
        let stopped =
            || texts_of_launcher(shell("echo no srun >&2; sleep 90"), Duration::from_millis(400), || false);
        let why = stopped().unwrap_err().to_string();
        assert!(why.contains("did not end within 0.4 s") && why.ends_with("it says: no srun"), "{why}");
        let since = Since::now();
        let left = texts_of_launcher(
            shell("echo gone >&2; /bin/true & exec sleep 600"),
            Duration::from_secs(600),
            || false,
        );
        let why = left.unwrap_err().to_string();
        assert!(why.contains("true (") && why.ends_with("it says: gone"), "{why}");
        assert!(since.elapsed() < Duration::from_secs(600), "the launcher has ended by itself");
    }

    #[test]
    fn a_program_that_does_not_answer_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let script = |text: &str| {
            let path = directory.path().join("program");
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            path
        };
        let of =
            |text: &str, limit_ms: u64| Version::new(&script(text), Duration::from_millis(limit_ms)).unwrap();
        let good = of("echo HYDRA 4; echo x >&2", 30_000);
        assert!(good.has(&["prte", "hydra"]) && !good.has(&["prte"]));
        // Only the first part of an endless answer is read.
        assert!(of("while :; do echo hydra; done", 30_000).has(&["hydra"]));
        let since = Since::now();
        for late in ["sleep 600", "sleep 600 & echo hydra; wait"] {
            assert!(matches!(of(late, 300), Version::Late), "{late}");
        }
        assert!(since.elapsed() < Duration::from_secs(600), "the program has ended by itself");
        let absent = directory.path().join("absent");
        assert!(matches!(Version::new(&absent, VERSION_LIMIT), Ok(Version::None)));
    }
}
