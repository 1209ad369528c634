//! Scripts on a host or on this machine, with a time limit. `sh` reads them from standard input, so that no remote shell splits
//! their words.

mod files;
mod process;

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
    time::Duration,
};

use ombx_core::error::Result;

pub(crate) use self::{
    files::{ScriptFiles, at},
    process::{Ended, output_of},
};
use crate::interrupt;

/// Options of ssh for unattended use: no questions, and a dead connection ends.
pub(crate) const SSH_OPTIONS: [&str; 8] = [
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=5",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

/// Machine that runs a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    Here,
    Host { name: &'a str, ssh_config: Option<&'a Path> },
}

impl Place<'_> {
    /// Returns the command that runs a program there; `line` is its command line in the syntax of a shell.
    fn shell(self, line: &str) -> Command {
        match self {
            Place::Here => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("exec {line}")]);
                command
            }
            Place::Host { name, ssh_config } => {
                let mut command = Command::new("ssh");
                if let Some(config) = ssh_config {
                    command.arg("-F").arg(config);
                }
                command.args(SSH_OPTIONS).args(["--", name, line]);
                command
            }
        }
    }

    /// Runs a script until it ends, its time limit, or an interrupt.
    pub(crate) fn run(self, script: &str, files: &ScriptFiles, limit: Duration) -> Result<Ended> {
        self.run_unless(interrupt::requested, script, files, limit)
    }

    /// Runs a script until it ends or its time limit; an interrupt does not end it.
    pub(crate) fn run_uninterrupted(
        self,
        script: &str,
        files: &ScriptFiles,
        limit: Duration,
    ) -> Result<Ended> {
        self.run_unless(|| false, script, files, limit)
    }

    /// Runs a command line with a file as its standard input.
    pub(crate) fn feed(self, line: &str, input: File, files: &ScriptFiles, limit: Duration) -> Result<Ended> {
        let child = process::start(self.shell(line), input, files)?;
        Ok(process::wait(child, limit, interrupt::requested))
    }

    fn run_unless(
        self,
        interrupted: impl Fn() -> bool,
        script: &str,
        files: &ScriptFiles,
        limit: Duration,
    ) -> Result<Ended> {
        fs::write(&files.script, script).map_err(at(&files.script))?;
        let input = File::open(&files.script).map_err(at(&files.script))?;
        let child = process::start(self.shell("sh -s"), input, files)?;
        Ok(process::wait(child, limit, interrupted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_a_time_limit_and_its_output_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let files = ScriptFiles::named(directory.path(), "x");
        let run = |script: &str, limit| Place::Here.run(script, &files, limit).unwrap();
        assert_eq!(run("echo a; echo b >&2; exit 3", Duration::from_secs(30)), Ended::Code(3));
        assert_eq!((files.text().as_str(), files.error().as_str()), ("a\n", "b"));
        assert_eq!(run("sleep 60 & sleep 60", Duration::from_millis(300)), Ended::TimedOut);
    }

    #[test]
    fn a_host_is_an_argument_of_its_own_after_all_options() {
        let command = Place::Host { name: "n1", ssh_config: Some(Path::new("/c d")) }.shell("sh -s");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[..2], ["-F", "/c d"]);
        assert_eq!(words[words.len() - 3..], ["--", "n1", "sh -s"]);
    }
}
