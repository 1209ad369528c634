//! Signals that whoever started this process lets it ignore, as `nohup` and shells do for commands in the background.

use std::{env, fs, os::unix::process::CommandExt, process::Command};

/// Program that lets signals do what they usually do.
const ENV: [&str; 2] = ["env", "--default-signal=HUP,INT,QUIT,TERM"];
/// The same signals, by number.
const SIGNALS: [u32; 4] = [1, 2, 3, 15];

/// Starts this process again with the usual signals if it ignores one: tests send them to programs, which inherit that. Without a program that
/// can do this, the process goes on.
pub(crate) fn default_signals() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let is_usual = SIGNALS.iter().all(|signal| ignored.unwrap_or(0) >> (signal - 1) & 1 == 0);
    let works = || Command::new(ENV[0]).args([ENV[1], "true"]).status().is_ok_and(|status| status.success());
    if !is_usual
        && works()
        && let Ok(program) = env::current_exe()
    {
        let _ = Command::new(ENV[0]).arg(ENV[1]).arg(program).args(env::args_os().skip(1)).exec();
    }
}
