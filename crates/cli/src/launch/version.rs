//! The version that a program prints, within a time limit.

use std::{
    io::Read,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use ombx_core::{
    error::Result,
    system::{clock::Since, limits::is_limit},
};
use rustix::process::Pid;

use super::orphans;
use crate::launch::supervision::{cannot_start, spawn_thread};

/// Maximum wait for an answer.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of bytes that are read from each pipe.
const LONGEST: u64 = 1 << 16;

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
    pub(super) fn of(path: &Path, limit: Duration) -> Result<Version> {
        let mut command = Command::new(path);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let since = Since::now();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(e) if is_limit(&e) => return Err(cannot_start(path.display(), &e)),
            Err(_) => return Ok(Version::None),
        };
        let (sender, texts) = mpsc::channel();
        let reading =
            read(child.stdout.take(), sender.clone()).and_then(|()| read(child.stderr.take(), sender));
        let answers = (0..2).map_while(|_| texts.recv_timeout(limit.saturating_sub(since.elapsed())).ok());
        let answers: Vec<String> = answers.collect();
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

fn read(pipe: Option<impl Read + Send + 'static>, to: mpsc::Sender<String>) -> Result<()> {
    let read = move || {
        let mut text = Vec::new();
        let _ = pipe.map(|pipe| pipe.take(LONGEST).read_to_end(&mut text));
        drop(to.send(String::from_utf8_lossy(&text).into_owned()));
    };
    spawn_thread("version", read).map(drop)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

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
            |text: &str, limit_ms: u64| Version::of(&script(text), Duration::from_millis(limit_ms)).unwrap();
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
        assert!(matches!(Version::of(&absent, LIMIT), Ok(Version::None)));
    }
}
