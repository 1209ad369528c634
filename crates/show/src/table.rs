//! Text table: one per benchmark and choice of axes, with the marks of each row.

pub(super) mod cells;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io::{Result, Write},
};

use ombx_draw::terminal::curve;
use ombx_estimate::{
    impact::{LoadImpacts, UNDER},
    knee::{self, Knees, RATE},
    number::Units,
    publishable::{Publishable, Reached},
    runs::{banner, launches},
    state,
    text::{plain, title},
};
use ombx_record::{
    event::Event,
    order::each_once,
    result::{
        ALIGNMENT_AXIS, ClockFacts, Headline, Level, MESSAGE_RATE_UNIT, Mark, Measurement, Metric, Outcome,
        OverLaunches, Run, RunOutcome, SHARES, Tally,
    },
    unit::{Bytes, counted},
};

use crate::{
    Paint, Renderer, Shown,
    table::cells::{Fitted, TRUST, broken, fitted, grid},
};

pub(super) use self::cells::failed;
pub use self::cells::{FormattedRow, Scope, format_row, other_states, titles};

/// What is said once of rows that come from a single launch.
pub const ONE_LAUNCH: &str = "1 launch: variation between launches unknown; without --quick and without a \
                              launcher of your own ombx starts several, and ombx show a.jsonl b.jsonl \
                              combines files";

/// What is said once of rows over launches without three earlier runs.
const UNKNOWN_BETWEEN_RUNS: &str = "variation between runs unknown: it needs 3 earlier runs in the same \
                                    state of the machine; --against DIR names them";

/// Collects the rows of one benchmark and prints them when the next one starts.
#[derive(Debug, Default)]
pub struct Table {
    style: TableStyle,
    /// Run whose rows arrive.
    run: ShownRun,
    collected: CollectedRows,
    /// What is said at the end of the run.
    conclusion: Conclusion,
    /// Number of tables until now.
    tables: usize,
    /// Number of runs until now.
    runs: usize,
}

impl Renderer for Table {
    fn event(&mut self, out: &mut dyn Write, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => self.run(out, run),
            Event::End { outcome, tally } => self.end(out, *outcome, tally),
            _ => event.rows().try_for_each(|row| self.case(out, &row)),
        }
    }
}

impl Table {
    /// Creates a table with or without colours.
    pub fn painted(paint: Paint) -> Table {
        Table { style: TableStyle { paint, ..TableStyle::default() }, ..Table::default() }
    }

    /// Shows notes too, not only marks that keep a row from being published.
    #[must_use]
    pub fn with_notes(self) -> Table {
        Table { style: TableStyle { least: Level::Note, ..self.style }, ..self }
    }

    /// Shows figures in these units and with these percentiles.
    #[must_use]
    pub fn showing(self, shown: Shown) -> Table {
        Table { style: TableStyle { shown, ..self.style }, ..self }
    }

    /// Adds a chart below each table, at most this many columns wide.
    #[must_use]
    pub fn plotted(self, columns: usize) -> Table {
        Table { style: TableStyle { plot: Some(columns), ..self.style }, ..self }
    }

    /// Fits tables to this many columns. Spare columns are left out, and the last one is broken into lines.
    #[must_use]
    pub fn fitting(self, columns: Option<usize>) -> Table {
        Table { style: TableStyle { columns, ..self.style }, ..self }
    }

    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        self.flush(out)?;
        if self.runs > 0 {
            writeln!(out)?;
        }
        self.runs += 1;
        self.run = ShownRun::new(run);
        writeln!(out, "{}", self.style.sentence(&plain(&banner(run))))?;
        writeln!(out, "{}", self.style.sentence(&plain(&conditions(run))))
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let heading = plain(&table_heading(row));
        if heading != self.collected.heading {
            self.flush(out)?;
            self.collected.heading = heading;
            self.collected.metric = Some(row.metric);
        }
        self.run.publishable.add(row);
        self.run.reached.add(row);
        let complete = self.style.shown.complete(row, self.run.clock.as_ref());
        self.collected.add(&complete, &self.style, self.run.scope);
        if row.outcome == Outcome::Ok {
            self.conclusion.add(&complete);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome, tally: &Tally) -> Result<()> {
        self.flush(out)?;
        if self.tables == 0 {
            writeln!(out, "no rows")?;
        }
        let conclusion = std::mem::take(&mut self.conclusion);
        conclusion.write_relations(out, &self.style)?;
        self.run.write_claims(out, &self.style)?;
        conclusion.write_missing(out, &self.style)?;
        let after = counted(tally.cases, "row");
        match outcome {
            RunOutcome::Complete => {}
            RunOutcome::Interrupted => writeln!(out, "\nnot complete: interrupted after {after}")?,
            RunOutcome::Broken => writeln!(out, "\nnot complete: the job ended early, after {after}")?,
        }
        out.flush()
    }

    /// Prints the collected rows.
    fn flush(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.collected.is_empty() {
            return Ok(());
        }
        std::mem::take(&mut self.collected).write(out, &self.style, &mut self.run)?;
        self.tables += 1;
        out.flush()
    }
}

/// Returns launches, state of the machine, clock and start of a run.
fn conditions(run: &Run) -> String {
    let clock = &run.clock;
    let launches =
        launches(run).map_or("1 launch".into(), |launches| format!("{launches}, cases in random order"));
    let cores = match state::in_words(run) {
        None => String::new(),
        Some((1, ns)) => format!("cores {ns} apart · "),
        Some((_, ns)) => format!("the machine changed its state between launches: cores {ns} apart · "),
    };
    format!(
        "{launches} · {cores}clock {}, {} ns per reading · started {}",
        clock.source, clock.overhead_ns, run.started
    )
}

/// How the user wants tables.
#[derive(Debug, Default)]
struct TableStyle {
    paint: Paint,
    shown: Shown,
    /// Lowest level of the marks that are shown.
    least: Level,
    /// Width of the charts below tables, or `None` for no charts.
    plot: Option<usize>,
    /// Width of the terminal, or `None` without a limit.
    columns: Option<usize>,
}

impl TableStyle {
    /// Returns a sentence, broken into lines that fit. Lines after the first are indented.
    fn sentence(&self, text: &str) -> String {
        broken(text, self.columns, "    ")
    }

    /// Prints a sentence below a table.
    fn say(&self, out: &mut dyn Write, text: &str) -> Result<()> {
        writeln!(out, "  {}", self.sentence(text))
    }
}

/// What is known of the run whose rows arrive.
#[derive(Debug, Default)]
struct ShownRun {
    scope: Scope,
    clock: Option<ClockFacts>,
    publishable: Publishable,
    reached: Reached,
    /// Marks and their advice that are printed already.
    explained: BTreeSet<(String, String)>,
}

impl ShownRun {
    fn new(run: &Run) -> ShownRun {
        ShownRun {
            scope: Scope::new(run),
            clock: Some(run.clock.clone()),
            reached: Reached::new(run),
            ..ShownRun::default()
        }
    }

    /// Prints which rows may be published, and what all rows have reached.
    fn write_claims(&self, out: &mut dyn Write, style: &TableStyle) -> Result<()> {
        if self.publishable.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", style.sentence(&plain(&self.publishable.to_string())))?;
        let ended = Some(self.reached.to_string()).filter(|ended| !ended.is_empty());
        let excluded = self.publishable.excluded().filter(|_| style.least == Level::Note);
        for text in [ended, self.publishable.verified(), excluded].into_iter().flatten() {
            writeln!(out, "{}", style.sentence(&plain(&text)))?;
        }
        Ok(())
    }
}

/// What follows from all measured rows of a run.
#[derive(Debug, Default)]
struct Conclusion {
    knees: Knees,
    impacts: LoadImpacts,
    /// Number of rows that come from a single launch.
    of_one_launch: usize,
    /// Number of rows over launches without three earlier runs.
    lacks_runs: usize,
}

impl Conclusion {
    fn add(&mut self, row: &Measurement) {
        self.knees.add(row);
        self.impacts.add(row);
        self.of_one_launch += usize::from(row.launch_count() == 1);
        let has_runs = |over: &OverLaunches| over.between.is_some_and(|runs| runs.next_ns.is_some());
        self.lacks_runs += usize::from(row.over_launches().is_some_and(|over| !has_runs(over)));
    }

    /// Prints how rows depend on their rate and their load.
    fn write_relations(&self, out: &mut dyn Write, style: &TableStyle) -> Result<()> {
        let mut sentences = self.knees.sentences();
        sentences.extend(self.impacts.sentences(style.shown.units, Units::name));
        if !sentences.is_empty() {
            writeln!(out)?;
        }
        for sentence in sentences {
            writeln!(out, "{}", style.sentence(&plain(&sentence)))?;
        }
        Ok(())
    }

    /// Prints which variation is unknown.
    fn write_missing(&self, out: &mut dyn Write, style: &TableStyle) -> Result<()> {
        if self.lacks_runs > 0 {
            writeln!(out, "{}", style.sentence(UNKNOWN_BETWEEN_RUNS))?;
        }
        if self.of_one_launch > 0 {
            writeln!(out, "{}", style.sentence(ONE_LAUNCH))?;
        }
        Ok(())
    }
}

/// Rows of the table that is printed next, with everything below it.
#[derive(Debug, Default)]
struct CollectedRows {
    heading: String,
    metric: Option<Metric>,
    rows: Vec<FormattedRow>,
    points: Vec<(u64, Headline)>,
    message_rates: Vec<(u64, Headline)>,
    drawings: Vec<String>,
    failures: Vec<String>,
    /// Number of skipped rows by reason.
    skips: BTreeMap<String, usize>,
    /// Why figures are absent.
    absent: BTreeSet<String>,
    /// Notes by mark.
    notes: BTreeMap<String, Note>,
}

/// Advice of a mark from the first row that has it, and the number of rows with different advice.
#[derive(Debug)]
struct Note {
    advice: String,
    others: usize,
}

impl CollectedRows {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.skips.is_empty()
    }

    fn add(&mut self, row: &Measurement, style: &TableStyle, scope: Scope) {
        match &row.outcome {
            Outcome::Skipped(why) => *self.skips.entry(plain(why)).or_default() += 1,
            Outcome::Failed(why) => {
                let at = row.bytes.map_or(String::new(), |b| format!(" at {} bytes", Bytes(b)));
                self.failures.push(plain(&format!("FAILED{at}: {why}")));
                self.rows.push(cells::failed(&style.shown, row));
            }
            Outcome::Ok => {
                let (mut cells, absent) = cells::format_row(&style.shown, row, scope, style.least);
                let in_columns = row.axes.iter().filter(|(name, _)| WITH_COLUMN.contains(&name.as_str()));
                cells.figures.extend(in_columns.map(|(name, value)| (name.clone(), plain(value))));
                self.rows.push(cells);
                self.rows.extend(cells::other_states(&style.shown, row, scope));
                self.absent.extend(absent);
                self.drawings.extend(drawing(row));
                row.marks(style.least).for_each(|mark| self.note(mark));
                let headline =
                    row.headline().map(|headline| style.shown.units.of_headline(row.metric, headline));
                self.points.extend(row.bytes.zip(headline));
                self.message_rates.extend(row.bytes.zip(row.message_rate()));
            }
        }
    }

    fn note(&mut self, notice: &Mark) {
        let (word, advice) = (plain(&notice.code.name().replace('_', " ")), plain(&notice.advice));
        let note = self.notes.entry(word).or_insert_with(|| Note { advice: advice.clone(), others: 0 });
        note.others += usize::from(note.advice != advice);
    }

    /// Prints the table and what is below it.
    fn write(self, out: &mut dyn Write, style: &TableStyle, run: &mut ShownRun) -> Result<()> {
        writeln!(out, "\n{}", style.paint.heading(&self.heading))?;
        if !self.rows.is_empty() {
            let (grid, left_out) = self.grid(style, run.scope);
            writeln!(out, "{grid}")?;
            if let (Some(columns), false) = (style.columns, left_out.is_empty()) {
                let left_out = left_out.join(", ");
                style.say(
                    out,
                    &format!("{columns} columns are too few for: {left_out} (--format csv has all)"),
                )?;
            }
        }
        for drawing in &self.drawings {
            writeln!(out, "\n{drawing}")?;
        }
        for failure in &self.failures {
            writeln!(out, "  {}", style.paint.bad(failure))?;
        }
        for (why, count) in self.skips {
            style.say(out, &format!("skipped {}: {why}", counted(count, "row")))?;
        }
        for why in self.absent {
            style.say(out, &format!("n/a: {why}"))?;
        }
        for (word, Note { advice, others }) in self.notes {
            // Advice that repeats in a run is printed once.
            if run.explained.insert((word.clone(), advice.clone())) {
                let others = if others > 0 {
                    format!(" ({} with other values)", counted(others, "row"))
                } else {
                    String::new()
                };
                style.say(out, &format!("{word}: {advice}{others}"))?;
            }
        }
        if let (Some(columns), Some(metric)) = (style.plot, self.metric) {
            curve::draw(out, &self.points, style.shown.units.name(metric), columns)?;
            curve::draw(out, &self.message_rates, MESSAGE_RATE_UNIT, columns)?;
        }
        Ok(())
    }

    /// Returns the table, and the titles of the columns that did not fit.
    fn grid(&self, style: &TableStyle, scope: Scope) -> (String, Vec<String>) {
        let figures: BTreeSet<&str> =
            self.rows.iter().flat_map(FormattedRow::figures).filter(|name| is_column(name)).collect();
        let mut titles = cells::titles(&style.shown, self.metric, scope, &figures);
        let mut rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.cells(&figures)).collect();
        style.shown.choose(&mut titles, &mut rows);
        // Chosen columns are not left out.
        let columns = style.columns.filter(|_| style.shown.columns.is_empty());
        let Fitted { titles, rows, left_out } = fitted(titles, rows, columns);
        let last = titles.iter().position(|title| title == TRUST).unwrap_or(titles.len());
        let mut grid = grid(titles, 0..last);
        for row in rows {
            // Only the last cell is coloured: escape sequences would count in the width of other columns.
            let painted = |cell: &str| {
                cell.lines().map(|line| style.paint.warning(line)).collect::<Vec<_>>().join("\n")
            };
            let cells = row.iter().enumerate();
            grid.add_row(cells.map(|(i, cell)| if i == last { painted(cell) } else { cell.clone() }));
        }
        (grid.trim_fmt(), left_out)
    }
}

/// Returns whether a figure has a column. The sentence about the knee has the interval of the achieved rate, and a share of datagrams
/// has the column of its counts.
fn is_column(figure: &str) -> bool {
    !is_part(figure)
        && !knee::ENDS.contains(&figure)
        && !SHARES.iter().any(|share| [share.part, share.all].contains(&figure))
}

/// Returns the titles of the columns that tables of these rows have.
pub fn columns(shown: &Shown, run: &Run, rows: &[Measurement]) -> Vec<String> {
    let scope = Scope::new(run);
    let of = |row: &Measurement| {
        let (cells, _) = format_row(shown, row, scope, Level::Note);
        let in_columns = row.axes.keys().map(String::as_str).filter(|name| WITH_COLUMN.contains(name));
        let figures = cells.figures().filter(|name| is_column(name)).chain(in_columns).collect();
        titles(shown, Some(row.metric), scope, &figures)
    };
    each_once(rows.iter().filter(|row| row.outcome == Outcome::Ok).flat_map(of))
}

/// Axes that have a column: rows that differ in them alone have one table.
const WITH_COLUMN: [&str; 2] = [UNDER, ALIGNMENT_AXIS];

/// Returns the heading of the table of a row. The offered rate has a column among the figures.
fn table_heading(row: &Measurement) -> String {
    let axes = row.axes.iter().filter(|(name, _)| *name != RATE && !WITH_COLUMN.contains(&name.as_str()));
    title(&row.bench, axes, row.depth, row.pairs)
}

/// Maximum size of a drawing. Larger ones do not fit on a terminal.
const MOST_PHASES: usize = 5;
const MOST_NODES: usize = 16;
/// Columns from one phase to the next.
const STEP: usize = 20;
/// Columns before the first phase.
const MARGIN: usize = 13;

/// Returns whether a figure belongs to a node or phase. The drawing shows it, and the table has no column for it.
pub(super) fn is_part(figure: &str) -> bool {
    let rest = figure.strip_prefix("node").unwrap_or_default();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && rest[digits..].starts_with('_')
}

/// Returns the drawing of a row, or `None` if it is not a pipeline.
pub(super) fn drawing(row: &Measurement) -> Option<String> {
    let axis = |name: &str| row.axes.get(name).map(String::as_str);
    let count = |name: &str| axis(name)?.parse::<usize>().ok();
    let (nodes, phases, buffers) = (count("nodes")?, count("phases")?, count("buffers")?);
    let total = row.mb_per_s()?.median;
    let (source, sink) = (plain(axis("source")?), plain(axis("sink")?));
    let block = Bytes(row.bytes?);
    let mut text = format!(
        "  {source} -> {nodes} x {phases} -> {sink}: {buffers} x {nodes} x {block} through each node, \
         {total:.1} MB/s in all\n"
    );
    let started = row.figure("started_processes").unwrap_or(0.0) as usize;
    let ends = nodes * nodes * (phases - 1);
    let _ = if started > nodes {
        writeln!(
            text,
            "  {started} processes: nodes: {nodes}, and {} started by them (phases: {}, senders: {ends}, \
             receivers: {ends})",
            started - nodes,
            nodes * phases
        )
    } else {
        writeln!(
            text,
            "  nodes: {started} processes; phases: {}, senders: {ends}, receivers: {ends} threads",
            nodes * phases
        )
    };
    let _ = writeln!(
        text,
        "  === all-to-all between nodes: unix inside a node{}",
        if nodes > 1 { ", tcp between nodes" } else { "" }
    );
    if nodes > MOST_NODES || phases > MOST_PHASES {
        return Some(text + "  too large for a drawing; the result file has all stages\n");
    }
    text += &format!("\n{:MARGIN$}", "");
    for phase in 1..=phases {
        let _ = write!(text, "{:<STEP$}", format!("phase {phase}"));
    }
    text.truncate(text.trim_end().len());
    for node in 0..nodes {
        let arrow = format!("[##]{}> ", "=".repeat(STEP - 6));
        let rate = row.figure(&format!("node{node}_mb_per_s"))?;
        let _ = write!(
            text,
            "\n  {:<w$}{}[##]  {rate:.1} MB/s",
            format!("node {node}"),
            arrow.repeat(phases - 1),
            w = MARGIN - 2
        );
        for what in ["data", "room"] {
            let (label, noun) = if what == "data" { ("waits for", "data") } else { ("", "buffer") };
            let _ = write!(text, "\n  {label:<w$}", w = MARGIN - 2);
            for phase in 1..=phases {
                let ms = row.figure(&format!("node{node}_phase{phase}_waited_for_{what}_ms"))?;
                let _ = write!(text, "{:<STEP$}", format!("{noun} {ms:.2} ms"));
            }
            text.truncate(text.trim_end().len());
        }
    }
    Some(text + "\n")
}
