//! Files of a script: its text, standard output and standard error.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ombx_core::error::Error;

/// Longest part of a line of standard error in a message, in characters.
const LINE: usize = 300;

/// Paths of the files of one script.
pub(crate) struct ScriptFiles {
    pub(crate) script: PathBuf,
    pub(crate) stdout: PathBuf,
    pub(crate) stderr: PathBuf,
}

impl ScriptFiles {
    /// Returns `NAME.sh`, `NAME.out` and `NAME.err` in a directory.
    pub(crate) fn named(directory: &Path, name: &str) -> Self {
        let file = |extension: &str| directory.join(format!("{name}.{extension}"));
        Self { script: file("sh"), stdout: file("out"), stderr: file("err") }
    }

    /// Returns the standard output; empty if there is none.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap_or_default()
    }

    /// Returns what standard error says about the failure, in one line: the last message of ombx or else the last line, and
    /// the line in which Open MPI or Hydra names the host of a process that died.
    pub(crate) fn error(&self) -> String {
        let text = fs::read(&self.stderr).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let message = lines.iter().rev().find(|line| line.starts_with("ombx: ")).or(lines.last());
        let host = lines.iter().find(|line| line.contains(" on node ") || line.contains(" RUNNING AT "));
        let short = |line: &&str| line.trim_start_matches('=').trim().chars().take(LINE).collect::<String>();
        [message, host].into_iter().flatten().map(short).collect::<Vec<_>>().join("; ")
    }
}

/// Returns the error of an operation on `path`.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::storage(format!("{}: {error}", path.display()))
}
