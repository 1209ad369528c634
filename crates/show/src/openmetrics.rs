//! OpenMetrics text for monitoring systems: one gauge per figure of a case.
//!
//! The labels of a series stay the same from run to run: a case has its benchmark, options and size, and a link has its hosts. Nothing
//! names the run, its time or a rank that depends on the order of hosts. The text is also valid in the older Prometheus format,
//! which textfile collectors read.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{Result, Write},
};

use jiff::Timestamp;
use ombx_estimate::{launches::Cases, text::named_values};
use ombx_host::{device_counters::is_error, node_set};
use ombx_links::verdict::LinkSweep;
use ombx_record::{
    event::Event,
    file::RunWithRows,
    link::{self, RETEST, ends_of},
    result::{Growth, Level, Measurement, Metric, Outcome, Run, RunOutcome},
    runs::{hosts, library},
    verdict::{Conclusion, Nameable, Verdict},
};

use crate::{
    Renderer,
    fields::{Field, ROW_FIELDS},
};

/// Metrics in the order of output, one on each line: name without unit, unit, help text, and the object of the interval of those that have
/// one. Low and high end of an interval are metrics of their own; the unit ends the name.
const FAMILIES: &str = "\
ombx_latency|seconds|Median time of one leg: the median of the launches' medians in the most frequent state of the machine.|the median time within the run
ombx_latency_lowest_launch|seconds|Median time of the fastest launch.|
ombx_latency_highest_launch|seconds|Median time of the slowest launch.|
ombx_latency_p99|seconds|99th percentile of the time of one leg, over the single iterations of all launches.|the 99th percentile
ombx_bandwidth|bytes_per_second|Bandwidth at the median time.|the bandwidth
ombx_bandwidth_lowest_launch|bytes_per_second|Bandwidth at the median time of the slowest launch.|
ombx_bandwidth_highest_launch|bytes_per_second|Bandwidth at the median time of the fastest launch.|
ombx_rate|messages_per_second|Message rate at the median time.|the message rate
ombx_algorithm_bandwidth|bytes_per_second|Algorithm bandwidth of a collective operation at the median time.|
ombx_bus_bandwidth|bytes_per_second|Bus bandwidth of a collective operation at the median time.|the bus bandwidth
ombx_launches||Launches of a case. With 1 the interval says nothing about the next launch.|
ombx_launches_in_state||Launches of a case in the most frequent state of the machine, behind its figures.|
ombx_other_states||Less frequent states of the machine that the launches of a case met.|
ombx_core_to_core|seconds|Time of a cache line from one core to another in the most frequent state of the machine.|
ombx_earlier_runs||Earlier runs of a case in the same state of the machine.|
ombx_latency_next_run|seconds||95 % for the median time of the next run
ombx_elapsed|seconds|Time of all launches, which the intervals are about.|
ombx_interval_coverage|ratio|Probability that the interval contains the median of all launches of the run; below 0.95 with fewer than 6 launches.|
ombx_samples||Samples of a case, in all launches.|
ombx_batch||Iterations per sample, except for percentiles, whose samples are single iterations.|
ombx_figure||Component a benchmark tells beside times; its name ends with its unit.|
ombx_device_errors||Growth of a counter of errors in the last runs; absent if it did not grow.|
ombx_device_load||Growth of a counter that also grows under load in the last runs; absent if it did not grow.|
ombx_doubts||Marks that keep a case from being published, by level: caution or invalid.|
ombx_failed||1 where a case failed or its data arrived wrong.|
ombx_skipped||1 where a case could not run.|
ombx_verdict||1 for what the last sweep over links concluded: clear, slow or none.|
ombx_slow_parts||Number of slow parts that the verdict on links names.|
ombx_missed_demands||Number of demands on links that are missed: expectations and the reference.|
ombx_slow|ratio|Time of a slow part in multiples of the time of comparable parts.|
ombx_nameable|ratio|Time of the fastest slow link that would have been named, in multiples of the usual one.|
ombx_check_result||1 for the result of the last check.|
ombx_check_missed||1 where both measurements of a check missed a limit.|
ombx_check_limit|ratio|Time of a row of a check in multiples of the time that its limit allows.|
ombx_complete||1 where all runs came to their end.|
ombx_run_timestamp|seconds|Start of a run, in seconds since 1970.|
ombx_run_info||Always 1; where and with what a run was measured.|";

/// Gauge of the ends of runs.
const COMPLETE: &str = "ombx_complete";

/// Collects all runs and writes them at the end, because the lines of a family must be adjacent.
#[derive(Debug, Default)]
pub struct OpenMetrics {
    /// Values by family and labels. A repeated case has its last value: labels are unique.
    lines: BTreeMap<&'static str, BTreeMap<String, f64>>,
    /// Counters of devices that grew, by the labels of the case or by the sweep in which they did; without a name after the rows.
    grown: BTreeMap<String, Vec<Growth>>,
    fabric: String,
    transport: String,
    /// Hosts of the two ranks of a run that has no others.
    pair: Option<[String; 2]>,
    /// Links of the sweep that is read.
    sweep: LinkSweep,
    verdict: Option<Verdict>,
    in_sweep: bool,
}

impl OpenMetrics {
    fn add_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Run(run) => self.run(run),
            Event::Verdict(verdict) => self.verdict = Some(verdict.clone().into_owned()),
            Event::End { outcome, .. } => self.end(*outcome),
            Event::Grown { grown } => self.grown_after_rows(grown),
            _ => event.rows().for_each(|row| self.case(&row)),
        }
    }

    /// Returns the labels of a row of the current run.
    fn case_labels(&self, row: &Measurement) -> String {
        let [from, to] = self.pair.clone().unwrap_or_default();
        labels(&[
            ("bench", &row.bench),
            ("key", &row.key),
            ("bytes", &row.bytes.map(|bytes| bytes.to_string()).unwrap_or_default()),
            ("axes", &named_values(&row.axes, ",")),
            ("fabric", &self.fabric),
            ("from_host", &from),
            ("to_host", &to),
        ])
    }

    fn add(&mut self, family: &'static str, labels: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|x| x.is_finite()) {
            self.lines.entry(family).or_default().insert(labels.to_owned(), value);
        }
    }
}

impl Renderer for OpenMetrics {
    fn event(&mut self, _: &mut dyn Write, event: &Event<'_>) -> Result<()> {
        self.add_event(event);
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        for one in Growth::summed(std::mem::take(&mut self.grown).into_values().flatten()) {
            let family = if is_error(&one) { "ombx_device_errors" } else { "ombx_device_load" };
            let named = labels(&[("host", &one.host), ("device", &one.device), ("counter", &one.counter)]);
            self.add(family, &named, Some(one.by as f64));
        }
        for family in FAMILIES.lines() {
            let mut fields = family.split('|');
            let [name, unit, help, interval] = std::array::from_fn(|_| fields.next().unwrap_or_default());
            self.family(out, &with_unit(name, unit), unit, help)?;
            for (end, word) in [("low", "Low"), ("high", "High")] {
                let help = format!("{word} end of the interval of {interval}.");
                self.family(out, &with_unit(&format!("{name}_{end}"), unit), unit, &help)?;
            }
        }
        writeln!(out, "# EOF")?;
        out.flush()
    }
}

impl OpenMetrics {
    fn run(&mut self, run: &Run) {
        self.fabric.clone_from(&run.fabric);
        // Every link has gauges.
        self.sweep = std::mem::take(&mut self.sweep).keeping_all();
        self.sweep.begin(run);
        self.in_sweep = false;
        self.pair = match &run.places[..] {
            [from, to] => Some([from.host.clone(), to.host.clone()]),
            _ => None,
        };
        let [ranks, hosts] = [run.places.len().to_string(), node_set::fold(hosts(run))];
        let setup = [("fabric", run.fabric.as_str()), ("ranks", &ranks), ("hosts", &hosts)];
        let started = run.started.parse::<Timestamp>().ok().map(|time| time.as_second() as f64);
        self.add("ombx_run_timestamp_seconds", &labels(&setup), started);
        let build =
            [("version", run.version.as_str()), ("profile", &run.profile), ("library", &library(run))];
        self.add("ombx_run_info", &labels(&[&build[..], &setup].concat()), Some(1.0));
    }

    fn case(&mut self, row: &Measurement) {
        if row.bench == link::BENCH {
            self.link(row);
            return;
        }
        let case = self.case_labels(row);
        self.grown.insert(case.clone(), row.grown.clone());
        self.add("ombx_failed", &case, Some(f64::from(matches!(row.outcome, Outcome::Failed(_)))));
        self.add("ombx_skipped", &case, Some(f64::from(matches!(row.outcome, Outcome::Skipped(_)))));
        if row.summary.is_none() || row.outcome != Outcome::Ok {
            return;
        }
        for (column, family, field) in ROW_FIELDS.iter().filter(|(_, family, _)| !family.is_empty()) {
            let Field::Number(value) = field else { continue };
            let in_base_unit = |value: f64| match column {
                column if column.ends_with("_ns") => value / 1e9,
                column if column.contains("mb_per_s") => value * 1e6,
                _ => value,
            };
            self.add(family, &case, value(row).map(in_base_unit));
        }
        let range = row.mb_per_s().and_then(|_| row.launch_range());
        self.add("ombx_bandwidth_lowest_launch_bytes_per_second", &case, range.map(|ends| ends[0] * 1e6));
        self.add("ombx_bandwidth_highest_launch_bytes_per_second", &case, range.map(|ends| ends[1] * 1e6));
        if let Some(over) = row.over_launches() {
            self.add("ombx_launches_in_state", &case, Some(over.in_state() as f64));
            self.add("ombx_other_states", &case, Some(over.states.len().saturating_sub(1) as f64));
        }
        self.doubts(&case, row);
        for (name, figure) in &row.figures {
            self.add("ombx_figure", &and(&case, &[("name", name)]), figure.value());
        }
    }

    fn end(&mut self, outcome: RunOutcome) {
        self.add(
            COMPLETE,
            &labels(&[("fabric", &self.fabric)]),
            Some(f64::from(outcome == RunOutcome::Complete)),
        );
        if self.in_sweep && (self.sweep.is_last() || outcome != RunOutcome::Complete) {
            self.end_of_sweep(outcome);
        }
    }

    fn grown_after_rows(&mut self, grown: &[Growth]) {
        if self.in_sweep {
            self.sweep.add_grown(grown);
        } else {
            self.grown.entry(String::new()).or_default().extend_from_slice(grown);
        }
    }
}

fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name}_{unit}") }
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        let gap = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{gap}{name}=\"{}\"", escaped(value));
    }
    text
}

/// Returns labels and more of them.
fn and(labels_of: &str, more: &[(&str, &str)]) -> String {
    format!("{labels_of},{}", labels(more))
}

fn escaped(value: &str) -> String {
    let mut text = String::new();
    for c in value.chars() {
        match c {
            '\\' => text += "\\\\",
            '"' => text += "\\\"",
            '\n' => text += "\\n",
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
    text
}

impl OpenMetrics {
    /// Writes a metric with its lines, if there are any.
    fn family(&self, out: &mut dyn Write, family: &str, unit: &str, help: &str) -> Result<()> {
        let Some(lines) = self.lines.get(family) else { return Ok(()) };
        writeln!(out, "# TYPE {family} gauge")?;
        if !unit.is_empty() {
            writeln!(out, "# UNIT {family} {unit}")?;
        }
        writeln!(out, "# HELP {family} {help}")?;
        for (labels, value) in lines {
            let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            writeln!(out, "{family}{braces} {value}")?;
        }
        Ok(())
    }

    /// Takes the row of a link.
    fn link(&mut self, row: &Measurement) {
        self.in_sweep = true;
        self.sweep.add(row);
        self.transport = row.axes.get("transport").cloned().unwrap_or_default();
        // Links that were measured again keep the marks of the sweep.
        let Some(ends) = ends_of(row).filter(|_| !row.axes.contains_key(RETEST)) else { return };
        let link = self.link_labels(ends, row.bytes.unwrap_or(0));
        self.add("ombx_failed", &link, Some(f64::from(matches!(row.outcome, Outcome::Failed(_)))));
        self.doubts(&link, row);
    }

    /// Adds the number of marks of each level that is more than a note.
    fn doubts(&mut self, labels_of: &str, row: &Measurement) {
        for level in [Level::Caution, Level::Invalid] {
            let marks = row.trust.iter().filter(|mark| mark.level == level).count();
            self.add("ombx_doubts", &and(labels_of, &[("level", level.name())]), Some(marks as f64));
        }
    }

    /// Returns the labels of a link. Their order on a host distinguishes ranks of one host.
    fn link_labels(&self, ends: [u32; 2], bytes: u64) -> String {
        let hosts = &self.sweep.hosts;
        let local = ends.map(|rank| hosts.position(rank).to_string());
        labels(&[
            ("bench", ombx_record::link::BENCH),
            ("fabric", &self.fabric),
            ("transport", &self.transport),
            ("pattern", &self.sweep.pattern),
            ("bytes", &bytes.to_string()),
            ("from_host", hosts.name(ends[0])),
            ("from_local_rank", &local[0]),
            ("to_host", hosts.name(ends[1])),
            ("to_local_rank", &local[1]),
        ])
    }

    /// Ends a sweep: adds the times of its links, medians over launches, and the verdict if it is complete. What is no longer slow
    /// has no series; the number of slow parts is always there.
    fn end_of_sweep(&mut self, outcome: RunOutcome) {
        self.grown.insert(format!("{} {}", self.fabric, self.sweep.pattern), self.sweep.grown());
        for times in self.sweep.times().0 {
            for link in &times.sweep {
                let named = self.link_labels([link.from, link.to], times.bytes);
                self.add("ombx_latency_seconds", &named, Some(f64::from(link.ns) / 1e9));
                let rate = self.sweep.mb_per_s(times.bytes, link.ns).map(|rate| rate * 1e6);
                self.add("ombx_bandwidth_bytes_per_second", &named, rate);
            }
        }
        let Some(verdict) = self.verdict.take().filter(|_| outcome == RunOutcome::Complete) else { return };
        let name = self.fabric.clone();
        let fabric = ("fabric", name.as_str());
        for each in Conclusion::ALL {
            let named = labels(&[("conclusion", each.name()), fabric]);
            self.add("ombx_verdict", &named, Some(f64::from(each == verdict.conclusion)));
        }
        self.add("ombx_slow_parts", &labels(&[fabric]), Some(verdict.slow.len() as f64));
        self.add("ombx_missed_demands", &labels(&[fabric]), Some(verdict.missed as f64));
        for Nameable { bytes, factor } in &verdict.nameable {
            self.add("ombx_nameable_ratio", &labels(&[("bytes", &bytes.to_string()), fabric]), Some(*factor));
        }
        for part in &verdict.slow {
            let hosts: Vec<&str> = part.hosts.iter().map(String::as_str).collect();
            let [from, to] = match (part.ranks.as_slice(), &hosts[..]) {
                ([_, _], [from, to]) => [*from, *to],
                _ => ["", ""],
            };
            let local = part.ranks.iter().map(|rank| self.sweep.hosts.position(*rank).to_string());
            let named = labels(&[
                ("part", &part.part),
                ("name", part.name.as_deref().unwrap_or_default()),
                ("hosts", &node_set::fold(hosts.iter().copied())),
                ("local_ranks", &local.collect::<Vec<_>>().join(",")),
                ("from_host", from),
                ("to_host", to),
                fabric,
            ]);
            self.add("ombx_slow_ratio", &named, Some(part.factor));
        }
    }
}

/// Limit of a row that a check has judged.
#[derive(Debug, Clone, Copy)]
pub struct CheckedLimit {
    /// Kind of the limit: `absolute`, or `baseline` if it follows from good days.
    pub kind: &'static str,
    /// In the unit of the headline of the row: a maximum time, or a minimum bandwidth.
    pub value: f64,
    /// Whether both measurements missed it.
    pub is_missed: bool,
}

impl OpenMetrics {
    /// Adds the launches of one result, and its verdict if they are a sweep over links.
    pub fn result(&mut self, launches: &[RunWithRows]) {
        let (links, benchmarks): (Vec<_>, Vec<_>) = launches.iter().partition(|launch| launch.is_sweep());
        let earlier = self.lines.remove(COMPLETE).unwrap_or_default();
        let mut cases = Cases::default();
        for launch in benchmarks {
            cases.launch(launch);
            self.grown.entry(String::new()).or_default().extend_from_slice(&launch.grown);
        }
        let of_cases: Vec<RunWithRows> = cases.groups().iter().map(RunWithRows::from).collect();
        for launch in of_cases.iter().chain(links) {
            launch.events().for_each(|event| self.add_event(&event));
            if launch.end.is_none() {
                self.end(RunOutcome::Broken);
            }
        }
        // A result that broke is not hidden by the next one.
        let complete = self.lines.entry(COMPLETE).or_default();
        for (fabric, value) in earlier {
            complete.entry(fabric).and_modify(|now| *now = now.min(value)).or_insert(value);
        }
    }

    /// Adds the result of a check: 1 for this one of all results, 0 for the others.
    pub fn check_result(&mut self, result: &str, all: &[&str]) {
        for each in all {
            self.add("ombx_check_result", &labels(&[("result", each)]), Some(f64::from(*each == result)));
        }
    }

    /// Adds a row of a check with its limit. Rows of two limits are added twice.
    pub fn check_row(&mut self, run: &Run, row: &Measurement, limit: CheckedLimit) {
        // A sink cannot fail.
        self.run(run);
        self.case(row);
        let hosts = node_set::fold(hosts(run));
        let all = and(&self.case_labels(row), &[("hosts", &hosts), ("limit", limit.kind)]);
        self.add("ombx_check_missed", &all, Some(f64::from(limit.is_missed)));
        let ratio = row.headline().map(|headline| match row.metric {
            Metric::Latency => headline.value / limit.value,
            Metric::Bandwidth => limit.value / headline.value,
        });
        self.add("ombx_check_limit_ratio", &all, ratio);
    }
}
