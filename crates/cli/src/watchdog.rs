//! A thread in every rank that ends the process when nothing has moved for too long: launchers hang in ways no option cures.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ombx_core::{case::Case, env};
use rustix::process::{Signal, getpid, kill_process};

static SIGNS: AtomicU64 = AtomicU64::new(0);
static TASK: Mutex<String> = Mutex::new(String::new());

/// A sign of life; called between rounds of samples, outside timed regions.
pub(crate) fn alive() {
    SIGNS.fetch_add(1, Ordering::Relaxed);
}

/// A sign of life, and what runs now.
pub(crate) fn alive_in(bench: &str, case: &Case) {
    *TASK.lock().unwrap_or_else(PoisonError::into_inner) = format!("{bench}, {} bytes", case.bytes);
    alive();
}

/// Ends this process if a whole `limit` passes without a sign of life. It wakes once a `limit` and does nothing else.
pub(crate) fn guard(limit: Duration) {
    let watch = move || {
        loop {
            let before = SIGNS.load(Ordering::Relaxed);
            std::thread::sleep(limit);
            if SIGNS.load(Ordering::Relaxed) == before {
                let task = TASK.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let task = if task.is_empty() { "starting or ending".into() } else { task };
                eprintln!(
                    "ombx: process {} on {}: no progress for {} s in {task}: ending it",
                    getpid().as_raw_nonzero(),
                    env::hostname(),
                    limit.as_secs()
                );
                // Nothing gentler is sure to work: exit handlers of an MPI library that hangs may hang too.
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
    };
    // Without a thread there is no watchdog, but the launching process has a deadline too.
    let _ = std::thread::Builder::new().name("watchdog".into()).stack_size(64 * 1024).spawn(watch);
}
