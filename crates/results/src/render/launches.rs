//! Several launches of the same plan: one line per case with the spread between launches.

use std::{
    collections::BTreeMap,
    io::{Result, Write},
};

use super::{
    Paint, Renderer,
    grid::{NO_VALUE, grid, interval, size},
    plain, table,
};
use crate::{file::RunOutcome, number::figure, run_info::banner};
use ombx_core::{
    benchmark::Metric,
    result::{Measurement, Outcome, Run, Tally},
    stats,
};

/// Collects all launches and prints one table at the end of the output.
#[derive(Debug, Default)]
pub struct Launches {
    seen: usize,
    /// Number of rows of a launch that did not complete.
    broken: Option<u64>,
    cases: BTreeMap<Place, Case>,
    advice: BTreeMap<String, String>,
    troubles: BTreeMap<String, usize>,
    paint: Paint,
}

/// Sort key of a case: heading, size, key. Launches run cases in random order.
type Place = (String, Option<u64>, String);

#[derive(Debug)]
struct Case {
    metric: Metric,
    bytes: Option<u64>,
    /// Headline figure of each launch, in us or MB/s.
    medians: Vec<f64>,
    marks: BTreeMap<String, usize>,
}

impl Launches {
    /// Creates a renderer with or without colours.
    pub fn painted(paint: Paint) -> Launches {
        Launches { paint, ..Launches::default() }
    }

    fn print(&self, out: &mut dyn Write) -> Result<()> {
        let mut rest: Vec<(&Place, &Case)> = self.cases.iter().collect();
        while let Some(((heading, ..), _)) = rest.first() {
            let same = rest.iter().take_while(|((other, ..), _)| other == heading).count();
            writeln!(out, "\n{}", self.paint.heading(heading))?;
            writeln!(out, "{}", self.grid(&rest[..same]))?;
            rest.drain(..same);
        }
        if self.cases.is_empty() {
            writeln!(out, "no rows")?;
        }
        for (what, count) in &self.troubles {
            let launches = if *count == 1 { "1 launch".into() } else { format!("{count} launches") };
            writeln!(out, "  {}", self.paint.bad(&format!("{what} (in {launches})")))?;
        }
        let enough = |case: &Case| stats::order_bounds(case.medians.len(), 0.5).is_some();
        if !self.cases.values().all(enough) {
            writeln!(out, "  n/a: a 95% interval over launches needs 6 launches")?;
        }
        for (code, advice) in &self.advice {
            writeln!(out, "  {code}: {advice}")?;
        }
        out.flush()
    }

    fn grid(&self, cases: &[(&Place, &Case)]) -> String {
        let unit = cases[0].1.metric.unit();
        let titles = ["bytes", unit, "95% interval", "spread", "min", "max", "launches", "trust"];
        let mut grid = grid(titles, 0..7);
        for (_, case) in cases {
            let mut cells = vec![size(case.bytes)];
            cells.extend(case.figures());
            let marks = case.marks.iter().map(|(word, count)| format!("{word} in {count}"));
            cells.push(self.paint.warning(&marks.collect::<Vec<_>>().join(", ")));
            grid.add_row(cells);
        }
        grid.trim_fmt()
    }
}

impl Case {
    /// Returns median, interval, spread, minimum, maximum and number of launches.
    fn figures(&self) -> [String; 6] {
        let mut sorted = self.medians.clone();
        sorted.sort_by(f64::total_cmp);
        let (Some(median), [low, .., high] | [low @ high]) = (stats::median(&sorted), sorted.as_slice())
        else {
            return [NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE, "0"].map(str::to_owned);
        };
        let bounds = stats::order_bounds(sorted.len(), 0.5).map(|(l, u)| [sorted[l - 1], sorted[u - 1]]);
        [
            figure(median),
            interval(bounds, figure),
            format!("{:.1}%", (high - low) / median * 100.0),
            figure(*low),
            figure(*high),
            sorted.len().to_string(),
        ]
    }
}

impl Renderer for Launches {
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        self.seen += 1;
        if self.seen > 1 {
            return Ok(());
        }
        writeln!(out, "{}", plain(&banner(run)))?;
        let launches = run.plan.get("launches").map_or("several", String::as_str);
        let line = format!("{launches} launches, cases in random order · started {}", run.started);
        writeln!(out, "{}", plain(&line))
    }

    fn case(&mut self, _: &mut dyn Write, row: &Measurement) -> Result<()> {
        let heading = plain(&table::title(&row.bench, &row.axes, row.depth, row.pairs));
        let trouble = |what: &str, why: &str| plain(&format!("{what}: {}: {why}", row.key));
        match &row.outcome {
            Outcome::Ok => {}
            Outcome::Skipped(why) => *self.troubles.entry(trouble("skipped", why)).or_default() += 1,
            Outcome::Failed(why) => *self.troubles.entry(trouble("FAILED", why)).or_default() += 1,
        }
        let (Outcome::Ok, Some(summary)) = (&row.outcome, &row.summary) else { return Ok(()) };
        let headline = match row.metric {
            Metric::Latency => Some(summary.median / 1e3),
            Metric::Bandwidth => row.mb_per_s().map(|rate| rate.median),
        };
        let case = self.cases.entry((heading, row.bytes, plain(&row.key))).or_insert_with(|| Case {
            metric: row.metric,
            bytes: row.bytes,
            medians: Vec::new(),
            marks: BTreeMap::new(),
        });
        case.medians.extend(headline.filter(|x| x.is_finite() && *x > 0.0));
        for notice in row.doubts() {
            let word = plain(&notice.code.replace('_', " "));
            *case.marks.entry(word.clone()).or_default() += 1;
            self.advice.entry(word).or_insert_with(|| plain(&notice.advice));
        }
        Ok(())
    }

    fn end(&mut self, _: &mut dyn Write, outcome: RunOutcome, tally: &Tally) -> Result<()> {
        if outcome != RunOutcome::Complete {
            self.broken = Some(tally.cases);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        self.print(out)?;
        if let Some(rows) = self.broken {
            writeln!(out, "\nnot complete: launch {} ended early after {rows} rows", self.seen)?;
        }
        out.flush()
    }
}
