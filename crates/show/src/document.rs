//! Tables for documents: Markdown, and LaTeX with the package booktabs. The columns are those of the text table.

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
    table::{failed, format_row, other_states, titles},
};

/// Language of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Markup {
    /// Tables of GitHub and others.
    #[default]
    Markdown,
    /// LaTeX; the document needs `\usepackage{booktabs}`.
    Latex,
}

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
        let last = titles.len() - 1;
        let marked = cells.iter().any(|row| !row[last].is_empty());
        if !marked {
            titles.pop();
            cells.iter_mut().for_each(|row| row.truncate(last));
        }
        let notes = skips.iter().map(|(why, count)| format!("Skipped, {count} times: {why}"));
        let notes: Vec<String> = notes.collect();
        let table = Cells { titles, rows: cells, marked };
        match self.markup {
            Markup::Markdown => self.markdown(out, &table, &notes),
            Markup::Latex => self.latex(out, &table, &notes),
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

    fn latex(&self, out: &mut dyn Write, table: &Cells, notes: &[String]) -> Result<()> {
        writeln!(out, "% needs \\usepackage{{booktabs}}")?;
        notes.iter().try_for_each(|note| writeln!(out, "% {note}"))?;
        if table.rows.is_empty() {
            return Ok(());
        }
        let align: String =
            (0..table.titles.len()).map(|at| if table.is_text(at) { 'l' } else { 'r' }).collect();
        let line = |cells: &[String]| cells.iter().map(|cell| latex(cell)).collect::<Vec<_>>().join(" & ");
        writeln!(out, "\\begin{{table}}\n  \\centering")?;
        writeln!(out, "  \\caption{{{}. {}.}}", latex(&self.heading), latex(&self.banner))?;
        writeln!(out, "  \\begin{{tabular}}{{{align}}}\n    \\toprule")?;
        writeln!(out, "    {} \\\\\n    \\midrule", line(&table.titles))?;
        table.rows.iter().try_for_each(|row| writeln!(out, "    {} \\\\", line(row)))?;
        writeln!(out, "    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}")
    }
}

/// Titles and cells of one table.
struct Cells {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Whether the last column has marks.
    marked: bool,
}

impl Cells {
    /// Returns whether a column has words, which are aligned to the left.
    fn is_text(&self, column: usize) -> bool {
        self.marked && column + 1 == self.titles.len()
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
