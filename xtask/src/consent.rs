//! May this process install packages: who it runs as, and whether the person at the terminal agrees.

use std::{
    io::{self, IsTerminal, Write},
    process::{Command, Stdio},
};

use crate::package::Rights;

/// An answer to "install this?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Refused,
    /// Nobody is there to ask.
    NoTerminal,
}

/// What this process may do to the system.
pub(crate) fn rights() -> Rights {
    if rustix::process::geteuid().is_root() {
        return Rights::Root;
    }
    // -n: never ask for a password; a prompt would hang an unattended run.
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if sudo.status().is_ok_and(|status| status.success()) { Rights::Sudo } else { Rights::None }
}

/// Asks on the terminal, unless the command line has answered already.
pub(crate) fn ask(yes: bool) -> io::Result<Consent> {
    if yes {
        return Ok(Consent::Given);
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(Consent::NoTerminal);
    }
    print!("Install them now? [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(understood(&answer))
}

fn understood(answer: &str) -> Consent {
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Consent::Given,
        _ => Consent::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert_eq!(understood("Y\n"), Consent::Given);
        assert_eq!(understood("yes"), Consent::Given);
        assert_eq!(understood("\n"), Consent::Refused);
        assert_eq!(understood("install"), Consent::Refused);
    }
}
