//! Commands of the system: how they are shown, and what they print.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::failure::{Failure, Result};

/// Returns standard output of a command that reads nothing, or an error with the last line of its standard error.
pub fn output(command: &mut Command) -> Result<String> {
    let (text, failure) = output_and_failure(command)?;
    failure.map_or(Ok(text), Err)
}

/// Returns standard output, and the failure if the command did not succeed.
pub fn output_and_failure(command: &mut Command) -> Result<(String, Option<Failure>)> {
    let output = command.stdin(Stdio::null()).output().map_err(|source| cannot_run(command, source))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok((text, None));
    }
    Ok((text, Some(failed(command, &output))))
}

/// Returns the failure of a command, with the last line of its standard error.
pub fn failed(command: &Command, output: &Output) -> Failure {
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Failure::Command { command: shown(command), detail: format!("{}: {last}", output.status) }
}

/// Returns whether a command succeeds. Its output is discarded.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

/// Returns the path of the program that runs.
pub fn this_program() -> Result<PathBuf> {
    env::current_exe().map_err(Failure::file("the path of this program"))
}

/// Writes the C source `name` into a directory and compiles it there: to `STEM.so` with `-shared`, otherwise to `STEM`.
pub fn compile(
    compiler: &Path,
    options: &[&str],
    directory: &Path,
    name: &str,
    text: &str,
) -> Result<PathBuf> {
    let source = directory.join(name);
    let compiled = source.with_extension(if options.contains(&"-shared") { "so" } else { "" });
    fs::create_dir_all(directory).and_then(|()| fs::write(&source, text)).map_err(Failure::file(&source))?;
    let mut command = Command::new(compiler);
    output(command.args(options).arg("-o").arg(&compiled).arg(&source).arg("-ldl"))?;
    Ok(compiled)
}

/// Returns a command as a user would type it, with the environment variables set for it.
pub fn shown(command: &Command) -> String {
    let environment = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())))
    });
    let program = command.get_program().to_string_lossy();
    let program = if program.ends_with("/cargo") { "cargo".to_owned() } else { quoted(&program) };
    let arguments = command.get_args().map(|argument| quoted(&argument.to_string_lossy()));
    environment.chain([program]).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

/// Returns the failure of a command that could not be started.
pub fn cannot_run(command: &Command, source: std::io::Error) -> Failure {
    Failure::Run { program: command.get_program().to_string_lossy().into_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = shell("a b");
        command.env("MPICC", "mpicc.mpich").env_remove("CRAY_MPICH_DIR");
        assert_eq!(shown(&command), "MPICC=mpicc.mpich sh -c 'a b'");
    }

    #[test]
    fn a_failed_command_is_quoted_with_its_last_line() {
        assert_eq!(output(&mut shell("echo a")).unwrap(), "a\n");
        let failure = output(&mut shell("echo why >&2; echo >&2; exit 3")).unwrap_err().to_string();
        assert!(failure.contains("echo why") && failure.ends_with(": why"), "{failure}");
    }
}
