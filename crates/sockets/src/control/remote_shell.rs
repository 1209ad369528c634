//! Programs that start a command on another host.

use std::{env, ffi::OsString, path::Path, process::Command};

use ombx_core::{
    error::{Error, Result},
    system::ssh,
};

/// A program that runs a command on another host. The first words of its command line come before the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteShell(Vec<OsString>);

impl RemoteShell {
    /// Returns ssh with further options. The environment variable `OMBX_SSH` replaces the program.
    pub fn ssh(options: &[String]) -> RemoteShell {
        let own = ssh::PATIENT_OPTIONS.map(OsString::from);
        let options = options.iter().map(OsString::from);
        let program = std::iter::once(ssh::program(None));
        RemoteShell(program.chain(own).chain(options).chain(["--".into()]).collect())
    }

    /// Reads a program and its arguments, separated by blanks. It is called as rsh is: `PROGRAM ARGUMENT.. HOST COMMAND`.
    ///
    /// # Errors
    /// Usage error if this host has no such program.
    pub fn parse(text: &str) -> Result<RemoteShell> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let program = *words.first().ok_or_else(|| Error::usage("--remote-shell names no program"))?;
        let path = env::var_os("PATH").unwrap_or_default();
        let exists = match program.contains('/') {
            true => Path::new(program).is_file(),
            false => env::split_paths(&path).any(|directory| directory.join(program).is_file()),
        };
        match exists {
            true => Ok(RemoteShell(words.into_iter().map(OsString::from).collect())),
            false => Err(Error::usage(format!("--remote-shell {program}: this host has no such program"))),
        }
    }

    /// Returns the command that runs a line of shell on a host.
    pub(crate) fn command(&self, host: &str, line: &str) -> Command {
        let mut words = self.0.iter();
        let mut command = Command::new(words.next().map_or("ssh".as_ref(), OsString::as_os_str));
        command.args(words).arg(host).arg(line);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(shell: &RemoteShell) -> Vec<String> {
        let command = shell.command("n02", "exec 'x' 'y z'");
        let all = [command.get_program()].into_iter().chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_bare_shell_gets_its_own_arguments_the_host_and_one_line() {
        let shell = RemoteShell::parse(" sh  -l me ").unwrap();
        assert_eq!(words(&shell), ["sh", "-l", "me", "n02", "exec 'x' 'y z'"]);
        let directory = ombx_core::testkit::Directory::new("shell");
        let absent = directory.path().join("rsh").display().to_string();
        for text in ["", "  ", &absent, &format!("{absent} -l me")] {
            assert!(RemoteShell::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ssh_gets_its_options_before_a_separator() {
        let words = words(&RemoteShell::ssh(&["-p".into(), "22".into()]));
        let [.., p, port, separator, host, _] = words.as_slice() else { panic!("{words:?}") };
        assert_eq!([&**p, port, separator, host], ["-p", "22", "--", "n02"]);
    }
}
