//! The table that people read: one per benchmark and choice of axes, with what spoils each row beside it.

use std::{
    collections::BTreeMap,
    io::{Result, Write},
};

use comfy_table::{CellAlignment, presets};

use super::Renderer;
use crate::{
    kernel::Metric,
    result::{Measurement, Outcome as CaseOutcome, Run, Tally},
    stats::Summary,
    unit::Bytes,
    wire::Outcome,
};

/// Collects the rows of one benchmark and prints them when the next begins.
#[derive(Debug, Default)]
pub struct Table {
    heading: String,
    metric: Option<Metric>,
    rows: Vec<Vec<String>>,
    skips: BTreeMap<String, usize>,
    failures: Vec<String>,
    notes: BTreeMap<String, String>,
    printed: usize,
}

const NO_FIGURE: &str = "n/a";

impl Renderer for Table {
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        self.flush(out)?;
        let library = run.library.lines().next().unwrap_or_default();
        writeln!(out, "ombx {} ({}) · {library} · {}", run.version, run.profile, places(run))?;
        let clock = &run.clock;
        writeln!(out, "clock {}, {} ns a reading · started {}", clock.source, clock.overhead_ns, run.started)
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let heading = heading(row);
        if heading != self.heading {
            self.flush(out)?;
            self.heading = heading;
            self.metric = Some(row.metric);
        }
        match &row.outcome {
            CaseOutcome::Skipped(why) => *self.skips.entry(why.clone()).or_default() += 1,
            CaseOutcome::Failed(why) => {
                self.failures.push(format!("{}: {why}", row.key));
                self.rows.push(failed(row));
            }
            CaseOutcome::Ok => self.rows.push(figures(row)),
        }
        for notice in &row.trust {
            self.notes.insert(notice.code.replace('_', " "), notice.advice.clone());
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, outcome: Outcome, tally: &Tally) -> Result<()> {
        self.flush(out)?;
        if self.printed == 0 {
            writeln!(out, "no rows")?;
        }
        if outcome != Outcome::Complete {
            writeln!(out, "\nnot complete: the run ended after {} rows", tally.cases)?;
        }
        out.flush()
    }
}

impl Table {
    /// Prints the rows collected so far, so that an interrupted run shows what it has.
    fn flush(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.rows.is_empty() && self.skips.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", self.heading)?;
        if !self.rows.is_empty() {
            writeln!(out, "{}", self.grid())?;
        }
        for failure in self.failures.drain(..) {
            writeln!(out, "  FAILED {failure}")?;
        }
        for (why, rows) in std::mem::take(&mut self.skips) {
            let what = if rows == 1 { "1 row".into() } else { format!("{rows} rows") };
            writeln!(out, "  skipped {what}: {why}")?;
        }
        if self.rows.iter().any(|r| r.contains(&NO_FIGURE.to_owned())) {
            writeln!(out, "  n/a: a p99 needs 368 samples, an interval 6 independent ones")?;
        }
        for (code, advice) in std::mem::take(&mut self.notes) {
            writeln!(out, "  {code}: {advice}")?;
        }
        self.rows.clear();
        self.heading.clear();
        self.printed += 1;
        out.flush()
    }

    fn grid(&self) -> String {
        let mut grid = comfy_table::Table::new();
        grid.load_style(presets::NOTHING);
        // 1 % of batches are slower than the last of these: the high end of a time, the low end of a rate.
        let head = match self.metric {
            Some(Metric::Bandwidth) => {
                ["bytes", "MB/s", "95% interval", "p1", "min", "max", "samples", "trust"]
            }
            _ => ["bytes", "us", "95% interval", "p99", "min", "max", "samples", "trust"],
        };
        grid.set_header(head);
        for row in &self.rows {
            grid.add_row(row);
        }
        for column in grid.column_iter_mut().take(head.len() - 1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        grid.trim_fmt()
    }
}

fn heading(row: &Measurement) -> String {
    let axes: Vec<String> = row.axes.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let mut parts = vec![row.bench.clone()];
    if !axes.is_empty() {
        parts.push(axes.join(" "));
    }
    if let Some(depth) = row.depth {
        parts.push(format!("window {depth}"));
    }
    if row.pairs > 1 {
        parts.push(format!("{} pairs", row.pairs));
    }
    parts.join(" · ")
}

/// Which rank runs where, shortened to hosts when there are many.
fn places(run: &Run) -> String {
    if run.places.len() <= 4 {
        let each: Vec<String> = run.places.iter().map(|p| format!("{}:{}", p.host, p.cpus)).collect();
        return format!("{} ranks on {}", run.places.len(), each.join(" "));
    }
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for place in &run.places {
        *hosts.entry(&place.host).or_default() += 1;
    }
    format!("{} ranks on {} hosts", run.places.len(), hosts.len())
}

fn failed(row: &Measurement) -> Vec<String> {
    let mut cells =
        vec![row.bytes.map_or_else(|| NO_FIGURE.into(), |b| Bytes(b).to_string()), "FAILED".into()];
    cells.resize(7, String::new());
    cells.push("wrong data".into());
    cells
}

fn figures(row: &Measurement) -> Vec<String> {
    let bytes = row.bytes.map_or_else(String::new, |b| Bytes(b).to_string());
    let Some(s) = &row.summary else { return failed(row) };
    let trust: Vec<&str> = row.trust.iter().map(|n| n.short.as_str()).collect();
    let batch = row.samples.first().map_or(1, |s| s.batch);
    let samples = if batch == 1 { s.n.to_string() } else { format!("{} x {batch}", s.n) };
    let [median, interval, tail, min, max] = match row.metric {
        Metric::Latency => times(s),
        Metric::Bandwidth => rates(row, s),
    };
    vec![bytes, median, interval, tail, min, max, samples, trust.join(", ")]
}

fn times(s: &Summary) -> [String; 5] {
    let us = |ns: f64| figure(ns / 1e3);
    let interval = s.ci95.map(|[low, high]| format!("{} .. {}", us(low), us(high)));
    [us(s.median), or_none(interval), or_none(s.p99.map(us)), us(s.min), us(s.max)]
}

fn rates(row: &Measurement, s: &Summary) -> [String; 5] {
    let Some((rate, work)) = row.mb_per_s().zip(row.work) else { return [NO_FIGURE; 5].map(str::to_owned) };
    let of = |leg_ns: f64| {
        let mb = work.bytes as f64 / (leg_ns * work.legs as f64) * 1e3;
        if mb.is_finite() { figure(mb) } else { NO_FIGURE.into() }
    };
    let interval = rate.ci95.map(|[low, high]| format!("{} .. {}", figure(low), figure(high)));
    [figure(rate.median), or_none(interval), or_none(s.p99.map(of)), of(s.max), of(s.min)]
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NO_FIGURE.into())
}

/// Four significant digits, and never fewer than the whole part.
fn figure(value: f64) -> String {
    let digits = if value >= 1000.0 {
        1
    } else if value >= 100.0 {
        2
    } else if value >= 1.0 {
        3
    } else {
        4
    };
    format!("{value:.digits$}")
}
