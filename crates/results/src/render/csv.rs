//! CSV: one line per row with stable column names; a value that does not exist is empty.

use std::io::{Result, Write};

use super::Renderer;
use crate::wire::Outcome;
use ombx_core::{
    benchmark::figure::Figure,
    result::{Measurement, Outcome as CaseOutcome, Rate, Run, Tally},
};

/// The columns, in order; new ones are only ever added at the end.
pub(super) const COLUMNS: [&str; 35] = [
    "run",
    "bench",
    "key",
    "axes",
    "bytes",
    "depth",
    "pairs",
    "ranks",
    "metric",
    "across",
    "outcome",
    "reason",
    "check",
    "n",
    "batch",
    "median_ns",
    "ci95_low_ns",
    "ci95_high_ns",
    "min_ns",
    "mean_ns",
    "max_ns",
    "mad_ns",
    "p95_ns",
    "p99_ns",
    "p999_ns",
    "lag1",
    "mb_per_s",
    "mb_per_s_low",
    "mb_per_s_high",
    "messages_per_s",
    "library",
    "trust",
    "figures",
    "started",
    "launch",
];

/// Writes a header line once, then rows.
#[derive(Debug, Default)]
pub struct Csv {
    run: String,
    library: String,
    started: String,
    launch: String,
    headed: bool,
}

impl Renderer for Csv {
    fn run(&mut self, _: &mut dyn Write, run: &Run) -> Result<()> {
        self.run.clone_from(&run.id);
        self.library.clone_from(&run.library);
        self.started.clone_from(&run.started);
        self.launch = run.plan.get("launch").cloned().unwrap_or_default();
        Ok(())
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        if !self.headed {
            writer.write_record(COLUMNS)?;
            self.headed = true;
        }
        writer.write_record(self.fields(row))?;
        writer.flush()
    }

    fn end(&mut self, out: &mut dyn Write, _: Outcome, _: &Tally) -> Result<()> {
        out.flush()
    }
}

impl Csv {
    fn fields(&self, row: &Measurement) -> Vec<String> {
        let (outcome, reason) = match &row.outcome {
            CaseOutcome::Ok => ("ok", ""),
            CaseOutcome::Skipped(why) => ("skipped", why.as_str()),
            CaseOutcome::Failed(why) => ("failed", why.as_str()),
        };
        let axes: Vec<String> = row.axes.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let trust: Vec<&str> = row.trust.iter().map(|n| n.code.as_str()).collect();
        let figures = row.figures.iter().map(|(name, figure)| match figure {
            Figure::Value(value) => format!("{name}={value}"),
            Figure::Unresolved(_) => format!("{name}="),
        });
        let figures: Vec<String> = figures.collect();
        let s = row.summary.as_ref();
        let of = |f: fn(&ombx_core::stats::Summary) -> Option<f64>| text(s.and_then(f));
        let rate = row.mb_per_s();
        let bound = |side: usize| text(rate.and_then(|r: Rate| r.ci95).map(|c| c[side]));
        vec![
            self.run.clone(),
            row.bench.clone(),
            row.key.clone(),
            axes.join(";"),
            text(row.bytes),
            text(row.depth),
            row.pairs.to_string(),
            row.ranks.to_string(),
            row.metric.name().into(),
            row.aggregation.name().into(),
            outcome.into(),
            reason.into(),
            row.check.name().into(),
            text(s.map(|s| s.n)),
            text(row.samples.first().map(|s| s.batch)),
            of(|s| Some(s.median)),
            of(|s| s.ci95.map(|c| c[0])),
            of(|s| s.ci95.map(|c| c[1])),
            of(|s| Some(s.min)),
            of(|s| Some(s.mean)),
            of(|s| Some(s.max)),
            of(|s| Some(s.mad)),
            of(|s| s.p95),
            of(|s| s.p99),
            of(|s| s.p999),
            of(|s| Some(s.lag1)),
            text(rate.map(|r| r.median)),
            bound(0),
            bound(1),
            text(row.messages_per_s().map(|r| r.median)),
            self.library.clone(),
            trust.join(";"),
            figures.join(";"),
            self.started.clone(),
            self.launch.clone(),
        ]
    }
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}
