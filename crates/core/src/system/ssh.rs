//! ssh for unattended use.

use std::{env, ffi::OsString};

/// Variable of the environment that replaces the program.
pub const VARIABLE: &str = "OMBX_SSH";

/// Options: no terminal and no questions, and a host that does not answer is given up after 4 s.
pub const OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=4"];

/// The same for connections that have time: a host may log in slowly, and is given up after 15 s.
pub const PATIENT_OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"];

/// Further options of connections that should end with a dead host, after 15 s.
pub const ALIVE_OPTIONS: [&str; 4] = ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"];

/// Returns the program: the one of the user's choice, that of the environment, or ssh.
pub fn program(chosen: Option<OsString>) -> OsString {
    chosen.or_else(|| env::var_os(VARIABLE)).unwrap_or_else(|| "ssh".into())
}
