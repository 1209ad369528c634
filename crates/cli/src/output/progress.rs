//! Progress bar on standard error, if that is a terminal. It has no timer, which would take a core from the ranks.

use std::cell::RefCell;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ombx_core::{result::Measurement, unit::Bytes};
use ombx_results::number::figure;

use super::terminal;

/// Progress bar over the rows of all launches, if wanted.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    /// Rows of one launch.
    rows: u64,
    /// The estimate of the last row.
    estimate: RefCell<String>,
}

impl Progress {
    pub(crate) fn new(rows: u64, quiet: bool) -> Progress {
        let bar = (!quiet && terminal::stderr_is_interactive()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(rows), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix}{bar:12} {eta} left · {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Progress { bar, quiet, rows, estimate: RefCell::default() }
    }

    /// Begins a launch: its number, and how many launches are expected.
    pub(crate) fn launch(&self, (number, expected): (u32, u32)) {
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!("launch {number} of {expected} "));
            bar.set_length(self.rows.saturating_mul(u64::from(expected)));
            bar.set_position(self.rows.saturating_mul(u64::from(number - 1)));
        }
    }

    pub(crate) fn starting(&self, bench: &str, bytes: u64) {
        self.draw(|| format!("{bench} {}{}", Bytes(bytes), self.estimate.borrow()));
    }

    /// Shows what a process says about its progress. Without a bar, the line is printed.
    pub(crate) fn status(&self, line: &str) {
        if self.bar.is_some() {
            self.draw(|| line.to_owned());
        } else if !self.quiet {
            stderr_line!("ombx: {line}");
        }
    }

    /// Shows a message beside the bar. Both have one line together, in a terminal of any width.
    fn draw(&self, message: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_message(message());
            bar.tick();
        }
    }

    /// Takes note of a row and of its estimate from the launches so far.
    pub(crate) fn row(&self, estimate: Option<&Measurement>) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
            // Slow links are measured again, which gives more rows than expected.
            if bar.length().is_some_and(|rows| rows < bar.position()) {
                bar.set_length(bar.position());
            }
            self.estimate.replace(estimate.map_or(String::new(), so_far));
        }
    }

    /// Hides the bar while `print` runs.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub(crate) fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Returns the headline of a row with its size: ` · 8 B: 0.412 us (0.39 .. 0.45)`.
fn so_far(row: &Measurement) -> String {
    let Some(headline) = row.headline() else { return String::new() };
    let interval = headline.ci95.map(|[low, high]| format!(" ({} .. {})", figure(low), figure(high)));
    let size = row.bytes.map_or(String::new(), |bytes| format!("{} B: ", Bytes(bytes)));
    format!(
        " · {size}{} {}{} so far",
        figure(headline.value),
        row.metric.unit(),
        interval.unwrap_or_default()
    )
}
