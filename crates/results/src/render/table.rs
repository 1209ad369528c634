//! The table that people read: one per benchmark and choice of axes, with what spoils each row beside it.

mod cells;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Result, Write},
};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, presets};

pub use self::cells::{Row, figure, head, measured};
use super::{
    Renderer,
    pipeline::{drawing, is_part},
    plain, plot,
};
use crate::wire::Outcome;
use ombx_core::{
    benchmark::work::Metric,
    result::{Headline, Measurement, Notice, Outcome as CaseOutcome, Run, Tally},
    system::placement::Placement,
    unit::Bytes,
};

/// Collects the rows of one benchmark and prints them when the next begins.
#[derive(Debug, Default)]
pub struct Table {
    heading: String,
    metric: Option<Metric>,
    rows: Vec<Row>,
    points: Vec<(u64, Headline)>,
    skips: BTreeMap<String, usize>,
    failures: Vec<String>,
    absent: BTreeSet<String>,
    drawings: Vec<String>,
    notes: BTreeMap<String, Note>,
    told: BTreeSet<(String, String)>,
    tables: usize,
    runs: usize,
    paint: Paint,
    /// Columns of the screen, if charts are wanted.
    plot: Option<usize>,
}

/// Whether doubt and failure are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// Plain text.
    #[default]
    Plain,
    /// Headings bold, the trust column yellow, failures red.
    Coloured,
}

impl Paint {
    pub(super) fn with(self, style: Style, text: &str) -> String {
        match self {
            Paint::Coloured if !text.is_empty() => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}

const BOLD: Style = Style::new().bold();
const DOUBT: Style = AnsiColor::Yellow.on_default();
const FAILURE: Style = AnsiColor::Red.on_default().bold();

/// The advice of one kind of notice: of the first row that has it, and how many others have another.
#[derive(Debug)]
struct Note {
    advice: String,
    others: usize,
}

impl Renderer for Table {
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        self.flush(out)?;
        if self.runs > 0 {
            writeln!(out)?;
        }
        (self.runs, self.told) = (self.runs + 1, BTreeSet::new());
        let line = format!("ombx {} ({}) · {} · {}", run.version, run.profile, library(run), places(run));
        writeln!(out, "{}", plain(&line))?;
        let clock = &run.clock;
        let line =
            format!("clock {}, {} ns a reading · started {}", clock.source, clock.overhead_ns, run.started);
        writeln!(out, "{}", plain(&line))
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let heading = plain(&heading(row));
        if heading != self.heading {
            self.flush(out)?;
            self.heading = heading;
            self.metric = Some(row.metric);
        }
        match &row.outcome {
            CaseOutcome::Skipped(why) => *self.skips.entry(plain(why)).or_default() += 1,
            CaseOutcome::Failed(why) => {
                let at = row.bytes.map_or(String::new(), |b| format!(" at {} bytes", Bytes(b)));
                self.failures.push(plain(&format!("FAILED{at}: {why}")));
                self.rows.push(cells::failed(row));
            }
            CaseOutcome::Ok => {
                let (cells, absent) = measured(row);
                self.rows.push(cells);
                self.absent.extend(absent);
                self.drawings.extend(drawing(row));
                row.trust.iter().for_each(|notice| self.note(notice));
                self.points.extend(row.bytes.zip(row.headline()));
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, outcome: Outcome, tally: &Tally) -> Result<()> {
        self.flush(out)?;
        if self.tables == 0 {
            writeln!(out, "no rows")?;
        }
        let after = rows(tally.cases);
        match outcome {
            Outcome::Complete => {}
            Outcome::Interrupted => writeln!(out, "\nnot complete: interrupted after {after}")?,
            Outcome::Broken => writeln!(out, "\nnot complete: a rank or a connection failed after {after}")?,
        }
        out.flush()
    }
}

impl Table {
    /// A table in these colours.
    pub fn painted(paint: Paint) -> Table {
        Table { paint, ..Table::default() }
    }

    /// Draws a chart below each table, this many columns wide at the most.
    #[must_use]
    pub fn plotted(self, columns: usize) -> Table {
        Table { plot: Some(columns), ..self }
    }

    fn note(&mut self, notice: &Notice) {
        let (word, advice) = (plain(&notice.code.replace('_', " ")), plain(&notice.advice));
        let note = self.notes.entry(word).or_insert_with(|| Note { advice: advice.clone(), others: 0 });
        note.others += usize::from(note.advice != advice);
    }

    /// Prints the rows collected so far, so that an interrupted run shows what it has.
    fn flush(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.rows.is_empty() && self.skips.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", self.paint.with(BOLD, &self.heading))?;
        if !self.rows.is_empty() {
            writeln!(out, "{}", self.grid())?;
        }
        for drawing in self.drawings.drain(..) {
            writeln!(out, "\n{drawing}")?;
        }
        for failure in self.failures.drain(..) {
            writeln!(out, "  {}", self.paint.with(FAILURE, &failure))?;
        }
        for (why, count) in std::mem::take(&mut self.skips) {
            writeln!(out, "  skipped {}: {why}", rows(count as u64))?;
        }
        for why in std::mem::take(&mut self.absent) {
            writeln!(out, "  n/a: {why}")?;
        }
        for (word, Note { advice, others }) in std::mem::take(&mut self.notes) {
            // What holds for the whole run is explained once.
            if self.told.insert((word.clone(), advice.clone())) {
                let others = if others > 0 {
                    format!(" (and {} likewise)", rows(others as u64))
                } else {
                    String::new()
                };
                writeln!(out, "  {word}: {advice}{others}")?;
            }
        }
        if let (Some(columns), Some(metric)) = (self.plot, self.metric) {
            plot::draw(out, &self.points, metric, columns)?;
        }
        self.points.clear();
        self.rows.clear();
        self.heading.clear();
        self.tables += 1;
        out.flush()
    }

    fn grid(&self) -> String {
        let mut grid = comfy_table::Table::new();
        grid.load_style(presets::NOTHING);
        let figures: BTreeSet<&str> =
            self.rows.iter().flat_map(Row::figures).filter(|name| !is_part(name)).collect();
        let head = head(self.metric, &figures);
        let columns = head.len();
        grid.set_header(head);
        for row in self.rows.iter().map(|row| row.cells(&figures)) {
            // Only the last column: what does not print must not count in the width of another.
            let last = row.len() - 1;
            let cells = row.iter().enumerate();
            grid.add_row(
                cells.map(|(i, cell)| if i == last { self.paint.with(DOUBT, cell) } else { cell.clone() }),
            );
        }
        for column in grid.column_iter_mut().take(columns - 1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        grid.trim_fmt()
    }
}

fn rows(count: u64) -> String {
    if count == 1 { "1 row".into() } else { format!("{count} rows") }
}

/// A row's benchmark with all that was chosen but the size: rows with the same are one series.
pub fn heading(row: &Measurement) -> String {
    title(&row.bench, &row.axes, row.depth, row.pairs)
}

/// What rows of one table have in common.
pub(super) fn title(bench: &str, axes: &BTreeMap<String, String>, depth: Option<u32>, pairs: u32) -> String {
    let axes: Vec<String> = axes.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let mut parts = vec![bench.to_owned()];
    if !axes.is_empty() {
        parts.push(axes.join(" "));
    }
    if let Some(depth) = depth {
        parts.push(format!("window {depth}"));
    }
    if pairs > 1 {
        parts.push(format!("{pairs} pairs"));
    }
    parts.join(" · ")
}

/// The library's name and version, without the story of its build.
pub fn library(run: &Run) -> String {
    let first = run.library.lines().next().unwrap_or_default();
    let short = first.split(',').next().unwrap_or_default();
    short.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Which rank runs where, shortened to hosts when there are many.
pub(super) fn places(run: &Run) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let ranks = count(run.places.len(), "rank");
    let dealt = match Placement::of(&run.places) {
        several if several.is_worth_reporting(&run.places) => format!(", {} placement", several.name()),
        _ => String::new(),
    };
    let each: Vec<String> = run
        .places
        .iter()
        .map(|p| if p.cpus.is_empty() { p.host.clone() } else { format!("{}:{}", p.host, p.cpus) })
        .collect();
    if each.len() <= 4 {
        return format!("{ranks} on {}{dealt}", each.join(" "));
    }
    let hosts: BTreeSet<&str> = run.places.iter().map(|p| p.host.as_str()).collect();
    format!("{ranks} on {}{dealt}", count(hosts.len(), "host"))
}
