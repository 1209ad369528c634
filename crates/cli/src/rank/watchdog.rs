//! A thread in every rank that ends the process if it makes no progress for too long. Launchers hang in ways that no option prevents.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ombx_core::{
    benchmark::Case,
    system::{clock::Since, environment},
};
use rustix::process::{Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

/// Name of the process of Hydra that starts ranks on each host.
const HYDRA_PROXY: &str = "hydra_pmi_proxy";

/// Counts calls of [`progress`].
static PROGRESS: AtomicU64 = AtomicU64::new(0);
/// The current case.
static CASE: Mutex<String> = Mutex::new(String::new());

/// Tells the watchdog that the rank makes progress. Called between rounds of samples, outside timed regions.
pub(super) fn progress() {
    PROGRESS.fetch_add(1, Ordering::Relaxed);
}

/// Tells the watchdog that a case starts.
pub(super) fn progress_in(bench: &str, case: &Case) {
    *CASE.lock().unwrap_or_else(PoisonError::into_inner) = format!("{bench}, {} bytes", case.bytes);
    progress();
}

/// Starts the watchdog. It ends this process after `silence` without progress, or after `limit`. It wakes once per `silence`.
pub(super) fn start(silence: Duration, limit: Duration) {
    let since = Since::now();
    if getppid().is_some_and(|proxy| of_process(proxy.as_raw_nonzero().get(), "comm").trim() == HYDRA_PROXY) {
        // Without its proxy a rank of Hydra cannot communicate and would wait forever.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    let watch = move || {
        loop {
            let before = PROGRESS.load(Ordering::Relaxed);
            std::thread::sleep(silence.min(limit.saturating_sub(since.elapsed())));
            let late = since.elapsed() >= limit;
            if late || PROGRESS.load(Ordering::Relaxed) == before {
                let case = CASE.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let case = if case.is_empty() { "its start or end".into() } else { case };
                let (why, time) =
                    if late { ("not ended after", limit) } else { ("no progress for", silence) };
                stderr_line!(
                    "ombx: process {} on {}: {why} {} s in {case}; it is killed",
                    getpid().as_raw_nonzero(),
                    environment::hostname(),
                    time.as_secs()
                );
                end_proxy();
                // Exit handlers of an MPI library that hangs may hang too. SIGKILL runs none.
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
    };
    // If no thread can be started there is no watchdog, but the launching process has a time limit too.
    let _ = std::thread::Builder::new().name("watchdog".into()).stack_size(64 * 1024).spawn(watch);
}

/// Returns a file of a process, or an empty text.
fn of_process(pid: i32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// Kills the launcher's proxy on this host, which may have lost its launcher and would run forever. Each job has its own proxy. If
/// the launcher is on this host too, it needs the proxy for ending the other ranks.
fn end_proxy() {
    let Some(proxy) = getppid() else { return };
    let pid = proxy.as_raw_nonzero().get();
    let is_proxy = [HYDRA_PROXY, "orted", "prted"].contains(&of_process(pid, "comm").trim());
    let status = of_process(pid, "status");
    let launcher = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    let comm = launcher.map(|launcher| of_process(launcher, "comm")).unwrap_or_default();
    let with_launcher = ["mpiexec", "mpirun", "orterun", "prterun"].iter().any(|name| comm.starts_with(name));
    if is_proxy && !with_launcher {
        let _ = kill_process(proxy, Signal::KILL);
    }
}
