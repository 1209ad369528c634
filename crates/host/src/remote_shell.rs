//! Remote shells: programs that run a command on another host. The usual one is ssh.

use std::{borrow::Cow, env, ffi::OsString, process::Command};

use ombx_record::error::{Error, Result};

use crate::search_path;

/// Variable of the environment that replaces ssh.
pub const VARIABLE: &str = "OMBX_SSH";

/// Options of ssh: no terminal and no questions, and a host that does not answer is given up after 8 s, in which the system asks it four
/// times (at 0, 1, 3 and 7 s, RFC 6298).
pub const OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=8"];

/// Further options of connections that should end with a dead host, after 15 s.
pub const ALIVE_OPTIONS: [&str; 4] = ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"];

/// Returns the program that replaces ssh, if one does: that of an option, or that of the environment.
pub fn replacement(option: Option<&str>) -> Option<OsString> {
    option.map(OsString::from).or_else(|| env::var_os(VARIABLE).filter(|program| !program.is_empty()))
}

/// Returns ssh, or the program that replaces it.
pub fn ssh(option: Option<&str>) -> OsString {
    replacement(option).unwrap_or_else(|| "ssh".into())
}

/// A program with the arguments that come before the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteShell {
    program: OsString,
    arguments: Vec<OsString>,
}

impl RemoteShell {
    /// Returns the shell of a program and its arguments.
    pub fn new(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> RemoteShell {
        let arguments = arguments.into_iter().map(Into::into).collect();
        RemoteShell { program: program.into(), arguments }
    }

    /// Returns ssh, or the program of an option, with its options and further ones.
    pub fn ssh(option: Option<&str>, further: &[String]) -> RemoteShell {
        let further = further.iter().map(String::as_str);
        RemoteShell::new(ssh(option), OPTIONS.into_iter().chain(further).chain(["--"]))
    }

    /// Reads a program and its arguments, separated by blanks. It is called as rsh is: `PROGRAM ARGUMENT.. HOST COMMAND`.
    ///
    /// # Errors
    /// Usage error if this host has no such program.
    pub fn parse(text: &str) -> Result<RemoteShell> {
        let mut words = text.split_whitespace();
        let program = words
            .next()
            .ok_or_else(|| Error::usage("--remote-shell names no program: give one, for example ssh"))?;
        if !search_path::has(program) {
            return Err(Error::usage(format!("--remote-shell {program}: this host has no such program")));
        }
        Ok(RemoteShell::new(program, words))
    }

    /// Returns the program, for messages.
    pub fn program(&self) -> Cow<'_, str> {
        self.program.to_string_lossy()
    }

    /// Returns the command that runs a line of shell on a host.
    pub fn command(&self, host: &str, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(host).arg(line);
        command
    }
}

#[cfg(test)]
mod tests {
    use crate::remote_shell::*;

    fn words(shell: &RemoteShell) -> Vec<String> {
        let command = shell.command("n02", "exec 'x' 'y z'");
        let all = [command.get_program()].into_iter().chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_bare_shell_gets_its_own_arguments_the_host_and_one_line() {
        let shell = RemoteShell::parse(" sh  -l me ").unwrap();
        assert_eq!(words(&shell), ["sh", "-l", "me", "n02", "exec 'x' 'y z'"]);
        let directory = ombx_testkit::Directory::new("shell");
        let absent = directory.path().join("rsh").display().to_string();
        for text in ["", "  ", &absent, &format!("{absent} -l me")] {
            assert!(RemoteShell::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ssh_gets_its_options_before_a_separator() {
        let words = words(&RemoteShell::ssh(None, &["-p".into(), "22".into()]));
        let [.., p, port, separator, host, _] = words.as_slice() else { panic!("{words:?}") };
        assert_eq!([&**p, port, separator, host], ["-p", "22", "--", "n02"]);
    }
}
