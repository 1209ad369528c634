//! Links as CSV: one line for each direction of each link and size.

use std::io::{Result, Write};

use crate::{
    render::Renderer,
    verdict::{Hosts, RETEST},
    wire::Outcome,
};
use ombx_core::result::{Measurement, Outcome as CaseOutcome, Run, Tally};

/// The columns, in order; new ones are only ever added at the end.
const COLUMNS: [&str; 20] = [
    "run",
    "from",
    "to",
    "from_host",
    "to_host",
    "pattern",
    "bytes",
    "depth",
    "round",
    "retest",
    "outcome",
    "check",
    "n",
    "median_us",
    "ci95_low_us",
    "ci95_high_us",
    "min_us",
    "max_us",
    "mb_per_s",
    "trust",
];

/// Writes a header line once, then rows.
#[derive(Debug, Default)]
pub struct LinksCsv {
    run: String,
    hosts: Hosts,
    headed: bool,
}

impl Renderer for LinksCsv {
    fn run(&mut self, _: &mut dyn Write, run: &Run) -> Result<()> {
        self.run.clone_from(&run.id);
        self.hosts = Hosts::of(run.places.iter().map(|p| p.host.as_str()));
        Ok(())
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        if !self.headed {
            writer.write_record(COLUMNS)?;
            self.headed = true;
        }
        let axis = |name: &str| row.axes.get(name).cloned().unwrap_or_default();
        let host =
            |name: &str| axis(name).parse().map_or(String::new(), |rank| self.hosts.name(rank).to_owned());
        let outcome = match row.outcome {
            CaseOutcome::Ok => "ok",
            CaseOutcome::Skipped(_) => "skipped",
            CaseOutcome::Failed(_) => "failed",
        };
        let s = row.summary.as_ref();
        let us = |ns: Option<f64>| text(ns.map(|ns| ns / 1e3));
        let bound = |side: usize| us(s.and_then(|s| s.ci95).map(|ci| ci[side]));
        let trust: Vec<&str> = row.trust.iter().map(|n| n.code.as_str()).collect();
        writer.write_record([
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
            outcome.into(),
            row.check.name().into(),
            text(s.map(|s| s.n)),
            us(s.map(|s| s.median)),
            bound(0),
            bound(1),
            us(s.map(|s| s.min)),
            us(s.map(|s| s.max)),
            text(row.mb_per_s().map(|rate| rate.median)),
            trust.join(";"),
        ])?;
        writer.flush()
    }

    fn end(&mut self, out: &mut dyn Write, _: Outcome, _: &Tally) -> Result<()> {
        out.flush()
    }
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}
