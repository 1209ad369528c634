//! What signals do when this program is started. Libraries may change that before `main`: UCX catches SIGHUP, for `nohup` too.
#![expect(unsafe_code, reason = "neither the standard library nor rustix reads or sets what a signal does")]

use std::{
    ffi::c_int,
    mem, ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use libc::{SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Signals by which a user ends a program.
const KEPT: [c_int; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Those that were ignored at the start, a bit each; bit 0 once they are known.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// Bit of [`IGNORED`].
const KNOWN: u64 = 1;

/// The loader calls this function before libraries are initialised.
#[used]
#[unsafe(link_section = ".preinit_array")]
static BEFORE_LIBRARIES: extern "C" fn() = read;

extern "C" fn read() {
    IGNORED.fetch_or(KNOWN, Ordering::Relaxed);
    for signal in KEPT {
        // SAFETY: an all-zero `sigaction` is valid, and the call only writes it.
        let is_ignored = unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == SIG_IGN
        };
        IGNORED.fetch_or(u64::from(is_ignored) << signal, Ordering::Relaxed);
    }
}

/// Lets signals do again what they did at the start.
pub(crate) fn restore() {
    // Some C libraries do not call functions before others are initialised.
    if IGNORED.load(Ordering::Relaxed) & KNOWN == 0 {
        read();
    }
    let ignored = IGNORED.load(Ordering::Relaxed);
    for signal in KEPT {
        let action = if ignored >> signal & 1 == 1 { SIG_IGN } else { SIG_DFL };
        // SAFETY: both actions are valid, and this program has installed no handler yet.
        unsafe { libc::signal(signal, action) };
    }
}
