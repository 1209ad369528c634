//! The user's signals, passed on to the side that is measuring. It ends its ranks and reports what it kept.

use std::{
    process::Child,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

use ombx_core::{
    error::{Error, Result},
    exit::Exit,
};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::{Handle, Signals},
};

use crate::launch::thread;

/// Thread that passes signals on until this is dropped.
pub(super) struct Interruption {
    child: Arc<AtomicI32>,
    /// The last signal, or 0.
    signal: Arc<AtomicI32>,
    handle: Handle,
}

impl Interruption {
    pub(super) fn watch() -> Result<Interruption> {
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|e| Error::fabric(format!("signals: {e}")))?;
        let (child, last) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicI32::new(0)));
        let (handle, target, seen) = (signals.handle(), Arc::clone(&child), Arc::clone(&last));
        let pass_on = move || {
            for signal in signals.forever() {
                seen.store(signal, Ordering::SeqCst);
                let pid = Pid::from_raw(target.load(Ordering::SeqCst));
                let which = if signal == SIGINT { Signal::INT } else { Signal::TERM };
                pid.map(|pid| kill_process(pid, which));
            }
        };
        thread::spawn("signals", pass_on)?;
        Ok(Interruption { child, signal: last, handle })
    }

    /// Returns the exit code of a signal that has arrived.
    pub(super) fn exit_code(&self) -> Option<u8> {
        let signal = u8::try_from(self.signal.load(Ordering::SeqCst)).unwrap_or(0);
        (signal > 0).then(|| Exit::SIGNAL + signal)
    }

    pub(super) fn pass_on_to(&self, child: &Child) -> Result<()> {
        let pid = i32::try_from(child.id()).map_err(|e| Error::fabric(e.to_string()))?;
        self.child.store(pid, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.handle.close();
    }
}
