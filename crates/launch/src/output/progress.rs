//! Progress on standard error, if that is a terminal: one line with the launch, a bar, the time left, and the figure of the last row.
//! It has no timer, which would take a core from the ranks.

use std::{
    cell::{Cell, RefCell},
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle};
use ombx_estimate::number::figure;
use ombx_host::since::Since;
use ombx_record::{result::Measurement, unit::Bytes};

use crate::output::{
    destination::{Destination, Screen},
    renderers, terminal,
};

/// Template of the line, without and with a bar.
const LINES: [&str; 2] = ["{wide_msg}", "{prefix}{bar:12} {wide_msg}"];
/// Columns of the bar with the blank behind it.
const BAR: usize = 13;
/// Narrowest terminal that has a bar.
const WITH_BAR: usize = 76;

/// Progress over the rows of all launches, if wanted.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    /// Rows of one launch.
    rows: u64,
    since: Since,
    /// Number of this launch, and how many are expected; `None` of a single launch.
    launch: Cell<Option<[u32; 2]>>,
    /// What is said of the last row, the longest form first.
    last: RefCell<Vec<String>>,
    /// Map of links that fills while they are measured, below the bar.
    map: Option<FilledMap>,
}

impl Progress {
    pub(crate) fn new(rows: u64, output: &Destination) -> Progress {
        let follows = matches!(output.screen, Screen::Links { follow: true, .. });
        let map = follows.then(FilledMap::default);
        let bar = (!output.quiet && terminal::stderr_is_interactive()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(rows), ProgressDrawTarget::stderr());
            let bar = bar.with_finish(ProgressFinish::AndClear);
            let below = if map.is_some() { "\n{map}" } else { "" };
            let line = LINES[usize::from(columns() >= WITH_BAR)];
            let style = ProgressStyle::with_template(&format!("{line}{below}"));
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let shown = map.as_ref().map(FilledMap::text).unwrap_or_default();
            let write = move |_: &ProgressState, out: &mut dyn Write| {
                let _ = out.write_str(&shown.lock().unwrap_or_else(PoisonError::into_inner));
            };
            bar.set_style(style.with_key("map", write));
            bar
        });
        Progress {
            bar,
            quiet: output.quiet,
            rows,
            since: Since::now(),
            launch: Cell::default(),
            last: RefCell::default(),
            map,
        }
    }

    /// Begins a launch: its number, and how many launches are expected.
    pub(crate) fn launch(&self, (number, expected): (u32, u32)) {
        self.launch.set(Some([number, expected]));
        if let Some(bar) = &self.bar {
            bar.set_length(self.rows.saturating_mul(u64::from(expected)));
            bar.set_position(self.rows.saturating_mul(u64::from(number - 1)));
        }
    }

    /// Takes note of a row that begins. It is named until one is measured.
    pub(crate) fn starting(&self, bench: &str, bytes: u64) {
        self.draw(|| {
            let last = self.last.borrow();
            if last.is_empty() { vec![format!("{bench} {}", Bytes(bytes))] } else { last.clone() }
        });
    }

    /// Shows what a process says about its progress. Without a bar, the line is printed.
    pub(crate) fn status(&self, line: &str) {
        if self.bar.is_some() {
            self.draw(|| vec![line.to_owned()]);
        } else if !self.quiet {
            note_line!("ombx: {line}");
        }
    }

    /// Shows a message in the longest form that fits.
    fn draw(&self, forms: impl FnOnce() -> Vec<String>) {
        let Some(bar) = &self.bar else { return };
        let columns = columns();
        let launch = self.launch.get().map(|[number, expected]| format!("launch {number} of {expected} "));
        let launch = launch.unwrap_or_default();
        let left = time_left(self.since.elapsed(), bar.position(), bar.length().unwrap_or(0));
        if columns >= WITH_BAR {
            bar.set_prefix(launch.clone());
            bar.set_message(fitting(&["", &left], &forms(), columns.saturating_sub(BAR + launch.len())));
        } else {
            bar.set_message(fitting(&[launch.trim_end(), &left], &forms(), columns));
        }
        bar.tick();
    }

    /// Takes note of a row, with its estimate from the launches so far.
    pub(crate) fn row(&self, row: &Measurement) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
            // Slow links are measured again, which gives more rows than expected.
            if bar.length().is_some_and(|rows| rows < bar.position()) {
                bar.set_length(bar.position());
            }
            self.last.replace(forms(row));
            self.draw(|| self.last.borrow().clone());
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
                    note_line!("{line}");
                }
            }
        }
    }

    /// Hides the bar while `print` runs.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.bar {
            // After the last row it would only come back below what is printed.
            Some(bar) if bar.length().is_some_and(|rows| rows <= bar.position()) => {
                bar.finish_and_clear();
                print()
            }
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

/// Returns the columns of standard error.
fn columns() -> usize {
    terminal::stderr_size().map_or(renderers::COLUMNS, |[columns, _]| columns)
}

/// Returns the time left in words, from the time of the rows that are measured; nothing before the first.
fn time_left(spent: Duration, done: u64, all: u64) -> String {
    if done == 0 {
        return String::new();
    }
    let left = spent.mul_f64(all.saturating_sub(done) as f64 / done as f64).as_secs();
    match (left / 3600, left / 60, left) {
        (hours @ 1.., minutes, _) => format!("{hours} h {} min left", minutes % 60),
        (_, minutes @ 1.., _) => format!("{minutes} min {} s left", left % 60),
        (_, _, seconds) => format!("{} s left", seconds.max(1)),
    }
}

/// Returns a line of facts and of the longest form that fits, or of the shortest.
fn fitting(facts: &[&str], forms: &[String], columns: usize) -> String {
    let joined = |form: &String| {
        let parts: Vec<&str> =
            facts.iter().copied().chain([form.as_str()]).filter(|part| !part.is_empty()).collect();
        parts.join(" · ")
    };
    let mut lines = forms.iter().map(joined);
    let shortest = forms.last().map(joined).unwrap_or_default();
    lines.find(|line| line.chars().count() <= columns).unwrap_or(shortest)
}

/// Returns a row with its figure in several forms, the longest first: `p2p.latency 8: 0.412 us (0.39 .. 0.45)`.
fn forms(row: &Measurement) -> Vec<String> {
    let size = row.bytes.map_or(String::new(), |bytes| format!(" {}", Bytes(bytes)));
    let name = format!("{}{size}", row.bench);
    let Some(headline) = row.headline() else { return vec![name] };
    let value = format!("{} {}", figure(headline.value), row.metric.unit());
    let interval = headline.ci95.map(|[low, high]| format!(" ({} .. {})", figure(low), figure(high)));
    let mut forms =
        vec![format!("{name}: {value}{}", interval.unwrap_or_default()), format!("{name}: {value}")];
    forms.extend([value]);
    forms.dedup();
    forms
}

/// Shortest time between two drawings.
const EVERY: Duration = Duration::from_millis(500);
/// Time between two drawings, in multiples of the time of one: the ranks may need the core.
const IDLE: u32 = 20;
/// Columns beside the map, for the names of hosts, and lines above and below it.
const BESIDE: usize = 16;
const ABOVE_AND_BELOW: usize = 8;
/// Columns of the largest map, and of one without a terminal.
const WIDEST: usize = 64;
/// Number of parts of the rows after which a map is printed without a terminal.
const PARTS: u64 = 4;

/// When the map is drawn, and its last text.
struct FilledMap {
    text: Arc<Mutex<String>>,
    since: Since,
    /// Time of the next drawing.
    next: Cell<Duration>,
    rows: Cell<u64>,
}

impl Default for FilledMap {
    fn default() -> FilledMap {
        let (text, next, rows) = (Arc::default(), Cell::new(EVERY), Cell::new(0));
        FilledMap { text, since: Since::now(), next, rows }
    }
}

impl FilledMap {
    /// Returns the text that is shown below the bar.
    fn text(&self) -> Arc<Mutex<String>> {
        Arc::clone(&self.text)
    }

    /// Draws the map anew, if it is due. Returns whether it has changed.
    fn redraw(&self, draw: impl FnOnce(usize) -> Option<String>) -> bool {
        let begun = self.since.elapsed();
        if begun < self.next.get() {
            return false;
        }
        let [columns, lines] = terminal::stderr_size().unwrap_or([WIDEST + BESIDE, WIDEST]);
        let most = columns.saturating_sub(BESIDE).min(lines.saturating_sub(ABOVE_AND_BELOW));
        let map = draw(most.clamp(4, WIDEST));
        let is_new = map.is_some();
        if let Some(map) = map {
            *self.text.lock().unwrap_or_else(PoisonError::into_inner) = map;
        }
        let end = self.since.elapsed();
        self.next.set(end + EVERY.max(IDLE * end.saturating_sub(begun)));
        is_new
    }

    /// Counts a row of launches with `all` rows each. Returns the map after each quarter of the rows of a launch.
    fn after_quarter(&self, all: u64, draw: impl FnOnce(usize) -> Option<String>) -> Option<String> {
        let quarters = |rows: u64| PARTS * rows / all.max(1);
        let before = self.rows.replace(self.rows.get() + 1);
        if quarters(before) == quarters(before + 1) { None } else { draw(WIDEST) }
    }
}

#[cfg(test)]
mod tests {
    use crate::output::progress::*;

    #[test]
    fn the_time_left_follows_from_the_rows_that_are_measured() {
        let left = |done, all| time_left(Duration::from_secs(10), done, all);
        assert_eq!(left(0, 9), "");
        assert_eq!(left(1, 9), "1 min 20 s left");
        assert_eq!(left(8, 9), "1 s left");
        assert_eq!(left(9, 9), "1 s left");
        assert_eq!(left(1, 1000), "2 h 46 min left");
    }

    #[test]
    fn the_longest_form_that_fits_is_shown() {
        let forms = ["p2p.latency 8: 0.412 us (0.39 .. 0.45)", "p2p.latency 8: 0.412 us", "0.412 us"];
        let forms = forms.map(str::to_owned);
        let line = |columns| fitting(&["", "12 s left"], &forms, columns);
        assert_eq!(line(80), "12 s left · p2p.latency 8: 0.412 us (0.39 .. 0.45)");
        assert_eq!(line(40), "12 s left · p2p.latency 8: 0.412 us");
        assert_eq!(line(20), "12 s left · 0.412 us");
        assert_eq!(line(5), "12 s left · 0.412 us");
        assert_eq!(fitting(&["launch 2 of 9", ""], &[], 80), "");
    }

    #[test]
    fn a_map_is_printed_after_each_quarter() {
        let map = FilledMap::default();
        let printed = |_: u32| map.after_quarter(12, |_| Some(String::new())).is_some();
        let at: Vec<u32> = (1..=12).filter(|row| printed(*row)).collect();
        assert_eq!(at, [3, 6, 9, 12]);
    }

    #[test]
    fn a_map_is_drawn_only_when_it_is_due() {
        let map = FilledMap::default();
        assert!(!map.redraw(|_| panic!("not due")));
        map.next.set(Duration::ZERO);
        assert!(map.redraw(|_| Some("x".into())) && *map.text().lock().unwrap() == "x");
        assert!(!map.redraw(|_| panic!("not due again")));
    }
}
