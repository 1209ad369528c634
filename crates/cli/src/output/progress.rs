//! Progress bar on standard error, if that is a terminal. It has no timer, which would take a core from the ranks.

mod map;

use std::{cell::RefCell, fmt::Write, sync::PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use ombx_core::{result::Measurement, unit::Bytes};
use ombx_results::number::figure;

use self::map::FilledMap;
use super::terminal;
use crate::arguments::output::OutputArgs;

/// Template of the line of the bar.
const LINE: &str = "{prefix}{bar:12} {eta} left · {wide_msg}";

/// Progress bar over the rows of all launches, if wanted.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    /// Rows of one launch.
    rows: u64,
    /// The estimate of the last row.
    estimate: RefCell<String>,
    /// Map of links that fills while they are measured, below the bar.
    map: Option<FilledMap>,
}

impl Progress {
    pub(crate) fn new(rows: u64, output: &OutputArgs) -> Progress {
        let map = output.follow.then(FilledMap::default);
        let bar = (!output.quiet && terminal::stderr_is_interactive()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(rows), ProgressDrawTarget::stderr());
            let below = if map.is_some() { "\n{map}" } else { "" };
            let style = ProgressStyle::with_template(&format!("{LINE}{below}"));
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let shown = map.as_ref().map(FilledMap::text).unwrap_or_default();
            let write = move |_: &ProgressState, out: &mut dyn Write| {
                let _ = out.write_str(&shown.lock().unwrap_or_else(PoisonError::into_inner));
            };
            bar.set_style(style.with_key("map", write));
            bar
        });
        Progress { bar, quiet: output.quiet, rows, estimate: RefCell::default(), map }
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

    /// Shows the map of the links after a row, if it is due: below the bar, or without a bar in lines.
    pub(crate) fn follow(&self, draw: impl FnOnce(usize) -> Option<String>) {
        let Some(map) = &self.map else { return };
        match &self.bar {
            Some(bar) => {
                if map.redraw(draw) {
                    bar.tick();
                }
            }
            None => {
                for line in map.after_quarter(self.rows, draw).iter().flat_map(|text| text.lines()) {
                    stderr_line!("{line}");
                }
            }
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
