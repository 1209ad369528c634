//! Links for programs: the verdict and the figures of each size as one JSON object, or as one line for monitoring.

use std::{
    collections::BTreeMap,
    io::{Result, Write},
};

use serde_json::{Value, json};

use super::SLOWEST;
use crate::{
    file::RunOutcome,
    render::{
        Renderer,
        monitoring::{Figure, Status, line},
    },
    verdict::{self, Component, Conclusion, Evidence, LinkSweep, LinkTimes, SlowLink, SlowPart, Verdict},
};
use ombx_core::{
    result::{Measurement, Run, Tally},
    stats,
    unit::Bytes,
};

/// Name, major and minor version of the schema of the JSON object.
const SCHEMA: (&str, u32, u32) = ("ombx.links", 1, 0);
/// Number of sentences in the line for monitoring.
const SENTENCES: usize = 3;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One JSON object.
    Json,
    /// One line for monitoring. Nothing is written about a sweep that is not complete.
    Monitoring,
}

/// Collects the links of one sweep and writes their verdict at the end.
#[derive(Debug)]
pub struct LinksSummary {
    form: Form,
    sweep: LinkSweep,
    verdict: Option<Verdict>,
    tally: Tally,
    /// Outcome of all launches until now; `None` before the first has ended.
    outcome: Option<RunOutcome>,
    /// Advice and number of rows by code of the mark.
    marks: BTreeMap<String, (String, usize)>,
}

impl LinksSummary {
    /// Returns a renderer without links.
    pub fn new(form: Form) -> LinksSummary {
        LinksSummary {
            form,
            sweep: LinkSweep::default(),
            verdict: None,
            tally: Tally::default(),
            outcome: None,
            marks: BTreeMap::new(),
        }
    }

    fn monitoring(&self, verdict: &Verdict) -> String {
        let Tally { skipped, failed, corrupt, .. } = self.tally;
        let troubles = [(corrupt, "with wrong data"), (failed, "failed"), (skipped, "skipped")];
        let troubles = troubles.iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<String> = troubles.map(|(count, what)| format!("{count} rows {what}")).collect();
        let sentences = &verdict.sentences;
        let more = sentences.len().saturating_sub(SENTENCES);
        parts.extend(sentences.iter().take(SENTENCES).map(|sentence| match sentence.conclusion {
            Conclusion::None => format!("no verdict: {}", sentence.text),
            Conclusion::Slow | Conclusion::Clear => sentence.text.clone(),
        }));
        parts.extend((more > 0).then(|| format!("{more} more")));
        line("links", status(verdict, self.tally), &parts.join("; "), &self.figures(verdict))
    }

    fn figures(&self, verdict: &Verdict) -> Vec<Figure> {
        let sizes = self.sweep.averaged();
        let links = sizes.iter().map(|times| times.measured).max().unwrap_or(0);
        let mut all = vec![
            Figure::new("slow", verdict.slow.len() as f64, ""),
            Figure::new("missed", verdict.missed as f64, ""),
            Figure::new("links", links as f64, ""),
        ];
        let (smallest, largest) =
            (sizes.iter().map(|times| times.bytes).min(), sizes.iter().map(|times| times.bytes).max());
        for times in &sizes {
            // Limits are for the shortest time of each link, as for expectations.
            let sampled = times.shortest.iter().filter(|link| times.is_sampled(link, &self.sweep.hosts));
            let median = stats::median(&sampled.map(|link| f64::from(link.ns)).collect::<Vec<_>>());
            let slowest = times.shortest.iter().map(|link| f64::from(link.ns)).fold(0.0, f64::max);
            let Some(median) = median else {
                continue;
            };
            let (bytes, us) = (Bytes(times.bytes), |ns: f64| ns / 1e3);
            let most = self.sweep.most_latency_us().filter(|_| Some(times.bytes) == smallest);
            all.push(Figure::new(format!("median_{bytes}"), us(median), "us"));
            all.push(Figure {
                critical: most.map(|most| most.to_string()),
                ..Figure::new(format!("slowest_{bytes}"), us(slowest), "us")
            });
            let rate = self.sweep.mb_per_s(times.bytes, slowest as f32);
            let least = self.sweep.least_mb_per_s().filter(|_| Some(times.bytes) == largest);
            all.extend(rate.map(|rate| Figure {
                critical: least.map(|least| format!("{least}:")),
                ..Figure::new(format!("slowest_{bytes}_mb_per_s"), rate, "")
            }));
        }
        all
    }

    fn json(&self, verdict: &Verdict) -> Value {
        let hosts = &self.sweep.hosts;
        let sentences = verdict.sentences.iter();
        let sentences =
            sentences.map(|sentence| json!({"text": sentence.text, "evidence": sentence.evidence}));
        let slow = verdict.components();
        let Tally { cases, skipped, failed, corrupt } = self.tally;
        let marks = self
            .marks
            .iter()
            .map(|(code, (advice, rows))| json!({"code": code, "advice": advice, "rows": rows}));
        json!({
            "schema": {"name": SCHEMA.0, "major": SCHEMA.1, "minor": SCHEMA.2},
            "conclusion": verdict.conclusion.name(),
            "sentences": sentences.collect::<Vec<_>>(),
            "slow": verdict.slow.iter().map(slow_part).collect::<Vec<_>>(),
            "pattern": self.sweep.pattern,
            "hosts": (0..hosts.ranks()).map(|rank| hosts.name(rank)).collect::<Vec<_>>(),
            "launches": self.sweep.launches(),
            "sizes": self.sweep.averaged().iter().map(|times| self.size(times, &slow)).collect::<Vec<_>>(),
            "rows": {"all": cases, "skipped": skipped, "failed": failed, "corrupt": corrupt},
            "marks": marks.collect::<Vec<_>>(),
        })
    }

    fn size(&self, times: &LinkTimes, slow: &[Component]) -> Value {
        let figure =
            |ns: f32| json!({"us": f64::from(ns) / 1e3, "mb_per_s": self.sweep.mb_per_s(times.bytes, ns)});
        let slowest = verdict::slowest(times, &self.sweep.hosts, SLOWEST, slow).into_iter().map(
            |SlowLink { link, factor }| {
                let alone = times.retested(link.from, link.to).map(|ns| f64::from(ns) / 1e3);
                let us = f64::from(link.ns) / 1e3;
                json!({"from": link.from, "to": link.to, "us": us, "factor": factor, "alone_us": alone})
            },
        );
        let [fastest, median, last] =
            times.range().map_or([const { Value::Null }; 3], |range| range.map(figure));
        json!({
            "bytes": times.bytes,
            "links": times.measured,
            "fastest": fastest,
            "median": median,
            "slowest": last,
            "slowest_links": slowest.collect::<Vec<_>>(),
        })
    }
}

fn slow_part(slow: &SlowPart) -> Value {
    let Evidence { links, count, typical, ordinary, ordinary_ns, measured_again, .. } = &slow.evidence;
    let links = links.iter().map(|(ends, factor)| json!({"ranks": ends, "factor": factor}));
    json!({
        "kind": slow.part,
        "name": slow.name,
        "hosts": slow.hosts,
        "ranks": slow.ranks,
        "factor": slow.factor,
        "bytes": slow.bytes,
        "causes": slow.causes,
        "links": links.collect::<Vec<_>>(),
        "link_count": count,
        "measured_again": measured_again,
        "ordinary": {"links": typical, "count": ordinary, "median_us": ordinary_ns / 1e3},
    })
}

/// Returns the status of links for monitoring. Slow links work, so that only a demand that they miss is critical.
pub fn status(verdict: &Verdict, tally: Tally) -> Status {
    match (verdict.conclusion, tally) {
        (_, Tally { corrupt: 1.., .. } | Tally { failed: 1.., .. }) => Status::Critical,
        _ if verdict.missed > 0 => Status::Critical,
        (Conclusion::Slow, _) => Status::Warning,
        (Conclusion::None, _) | (_, Tally { skipped: 1.., .. }) => Status::Unknown,
        (Conclusion::Clear, _) => Status::Ok,
    }
}

impl Renderer for LinksSummary {
    fn run(&mut self, _: &mut dyn Write, run: &Run) -> Result<()> {
        self.sweep.begin(run);
        Ok(())
    }

    fn case(&mut self, _: &mut dyn Write, row: &Measurement) -> Result<()> {
        self.tally.add(row);
        for mark in row.doubts() {
            self.marks.entry(mark.code.clone()).or_insert_with(|| (mark.advice.clone(), 0)).1 += 1;
        }
        self.sweep.add(row);
        Ok(())
    }

    fn verdict(&mut self, verdict: &Verdict) {
        self.verdict = Some(verdict.clone());
    }

    fn end(&mut self, _: &mut dyn Write, outcome: RunOutcome, _: &Tally) -> Result<()> {
        self.outcome = self.outcome.filter(|before| *before != RunOutcome::Complete).or(Some(outcome));
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        let verdict = self.verdict.as_ref().filter(|_| self.outcome == Some(RunOutcome::Complete));
        match (self.form, verdict) {
            (Form::Json, Some(verdict)) => writeln!(out, "{:#}", self.json(verdict))?,
            (Form::Json, None) => {
                let interrupted = self.outcome == Some(RunOutcome::Interrupted);
                let why = if interrupted { "the run was interrupted" } else { "the run did not complete" };
                writeln!(out, "{:#}", self.json(&Verdict::incomplete(why)))?;
            }
            (Form::Monitoring, Some(verdict)) => out.write_all(self.monitoring(verdict).as_bytes())?,
            (Form::Monitoring, None) => {}
        }
        out.flush()
    }
}
