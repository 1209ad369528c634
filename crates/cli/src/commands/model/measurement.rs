//! Measurement of a ping-pong and a stream: `ombx run` as a process that prints its results.

use std::{
    io::{self, IsTerminal},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ombx_core::{
    error::{Error, Kind, Result},
    exit::Exit,
};
use ombx_results::file::{self, ResultFile};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{arguments::argv, launch::finite_run};

/// Time after which a measurement has failed. `ombx run` has deadlines of its own, which are shorter.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What a measurement gives.
pub(super) enum Measured {
    Results(ResultFile),
    /// Exit code of a measurement without results. Its message was printed.
    Failed(u8),
}

/// Measures the benchmarks with these options of `ombx run`, and keeps what it prints, even of a failure.
///
/// # Errors
/// `ombx run` cannot be started, or prints something other than results.
pub(super) fn measure(
    benchmarks: [&str; 2],
    options: &[String],
    keep: impl FnOnce(&str) -> Result<()>,
) -> Result<Measured> {
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
            .map_err(|e| Error::fabric(format!("signals: {e}")))?;
    }
    let arrived = || u8::try_from(signal.load(Ordering::SeqCst)).unwrap_or(0);
    if io::stderr().is_terminal() {
        stderr_line!("ombx: measuring {} and {}, which takes a minute or two", benchmarks[0], benchmarks[1]);
    }
    let mut command = Command::new(argv::executable()?);
    command.args(["run", "--quiet", "--color=never", "--format=jsonl"]).args(options).args(benchmarks);
    let ended = finite_run::run(command, LONGEST, || arrived() > 0);
    if arrived() > 0 {
        stderr_line!("ombx: interrupted");
        return Ok(Measured::Failed(Exit::SIGNAL + arrived()));
    }
    let ([contents, messages], status) = ended?;
    keep(&contents)?;
    for line in messages.lines() {
        stderr_line!("{line}");
    }
    // Rows that cannot be measured here are left out of the model.
    if !matches!(status.code(), Some(0 | 4)) {
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(Measured::Failed(code.unwrap_or(Kind::Fabric.exit_code())));
    }
    let read = file::read(contents.as_bytes());
    read.map(Measured::Results)
        .map_err(|e| Error::fabric(format!("ombx run prints something other than results: {e}")))
}
