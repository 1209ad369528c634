//! A thread in every rank that ends the process when nothing has moved for too long: launchers hang in ways no option cures.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ombx_core::{
    benchmark::case::Case,
    system::{clock::Since, environment},
};
use rustix::process::{Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

/// What starts the ranks of Hydra on each host.
const HYDRA_HELPER: &str = "hydra_pmi_proxy";

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

/// Ends this process if a whole `limit` passes without a sign of life, or after `whole`. It wakes once a `limit` and does nothing
/// else.
pub(crate) fn guard(limit: Duration, whole: Duration) {
    let since = Since::now();
    if getppid()
        .is_some_and(|helper| of_process(helper.as_raw_nonzero().get(), "comm").trim() == HYDRA_HELPER)
    {
        // Without its helper a rank of Hydra reaches nobody and would wait for ever.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    let watch = move || {
        loop {
            let before = SIGNS.load(Ordering::Relaxed);
            std::thread::sleep(limit.min(whole.saturating_sub(since.elapsed())));
            let late = since.elapsed() >= whole;
            if late || SIGNS.load(Ordering::Relaxed) == before {
                let task = TASK.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let task = if task.is_empty() { "starting or ending".into() } else { task };
                let (why, time) = if late { ("not ended after", whole) } else { ("no progress for", limit) };
                tell!(
                    "ombx: process {} on {}: {why} {} s in {task}: ending it",
                    getpid().as_raw_nonzero(),
                    environment::hostname(),
                    time.as_secs()
                );
                end_proxy();
                // Nothing gentler is sure to work: exit handlers of an MPI library that hangs may hang too.
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
    };
    // Without a thread there is no watchdog, but the launching process has a deadline too.
    let _ = std::thread::Builder::new().name("watchdog".into()).stack_size(64 * 1024).spawn(watch);
}

fn of_process(pid: i32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// A launcher's helper on this host, which may have lost its launcher and would stay for ever: one of its own for each job. Where
/// the launcher is here too, it needs its helper to end the other ranks.
fn end_proxy() {
    let Some(helper) = getppid() else { return };
    let pid = helper.as_raw_nonzero().get();
    let is_helper = [HYDRA_HELPER, "orted", "prted"].contains(&of_process(pid, "comm").trim());
    let status = of_process(pid, "status");
    let launcher = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    let comm = launcher.map(|launcher| of_process(launcher, "comm")).unwrap_or_default();
    let with_launcher = ["mpiexec", "mpirun", "orterun", "prterun"].iter().any(|name| comm.starts_with(name));
    if is_helper && !with_launcher {
        let _ = kill_process(helper, Signal::KILL);
    }
}
