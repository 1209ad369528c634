//! Tables for documents: Markdown, and LaTeX with the packages booktabs and siunitx. The columns are those of the text table.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Result, Write},
};

use ombx_estimate::{
    runs::{banner, launches},
    text::{plain, title},
};
use ombx_record::{
    event::Event,
    link::{self, RETEST},
    result::{ClockFacts, Level, Measurement, Metric, Outcome, Run},
};

use crate::{
    FormattedRow, Renderer, Scope, Shown,
    table::{
        cells::{Fitted, NO_VALUE, TRUST, fitted_keeping},
        failed, format_row, other_states, titles,
    },
};

/// Language of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Markup {
    /// Tables of GitHub and others.
    #[default]
    Markdown,
    /// LaTeX; the document needs `\usepackage{booktabs,siunitx}`.
    Latex,
}

/// Width of a LaTeX table in characters: an article of one column has 345 pt, and a digit of its 10 pt letters 5 pt. Three fewer, because
/// two blanks beside a column are 10 pt here and 12 pt there.
const LATEX_WIDTH: usize = 66;

/// Axes of links that are columns, not parts of the heading.
const ENDS: [&str; 2] = ["from", "to"];

/// Collects the rows of one benchmark and writes them when the next one starts.
#[derive(Debug, Default)]
pub struct Document {
    markup: Markup,
    banner: String,
    heading: String,
    metric: Option<Metric>,
    scope: Scope,
    /// Units and percentiles.
    shown: Shown,
    /// Clock of the current run.
    clock: Option<ClockFacts>,
    /// Ranks of the link if the row is one, and the other cells.
    rows: Vec<(Vec<String>, FormattedRow)>,
    skips: BTreeMap<String, usize>,
    tables: usize,
    /// How many tables have a label until now.
    labels: BTreeMap<String, usize>,
}

impl Document {
    /// Returns a renderer that has written nothing.
    pub fn new(markup: Markup) -> Document {
        Document { markup, ..Document::default() }
    }

    /// Shows these units and percentiles.
    #[must_use]
    pub fn showing(self, shown: Shown) -> Document {
        Document { shown, ..self }
    }
}

impl Renderer for Document {
    fn event(&mut self, out: &mut dyn Write, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => self.run(out, run),
            Event::End { .. } => {
                self.flush(out)?;
                out.flush()
            }
            _ => event.rows().try_for_each(|row| self.case(out, &row)),
        }
    }
}

impl Document {
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        self.flush(out)?;
        let launches = launches(run).map_or(String::new(), |launches| format!(" · {launches}"));
        (self.banner, self.scope) = (plain(&(banner(run) + &launches)), Scope::new(run));
        self.clock = Some(run.clock.clone());
        Ok(())
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        // Links that were measured again would be a second row of the same link.
        if row.axes.contains_key(RETEST) {
            return Ok(());
        }
        let ends: Vec<String> = if row.bench == link::BENCH {
            ENDS.iter().map(|axis| row.axes.get(*axis).cloned().unwrap_or_default()).collect()
        } else {
            Vec::new()
        };
        let shared = row.axes.iter().filter(|(name, _)| ends.is_empty() || !of_a_link(name));
        let heading = plain(&title(&row.bench, shared, row.depth, row.pairs));
        if heading != self.heading {
            self.flush(out)?;
            (self.heading, self.metric) = (heading, Some(row.metric));
        }
        let complete = self.shown.complete(row, self.clock.as_ref());
        let row = &*complete;
        match &row.outcome {
            Outcome::Skipped(why) => *self.skips.entry(plain(why)).or_default() += 1,
            Outcome::Failed(_) => self.rows.push((ends, failed(&self.shown, row))),
            Outcome::Ok => {
                self.rows.push((ends.clone(), format_row(&self.shown, row, self.scope, Level::Caution).0));
                let others = other_states(&self.shown, row, self.scope).into_iter();
                self.rows.extend(others.map(|cells| (ends.clone(), cells)));
            }
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut dyn Write) -> Result<()> {
        let (rows, skips) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.skips));
        if rows.is_empty() && skips.is_empty() {
            return Ok(());
        }
        if self.tables > 0 {
            writeln!(out)?;
        }
        self.tables += 1;
        let figures: BTreeSet<&str> = rows.iter().flat_map(|(_, row)| row.figures()).collect();
        let mut titles = titles(&self.shown, self.metric, self.scope, &figures);
        if rows.iter().any(|(ends, _)| !ends.is_empty()) {
            titles.splice(0..0, ENDS.map(str::to_owned));
        }
        let mut cells: Vec<Vec<String>> = rows
            .iter()
            .map(|(ends, row)| ends.iter().cloned().chain(row.cells(&figures)).collect())
            .collect();
        // A column of marks without a mark only costs width.
        if self.shown.columns.is_empty() && cells.iter().all(|row| row.last().is_none_or(String::is_empty)) {
            titles.pop();
            cells.iter_mut().for_each(|row| _ = row.pop());
        }
        self.shown.choose(&mut titles, &mut cells);
        let first =
            titles.iter().position(|title| title.starts_with("95% ")).map_or(titles.len(), |at| at + 1);
        let unit = self.metric.map_or("", |metric| self.shown.units.name(metric));
        let unit = format!("({})", polished(unit));
        let notes = skips.iter().map(|(why, count)| format!("Skipped, {count} times: {why}"));
        let mut notes: Vec<String> = notes.collect();
        match self.markup {
            Markup::Markdown => {
                for title in titles.iter_mut().filter(|title| lacks_unit(title)) {
                    *title += &format!(" {unit}");
                }
                self.markdown(out, &Cells { titles, rows: cells }, &notes)
            }
            Markup::Latex => {
                // Chosen columns are not left out.
                let width = self.shown.columns.is_empty().then_some(LATEX_WIDTH);
                let Fitted { titles, rows, left_out } = fitted_keeping(first, titles, cells, width);
                if !left_out.is_empty() {
                    let left_out = left_out.join(", ");
                    notes.push(format!(
                        "Too wide for one column of article: {left_out}. ombx show --columns chooses columns."
                    ));
                }
                self.latex(out, &Cells { titles, rows }, &unit, &notes)
            }
        }
    }

    fn markdown(&self, out: &mut dyn Write, table: &Cells, notes: &[String]) -> Result<()> {
        writeln!(out, "**{}** ({})", markdown(&self.heading), markdown(&self.banner))?;
        if !table.rows.is_empty() {
            let line = |cells: &[String]| {
                let cells: Vec<String> = cells.iter().map(|cell| markdown(cell)).collect();
                format!("| {} |", cells.join(" | "))
            };
            let align = (0..table.titles.len()).map(|at| if table.is_text(at) { "---" } else { "---:" });
            writeln!(out, "\n{}", line(&table.titles))?;
            writeln!(out, "| {} |", align.collect::<Vec<_>>().join(" | "))?;
            table.rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))?;
        }
        notes.iter().try_for_each(|note| writeln!(out, "\n{}", markdown(note)))
    }

    fn latex(&mut self, out: &mut dyn Write, table: &Cells, unit: &str, notes: &[String]) -> Result<()> {
        writeln!(out, "% needs \\usepackage{{booktabs,siunitx}}")?;
        notes.iter().try_for_each(|note| writeln!(out, "% {note}"))?;
        if table.rows.is_empty() {
            return Ok(());
        }
        let label = self.label();
        let columns: Vec<Column> = (0..table.titles.len()).map(|at| table.column(at)).collect();
        let align: String = columns.iter().map(Column::specification).collect();
        let line = |cells: &[String]| {
            let cells = columns.iter().zip(cells).map(|(column, cell)| column.cell(cell));
            cells.collect::<Vec<_>>().join(" & ")
        };
        writeln!(out, "\\begin{{table}}\n  \\centering")?;
        writeln!(out, "  \\caption{{{}. {}.}}", latex(&self.heading), latex(&self.banner))?;
        writeln!(out, "  \\label{{{label}}}")?;
        writeln!(out, "  \\begin{{tabular}}{{{align}}}\n    \\toprule")?;
        writeln!(out, "    {} \\\\", line(&table.titles))?;
        let unit_of = |title: &String| if lacks_unit(title) { unit.to_owned() } else { String::new() };
        let units: Vec<String> = table.titles.iter().map(unit_of).collect();
        if units.iter().any(|unit| !unit.is_empty()) {
            writeln!(out, "    {} \\\\", line(&units))?;
        }
        writeln!(out, "    \\midrule")?;
        table.rows.iter().try_for_each(|row| writeln!(out, "    {} \\\\", line(row)))?;
        writeln!(out, "    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}")
    }

    /// Returns a label that no other table has: the words of the heading, and a number from the second table on.
    fn label(&mut self) -> String {
        let words = self.heading.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let label = format!("tab:{}", words.collect::<Vec<_>>().join("-"));
        let count = self.labels.entry(label.clone()).or_default();
        *count += 1;
        if *count > 1 { format!("{label}--{count}") } else { label }
    }
}

/// Returns whether the title of a column with the unit of the headline does not say it.
fn lacks_unit(title: &str) -> bool {
    let is_percentile = title.ends_with(" iteration");
    is_percentile || ["95% ", "min ", "max "].iter().any(|start| title.starts_with(start))
}

/// Titles and cells of one table.
struct Cells {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Cells {
    /// Returns whether a column has words, which are aligned to the left.
    fn is_text(&self, column: usize) -> bool {
        self.titles[column] == TRUST
    }

    /// Returns how LaTeX aligns a column.
    fn column(&self, at: usize) -> Column {
        if self.is_text(at) {
            let lines = || self.rows.iter().flat_map(|row| row[at].lines());
            let is_broken = self.rows.iter().any(|row| row[at].contains('\n'));
            let width = lines().map(|line| line.chars().count()).max().filter(|_| is_broken);
            return width.map_or(Column::Text, Column::Paragraph);
        }
        let figures = || self.rows.iter().map(|row| row[at].as_str()).filter(|cell| !is_empty(cell));
        let ends: Option<Vec<(&str, &str)>> = figures().map(|cell| cell.split_once(" .. ")).collect();
        let ends = ends.unwrap_or_default();
        let [low, high] = [
            Digits::of_all(ends.iter().map(|(low, _)| *low)),
            Digits::of_all(ends.iter().map(|(_, high)| *high)),
        ];
        match (Digits::of_all(figures()), low, high) {
            (Some(digits), ..) => Column::Decimal(digits),
            (None, Some(low), Some(high)) => Column::Interval(low, high),
            _ => Column::Right,
        }
    }
}

/// Returns whether a cell has no figure.
fn is_empty(cell: &str) -> bool {
    ["", NO_VALUE, "FAILED"].contains(&cell)
}

/// Alignment of a column of LaTeX.
enum Column {
    Text,
    /// Text that is broken into lines of this many characters.
    Paragraph(usize),
    Right,
    Decimal(Digits),
    Interval(Digits, Digits),
}

/// Number of digits before and after the decimal point.
struct Digits {
    before: usize,
    after: usize,
}

impl Digits {
    /// Returns the digits that all cells fit into; `None` unless all are numbers and one has a decimal point.
    fn of_all<'c>(cells: impl Iterator<Item = &'c str>) -> Option<Digits> {
        let of = |cell: &str| {
            let (before, after) = cell.split_once('.').unwrap_or((cell, ""));
            let is_number =
                !before.is_empty() && (before.bytes().chain(after.bytes())).all(|c| c.is_ascii_digit());
            is_number.then_some([before.len(), after.len()])
        };
        let all = cells.map(of).collect::<Option<Vec<_>>>()?;
        let most = |at: usize| all.iter().map(|digits| digits[at]).max();
        Some(Digits { before: most(0)?, after: most(1).filter(|after| *after > 0)? })
    }

    fn specification(&self) -> String {
        format!("S[table-format={}.{}]", self.before, self.after)
    }
}

impl Column {
    fn specification(&self) -> String {
        match self {
            Column::Text => "l".into(),
            Column::Paragraph(characters) => format!("p{{{}em}}", *characters as f64 / 2.0),
            Column::Right => "r".into(),
            Column::Decimal(digits) => digits.specification(),
            Column::Interval(low, high) => {
                format!("{}@{{ to }}{}", low.specification(), high.specification())
            }
        }
    }

    /// Returns a cell. A number aligns at its point; braces and a cell over both ends keep words from it.
    fn cell(&self, cell: &str) -> String {
        let is_number = !cell.is_empty() && cell.bytes().all(|c| c.is_ascii_digit() || c == b'.');
        match (self, cell.split_once(" .. ")) {
            (Column::Interval(..), Some((low, high))) => format!("{low} & {high}"),
            (Column::Interval(..), None) => format!("\\multicolumn{{2}}{{c}}{{{}}}", latex(cell)),
            (Column::Decimal(_), _) if is_number => cell.to_owned(),
            (Column::Decimal(_), _) => format!("{{{}}}", latex(cell)),
            (Column::Paragraph(_), _) => latex(&cell.replace('\n', " ")),
            (Column::Text | Column::Right, _) => latex(cell),
        }
    }
}

/// Returns whether an axis differs between the links of one sweep.
fn of_a_link(axis: &str) -> bool {
    ENDS.contains(&axis) || axis == "round"
}

/// Returns the text for people: `us` and ranges as papers write them.
fn polished(text: &str) -> String {
    let text = text.replace(" .. ", " to ");
    if text == "us" { "µs".into() } else { text }
}

fn markdown(text: &str) -> String {
    let text = polished(text);
    text.chars()
        .flat_map(|c| matches!(c, '|' | '\\' | '*' | '_' | '<' | '`').then_some('\\').into_iter().chain([c]))
        .collect()
}

fn latex(text: &str) -> String {
    let mut escaped = String::new();
    for c in polished(text).chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '<' | '>' => escaped.extend(['$', c, '$']),
            'µ' => escaped.push_str("$\\mu$"),
            '·' => escaped.push_str("$\\cdot$"),
            c => escaped.push(c),
        }
    }
    escaped
}
