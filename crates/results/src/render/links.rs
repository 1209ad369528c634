//! All links of a run for people: a heat map of each size, the slowest links, and the verdict.

mod csv;
mod map;

use std::{
    collections::BTreeMap,
    io::{Result, Write},
};

use comfy_table::{CellAlignment, presets};

pub use self::csv::LinksCsv;
use super::{Renderer, plain, table};
use crate::{
    verdict::{self, Collected, Hosts, Link, Times},
    wire::Outcome,
};
use ombx_core::{
    result::{Measurement, Outcome as CaseOutcome, Run, Tally},
    unit::Bytes,
};

/// Links in the table of the slowest.
const SLOWEST: usize = 8;

/// Collects links and prints them when the run has ended.
#[derive(Debug, Default)]
pub struct Links {
    hosts: Hosts,
    times: Collected,
    pattern: String,
    /// Bytes of one leg, by message size: what a bandwidth is computed from.
    leg_bytes: BTreeMap<u64, f64>,
    /// MB/s of all pairs that were measured at the same time, by size, round and whether the lower rank was timed.
    together: BTreeMap<(u64, u32, bool), f64>,
    troubles: BTreeMap<String, usize>,
    notes: BTreeMap<String, (String, usize)>,
}

impl Renderer for Links {
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        *self = Links { hosts: Hosts::of(run.places.iter().map(|p| p.host.as_str())), ..Links::default() };
        let (library, places) = (table::library(run), table::places(run));
        writeln!(out, "{}", plain(&format!("ombx {} ({}) · {library} · {places}", run.version, run.profile)))
    }

    fn case(&mut self, _: &mut dyn Write, row: &Measurement) -> Result<()> {
        match &row.outcome {
            CaseOutcome::Ok => {}
            CaseOutcome::Skipped(why) => {
                *self.troubles.entry(format!("skipped: {}", plain(why))).or_default() += 1
            }
            CaseOutcome::Failed(why) => {
                *self.troubles.entry(plain(&format!("FAILED {}: {why}", row.key))).or_default() += 1;
            }
        }
        for notice in &row.trust {
            self.notes.entry(notice.code.clone()).or_insert_with(|| (notice.advice.clone(), 0)).1 += 1;
        }
        self.times.add(row);
        let (Some(bytes), Some(work)) = (row.bytes, row.work) else { return Ok(()) };
        self.leg_bytes.insert(bytes, work.bytes as f64 / work.legs as f64);
        let number = |axis: &str| row.axes.get(axis).and_then(|value| value.parse::<u32>().ok());
        if let (Some(round), Some(from), Some(to), Some(rate)) =
            (number("round"), number("from"), number("to"), row.mb_per_s())
        {
            *self.together.entry((bytes, round, from < to)).or_default() += rate.median;
        }
        if let Some(pattern) = row.axes.get("pattern") {
            self.pattern.clone_from(pattern);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, outcome: Outcome, tally: &Tally) -> Result<()> {
        for times in &self.times.0 {
            self.size(out, times)?;
        }
        for (what, count) in &self.troubles {
            writeln!(out, "{what} ({count} rows)")?;
        }
        for (code, (advice, count)) in &self.notes {
            writeln!(out, "{}", plain(&format!("{code}, {count} rows: {advice}")))?;
        }
        let rows = tally.cases;
        match outcome {
            Outcome::Complete => self.verdict(out)?,
            Outcome::Interrupted => {
                writeln!(out, "\nnot complete: interrupted after {rows} rows; no verdict")?
            }
            Outcome::Broken => {
                writeln!(out, "\nnot complete: a rank or a connection failed after {rows} rows; no verdict")?;
            }
        }
        out.flush()
    }
}

impl Links {
    fn size(&self, out: &mut dyn Write, times: &Times) -> Result<()> {
        let bytes = Bytes(times.bytes);
        writeln!(
            out,
            "\nlinks, {bytes} bytes, {}: median time from (row) to (column)",
            plain(&self.pattern)
        )?;
        map::draw(out, times, &self.hosts)?;
        let mut ns: Vec<f32> = times.sweep.iter().map(|l| l.ns).collect();
        ns.sort_by(f32::total_cmp);
        if let (Some(fastest), Some(slowest)) = (ns.first(), ns.last()) {
            let middle = ns[ns.len() / 2];
            let each = [fastest, &middle, slowest].map(|ns| self.figures(times.bytes, *ns));
            writeln!(out, "fastest {} · median {} · slowest {}", each[0], each[1], each[2])?;
        }
        let sums: Vec<f64> = self
            .together
            .range((times.bytes, 0, false)..=(times.bytes, u32::MAX, true))
            .map(|(_, sum)| *sum)
            .collect();
        if !sums.is_empty() && times.bytes > 0 {
            let (low, high) = sums.iter().fold((f64::MAX, 0f64), |(l, h), s| (l.min(*s), h.max(*s)));
            let mean = sums.iter().sum::<f64>() / sums.len() as f64;
            let pairs = match self.hosts.ranks() / 2 {
                1 => "1 pair".into(),
                pairs => format!("{pairs} pairs at the same time"),
            };
            writeln!(
                out,
                "bisection, {pairs}: min {low:.1}, avg {mean:.1}, max {high:.1} MB/s over {} steps",
                sums.len()
            )?;
        }
        self.slowest(out, times)
    }

    fn figures(&self, bytes: u64, ns: f32) -> String {
        let us = f64::from(ns) / 1e3;
        match self.rate(bytes, ns) {
            Some(rate) => format!("{us:.2} us ({rate:.1} MB/s)"),
            None => format!("{us:.2} us"),
        }
    }

    fn rate(&self, bytes: u64, ns: f32) -> Option<f64> {
        let moved = self.leg_bytes.get(&bytes).copied().filter(|b| *b > 0.0 && ns > 0.0)?;
        Some(moved / f64::from(ns) * 1e3)
    }

    /// The slowest links relative to their kind, and what they took alone.
    fn slowest(&self, out: &mut dyn Write, times: &Times) -> Result<()> {
        let mut grid = comfy_table::Table::new();
        grid.load_style(presets::NOTHING)
            .set_header(["from", "to", "us", "MB/s", "x median", "alone us", ""]);
        grid.column_iter_mut().skip(2).take(4).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
        let usual = |inside: bool| {
            let of = times.reference.iter().filter(|l| self.hosts.share(l.from, l.to) == inside);
            let mut ns: Vec<f32> = of.map(|l| l.ns).collect();
            ns.sort_by(f32::total_cmp);
            ns.get(ns.len() / 2).copied()
        };
        for (link, factor) in verdict::slowest(times, &self.hosts, SLOWEST) {
            let Link { from, to, ns } = link;
            let alone = times.alone.iter().find(|l| (l.from, l.to) == (from, to)).map(|l| l.ns);
            let of_usual = alone.zip(usual(self.hosts.share(from, to))).map(|(ns, usual)| ns / usual);
            grid.add_row([
                plain(&format!("{} {from}", self.hosts.name(from))),
                plain(&format!("{} {to}", self.hosts.name(to))),
                format!("{:.2}", ns / 1e3),
                self.rate(times.bytes, ns).map_or(String::new(), |rate| format!("{rate:.1}")),
                format!("{factor:.2}"),
                alone.map_or(String::new(), |ns| format!("{:.2}", ns / 1e3)),
                of_usual.map_or(String::new(), |f| format!("{f:.2} x ordinary links alone")),
            ]);
        }
        writeln!(out, "slowest of their kind:\n{}", grid.trim_fmt())
    }

    fn verdict(&self, out: &mut dyn Write) -> Result<()> {
        if let Some(why) = verdict::hindrance(self.notes.keys().map(String::as_str)) {
            return writeln!(out, "\nno verdict: {why}");
        }
        let found = verdict::judge(&self.times.0, &self.hosts);
        writeln!(out)?;
        for slow in &found {
            writeln!(out, "verdict: {}", plain(&slow.sentence(&self.hosts)))?;
        }
        if found.is_empty() {
            writeln!(out, "verdict: no host, rank or link stands out")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombx_core::{
        benchmark::{
            payload::Check,
            work::{Metric, Work},
        },
        result::{ClockFacts, Notice},
        stats::Summary,
        team::Place,
    };

    /// Four hosts of one rank each, 1 ms for 1 MB, with the slow link of ranks 1 and 3; rendered.
    fn rendered(renderer: &mut dyn Renderer, trust: &[Notice]) -> String {
        let host = |at: u32| format!("n{at}");
        let place = |at| Place { host: host(at), cpus: "0".into(), online: 1, governor: None };
        let run = Run {
            id: "r".into(),
            argv: vec![],
            started: "2026-01-01T00:00:00Z".into(),
            version: "0".into(),
            profile: "release".into(),
            fabric: "mpi".into(),
            library: "MPI".into(),
            places: (0..4).map(place).collect(),
            clock: ClockFacts { source: "tsc".into(), resolution_ns: 1, overhead_ns: 9 },
            plan: BTreeMap::new(),
            env: BTreeMap::new(),
        };
        let mut out = Vec::new();
        renderer.run(&mut out, &run).unwrap();
        for (from, to) in (0u32..4).flat_map(|a| (0u32..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let ns = if from.min(to) == 1 && from.max(to) == 3 { 2e6 } else { 1e6 };
            let axes =
                [("pattern", "semidirectional".into()), ("from", from.to_string()), ("to", to.to_string())];
            let round = ("round", ((from + to) % 3).to_string());
            let row = Measurement {
                bytes: Some(1_000_000),
                axes: axes.into_iter().chain([round]).map(|(k, v)| (k.to_owned(), v)).collect(),
                work: Some(Work { bytes: 2_000_000, ops: 2, legs: 2 }),
                check: Check::Passed,
                summary: Summary::of(&[ns; 10]),
                trust: trust.to_vec(),
                ..Measurement::new("links", format!("links/from={from},to={to}"), Metric::Bandwidth, 2)
            };
            renderer.case(&mut out, &row).unwrap();
        }
        renderer.end(&mut out, Outcome::Complete, &Tally::default()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_map_and_the_verdict_show_the_slow_link() {
        let text = rendered(&mut Links::default(), &[]);
        assert!(text.contains("n1 1  · ·█\n"), "{text}");
        assert!(text.contains("fastest 1000.00 us (1000.0 MB/s)"), "{text}");
        assert!(text.contains("verdict: the link between rank 1 on n1 and rank 3 on n3 is slow"), "{text}");
        assert_eq!(text.matches("verdict:").count(), 1, "{text}");
    }

    #[test]
    fn ranks_that_share_cpus_get_no_verdict() {
        let notice = Notice { code: "oversubscribed".into(), short: "x".into(), advice: "y".into() };
        let text = rendered(&mut Links::default(), &[notice]);
        assert!(text.contains("no verdict: ranks share CPUs"), "{text}");
    }

    #[test]
    fn csv_has_a_line_for_each_direction() {
        let text = rendered(&mut LinksCsv::default(), &[]);
        assert_eq!(text.lines().count(), 13);
        assert!(
            text.lines()
                .nth(1)
                .unwrap()
                .starts_with("r,0,1,n0,n1,semidirectional,1000000,,1,,ok,passed,10,1000,"),
            "{text}"
        );
    }
}
