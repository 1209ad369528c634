//! Watchdog of a rank: a timer whose signal handler ends the process if it makes no progress for too long. Launchers hang in ways that
//! no option prevents. A thread would do the same, but a plain MPI program has no second thread.
#![expect(unsafe_code, reason = "a timer and a signal handler are set by libc")]

use std::{
    ffi::{CStr, c_int},
    mem,
    os::unix::process::parent_id,
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use ombx_record::error::{Error, Result};
use rustix::{
    fs::{Mode, OFlags, open},
    io::{read, write},
    path::DecInt,
    process::{Pid, Signal, getpid, kill_process, set_parent_process_death_signal},
    stdio::stderr,
};

use crate::{environment, since::Since};

/// Name of the process of Hydra that starts ranks on each host.
const HYDRA_PROXY: &[u8] = b"hydra_pmi_proxy";
/// Names of all processes that start ranks on a host for a launcher.
const PROXIES: [&[u8]; 3] = [HYDRA_PROXY, b"orted", b"prted"];
/// Beginnings of the names of launchers.
const LAUNCHERS: [&[u8]; 4] = [b"mpiexec", b"mpirun", b"orterun", b"prterun"];
/// Signals between `SIGRTMIN` and that of the timer: those at the ends of the range belong to libc and to valgrind.
const SIGNAL_OFFSET: c_int = 10;
/// Longest text about what the process does, in bytes.
const LONGEST: usize = 160;

/// Counts calls of [`progress`].
static PROGRESS: AtomicU64 = AtomicU64::new(0);
/// Value of `PROGRESS` at the start or the last expiry of the timer.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// What the process does. Written by the thread that measures, read by the handler, which may interrupt it.
static WORK: [AtomicU8; LONGEST] = [const { AtomicU8::new(0) }; LONGEST];
static WORK_LENGTH: AtomicUsize = AtomicUsize::new(0);
static TIMER: AtomicPtr<libc::c_void> = AtomicPtr::new(ptr::null_mut());
static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// What the handler needs, prepared before the timer starts: a handler may not allocate memory.
struct Settings {
    /// Time without progress in work, and before the first work.
    silence: Duration,
    start: Duration,
    since: Since,
    /// Time after which the process must have ended.
    limit: Duration,
    /// Sentences up to the work, for silence and for the end.
    silent: Vec<u8>,
    late: Vec<u8>,
}

/// Tells the watchdog that the process makes progress. Called between rounds of samples, outside timed regions.
pub fn progress() {
    PROGRESS.fetch_add(1, Ordering::Relaxed);
}

/// Tells the watchdog what the process does from now on, which is progress too. A long text is cut.
pub fn enter(work: &str) {
    WORK_LENGTH.store(0, Ordering::Release);
    let bytes = &work.as_bytes()[..work.len().min(LONGEST)];
    for (kept, byte) in WORK.iter().zip(bytes) {
        kept.store(*byte, Ordering::Relaxed);
    }
    WORK_LENGTH.store(bytes.len(), Ordering::Release);
    progress();
}

/// Starts the watchdog. It ends this process by SIGKILL after `silence` without progress, or after `limit`, with one sentence on
/// standard error. Before the first work `start` is the silence. Its timer expires once per `silence`.
///
/// # Errors
/// The timer cannot be created, or the watchdog runs already.
pub fn start([start, silence]: [Duration; 2], limit: Duration) -> Result<()> {
    if parent().is_some_and(|parent| is_called(parent, &[HYDRA_PROXY])) {
        // Without its proxy a rank of Hydra cannot communicate and would wait forever.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    let process = format!("ombx: process {} on {}: ", getpid().as_raw_nonzero(), environment::hostname());
    let settings = Settings {
        silence,
        start,
        since: Since::now(),
        limit,
        silent: format!("{process}no progress for {} s in ", silence.as_secs()).into_bytes(),
        late: format!("{process}not ended after {} s in ", limit.as_secs()).into_bytes(),
    };
    SETTINGS.set(settings).map_err(|_| Error::fabric("the watchdog runs already"))?;
    let failed = |call: &str| Error::fabric(format!("{call}: {}", std::io::Error::last_os_error()));
    let signal = libc::SIGRTMIN() + SIGNAL_OFFSET;
    // SAFETY: all-zero values are valid for these C structures. `on_expiry` has the type that sigaction expects, and calls only
    // functions that are safe in a signal handler. `timer` outlives the call that writes it.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_expiry as extern "C" fn(c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        if libc::sigaction(signal, &raw const action, ptr::null_mut()) != 0 {
            return Err(failed("sigaction"));
        }
        let mut event: libc::sigevent = mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = signal;
        let mut timer: libc::timer_t = ptr::null_mut();
        if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
            return Err(failed("timer_create"));
        }
        TIMER.store(timer, Ordering::Release);
    }
    arm();
    Ok(())
}

/// Lets the timer expire once: after the silence, or at the end if that is earlier.
fn arm() {
    let Some(settings) = SETTINGS.get() else { return };
    let wait = settings
        .silence
        .min(settings.limit.saturating_sub(settings.since.elapsed()))
        .max(Duration::from_millis(1));
    let seconds = wait.as_secs().min(i32::MAX as u64) as libc::time_t;
    // SAFETY: an all-zero `itimerspec` is valid and outlives the call; the timer was created by `start`. timer_settime is safe in a
    // signal handler (POSIX.1-2017, 2.4.3).
    unsafe {
        let mut value: libc::itimerspec = mem::zeroed();
        value.it_value.tv_sec = seconds;
        value.it_value.tv_nsec = wait.subsec_nanos().into();
        libc::timer_settime(TIMER.load(Ordering::Acquire), 0, &raw const value, ptr::null_mut());
    }
}

/// Ends the process if it has made no progress since the last expiry, or is late. Otherwise sets the timer again.
extern "C" fn on_expiry(_: c_int) {
    let Some(settings) = SETTINGS.get() else { return };
    let is_late = settings.since.elapsed() >= settings.limit;
    let progress = PROGRESS.load(Ordering::Relaxed);
    let is_starting = WORK_LENGTH.load(Ordering::Acquire) == 0 && settings.since.elapsed() < settings.start;
    if !is_late && (is_starting || SEEN.swap(progress, Ordering::Relaxed) != progress) {
        return arm();
    }
    let mut sentence = Text::default();
    sentence.append(if is_late { &settings.late } else { &settings.silent });
    match WORK_LENGTH.load(Ordering::Acquire) {
        0 => sentence.append(b"its start or end"),
        length => WORK[..length].iter().for_each(|byte| sentence.append(&[byte.load(Ordering::Relaxed)])),
    }
    sentence.append(b"; it is killed\n");
    let _ = write(stderr(), sentence.bytes());
    end_proxy();
    // Exit handlers of an MPI library that hangs may hang too. SIGKILL runs none.
    let _ = kill_process(getpid(), Signal::KILL);
}

/// Kills the launcher's proxy on this host, which may have lost its launcher and would run forever. Each job has its own proxy. If
/// the launcher is on this host too, it needs the proxy for ending the other ranks.
fn end_proxy() {
    let Some(proxy) = parent() else { return };
    if is_called(proxy, &PROXIES) && !parent_of(proxy).is_some_and(|launcher| is_called(launcher, &LAUNCHERS))
    {
        let _ = kill_process(proxy, Signal::KILL);
    }
}

/// Returns whether the name of a process begins with one of these names. The kernel keeps 15 bytes of a name.
fn is_called(pid: Pid, names: &[&[u8]]) -> bool {
    let comm = of_process(pid, c"comm");
    names.iter().any(|name| comm.bytes().starts_with(&name[..name.len().min(15)]))
}

/// Returns the parent of this process; `None` if it is in another PID namespace.
fn parent() -> Option<Pid> {
    // Not getppid of rustix: valgrind 3.19 takes the sign test of its packed result for a jump on uninitialised bytes.
    Pid::from_raw(parent_id().cast_signed())
}

/// Returns the parent of a process: the fourth field of its `stat`, the second after the name in parentheses.
fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = of_process(pid, c"stat");
    let end = stat.bytes().iter().rposition(|byte| *byte == b')')?;
    let field = stat.bytes()[end + 1..].split(|byte| *byte == b' ').nth(2)?;
    Pid::from_raw(std::str::from_utf8(field).ok()?.parse().ok()?)
}

/// Returns the start of a file of a process, or an empty text. Safe in a signal handler.
fn of_process(pid: Pid, file: &CStr) -> Text {
    let (mut path, mut text) = (Text::default(), Text::default());
    path.append(b"/proc/");
    path.append(DecInt::new(pid.as_raw_nonzero().get()).as_bytes());
    path.append(b"/");
    path.append(file.to_bytes_with_nul());
    let Ok(path) = CStr::from_bytes_with_nul(path.bytes()) else { return text };
    if let Ok(file) = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        text.length = read(&file, &mut text.bytes).unwrap_or(0);
    }
    text
}

/// Text on the stack.
struct Text {
    bytes: [u8; 512],
    length: usize,
}

impl Default for Text {
    fn default() -> Text {
        Text { bytes: [0; 512], length: 0 }
    }
}

impl Text {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Appends as many bytes as there is room for.
    fn append(&mut self, bytes: &[u8]) {
        let count = bytes.len().min(self.bytes.len() - self.length);
        self.bytes[self.length..self.length + count].copy_from_slice(&bytes[..count]);
        self.length += count;
    }
}

#[cfg(test)]
mod tests {
    use crate::watchdog::*;

    #[test]
    fn the_parent_of_this_process_is_read_from_its_files() {
        assert_eq!(parent_of(getpid()), parent());
        let comm = std::fs::read("/proc/self/comm").unwrap();
        assert!(is_called(getpid(), &[comm.trim_ascii_end()]));
        assert!(!is_called(getpid(), &PROXIES));
    }

    #[test]
    fn a_long_text_is_cut() {
        let mut text = Text::default();
        (0..200).for_each(|_| text.append(b"abc"));
        assert_eq!((text.bytes().len(), &text.bytes()[509..]), (512, &b"cab"[..]));
    }
}
