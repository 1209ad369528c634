//! CSV of links: one line per direction of a link and message size, then one for each sentence of the verdict.

use std::io::{Result, Write};

use super::{Lines, mark_codes, mark_levels, outcome_name, text};
use crate::{
    file::RunOutcome,
    render::Renderer,
    verdict::{Hosts, RETEST, Verdict},
};
use ombx_core::{
    result::{Measurement, Run, Tally},
    system::node_set,
};

/// Columns in order. New columns are added at the end only.
const COLUMNS: &str = "\
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
        let us = |ns: Option<f64>| text(ns.map(|ns| ns / 1e3));
        let bound = |side: usize| us(s.and_then(|s| s.ci95).map(|ci| ci[side]));
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
            text(s.map(|s| s.n)),
            us(s.map(|s| s.median)),
            bound(0),
            bound(1),
            us(s.map(|s| s.min)),
            us(s.map(|s| s.max)),
            text(row.mb_per_s().map(|rate| rate.median)),
            mark_codes(row),
            mark_levels(row),
        ];
        let fields: Vec<String> =
            fields.into_iter().chain(std::iter::repeat_n(String::new(), OF_VERDICT)).collect();
        self.lines.write(out, COLUMNS, &fields)
    }

    fn verdict(&mut self, verdict: &Verdict) {
        self.verdict = Some(verdict.clone());
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome, _: &Tally) -> Result<()> {
        let verdict = self.verdict.take().filter(|_| outcome == RunOutcome::Complete);
        let Some(Verdict { sentences, slow, .. }) = verdict else { return out.flush() };
        // The first sentences are those of the slow parts.
        for (at, sentence) in sentences.into_iter().enumerate() {
            let part = slow.get(at);
            let named = |name: &str| match name {
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
            };
            let fields: Vec<String> = COLUMNS.split(',').map(named).collect();
            self.lines.write(out, COLUMNS, &fields)?;
        }
        out.flush()
    }
}
