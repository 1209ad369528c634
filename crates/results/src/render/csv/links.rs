//! CSV of links: one line per direction of a link and message size.

use std::io::{Result, Write};

use super::{Lines, mark_codes, mark_levels, outcome_name, text};
use crate::{
    render::Renderer,
    verdict::{Hosts, RETEST},
};
use ombx_core::result::{Measurement, Run};

/// Columns in order. New columns are added at the end only.
const COLUMNS: &str = "\
    run,from,to,from_host,to_host,pattern,bytes,depth,round,retest,outcome,check,n,median_us,\
    ci95_low_us,ci95_high_us,min_us,max_us,mb_per_s,trust,levels";

/// Writes a header line before the first row, then one line per row.
#[derive(Debug, Default)]
pub struct LinksCsv {
    run: String,
    hosts: Hosts,
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
        self.lines.write(out, COLUMNS, &fields)
    }
}
