//! ssh for unattended use.

use std::{env, ffi::OsString};

/// Variable of the environment that replaces the program.
pub const VARIABLE: &str = "OMBX_SSH";

/// Options: no terminal and no questions, and a host that does not answer is given up after 8 s.
pub const OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=8"];

/// Further options of connections that should end with a dead host, after 15 s.
pub const ALIVE_OPTIONS: [&str; 4] = ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"];

/// Returns the program that replaces ssh, if one does: that of an option, or that of the environment.
pub fn replacement(option: Option<&str>) -> Option<OsString> {
    option.map(OsString::from).or_else(|| env::var_os(VARIABLE))
}

/// Returns ssh, or the program that replaces it.
pub fn program(option: Option<&str>) -> OsString {
    replacement(option).unwrap_or_else(|| "ssh".into())
}

/// Returns the words of a command line before the host: the program, its options and further ones.
pub fn words(option: Option<&str>, further: &[String]) -> Vec<OsString> {
    let options = OPTIONS.into_iter().chain(further.iter().map(String::as_str)).chain(["--"]);
    [program(option)].into_iter().chain(options.map(OsString::from)).collect()
}
