//! Links as text: the verdict, and for each message size a heat map, a histogram, the steps, and the slowest links.

use std::{
    collections::BTreeMap,
    io::{Result, Write},
};

use ombx_draw::terminal::{Histogram, heat_map};
use ombx_estimate::{
    number::{self, Scale},
    runs::banner,
    text::plain,
};
use ombx_links::verdict::{self, Link, LinkSweep, LinkTimes, SlowLink, Step};
use ombx_record::{
    event::Event,
    result::{Level, MarkCode, Measurement, Outcome, Run, RunOutcome, Tally},
    stats,
    unit::{Bytes, counted},
    verdict::{Component, Conclusion, Evidence, SlowPart, Verdict},
};
use serde_json::{Value, json};

use crate::{
    Renderer,
    monitoring::{Figure, Status, line},
    table::cells::{aligned, broken, grid},
};

/// Name, major and minor version of the schema of the JSON object.
const SCHEMA: (&str, u32, u32) = ("ombx.links", 1, 0);
/// Number of sentences in the line for monitoring.
const SENTENCES: usize = 3;

/// What is written.
#[derive(Debug, Clone, Copy, Default)]
pub enum Form {
    /// One JSON object.
    #[default]
    Json,
    /// Text that a function makes of the verdict and the numbers of rows.
    Text(fn(&Verdict, Tally) -> String),
    /// One line for monitoring. Nothing is written about a sweep that is not complete.
    Monitoring,
}

/// Collects the links of one sweep and writes their verdict at the end.
#[derive(Debug, Default)]
pub struct LinksSummary {
    form: Form,
    sweep: LinkSweep,
    verdict: Option<Verdict>,
    tally: Tally,
    /// Outcome of all launches until now; `None` before the first has ended.
    outcome: Option<RunOutcome>,
}

impl LinksSummary {
    /// Returns a renderer without links.
    pub fn new(form: Form) -> LinksSummary {
        LinksSummary { form, ..LinksSummary::default() }
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
            _ => sentence.text.clone(),
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
        let marks = doubts(&self.sweep, |code| code.name().to_owned());
        let marks =
            marks.iter().map(|(code, (advice, rows))| json!({"code": code, "advice": advice, "rows": rows}));
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
        (found, _) if found.is_finding() => Status::Warning,
        (Conclusion::None, _) | (_, Tally { skipped: 1.., .. }) => Status::Unknown,
        _ => Status::Ok,
    }
}

impl Renderer for LinksSummary {
    fn event(&mut self, _: &mut dyn Write, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => self.sweep.begin(run),
            Event::Row(row) | Event::Case(row) => {
                self.tally.add(row);
                self.sweep.add(row);
            }
            Event::Round(round) => {
                self.tally.cases += round.len() as u64;
                self.sweep.add_round(round);
            }
            Event::Verdict(verdict) => self.verdict = Some(verdict.clone().into_owned()),
            Event::End { outcome, .. } => {
                let before = self.outcome.filter(|before| *before != RunOutcome::Complete);
                self.outcome = before.or(Some(*outcome));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        let complete = self.verdict.as_ref().filter(|_| self.outcome == Some(RunOutcome::Complete));
        let interrupted = self.outcome == Some(RunOutcome::Interrupted);
        let why = if interrupted { "the run was interrupted" } else { "the run did not complete" };
        let verdict = complete.cloned().unwrap_or_else(|| Verdict::incomplete(why));
        match self.form {
            Form::Json => writeln!(out, "{:#}", self.json(&verdict))?,
            Form::Text(of) => out.write_all(of(&verdict, self.tally).as_bytes())?,
            Form::Monitoring if complete.is_some() => out.write_all(self.monitoring(&verdict).as_bytes())?,
            Form::Monitoring => {}
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests;

/// Number of links up to which a table has all of them, and no map, histogram and steps are printed: those of three hosts.
const FEW: usize = 3;
/// Number of links in the table of the slowest.
const SLOWEST: usize = 8;
/// Maximum number of lines in the table of steps. With more steps, a line is several consecutive ones.
const MOST_STEPS: usize = 16;
/// Length of the longest bar of a histogram in characters.
const LONGEST_BAR: usize = 40;
/// Maximum number of columns of a map, and characters for the names of its lines.
const WIDEST_MAP: usize = 64;
const BESIDE_MAP: usize = 16;
/// Characters of a line of the histogram beside its bar.
const BESIDE_BAR: usize = 50;
/// Lines of a screen of unknown height.
const USUAL_ROWS: usize = 24;

/// Collects links and prints them at the end of the last launch.
#[derive(Debug, Default)]
pub struct Links {
    links: LinkSweep,
    verdict: Option<Verdict>,
    /// How the launches of the sweep that is not printed yet have ended, and their rows; `None` without one.
    open: Option<(RunOutcome, u64)>,
    /// Whether each rank of one half is paired with a rank of the other half.
    between_halves: bool,
    troubles: BTreeMap<String, usize>,
    /// Whether the advice of marks is printed. Otherwise one line counts them.
    with_advice: bool,
    /// Width of the terminal; `None` means that there is no limit.
    columns: Option<usize>,
    /// Height of the terminal; `None` if it is unknown.
    rows: Option<usize>,
}

impl Renderer for Links {
    fn event(&mut self, out: &mut dyn Write, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => self.run(out, run)?,
            Event::Row(row) | Event::Case(row) => self.case(row),
            Event::Round(round) => self.links.add_round(round),
            Event::Verdict(verdict) => self.verdict = Some(verdict.clone().into_owned()),
            Event::End { outcome, tally } => {
                let (before, rows) = self.open.unwrap_or((RunOutcome::Complete, 0));
                let worse = if before == RunOutcome::Complete { *outcome } else { before };
                self.open = Some((worse, rows + tally.cases));
                if self.links.is_last() {
                    self.print(out)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints a sweep of which a launch is missing.
    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        self.print(out)
    }
}

impl Links {
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        if !self.links.continues_with(run) {
            self.print(out)?;
            let mode = run.plan.get("links").map(String::as_str);
            let between_halves = matches!(mode, Some("bisection" | "halves"));
            let links = std::mem::take(&mut self.links);
            let Links { with_advice, columns, rows, .. } = *self;
            *self = Links { links, between_halves, with_advice, columns, rows, ..Links::default() };
            writeln!(out, "{}", self.sentence(&plain(&banner(run))))?;
        }
        self.links.begin(run);
        Ok(())
    }

    fn case(&mut self, row: &Measurement) {
        match &row.outcome {
            Outcome::Ok => {}
            Outcome::Skipped(why) => {
                *self.troubles.entry(format!("skipped: {}", plain(why))).or_default() += 1
            }
            Outcome::Failed(why) => {
                *self.troubles.entry(plain(&format!("FAILED {}: {why}", row.key))).or_default() += 1;
            }
        }
        self.links.add(row);
    }

    /// Prints the advice of marks too, not only their number.
    #[must_use]
    pub fn with_advice(self) -> Links {
        Links { with_advice: true, ..self }
    }

    /// Fits sentences and tables to this many columns of a terminal. Maps have a character for each rank.
    #[must_use]
    pub fn fitting(self, columns: Option<usize>) -> Links {
        Links { columns, ..self }
    }

    /// Repeats the verdict below tables that are longer than this many lines of a terminal; 24 if unknown.
    #[must_use]
    pub fn on_screen(self, rows: Option<usize>) -> Links {
        Links { rows, ..self }
    }

    /// Breaks a sentence into lines that fit. They are indented by two blanks more than the first.
    fn sentence(&self, text: &str) -> String {
        let Some(columns) = self.columns.filter(|columns| text.chars().count() > *columns) else {
            return text.to_owned();
        };
        let indent = " ".repeat(text.len() - text.trim_start().len());
        format!("{indent}{}", broken(text, Some(columns), &format!("{indent}  ")))
    }

    /// Prints the sweep once it has ended.
    fn print(&mut self, out: &mut dyn Write) -> Result<()> {
        let Some((outcome, rows)) = self.open.take() else { return Ok(()) };
        let reached = self.verdict.take();
        let why = match outcome {
            RunOutcome::Complete => "no verdict was reached after",
            RunOutcome::Interrupted => "interrupted after",
            RunOutcome::Broken => "the job ended early, after",
        };
        let incomplete = || Verdict::incomplete(format!("not complete: {why} {}", counted(rows, "row")));
        let verdict = reached.filter(|_| outcome == RunOutcome::Complete).unwrap_or_else(incomplete);
        writeln!(out)?;
        for line in verdict.lines() {
            writeln!(out, "{}", self.sentence(&plain(&line)))?;
        }
        for (what, count) in &self.troubles {
            writeln!(out, "{}", self.sentence(&format!("{what} ({})", counted(*count, "row"))))?;
        }
        let slow = verdict.components();
        let mut tables = Vec::new();
        for times in &self.links.averaged() {
            self.size(&mut tables, times, &slow)?;
        }
        self.doubts(&mut tables)?;
        out.write_all(&tables)?;
        let lines = tables.iter().filter(|byte| **byte == b'\n').count();
        if lines > self.rows.unwrap_or(USUAL_ROWS) {
            writeln!(out)?;
            for line in verdict.lines_without_evidence() {
                writeln!(out, "{}", self.sentence(&plain(&line)))?;
            }
        }
        out.flush()
    }

    /// Prints the marks of rows: one line, or a line for each with its advice.
    fn doubts(&self, out: &mut dyn Write) -> Result<()> {
        let marks = doubts(&self.links, MarkCode::phrase);
        if marks.is_empty() {
            return Ok(());
        }
        if self.with_advice {
            writeln!(out, "\ndoubts:")?;
            for (what, (advice, count)) in &marks {
                let text = plain(&format!("  {what}, {}: {advice}", counted(*count, "row")));
                writeln!(out, "{}", self.sentence(&text))?;
            }
            return Ok(());
        }
        let counts: Vec<String> =
            marks.iter().map(|(what, (_, count))| format!("{what} ({})", counted(*count, "row"))).collect();
        let text = format!("doubts: {}; -v says what to do", plain(&counts.join(", ")));
        writeln!(out, "\n{}", self.sentence(&text))
    }

    fn size(&self, out: &mut dyn Write, times: &LinkTimes, slow: &[Component]) -> Result<()> {
        let bytes = Bytes(times.bytes);
        let few = times.measured <= FEW;
        let what = match (few, times.directed, times.is_repeated) {
            (true, _, false) => "median time",
            (true, _, true) => "shortest median time of those measured at the same time and alone",
            (_, true, false) => "median time from (row) to (column)",
            (_, true, true) => {
                "shortest median time from (row) to (column), of those measured at the same time and alone"
            }
            (_, false, false) => "median time of each pair, both directions averaged",
            (_, false, true) => {
                "shortest median time of each pair, of those measured at the same time and alone"
            }
        };
        let over = match self.links.launches() {
            1 => String::new(),
            launches => format!("; each the median of {launches} launches"),
        };
        let memory = self.links.memory.as_ref().map(|memory| format!(", memory {}", plain(memory)));
        let pattern = plain(&self.links.pattern) + &memory.unwrap_or_default();
        let title = format!("links, {bytes} bytes, {pattern}: {what}{over}");
        writeln!(out, "\n{}", self.sentence(&title))?;
        let steps = self.links.steps(times.bytes);
        if few {
            if self.between_halves {
                self.sums(out, times, &steps)?;
            }
            return self.slowest(out, times, slow);
        }
        let widest = self
            .columns
            .map_or(WIDEST_MAP, |columns| columns.saturating_sub(BESIDE_MAP).clamp(8, WIDEST_MAP));
        if let Some(legend) = heat_map::draw(out, times, &self.links.hosts, widest)? {
            writeln!(out, "{}", self.sentence(&legend))?;
        }
        if let Some(range) = times.range() {
            let named = times.range_names().into_iter().zip(range);
            let figures: Vec<String> =
                named.map(|(name, ns)| format!("{name} {}", self.figures(times.bytes, ns))).collect();
            writeln!(out, "{}", self.sentence(&figures.join(" · ")))?;
        }
        self.histogram(out, times)?;
        self.steps(out, &steps)?;
        self.sums(out, times, &steps)?;
        self.slowest(out, times, slow)
    }

    /// Prints what the links of each step carried together.
    fn sums(&self, out: &mut dyn Write, times: &LinkTimes, steps: &[Step]) -> Result<()> {
        if steps.is_empty() || times.bytes == 0 {
            return Ok(());
        }
        let sums = || steps.iter().map(|step| step.sum_mb_per_s);
        let (low, high) = sums().fold((f64::MAX, 0f64), |(l, h), s| (l.min(s), h.max(s)));
        let mean = sums().sum::<f64>() / steps.len() as f64;
        let pairs = match self.links.hosts.ranks() / 2 {
            1 => "1 pair".into(),
            pairs => format!("{pairs} pairs at the same time"),
        };
        let bisection = if self.between_halves { "bisection, " } else { "" };
        let scale = Scale::of_rates(high);
        let [low, mean, high] = [low, mean, high].map(|rate| scale.format(rate));
        let text = format!(
            "{bisection}{pairs}: min {low}, avg {mean}, max {high} {} over {} steps",
            scale.unit,
            steps.len()
        );
        writeln!(out, "{}", self.sentence(&text))
    }

    fn figures(&self, bytes: u64, ns: f32) -> String {
        let time = number::time(ns.into());
        match self.links.mb_per_s(bytes, ns) {
            Some(rate) => format!("{time} ({})", number::rate(rate)),
            None => time,
        }
    }

    /// Returns the units of the times and of the rates of a message size.
    fn scales(&self, bytes: u64, [shortest, longest]: [f64; 2]) -> [Scale; 2] {
        let largest = self.links.mb_per_s(bytes, shortest as f32).unwrap_or(0.0);
        [Scale::of_times(longest), Scale::of_rates(largest)]
    }

    /// Prints how many links there are in each range of times.
    fn histogram(&self, out: &mut dyn Write, times: &LinkTimes) -> Result<()> {
        let links = times.sweep.iter().map(|link| f64::from(link.ns));
        let Some(histogram) = Histogram::new(links).filter(|histogram| histogram.counts.len() > 1) else {
            return Ok(());
        };
        let longest = self
            .columns
            .map_or(LONGEST_BAR, |columns| columns.saturating_sub(BESIDE_BAR).clamp(5, LONGEST_BAR));
        let ends = [histogram.ends[0], histogram.ends[histogram.ends.len() - 1]];
        let [time, of_rates] = self.scales(times.bytes, ends);
        let titles =
            [format!("{} from", time.unit), "to".into(), format!("{} from", of_rates.unit), "to".into()];
        let mut grid = grid(titles.into_iter().chain(["links".into(), String::new()]), 0..5);
        for ([low, high], count) in histogram.ranges() {
            let rate = |ns: f64| self.links.mb_per_s(times.bytes, ns as f32);
            let bar = (count * longest).div_ceil(histogram.most());
            let [us_from, us_to] = [low, high].map(|ns| time.format(ns));
            let [from, to] =
                [high, low].map(|ns| rate(ns).map_or(String::new(), |rate| of_rates.format(rate)));
            grid.add_row([us_from, us_to, from, to, count.to_string(), "█".repeat(bar)]);
        }
        writeln!(out, "histogram of {}:\n{}", times.counted_links(), grid.trim_fmt())
    }

    /// Prints the least, the mean and the largest figure of the links of each step.
    fn steps(&self, out: &mut dyn Write, steps: &[Step]) -> Result<()> {
        if steps.len() < 2 {
            return Ok(());
        }
        let longest = steps.iter().map(|step| step.range_ns[1]).fold(0.0, f64::max);
        let largest = steps.iter().filter_map(|step| Some(step.range_mb_per_s?[1])).fold(0.0, f64::max);
        let (time, of_rates) = (Scale::of_times(longest), Scale::of_rates(largest));
        let [times_from, rates_from] = [time, of_rates].map(|scale| format!("{} min", scale.unit));
        let titles = ["step", "links", &times_from, "mean", "max", &rates_from, "mean", "max"];
        let titles = titles.map(str::to_owned).to_vec();
        let mut rows = Vec::new();
        for (first, step) in verdict::join_steps(steps, MOST_STEPS) {
            let [low, high] = step.range_ns;
            let us = [low, step.mean_ns(), high].map(|ns| time.format(ns));
            let rates = match (step.range_mb_per_s, step.mean_mb_per_s()) {
                (Some([low, high]), Some(mean)) => [low, mean, high].map(|rate| of_rates.format(rate)),
                _ => [const { String::new() }; 3],
            };
            rows.push(
                [first.to_string(), step.links.to_string()].into_iter().chain(us).chain(rates).collect(),
            );
        }
        let table = aligned(0..titles.len(), titles, rows, self.columns);
        let each = steps.len().div_ceil(MOST_STEPS);
        let joined = if each > 1 { format!(", {each} a line") } else { String::new() };
        writeln!(out, "links that were measured at the same time, {} steps{joined}:\n{table}", steps.len())
    }

    /// Prints the slowest links relative to the ordinary ones of their kind, and the times of those that were measured again alone.
    fn slowest(&self, out: &mut dyn Write, times: &LinkTimes, slow: &[Component]) -> Result<()> {
        let hosts = &self.links.hosts;
        let links = verdict::slowest(times, hosts, SLOWEST, slow);
        let ns = || links.iter().map(|SlowLink { link, .. }| f64::from(link.ns));
        let again = |link: &Link| times.retested(link.from, link.to).filter(|_| !times.is_repeated);
        let alone = links.iter().filter_map(|slow| again(&slow.link)).map(f64::from);
        let longest = ns().chain(alone).fold(0.0, f64::max);
        let [time, rates] = self.scales(times.bytes, [ns().fold(f64::MAX, f64::min), longest]);
        let titles = ["from", "to", time.unit, rates.unit, "x ordinary", &format!("alone {}", time.unit)];
        let mut titles = titles.map(str::to_owned).to_vec();
        let mut rows = Vec::new();
        for SlowLink { link, factor } in &links {
            let rate = self.links.mb_per_s(times.bytes, link.ns);
            rows.push(vec![
                plain(&format!("{} {}", hosts.name(link.from), link.from)),
                plain(&format!("{} {}", hosts.name(link.to), link.to)),
                time.format(link.ns.into()),
                rate.map_or(String::new(), |rate| rates.format(rate)),
                format!("{factor:.2}"),
                again(link).map_or(String::new(), |ns| time.format(ns.into())),
            ]);
        }
        // A single link has nothing to be compared with, and nothing is said about a second measurement that did not take place.
        let unused = [(5, links.iter().all(|slow| again(&slow.link).is_none())), (4, times.measured < 2)];
        for (column, _) in unused.into_iter().filter(|(_, unused)| *unused) {
            titles.remove(column);
            rows.iter_mut().for_each(|row| _ = row.remove(column));
        }
        let title = if times.measured <= FEW { "" } else { "slowest of their kind:\n" };
        writeln!(out, "{title}{}", aligned(2..titles.len(), titles, rows, self.columns))
    }
}

/// Returns the heat map of the links of the smallest message size that are measured until now, in at most `widest` columns, and what
/// its characters mean; `None` before the first link.
pub fn map_so_far(links: &LinkSweep, widest: usize) -> Option<String> {
    let times = links.averaged().into_iter().min_by_key(|times| times.bytes)?;
    let mut map = Vec::new();
    let legend = heat_map::draw(&mut map, &times, &links.hosts, widest).ok()??;
    let title = format!("links so far, {} bytes: {}", Bytes(times.bytes), times.measured);
    Some(format!("{title}\n{}{legend}", String::from_utf8_lossy(&map)))
}

/// Returns the advice of the marks that are more than notes, and the number of their rows, by the name of the mark.
fn doubts(links: &LinkSweep, name: fn(&MarkCode) -> String) -> BTreeMap<String, (String, usize)> {
    let mut all: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for (_, code, advice, rows) in links.marks().filter(|(level, ..)| *level >= Level::Caution) {
        all.entry(name(code)).or_insert_with(|| (advice.to_owned(), 0)).1 += rows;
    }
    all
}
