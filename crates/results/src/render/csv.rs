//! CSV: one line per row with stable column names. A missing value is an empty field.

use std::io::{Result, Write};

use ombx_core::{
    benchmark::Figure,
    result::{Measurement, Outcome, Run, StateFigure, Tally},
    system::node_set,
};

use crate::{
    file::RunOutcome,
    publishable::obstacles,
    render::{Renderer, Shown, figures::ROW_FIGURES, plain},
    verdict::{Hosts, RETEST, Sentence, SlowPart, Verdict},
};

/// Columns in order. New columns are added at the end only.
const COLUMNS: &str = "\
    run,bench,key,axes,bytes,depth,pairs,ranks,metric,across,outcome,reason,check,n,batch,median_ns,\
    ci95_low_ns,ci95_high_ns,min_ns,mean_ns,max_ns,mad_ns,p95_ns,p99_ns,p999_ns,lag1,mb_per_s,\
    mb_per_s_low,mb_per_s_high,messages_per_s,library,trust,figures,started,launch,levels,publishable,\
    launches,coverage,launch_min_ns,launch_max_ns,tail_n,p95_low_ns,p95_high_ns,\
    p99_low_ns,p99_high_ns,p999_low_ns,p999_high_ns,\
    messages_per_s_low,messages_per_s_high,checked,\
    algorithm_mb_per_s,algorithm_mb_per_s_low,algorithm_mb_per_s_high,bus_mb_per_s,bus_mb_per_s_low,bus_mb_per_s_high,\
    interval,elapsed_s,launches_in_state,core_to_core_ns,other_states,\
    runs,next_run_low_ns,next_run_high_ns,level_low_ns,level_high_ns";

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
    fn run(&mut self, _: &mut dyn Write, run: &Run) -> Result<()> {
        self.run = Some(run.clone());
        Ok(())
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let row = self.shown.complete(row, self.run.as_ref().map(|run| &run.clock));
        let units = self.shown.units;
        let chosen = self.chosen().flat_map(|(_, percent)| columns_of(percent));
        let columns: Vec<String> = COLUMNS.split(',').map(str::to_owned).chain(chosen).collect();
        let fields = COLUMNS.split(',').map(|column| self.field(&row, column));
        let fields = columns.iter().zip(fields.chain(self.chosen_fields(&row)));
        let fields: Vec<String> = fields.map(|(name, field)| units.of_field(name, field)).collect();
        let columns: Vec<String> = columns.iter().map(|name| units.column(name)).collect();
        self.lines.write(out, &columns.join(","), &fields)
    }
}

impl Csv {
    /// Shows figures in these units and with these percentiles.
    #[must_use]
    pub fn showing(self, shown: Shown) -> Csv {
        Csv { shown, ..self }
    }

    /// Returns the places of chosen percentiles that need columns of their own.
    fn chosen(&self) -> impl Iterator<Item = (usize, f64)> {
        let numbers = self.shown.percentiles.numbers().iter().copied().enumerate();
        numbers.filter(|(_, percent)| !ALWAYS.contains(percent))
    }

    fn chosen_fields(&self, row: &Measurement) -> Vec<String> {
        let chosen = row.summary.as_ref().map(|summary| summary.chosen.as_slice()).unwrap_or_default();
        let of = |(at, _): (usize, f64)| {
            let found = chosen.get(at).and_then(|(_, percentile)| *percentile);
            let [low, high] = ends(found.and_then(|p| p.ci95));
            [text(found.map(|p| p.value)), low, high]
        };
        self.chosen().flat_map(of).collect()
    }

    /// Returns the field of a column.
    fn field(&self, row: &Measurement, column: &str) -> String {
        if let Some((_, _, value)) = ROW_FIGURES.iter().find(|(name, ..)| *name == column) {
            return text(value(row));
        }
        let reason = match &row.outcome {
            Outcome::Ok => "",
            Outcome::Skipped(why) | Outcome::Failed(why) => why,
        };
        let of_run =
            |text: fn(&Run) -> Option<&String>| self.run.as_ref().and_then(text).cloned().unwrap_or_default();
        match column {
            "run" => of_run(|run| Some(&run.id)),
            "bench" => row.bench.clone(),
            "key" => row.key.clone(),
            "axes" => row.axes.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(";"),
            "metric" => row.metric.name().into(),
            "across" => row.aggregation.name().into(),
            "outcome" => outcome_name(&row.outcome).into(),
            "reason" => reason.into(),
            "check" => row.check.name().into(),
            "library" => of_run(|run| Some(&run.library)),
            "trust" => mark_codes(row),
            "figures" => figures(row),
            "started" => of_run(|run| Some(&run.started)),
            "launch" => of_run(|run| run.plan.get("launch")),
            "levels" => mark_levels(row),
            "publishable" => obstacles(row).is_empty().to_string(),
            "interval" => interval_kind(row).into(),
            _ => other_states(row),
        }
    }
}

fn figures(row: &Measurement) -> String {
    let figures = row.figures.iter().map(|(name, figure)| match figure {
        Figure::Value(value) => format!("{name}={value}"),
        Figure::Unresolved(_) => format!("{name}="),
    });
    figures.collect::<Vec<_>>().join(";")
}

/// Returns the columns of a percentile: `p50_ns` and those of its interval. The point of 99.99 becomes an underscore.
fn columns_of(percent: f64) -> [String; 3] {
    let name = format!("p{percent}").replace('.', "_");
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

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Skipped(_) => "skipped",
        Outcome::Failed(_) => "failed",
    }
}

/// Returns what the interval is about: `within_launch`, `within_run`, or `range` of fewer launches than 95 % needs.
fn interval_kind(row: &Measurement) -> &'static str {
    match row.over_launches() {
        _ if row.summary.as_ref().is_none_or(|summary| summary.ci95.is_none()) => "",
        None => "within_launch",
        Some(over) if over.coverage() < 0.95 => "range",
        Some(_) => "within_run",
    }
}

/// Returns the figures of less frequent states: launches, median, low and high end in nanoseconds, and the distance of cores, separated
/// by colons; states are separated by semicolons.
fn other_states(row: &Measurement) -> String {
    let state = |state: &StateFigure| {
        let [low, high] = ends(state.ends_ns);
        let cores = text(state.core_to_core_ns);
        format!("{}:{}:{low}:{high}:{cores}", state.launches.len(), state.median_ns)
    };
    let states = row.over_launches().map_or(&[][..], |over| over.states.as_slice());
    states.iter().skip(1).map(state).collect::<Vec<_>>().join(";")
}

fn mark_codes(row: &Measurement) -> String {
    row.trust.iter().map(|notice| notice.code.as_str()).collect::<Vec<_>>().join(";")
}

/// Returns the level of each mark, in the order of the codes.
fn mark_levels(row: &Measurement) -> String {
    row.trust.iter().map(|mark| mark.level.name()).collect::<Vec<_>>().join(";")
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
    run,from,to,from_host,to_host,pattern,bytes,depth,round,retest,outcome,check,n,median_us,\
    ci95_low_us,ci95_high_us,min_us,max_us,mb_per_s,trust,levels,verdict,part,hosts,factor,sentence";
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
    fn run(&mut self, _: &mut dyn Write, run: &Run) -> Result<()> {
        self.run.clone_from(&run.id);
        self.hosts = Hosts::of_run(run);
        Ok(())
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let axis = |name: &str| row.axes.get(name).cloned().unwrap_or_default();
        let host =
            |name: &str| axis(name).parse().map_or(String::new(), |rank| self.hosts.name(rank).to_owned());
        let s = row.summary.as_ref();
        // Of a link in a round only the median is known.
        let all = s.filter(|_| !row.samples.is_empty());
        let us = |ns: Option<f64>| text(ns.map(|ns| ns / 1e3));
        let [low, high] = ends(s.and_then(|s| s.ci95).map(|ends| ends.map(|ns| ns / 1e3)));
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
            outcome_name(&row.outcome).into(),
            row.check.name().into(),
            text(all.map(|s| s.n)),
            us(s.map(|s| s.median)),
            low,
            high,
            us(all.map(|s| s.min)),
            us(all.map(|s| s.max)),
            text(row.mb_per_s().map(|rate| rate.median)),
            mark_codes(row),
            mark_levels(row),
        ];
        let fields: Vec<String> =
            fields.into_iter().chain(std::iter::repeat_n(String::new(), OF_VERDICT)).collect();
        self.lines.write(out, LINK_COLUMNS, &fields)
    }

    fn verdict(&mut self, verdict: &Verdict) {
        self.verdict = Some(verdict.clone());
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome, _: &Tally) -> Result<()> {
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
}

impl LinksCsv {
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
