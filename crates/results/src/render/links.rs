//! Links as text: a heat map per message size, the slowest links, and the verdict.

use std::{
    collections::BTreeMap,
    io::{Result, Write},
    sync::Arc,
};

use super::{Renderer, grid::grid, plain};
use crate::{
    file::RunOutcome,
    plot::heat_map,
    run_info::banner,
    verdict::{self, Link, LinkSweep, LinkTimes, Reference, Verdict},
};
use ombx_core::{
    result::{Measurement, Outcome, Run, Tally},
    unit::Bytes,
};

/// Number of links in the table of the slowest.
const SLOWEST: usize = 8;

/// Collects links and prints them at the end of the run.
#[derive(Debug, Default)]
pub struct Links {
    links: LinkSweep,
    reference: Option<Arc<Reference>>,
    /// Whether the pairs of the run are a bisection: each rank of one half with a rank of the other half.
    is_bisection: bool,
    /// Bandwidth of all pairs measured at the same time, by size, round and whether the lower rank was timed.
    together: BTreeMap<(u64, u32, bool), f64>,
    troubles: BTreeMap<String, usize>,
    /// Advice and number of rows by code of the mark.
    marks: BTreeMap<String, (String, usize)>,
}

impl Renderer for Links {
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        let reference = self.reference.clone();
        *self = Links {
            links: LinkSweep::of_run(run).against(reference.clone()),
            is_bisection: run.plan.get("links").is_some_and(|mode| mode == "bisection"),
            reference,
            ..Links::default()
        };
        writeln!(out, "{}", plain(&banner(run)))
    }

    fn case(&mut self, _: &mut dyn Write, row: &Measurement) -> Result<()> {
        match &row.outcome {
            Outcome::Ok => {}
            Outcome::Skipped(why) => {
                *self.troubles.entry(format!("skipped: {}", plain(why))).or_default() += 1
            }
            Outcome::Failed(why) => {
                *self.troubles.entry(plain(&format!("FAILED {}: {why}", row.key))).or_default() += 1;
            }
        }
        for notice in row.doubts() {
            self.marks.entry(notice.code.clone()).or_insert_with(|| (notice.advice.clone(), 0)).1 += 1;
        }
        self.links.add(row);
        let number = |axis: &str| row.axes.get(axis).and_then(|value| value.parse::<u32>().ok());
        if let (Some(bytes), Some(round), Some(from), Some(to), Some(rate)) =
            (row.bytes, number("round"), number("from"), number("to"), row.mb_per_s())
        {
            *self.together.entry((bytes, round, from < to)).or_default() += rate.median;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome, tally: &Tally) -> Result<()> {
        let rows = tally.cases;
        let verdict = match outcome {
            RunOutcome::Complete => self.links.verdict(),
            RunOutcome::Interrupted => {
                Verdict::incomplete(format!("not complete: interrupted after {rows} rows"))
            }
            RunOutcome::Broken => {
                Verdict::incomplete(format!("not complete: a rank or a connection failed after {rows} rows"))
            }
        };
        writeln!(out)?;
        for (_, line) in verdict.lines(&self.links.hosts) {
            writeln!(out, "{}", plain(&line))?;
        }
        for times in &self.links.averaged() {
            self.size(out, times)?;
        }
        for (what, count) in &self.troubles {
            writeln!(out, "{what} ({count} rows)")?;
        }
        for (code, (advice, count)) in &self.marks {
            writeln!(out, "{}", plain(&format!("{code}, {count} rows: {advice}")))?;
        }
        out.flush()
    }
}

impl Links {
    /// Returns a renderer that also compares the links with an earlier result.
    pub fn against(reference: Option<Arc<Reference>>) -> Links {
        Links { reference, ..Links::default() }
    }

    fn size(&self, out: &mut dyn Write, times: &LinkTimes) -> Result<()> {
        let bytes = Bytes(times.bytes);
        let what = match times.directed {
            true => "median time from (row) to (column)",
            false => "median time of each pair, both directions averaged",
        };
        writeln!(out, "\nlinks, {bytes} bytes, {}: {what}", plain(&self.links.pattern))?;
        heat_map::draw(out, times, &self.links.hosts)?;
        if let Some(range) = times.range() {
            let [fastest, median, slowest] = range.map(|ns| self.figures(times.bytes, ns));
            writeln!(out, "fastest {fastest} · median {median} · slowest {slowest}")?;
        }
        let sums: Vec<f64> = self
            .together
            .range((times.bytes, 0, false)..=(times.bytes, u32::MAX, true))
            .map(|(_, sum)| *sum)
            .collect();
        if !sums.is_empty() && times.bytes > 0 {
            let (low, high) = sums.iter().fold((f64::MAX, 0f64), |(l, h), s| (l.min(*s), h.max(*s)));
            let mean = sums.iter().sum::<f64>() / sums.len() as f64;
            let pairs = match self.links.hosts.ranks() / 2 {
                1 => "1 pair".into(),
                pairs => format!("{pairs} pairs at the same time"),
            };
            let bisection = if self.is_bisection { "bisection, " } else { "" };
            writeln!(
                out,
                "{bisection}{pairs}: min {low:.1}, avg {mean:.1}, max {high:.1} MB/s over {} steps",
                sums.len()
            )?;
        }
        self.slowest(out, times)
    }

    fn figures(&self, bytes: u64, ns: f32) -> String {
        let us = f64::from(ns) / 1e3;
        match self.links.mb_per_s(bytes, ns) {
            Some(rate) => format!("{us:.2} us ({rate:.1} MB/s)"),
            None => format!("{us:.2} us"),
        }
    }

    /// Prints the slowest links relative to their kind, and their times when measured again alone.
    fn slowest(&self, out: &mut dyn Write, times: &LinkTimes) -> Result<()> {
        let hosts = &self.links.hosts;
        let mut grid = grid(["from", "to", "us", "MB/s", "x median", "alone us", ""], 2..6);
        let ordinary = |inside: bool| {
            let kind = times.reference.iter().filter(|l| hosts.same_host(l.from, l.to) == inside);
            let mut ns: Vec<f32> = kind.map(|l| l.ns).collect();
            ns.sort_by(f32::total_cmp);
            ns.get(ns.len() / 2).copied()
        };
        for (Link { from, to, ns }, factor) in verdict::slowest(times, hosts, SLOWEST) {
            let alone = times.retested(from, to);
            let is_ordinary = times.reference.iter().any(|l| (l.from, l.to) == (from, to));
            let usual = ordinary(hosts.same_host(from, to)).filter(|_| !is_ordinary);
            let ratio = alone.zip(usual).map(|(ns, usual)| ns / usual);
            grid.add_row([
                plain(&format!("{} {from}", hosts.name(from))),
                plain(&format!("{} {to}", hosts.name(to))),
                format!("{:.2}", ns / 1e3),
                self.links.mb_per_s(times.bytes, ns).map_or(String::new(), |rate| format!("{rate:.1}")),
                format!("{factor:.2}"),
                alone.map_or(String::new(), |ns| format!("{:.2}", ns / 1e3)),
                ratio.map_or(String::new(), |ratio| format!("{ratio:.2} x ordinary links alone")),
            ]);
        }
        writeln!(out, "slowest of their kind:\n{}", grid.trim_fmt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::LinksCsv;
    use ombx_core::{
        benchmark::{Metric, Work},
        result::Mark,
        stats::Summary,
        team::Place,
    };

    /// Renders four hosts with one rank each: 1 ms for 1 MB, and 2 ms between ranks 1 and 3.
    fn rendered(renderer: &mut dyn Renderer, trust: &[Mark]) -> String {
        let golden = crate::golden();
        let place = |at: u32| Place { host: format!("n{at}"), ..golden.run.places[0].clone() };
        let run = Run { id: "r".into(), places: (0..4).map(place).collect(), ..golden.run.clone() };
        let mut out = Vec::new();
        renderer.run(&mut out, &run).unwrap();
        for (from, to) in (0u32..4).flat_map(|a| (0u32..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let ns = if from.min(to) == 1 && from.max(to) == 3 { 2e6 } else { 1e6 };
            let axes =
                [("pattern", "semidirectional".into()), ("from", from.to_string()), ("to", to.to_string())];
            let round = ("round", ((from + to) % 3).to_string());
            let row = Measurement {
                metric: Metric::Bandwidth,
                bytes: Some(1_000_000),
                axes: axes.into_iter().chain([round]).map(|(k, v)| (k.to_owned(), v)).collect(),
                work: Some(Work { bytes: 2_000_000, ops: 2, legs: 2 }),
                summary: Summary::of(&[ns; 10]),
                trust: trust.to_vec(),
                ..golden.rows[0].clone()
            };
            renderer.case(&mut out, &row).unwrap();
        }
        renderer.end(&mut out, RunOutcome::Complete, &Tally::default()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_map_and_the_verdict_show_the_slow_link() {
        let text = rendered(&mut Links::default(), &[]);
        assert!(text.contains("n1 1  · ·█\n"), "{text}");
        assert!(text.contains("fastest 1000.00 us (1000.0 MB/s)"), "{text}");
        assert!(text.contains("verdict: the link between n1 and n3 is slow"), "{text}");
        assert_eq!(text.matches("verdict:").count(), 1, "{text}");
        assert!(text.find("verdict:") < text.find("links, "), "the verdict comes first: {text}");
        assert!(!text.contains("bisection"), "all pairs are no bisection: {text}");
    }

    #[test]
    fn ranks_that_share_cpus_get_no_verdict() {
        let notice = Mark::invalid("oversubscribed", "x", "y");
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
