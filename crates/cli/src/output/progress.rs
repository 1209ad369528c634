//! Progress bar on standard error, if that is a terminal. It has no timer, which would take a core from the ranks.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ombx_core::{measure::plan::Launch, unit::Bytes};

/// Progress bar over all rows, if wanted.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
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

    pub(crate) fn starting(&self, bench: &str, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.set_message(format!("{bench} {}", Bytes(bytes)));
            bar.tick();
        }
    }

    pub(crate) fn row(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
            // Slow links are measured again, which gives more rows than expected.
            if bar.length().is_some_and(|rows| rows < bar.position()) {
                bar.set_length(bar.position());
            }
        }
    }

    /// Hides the bar while `print` runs.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub(crate) fn done(&self) {
        if let Some(bar) = &self.0 {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(20));
            bar.finish_and_clear();
        }
    }
}
