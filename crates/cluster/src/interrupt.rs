//! SIGINT, SIGTERM and SIGHUP: the first one stops the run in order, a second one of the same kind ends the process.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicBool, Ordering},
};

use ombx_core::error::{Error, Result};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Installs the handlers.
pub(crate) fn listen() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let seen = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&seen))
            .and_then(|_| flag::register(signal, seen))
            .and_then(|_| flag::register(signal, Arc::clone(&INTERRUPTED)))
            .map_err(|e| Error::fabric(format!("cannot install a handler for signal {signal}: {e}")))?;
    }
    Ok(())
}

/// Replaces [`requested`] in work that must not be interrupted, such as a cleanup.
pub(crate) fn ignored() -> bool {
    false
}

/// Returns whether one of the signals has arrived.
pub(crate) fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
