//! Consent to install packages: the rights of this process, and the answer of the person at the terminal.

use std::{
    io::{self, IsTerminal, Write},
    process::Command,
};

use crate::{
    command::succeeds,
    failure::{Failure, Result},
};

/// How this process may change the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// It runs as root.
    Root,
    /// `sudo -n` is permitted.
    Sudo,
    /// Neither.
    None,
}

/// Returns the rights of this process.
pub fn rights() -> Rights {
    if rustix::process::geteuid().is_root() {
        return Rights::Root;
    }
    // -n: never ask for a password; a prompt would hang an unattended run.
    if succeeds(Command::new("sudo").args(["-n", "true"])) { Rights::Sudo } else { Rights::None }
}

/// Asks at the terminal whether to install, unless `yes` is set. Any answer but yes is an error.
pub fn ask(yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    let refused = |why: &str| Err(Failure::NotInstalled(why.to_owned()));
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return refused("there is no terminal to ask on (--yes agrees)");
    }
    let mut answer = String::new();
    print!("Install them now? [y/N] ");
    io::stdout()
        .flush()
        .and_then(|()| io::stdin().read_line(&mut answer))
        .map_err(Failure::file("standard input"))?;
    if agrees(&answer) { Ok(()) } else { refused("not agreed to") }
}

fn agrees(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_consent() {
        assert!(agrees("Y\n") && agrees("yes"));
        assert!(!agrees("\n") && !agrees("install"));
    }
}
