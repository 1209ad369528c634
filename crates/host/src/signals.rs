//! Signals by which a user ends a command, and processes that end with the one that has started them.
#![expect(unsafe_code, reason = "a function runs between fork and exec")]

use std::{
    os::unix::process::CommandExt,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use ombx_record::error::{Error, Exit, Result};
use rustix::{
    io::Errno,
    process::{Signal, getpid, getppid, set_parent_process_death_signal},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    flag,
};

/// Returns whether this process ignores a signal. Whoever has started it has decided that, as `nohup` does.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Returns the signals by which the user ends a command. One that is ignored stays ignored.
pub fn of_user() -> impl Iterator<Item = i32> {
    [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal))
}

/// Lets a process get SIGTERM when the thread that starts it has ended, for whatever reason.
pub fn end_with_this_thread(command: &mut Command) {
    let parent = getpid();
    let prepare = move || {
        // Without the call the process goes on.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: between fork and exec, the function makes two system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// Signals of the user. Between start and stop, they are noticed and do not end this process.
#[derive(Default)]
pub struct Interruption {
    /// The last signal, or 0.
    signal: Arc<AtomicUsize>,
    is_stopped: Arc<AtomicBool>,
}

impl Interruption {
    /// Notices signals from now on.
    pub fn new() -> Result<Interruption> {
        let interruption = Interruption::default();
        interruption.start()?;
        Ok(interruption)
    }

    /// Notices signals from now on.
    pub fn start(&self) -> Result<()> {
        for number in of_user() {
            flag::register_usize(number, Arc::clone(&self.signal), number as usize)
                .and_then(|_| flag::register_conditional_default(number, Arc::clone(&self.is_stopped)))
                .map_err(|e| Error::fabric(format!("signals: {e}")))?;
        }
        Ok(())
    }

    /// Lets signals end this process again. Those that have arrived stay known.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
    }

    /// Returns the exit code of a signal that has arrived.
    pub fn exit_code(&self) -> Option<u8> {
        let signal = u8::try_from(self.signal.load(Ordering::SeqCst)).unwrap_or(0);
        (signal > 0).then(|| Exit::SIGNAL.saturating_add(signal))
    }

    /// Returns whether a signal has arrived.
    pub fn has_arrived(&self) -> bool {
        self.exit_code().is_some()
    }

    /// Returns an interruption by a signal that has arrived.
    pub fn from_signal(signal: usize) -> Interruption {
        Interruption { signal: Arc::new(AtomicUsize::new(signal)), ..Interruption::default() }
    }
}
