//! Measuring a pipeline: repeats and checks runs until the stop rule is met, and fills a row.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use ombx_core::{
    benchmark::{Case, Figure, Figures, Metric, Work},
    error::{Error, Kind, Result},
    event::Event,
    measure::{
        plan::{Effort, Verify},
        session::Session,
        stop,
    },
    result::{Check, Mark, MarkCode, Measurement, Mismatch, Outcome, Samples},
    stats::{HeadlineOf, Summary},
    trust,
    unit::Rank,
};
use ombx_host::{
    environment::{Counters, place_of_thread},
    performance::uncounted_processes,
    since::Since,
};

use super::{
    coordinator::{Pipeline, Run},
    ends::EndWork,
    run::{Data, NodeRun, NodeStatus, Wrong},
};
use crate::pipeline::{Hosts, message::Plan, shape::PipelineShape};
/// Number of untimed runs at the start, unless the user sets it.
const WARMUP: u64 = 2;
/// Maximum number of buffer times for the percentiles.
const MAX_TIMES: usize = 1_000_000;

/// Measures one case and gives the row to the session's sink. `start` starts the pipeline.
pub(super) fn measure(
    session: &mut Session<'_>,
    case: &Case,
    (plan, hosts): (&Plan, &Hosts),
    start: impl FnOnce(&Plan, &Hosts) -> Result<Pipeline>,
) -> Result<()> {
    let mut row = empty_row(session, case, plan, None);
    session.team.name_task(&row.key);
    session.sink.event(&Event::Starting(Cow::Borrowed(&row)))?;
    let within = |e: Error| e.within(session.bench.name);
    let before = Counters::now();
    let pipeline = match start(plan, hosts) {
        Err(e) if e.kind() == Kind::Unsupported => {
            row.outcome = Outcome::Skipped(e.to_string());
            return session.sink.event(&Event::row(&row));
        }
        started => started.map_err(within)?,
    };
    let mut measuring = Measuring {
        plan,
        timed: case.get::<EndWork>().data(),
        checks: session.plan.verify != Verify::Off && pipeline.can_check(),
        session,
        pipeline,
        check: Check::Off,
        checked: 0,
        runs: Vec::new(),
        shown: Since::now(),
    };
    let (ending, spent) = measuring.sample().map_err(within)?;
    let counters = Counters { preemptions: 0, waited_ns: 0, slices: 0, ..Counters::now().since(before) };
    measuring.check_fresh(spent).map_err(within)?;
    let rejected = measuring.pipeline.rejected();
    let Measuring { check, checked, runs, pipeline, session, .. } = measuring;
    drop(pipeline);
    row.checked = checked;
    row.check =
        if session.plan.verify != Verify::Off && check == Check::Off { Check::Unsupported } else { check };
    if let Check::Failed(Mismatch { rank, slot, byte, expected, actual }) = &row.check {
        row.outcome = Outcome::Failed(format!(
            "data arrived wrong at node {rank}, block {slot}, byte {byte}: expected {expected:#04x}, found \
             {actual:#04x}"
        ));
    }
    let elapsed_ns = runs.iter().map(|run| run.total_ns).collect();
    row.samples = vec![Samples { batch: 1, elapsed_ns, ..Samples::default() }];
    let samples = Measurement::combine(&row.samples, 1);
    row.summary = Summary::new(&samples);
    if !runs.is_empty() {
        row.figures = figures(plan, &runs);
        if session.plan.counters.is_some() {
            row.figures.extend(uncounted_processes());
        }
    }
    row.trust.extend(marks(plan, hosts, rejected));
    if let Some(summary) = &row.summary {
        let place = place_of_thread();
        row.trust.extend(trust::of_row(trust::RowFacts {
            grown: &[],
            samples: HeadlineOf::Median(&samples),
            summary,
            legs_per_sample: 1.0,
            counters,
            wall_ns: spent.as_nanos() as f64,
            ranks: place.usable_cpus(),
            quota: place.quota,
            ending,
            precision: session.plan.effort.precision(),
            check: &row.check,
            checked: Some(row.checked),
        }));
    }
    session.sink.event(&Event::row(&row))?;
    if plan.status.is_some() && !runs.is_empty() {
        for node in 0..plan.shape.nodes {
            let empty = empty_row(session, case, plan, Some(node));
            let row = node_row(empty, &row, plan, &runs, node as usize);
            session.sink.event(&Event::row(&row))?;
        }
    }
    Ok(())
}

/// Returns the row of one node. Its samples are the times of its buffers.
fn node_row(empty: Measurement, all: &Measurement, plan: &Plan, runs: &[Run], node: usize) -> Measurement {
    let shape = plan.shape;
    let times = runs.iter().flat_map(|run| run.nodes[node].buffer_ns());
    let samples =
        vec![Samples { batch: 1, elapsed_ns: times.take(MAX_TIMES).collect(), ..Samples::default() }];
    let mut figures = end_work(runs, |run| &run.nodes[node..=node]);
    figures.insert("mb_per_s".into(), Figure::Value(node_mb_per_s(plan, runs, node)));
    Measurement {
        metric: Metric::Latency,
        work: Some(Work { bytes: shape.buffer(), ops: shape.nodes.into(), legs: 1 }),
        outcome: all.outcome.clone(),
        check: all.check.clone(),
        checked: all.checked,
        summary: Summary::new(&Measurement::combine(&samples, 1)),
        samples,
        figures,
        trust: all
            .trust
            .iter()
            .filter(|mark| mark.code == MarkCode::Crowded)
            .cloned()
            .chain(empty.trust)
            .collect(),
        ..empty
    }
}

/// Returns the row of the pipeline or of one of its nodes, without what is measured.
pub(super) fn empty_row(session: &Session<'_>, case: &Case, plan: &Plan, node: Option<u32>) -> Measurement {
    let (bench, shape) = (session.bench, plan.shape);
    let mut axes: BTreeMap<String, String> =
        [("nodes", shape.nodes), ("phases", shape.phases), ("buffers", shape.buffers)]
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .into();
    let mut own = format!("nodes={},phases={},buffers={},", shape.nodes, shape.phases, shape.buffers);
    for (name, end) in [("source", &plan.source), ("sink", &plan.sink)] {
        axes.insert(name.into(), end.name().into());
        own += &format!("{name}={},", end.name());
    }
    if let Some(node) = node {
        axes.insert("node".into(), node.to_string());
        own += &format!("node={node},");
    }
    axes.extend(case.named().map(|(name, value)| (name.to_owned(), value)));
    let key = case.key(bench.name, None);
    let rest = key.strip_prefix(bench.name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&key);
    let nodes = u64::from(shape.nodes);
    Measurement {
        bytes: Some(shape.block),
        axes,
        work: Some(Work { bytes: shape.bytes(), ops: nodes * nodes * u64::from(shape.buffers), legs: 1 }),
        aggregation: session.assignment.aggregation(),
        // Here the kernel places the processes: being unbound is no fault.
        trust: session.standing.iter().filter(|notice| notice.code != MarkCode::Unbound).cloned().collect(),
        ..Measurement::new(
            bench.name,
            format!("{}/{own}{rest}", bench.name),
            Metric::Bandwidth,
            session.team.size(),
        )
    }
}

/// A pipeline and its runs so far.
struct Measuring<'r, 'a> {
    pipeline: Pipeline,
    session: &'r mut Session<'a>,
    plan: &'r Plan,
    /// Data of timed runs.
    timed: Data,
    checks: bool,
    check: Check,
    /// Runs of which every block was compared.
    checked: u64,
    runs: Vec<Run>,
    /// Time since nodes have reported.
    shown: Since,
}

impl Measuring<'_, '_> {
    /// Repeats timed runs until the stop rule is met or wrong data has arrived. Returns the reason for stopping, and the total
    /// time of the runs.
    fn sample(&mut self) -> Result<(Option<stop::Ending>, Duration)> {
        let effort = self.session.plan.effort;
        let max_time = effort.time().unwrap_or_default();
        let warmup = if let Effort::Fixed { warmup, .. } = effort { warmup } else { WARMUP };
        let mut last_ns = 0;
        for _ in 0..warmup {
            last_ns = self.run(self.timed)?.total_ns;
            if self.has_failed() {
                return Ok((None, Duration::ZERO));
            }
        }
        let mut more = match effort {
            Effort::Fixed { iterations, .. } => iterations,
            _ => stop::first_round(last_ns as f64, max_time, stop::LEAST_FOR_INTERVAL),
        };
        let (mut times, mut spent) = (Vec::new(), Duration::ZERO);
        loop {
            for _ in 0..more {
                let run = self.run(self.timed)?;
                times.push(run.total_ns as f64);
                spent += Duration::from_nanos(run.total_ns);
                self.runs.push(run);
                if self.has_failed() {
                    return Ok((None, spent));
                }
            }
            let (runs, summary) = (times.len() as u64, Summary::new(&times));
            let limits = stop::RowLimits { time: max_time, samples: stop::MOST_SAMPLES };
            match stop::next_by_effort(effort, runs, spent, summary.as_ref(), limits) {
                Ok(next) => more = next,
                Err(ending) => return Ok((ending, spent)),
            }
        }
    }

    /// Returns whether wrong data has arrived. Then no further run is needed.
    fn has_failed(&self) -> bool {
        matches!(self.check, Check::Failed(_))
    }

    /// Returns whether the check of a run compares every block.
    fn compares_all(&self, data: Data) -> bool {
        data == Data::Fresh || !self.plan.source.is_memory() && !self.plan.sink.is_memory()
    }

    /// Runs again with fresh data and compares every byte, as often as rows of other benchmarks do, if timed runs have not done that.
    fn check_fresh(&mut self, sampled: Duration) -> Result<()> {
        if !self.checks || self.compares_all(self.timed) {
            return Ok(());
        }
        let wanted = stop::checks_of_row(1, 1, self.session.plan.settings.launch);
        let (since, mut more) = (Since::now(), 1);
        while self.check == Check::Passed && more > 0 {
            self.run(Data::Fresh)?;
            more -= 1;
            if more == 0 {
                more = match self.session.plan.verify {
                    Verify::Full => (self.runs.len() as u64).saturating_sub(self.checked),
                    _ => stop::more_checks(self.checked, wanted, since.elapsed(), sampled),
                };
            }
        }
        Ok(())
    }

    /// Runs once and checks the data. The first failure stays.
    fn run(&mut self, data: Data) -> Result<Run> {
        let number = self.pipeline.last_run() + 1;
        let names: Vec<String> =
            (0..self.plan.shape.nodes).map(|node| self.pipeline.name(node).to_owned()).collect();
        let shape = self.plan.shape;
        let sink = &mut self.session.sink;
        let mut told = Ok(());
        let run = self.pipeline.run(data, |node, status| {
            let line = status_line(&names[node as usize], &shape, number, status).into();
            if told.is_ok() {
                told = sink.event(&Event::Status { process: node, line });
            }
        })?;
        told?;
        if self.plan.status.is_some_and(|interval| self.shown.elapsed() >= interval) {
            self.shown = Since::now();
            for ((node, name), times) in (0..).zip(&names).zip(&run.nodes) {
                let all = u64::from(shape.buffers);
                let status = NodeStatus { left: all, arrived: all, elapsed_ns: times.elapsed_ns() };
                let line = status_line(name, &shape, number, status).into();
                self.session.sink.event(&Event::Status { process: node, line })?;
            }
        }
        if self.checks && !self.has_failed() {
            self.checked += u64::from(self.compares_all(data));
            self.check = match self.pipeline.check(data)? {
                None => Check::Passed,
                Some((node, Wrong { slot, byte, expected, actual })) => {
                    Check::Failed(Mismatch { rank: Rank(node), slot, byte, expected, actual })
                }
            };
        }
        self.session.sink.event(&Event::Alive)?;
        Ok(run)
    }
}

/// Returns the figures of buffers, nodes and phases.
fn figures(plan: &Plan, runs: &[Run]) -> Figures {
    let shape = plan.shape;
    let mut figures = end_work(runs, |run| &run.nodes);
    let processes = shape.started_processes(plan.workers) as f64;
    figures.insert("started_processes".into(), Figure::Value(processes));
    let nodes = runs.iter().flat_map(|run| &run.nodes);
    let times: Vec<f64> = nodes.flat_map(NodeRun::buffer_ns).map(|ns| ns as f64).take(MAX_TIMES).collect();
    let of_buffers = Summary::new(&times);
    let percentiles = [
        ("buffer_p50_us", of_buffers.as_ref().map(|s| s.median), 1),
        ("buffer_p95_us", of_buffers.as_ref().and_then(|s| s.p95).map(|p| p.value), 72),
        ("buffer_p99_us", of_buffers.as_ref().and_then(|s| s.p99).map(|p| p.value), 368),
    ];
    for (name, ns, least) in percentiles {
        let absent = || {
            Figure::Unresolved(format!(
                "{name} needs the times of {least} buffers that do not depend on each other"
            ))
        };
        figures.insert(name.into(), ns.map_or_else(absent, |ns| Figure::Value(ns / 1e3)));
    }
    for node in 0..shape.nodes as usize {
        let rate = node_mb_per_s(plan, runs, node);
        figures.insert(format!("node{node}_mb_per_s"), Figure::Value(rate));
        for (phase, (lack, what)) in
            (0..shape.phases as usize).flat_map(|phase| [(0, "data"), (1, "room")].map(|lack| (phase, lack)))
        {
            let waited = median(runs, |run| run.nodes[node].waits[phase][lack] as f64 / 1e6);
            let name = format!("node{node}_phase{}_waited_for_{what}_ms", phase + 1);
            figures.insert(name, Figure::Value(waited));
        }
    }
    figures
}

/// Returns the share of the run in which the first and the last phase of some nodes worked on buffers.
fn end_work(runs: &[Run], nodes: impl Fn(&Run) -> &[NodeRun]) -> Figures {
    let share = |end: usize| {
        let percent = |node: &NodeRun| 100.0 * node.end_work[end] as f64 / node.elapsed_ns() as f64;
        median(runs, |run| nodes(run).iter().map(percent).sum::<f64>() / nodes(run).len().max(1) as f64)
    };
    let names = ["filling_percent", "reading_percent"].into_iter().enumerate();
    names.map(|(end, name)| (name.into(), Figure::Value(share(end)))).collect()
}

fn node_mb_per_s(plan: &Plan, runs: &[Run], node: usize) -> f64 {
    median(runs, |run| plan.shape.section() as f64 * 1e3 / run.nodes[node].elapsed_ns() as f64)
}

/// Returns the report of a node.
fn status_line(name: &str, shape: &PipelineShape, run: u32, status: NodeStatus) -> String {
    let NodeStatus { left, arrived, elapsed_ns } = status;
    let rate = arrived as f64 * shape.buffer() as f64 * 1e3 / elapsed_ns.max(1) as f64;
    format!("{name}: run {run}, {left} of {} buffers sent, {arrived} received, {rate:.1} MB/s", shape.buffers)
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let values: Vec<f64> = runs.iter().map(of).collect();
    Summary::new(&values).map_or(0.0, |s| s.median)
}

/// Returns the marks about CPUs and rejected connections.
fn marks(plan: &Plan, hosts: &Hosts, rejected: u64) -> Vec<Mark> {
    let shape = plan.shape;
    let busy = 2 * u64::from(shape.nodes) * u64::from(shape.nodes) * u64::from(shape.phases - 1);
    let cpus = plan.cpus.count() as u64;
    let crowded = (hosts.are_here() && busy > cpus).then(|| {
        Mark::with_advice(
            MarkCode::Crowded,
            format!("{busy} on {cpus} CPUs"),
            format!(
                "{busy} senders and receivers share {cpus} CPUs: the figure shows how fast this host copies, \
                 not what a network carries"
            ),
        )
    });
    let unknown = (rejected > 0).then(|| {
        let cause = format!("the nodes rejected {rejected} connections without this session's token");
        Mark::new(MarkCode::Strangers, format!("{rejected} strangers"), cause)
    });
    crowded.into_iter().chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_throughput_of_a_node_is_its_own_bytes_in_its_own_time() {
        let shape = PipelineShape { nodes: 2, phases: 2, buffers: 4, block: 1000 };
        let node = |began, ended| NodeRun {
            began,
            ended,
            end_work: [(ended - began) / 4, 0],
            waits: vec![[3_000_000, 0], [0, 0]],
            left: vec![began; 4],
            arrived: vec![ended; 4],
        };
        // A node has 4 buffers of two blocks: 8000 bytes.
        let runs = [Run { nodes: vec![node(1000, 5000), node(3000, 19_000)], total_ns: 18_000 }];
        let figures = figures(&Plan::of_test(shape), &runs);
        for (name, value) in [
            ("node0_mb_per_s", 2000.0),
            ("node1_mb_per_s", 500.0),
            ("filling_percent", 25.0),
            ("node1_phase1_waited_for_data_ms", 3.0),
        ] {
            assert_eq!(figures[name], Figure::Value(value), "{name}");
        }
    }
}
