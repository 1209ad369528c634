//! CSV: one line per row with stable column names. A missing value is an empty field.

use std::io::{Result, Write};

use ombx_estimate::text::plain;
use ombx_host::node_set;
use ombx_links::verdict::Hosts;
use ombx_record::{
    event::Event,
    link::RETEST,
    result::{Measurement, Run, RunOutcome},
    verdict::{Sentence, SlowPart, Verdict},
};

use crate::{
    Renderer, Shown,
    fields::{ROW_FIELDS, mark_codes, mark_levels, outcome},
};

/// Writes a header line before the first row, then one line per row.
#[derive(Debug, Default)]
pub struct Csv {
    run: Option<Run>,
    shown: Shown,
    lines: Lines,
}

/// Percentiles that every row has.
const ALWAYS: [f64; 3] = [95.0, 99.0, 99.9];

impl Renderer for Csv {
    fn event(&mut self, out: &mut dyn Write, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => {
                self.run = Some(run.clone().into_owned());
                Ok(())
            }
            Event::End { .. } => out.flush(),
            _ => event.rows().try_for_each(|row| self.case(out, &row)),
        }
    }
}

impl Csv {
    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let Some(run) = &self.run else { return Ok(()) };
        let row = self.shown.complete(row, Some(&run.clock));
        let units = self.shown.units;
        let of_row = ROW_FIELDS.iter().map(|(name, _, field)| ((*name).to_owned(), field.text(&row, run)));
        let in_unit = |(name, field): (String, String)| (units.column(&name), units.of_field(&name, field));
        let (mut columns, fields): (Vec<String>, Vec<String>) =
            of_row.chain(self.chosen(&row)).map(in_unit).unzip();
        let mut fields = [fields];
        self.shown.choose(&mut columns, &mut fields);
        self.lines.write(out, &columns.join(","), &fields[0])
    }

    /// Returns the names of all columns.
    pub fn columns(shown: &Shown) -> Vec<String> {
        let of_rows = ROW_FIELDS.iter().map(|(name, ..)| (*name).to_owned());
        let names = of_rows.chain(own_percentiles(shown).flat_map(|(_, percent)| columns_of(percent)));
        names.map(|name| shown.units.column(&name)).collect()
    }

    /// Shows figures in these units and with these percentiles.
    #[must_use]
    pub fn showing(self, shown: Shown) -> Csv {
        Csv { shown, ..self }
    }

    /// Returns the columns of chosen percentiles that need columns of their own, and their fields.
    fn chosen(&self, row: &Measurement) -> Vec<(String, String)> {
        let chosen = row.summary.as_ref().map(|summary| summary.chosen.as_slice()).unwrap_or_default();
        let of = |(at, percent): (usize, f64)| {
            let found = chosen.get(at).and_then(|(_, percentile)| *percentile);
            let [low, high] = ends(found.and_then(|p| p.ci95));
            columns_of(percent).into_iter().zip([text(found.map(|p| p.value)), low, high])
        };
        own_percentiles(&self.shown).flat_map(of).collect()
    }
}

/// Returns the chosen percentiles that need columns of their own, with their positions.
fn own_percentiles(shown: &Shown) -> impl Iterator<Item = (usize, f64)> {
    let numbers = shown.percentiles.numbers().iter().copied().enumerate();
    numbers.filter(|(_, percent)| !ALWAYS.contains(percent))
}

/// Returns the columns of a percentile: `iteration_p50_ns` and those of its interval. The point of 99.99 becomes an underscore.
fn columns_of(percent: f64) -> [String; 3] {
    let name = format!("iteration_p{percent}").replace('.', "_");
    ["", "_low", "_high"].map(|end| format!("{name}{end}_ns"))
}

/// Writes lines of CSV, the column names first.
#[derive(Debug, Default)]
pub(super) struct Lines {
    has_header: bool,
}

impl Lines {
    pub(super) fn write(&mut self, out: &mut dyn Write, columns: &str, fields: &[String]) -> Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        if !std::mem::replace(&mut self.has_header, true) {
            writer.write_record(columns.split(','))?;
        }
        writer.write_record(fields.iter().map(|field| cell(field)))?;
        writer.flush()
    }
}

/// Returns a field without control characters, and with a quote before what a spreadsheet would take for a formula.
fn cell(field: &str) -> String {
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    format!("{}{}", if is_formula { "'" } else { "" }, plain(field))
}

/// Returns the field of a value, which is empty without one.
pub(super) fn text(value: Option<impl ToString>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

/// Returns the fields of both ends of an interval.
pub(super) fn ends(interval: Option<[f64; 2]>) -> [String; 2] {
    [0, 1].map(|end| text(interval.map(|ends| ends[end])))
}

/// Columns in order. New columns are added at the end only.
const LINK_COLUMNS: &str = "\
    run,from,to,from_host,to_host,pattern,bytes,depth,round,retest,outcome,check,n,median_ns,\
    ci95_low_ns,ci95_high_ns,sample_min_ns,sample_max_ns,mb_per_s,trust,levels,verdict,part,hosts,factor,sentence";
/// Number of columns that only a verdict has.
const OF_VERDICT: usize = 5;

/// Writes a header line before the first row, then one line per row. After the last launch follow the lines of the verdict.
#[derive(Debug, Default)]
pub struct LinksCsv {
    run: String,
    hosts: Hosts,
    verdict: Option<Verdict>,
    lines: Lines,
}

impl Renderer for LinksCsv {
    fn event(&mut self, out: &mut dyn Write, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => {
                self.run.clone_from(&run.id);
                self.hosts = Hosts::of_run(run);
                Ok(())
            }
            Event::Verdict(verdict) => {
                self.verdict = Some(verdict.clone().into_owned());
                Ok(())
            }
            Event::End { outcome, .. } => self.end(out, *outcome),
            _ => event.rows().try_for_each(|row| self.case(out, &row)),
        }
    }
}

impl LinksCsv {
    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let axis = |name: &str| row.axes.get(name).cloned().unwrap_or_default();
        let host =
            |name: &str| axis(name).parse().map_or(String::new(), |rank| self.hosts.name(rank).to_owned());
        let s = row.summary.as_ref();
        // Of a link in a round only the median is known.
        let all = s.filter(|_| !row.samples.is_empty());
        let [low, high] = ends(s.and_then(|s| s.ci95));
        let fields = [
            self.run.clone(),
            axis("from"),
            axis("to"),
            host("from"),
            host("to"),
            axis("pattern"),
            text(row.bytes),
            text(row.depth),
            axis("round"),
            axis(RETEST),
            outcome(row)[0].into(),
            row.check.name().into(),
            text(all.map(|s| s.n)),
            text(s.map(|s| s.median)),
            low,
            high,
            text(all.map(|s| s.min)),
            text(all.map(|s| s.max)),
            text(row.mb_per_s().map(|rate| rate.median)),
            mark_codes(row),
            mark_levels(row),
        ];
        let fields: Vec<String> =
            fields.into_iter().chain(std::iter::repeat_n(String::new(), OF_VERDICT)).collect();
        self.lines.write(out, LINK_COLUMNS, &fields)
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome) -> Result<()> {
        let verdict = self.verdict.take().filter(|_| outcome == RunOutcome::Complete);
        let Some(Verdict { sentences, slow, .. }) = verdict else { return out.flush() };
        // The first sentences are those of the slow parts.
        for (at, sentence) in sentences.into_iter().enumerate() {
            let columns = LINK_COLUMNS.split(',');
            let fields = columns.map(|column| self.verdict_field(column, &sentence, slow.get(at)));
            let fields: Vec<String> = fields.collect();
            self.lines.write(out, LINK_COLUMNS, &fields)?;
        }
        out.flush()
    }

    /// Returns the field of a sentence of the verdict, and of its slow part if it has one.
    fn verdict_field(&self, column: &str, sentence: &Sentence, part: Option<&SlowPart>) -> String {
        match column {
            "run" => self.run.clone(),
            "bytes" => text(part.map(|part| part.bytes)),
            "verdict" => sentence.conclusion.name().to_owned(),
            "part" => part.map_or(String::new(), |part| part.name.clone().unwrap_or(part.part.clone())),
            "hosts" => {
                part.map_or(String::new(), |part| node_set::fold(part.hosts.iter().map(String::as_str)))
            }
            "factor" => text(part.map(|part| part.factor)),
            "sentence" => sentence.text.clone(),
            _ => String::new(),
        }
    }
}
