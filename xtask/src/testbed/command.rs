//! Commands of the system, each with a sentence when it fails.

use std::process::{Command, Stdio};

use crate::{
    failure::{Failure, Result},
    step::shown,
};

/// Runs it to its end and returns what it printed.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|source| Failure::Run {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let detail = format!("{}, {}", output.status, words.trim().replace('\n', "; "));
    Err(Failure::Command { command: shown(command), detail })
}

/// `ip` with words separated by blanks.
pub(super) fn ip(words: &str) -> Result<String> {
    run(Command::new("ip").args(words.split(' ')))
}
