//! Several launches of the same for people: each case once, with how far launches lie apart.

use std::{
    collections::BTreeMap,
    io::{Result, Write},
};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, presets};

use super::{
    Paint, Renderer, plain,
    table::{self, figure},
};
use crate::wire::Outcome;
use ombx_core::{
    benchmark::work::Metric,
    result::{Measurement, Outcome as CaseOutcome, Run, Tally},
    stats,
    unit::Bytes,
};

const BOLD: Style = Style::new().bold();
const DOUBT: Style = AnsiColor::Yellow.on_default();
const FAILURE: Style = AnsiColor::Red.on_default().bold();
/// Columns of figures, which stand to the right.
const FIGURES: usize = 7;

/// Collects all launches and prints them as one table when the last has ended, or one was broken.
#[derive(Debug, Default)]
pub struct Launches {
    seen: usize,
    /// Of the launch that did not come to its end.
    broken: Option<u64>,
    cases: BTreeMap<Place, Case>,
    advice: BTreeMap<String, String>,
    troubles: BTreeMap<String, usize>,
    paint: Paint,
}

/// Where a case stands: launches run them in any order.
type Place = (String, Option<u64>, String);

#[derive(Debug)]
struct Case {
    metric: Metric,
    bytes: Option<u64>,
    /// The headline of each launch: us, or MB/s.
    medians: Vec<f64>,
    doubts: BTreeMap<String, usize>,
}

impl Launches {
    /// A table in these colours.
    pub fn painted(paint: Paint) -> Launches {
        Launches { paint, ..Launches::default() }
    }

    fn print(&self, out: &mut dyn Write) -> Result<()> {
        let mut rest: Vec<(&Place, &Case)> = self.cases.iter().collect();
        while let Some(((heading, ..), _)) = rest.first() {
            let same = rest.iter().take_while(|((other, ..), _)| other == heading).count();
            writeln!(out, "\n{}", self.paint.with(BOLD, heading))?;
            writeln!(out, "{}", self.grid(&rest[..same]))?;
            rest.drain(..same);
        }
        if self.cases.is_empty() {
            writeln!(out, "no rows")?;
        }
        for (what, count) in &self.troubles {
            let launches = if *count == 1 { "1 launch".into() } else { format!("{count} launches") };
            writeln!(out, "  {}", self.paint.with(FAILURE, &format!("{what} (in {launches})")))?;
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
        let mut grid = comfy_table::Table::new();
        grid.load_style(presets::NOTHING);
        let unit = cases[0].1.metric.unit();
        grid.set_header(["bytes", unit, "95% interval", "spread", "min", "max", "launches", "trust"]);
        for (_, case) in cases {
            let mut cells = vec![case.bytes.map_or_else(|| "-".into(), |bytes| Bytes(bytes).to_string())];
            cells.extend(case.figures());
            let doubts = case.doubts.iter().map(|(word, count)| format!("{word} in {count}"));
            cells.push(self.paint.with(DOUBT, &doubts.collect::<Vec<_>>().join(", ")));
            grid.add_row(cells);
        }
        for column in grid.column_iter_mut().take(FIGURES) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        grid.trim_fmt()
    }
}

impl Case {
    /// Median of launches, its interval, spread, lowest, highest, and how many launches.
    fn figures(&self) -> [String; FIGURES - 1] {
        let mut sorted = self.medians.clone();
        sorted.sort_by(f64::total_cmp);
        let (Some(median), [low, .., high] | [low @ high]) = (stats::median(&sorted), sorted.as_slice())
        else {
            return ["n/a", "n/a", "n/a", "n/a", "n/a", "0"].map(str::to_owned);
        };
        let interval = stats::order_bounds(sorted.len(), 0.5)
            .map(|(l, u)| format!("{} .. {}", figure(sorted[l - 1]), figure(sorted[u - 1])));
        [
            figure(median),
            interval.unwrap_or_else(|| "n/a".into()),
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
        let (library, places) = (table::library(run), table::places(run));
        let line = format!("ombx {} ({}) · {library} · {places}", run.version, run.profile);
        writeln!(out, "{}", plain(&line))?;
        let launches = run.plan.get("launches").map_or("several", String::as_str);
        let line = format!("{launches} launches, cases in random order · started {}", run.started);
        writeln!(out, "{}", plain(&line))
    }

    fn case(&mut self, _: &mut dyn Write, row: &Measurement) -> Result<()> {
        let heading = plain(&table::title(&row.bench, &row.axes, row.depth, row.pairs));
        let trouble = |what: &str, why: &str| plain(&format!("{what}: {}: {why}", row.key));
        match &row.outcome {
            CaseOutcome::Ok => {}
            CaseOutcome::Skipped(why) => *self.troubles.entry(trouble("skipped", why)).or_default() += 1,
            CaseOutcome::Failed(why) => *self.troubles.entry(trouble("FAILED", why)).or_default() += 1,
        }
        let (CaseOutcome::Ok, Some(summary)) = (&row.outcome, &row.summary) else { return Ok(()) };
        let headline = match row.metric {
            Metric::Latency => Some(summary.median / 1e3),
            Metric::Bandwidth => row.mb_per_s().map(|rate| rate.median),
        };
        let case = self.cases.entry((heading, row.bytes, plain(&row.key))).or_insert_with(|| Case {
            metric: row.metric,
            bytes: row.bytes,
            medians: Vec::new(),
            doubts: BTreeMap::new(),
        });
        case.medians.extend(headline.filter(|x| x.is_finite() && *x > 0.0));
        for notice in &row.trust {
            let word = plain(&notice.code.replace('_', " "));
            *case.doubts.entry(word.clone()).or_default() += 1;
            self.advice.entry(word).or_insert_with(|| plain(&notice.advice));
        }
        Ok(())
    }

    fn end(&mut self, _: &mut dyn Write, outcome: Outcome, tally: &Tally) -> Result<()> {
        if outcome != Outcome::Complete {
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
