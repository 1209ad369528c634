//! Progress on stderr, only on a terminal; drawn when something happens, never by a timer that would take a core away.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ombx_core::{measure::plan::Launch, unit::Bytes};

/// A bar over all rows, or nothing.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar if stderr is a terminal and the user did not ask for quiet.
    pub(crate) fn new(rows: u64, quiet: bool, launch: Option<Launch>) -> Progress {
        let wanted = !quiet && std::io::stderr().is_terminal();
        Progress(wanted.then(|| {
            let bar = ProgressBar::with_draw_target(Some(rows), ProgressDrawTarget::stderr());
            let style =
                ProgressStyle::with_template("{prefix}{bar:24} {pos}/{len} rows · {msg} · {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            if let Some(launch) = launch {
                bar.set_prefix(format!("launch {}/{} ", launch.number, launch.of));
            }
            bar
        }))
    }

    /// A case starts.
    pub(crate) fn starting(&self, bench: &str, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.set_message(format!("{bench} {}", Bytes(bytes)));
            bar.tick();
        }
    }

    /// A row is there.
    pub(crate) fn row(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
            // Links that stand out are measured again, which nobody could know before.
            if bar.length().is_some_and(|rows| rows < bar.position()) {
                bar.set_length(bar.position());
            }
        }
    }

    /// Prints with the bar out of the way.
    pub(crate) fn aside<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the bar away.
    pub(crate) fn done(&self) {
        if let Some(bar) = &self.0 {
            bar.disable_steady_tick();
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(20));
            bar.finish_and_clear();
            let _ = bar.elapsed() > Duration::ZERO;
        }
    }
}
