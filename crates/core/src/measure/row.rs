//! What surrounds the timed loop: opens a case on every rank, warms up, times rounds of samples, verifies, and records the row.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    benchmark::{
        case::Case,
        context::Context,
        figure::Figure,
        kernel::Kernel,
        layout::Aggregation,
        payload::{Check, Fill},
        work::{Metric, Role, Work},
    },
    error::{Kind, Result},
    measure::{
        collect::{RoundSamples, collect, extend, first_mismatch},
        opened::OpenKernel,
        phases::{Phases, Stopwatch},
        plan::Effort,
        session::Session,
        stop::{self, Ending},
    },
    result::{Measurement, Outcome, Samples},
    stats::Summary,
    system::environment::Counters,
    trust,
    unit::Rank,
};

/// Samples that a row keeps at the most, of all ranks together.
const MOST_KEPT: u64 = 1 << 22;

/// A kind of kernel, as values.
pub struct KernelFactory<'k> {
    /// Headline of its rows.
    pub metric: Metric,
    /// Bytes, operations and legs of an iteration.
    pub work: fn(&Case) -> Work,
    /// Opens the kernel for a case.
    pub open: Open<'k>,
    /// The time of an empty message one way, on rank 0; a row that takes less says so.
    pub floor_ns: Option<f64>,
    /// What a row names beside the values of its case.
    pub label: Option<(&'static str, String)>,
    /// Rows that share the time of one.
    pub sharing: u32,
}

/// Opens a case.
pub type Open<'k> = &'k dyn Fn(&Context<'_>, &Case) -> Result<Box<dyn OpenKernel + 'k>>;

impl<'k> KernelFactory<'k> {
    /// Rows of a kernel.
    pub fn of<K: Kernel>(open: Open<'k>) -> KernelFactory<'k> {
        KernelFactory { metric: K::METRIC, work: K::work, open, floor_ns: None, label: None, sharing: 1 }
    }
}

/// Measures every case of a session and hands the rows to its sink.
pub fn every_case(session: &mut Session<'_>, make: &KernelFactory<'_>) -> Result<()> {
    each_case(session, |session, case| one_case(session, make, case))
}

/// Hands the row that `row` makes of every case of a session to its sink.
pub fn each_case<'a>(
    session: &mut Session<'a>,
    mut row: impl FnMut(&mut Session<'a>, &Case) -> Result<Measurement>,
) -> Result<()> {
    for case in session.cases()? {
        let row = row(session, &case)?;
        if session.team.rank() == Rank(0) {
            session.sink.case(&row)?;
        }
    }
    Ok(())
}

/// Measures one case of a session, and says so.
pub fn one_case(session: &mut Session<'_>, make: &KernelFactory<'_>, case: &Case) -> Result<Measurement> {
    let key = key(session, make, case);
    session.team.name_task(&key);
    session.sink.starting(session.bench.name, case);
    measure(session, make, case).map_err(|e| e.within(&key))
}

/// The stable name of a row.
fn key(session: &Session<'_>, make: &KernelFactory<'_>, case: &Case) -> String {
    let key = case.key(session.bench.name, session.bench.streams);
    match &make.label {
        Some((name, value)) => key.replacen('/', &format!("/{name}={value},"), 1),
        None => key,
    }
}

/// Measures one case. Every rank returns a row; rank 0's is the one that counts.
pub fn measure(session: &Session<'_>, make: &KernelFactory<'_>, case: &Case) -> Result<Measurement> {
    let (team, bench) = (session.team, session.bench);
    let assignment = session.assignment.paired(case.choice());
    let (role, peer) = assignment.role(team.rank());
    let mut row = Measurement {
        bytes: Some(case.bytes.0),
        depth: bench.streams.then_some(case.depth),
        pairs: case.pairs,
        axes: choices(case, make.label.as_ref()),
        work: Some((make.work)(case)),
        across: assignment.across(),
        ..Measurement::new(bench.name, key(session, make, case), make.metric, team.size())
    };
    let (mut laps, mut phases) = (Stopwatch::from_now(session.clock), Phases::default());
    let cx = Context { team, role, peer, thread: 0, memory_limit: session.plan.memory_limit };
    let mut kernel = match team.agree((make.open)(&cx, case)) {
        Ok(kernel) => kernel,
        Err(e) if e.kind() == Kind::Unsupported => {
            row.outcome = Outcome::Skipped(e.to_string());
            return Ok(row);
        }
        Err(e) => return Err(e),
    };
    row.across = kernel.across(row.across);
    let KernelFactory { floor_ns, sharing, .. } = *make;
    let (effort, legs) = (session.plan.effort_for(case.bytes), (make.work)(case).legs);
    let rig = Rig { session, effort, role, legs, across: row.across, floor_ns, sharing };
    let mut fill = Fill { round: 0, bytes: case.bytes.0, iterations: 0 };
    let verify = session.plan.verify;
    phases.open_ns = laps.lap();
    rig.prepare(&mut *kernel, fill, verify)?;
    phases.fill_ns = laps.lap();

    let (batch, sample_ns, warmed) = rig.warm_up(&mut *kernel)?;
    phases.warm_up_ns = laps.lap();
    let before = Counters::now();
    let sampled = rig.sample(&mut *kernel, batch, sample_ns)?;
    let vitals = Counters::now().since(before);
    let whole = laps.lap();
    phases.sample_ns = (sampled.spent.as_nanos() as u64).min(whole);
    phases.decide_ns = whole - phases.sample_ns;

    kernel.end()?;
    row.figures = kernel.figures()?;
    if verify {
        team.barrier()?;
        fill.iterations = warmed + sampled.iterations;
        let mut found = first_mismatch(team, kernel.check(fill)?)?;
        if found == Check::Passed {
            // Once more with a fresh pattern: what was checked must have moved now, not in an earlier round.
            fill = Fill { round: 1, iterations: 1, ..fill };
            team.barrier()?;
            rig.prepare(&mut *kernel, fill, true)?;
            rig.iterate(&mut *kernel, 1)?;
            kernel.end()?;
            team.barrier()?;
            found = first_mismatch(team, kernel.check(fill)?)?;
        }
        row.check = found;
    }
    team.barrier()?;
    phases.verify_ns = laps.lap();
    kernel.close()?;
    rig.conclude(&mut row, sampled, vitals)?;
    phases.close_ns = laps.lap();
    row.phases = Some(phases);
    Ok(row)
}

/// What a row names: values on axes, threads, and a root that was chosen.
fn choices(case: &Case, label: Option<&(&'static str, String)>) -> BTreeMap<String, String> {
    let axes = case.axes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    let label = label.map(|(name, value)| ((*name).to_owned(), value.clone()));
    let threads = case.threads.map(|threads| ("threads".into(), threads.to_string()));
    let root = case.chosen_root().map(|root| ("root".into(), root.to_string()));
    axes.chain(label).chain(threads).chain(root).collect()
}

/// What the steps of measuring a case have in common on one rank.
struct Rig<'s, 'a> {
    session: &'s Session<'a>,
    effort: Effort,
    role: Role,
    floor_ns: Option<f64>,
    sharing: u32,
    legs: u64,
    across: Aggregation,
}

/// The samples of a case.
struct Sampled {
    /// Of every timed rank, on rank 0; elsewhere none.
    samples: Vec<Samples>,
    iterations: u64,
    ending: Option<Ending>,
    summary: Option<Summary>,
    spent: Duration,
    /// Iterations in each.
    batch: u64,
    /// Whether each is between two readings of its own, however short it is.
    stamped: bool,
}

impl Rig<'_, '_> {
    fn prepare(&self, kernel: &mut dyn OpenKernel, fill: Fill, verify: bool) -> Result<()> {
        if verify {
            kernel.fill(fill)?;
        }
        self.session.team.barrier()?;
        kernel.begin()
    }

    /// Runs iterations by role, between two barriers. Returns the time that they took on a timed rank and the time until
    /// all ranks had done theirs, in nanoseconds.
    fn iterate(&self, kernel: &mut dyn OpenKernel, iterations: u64) -> Result<(u64, u64)> {
        // One sample of them all, unless samples have a size of their own.
        let batch = kernel.batch().unwrap_or(iterations);
        let (round, wall) = self.round(kernel, batch, iterations.div_ceil(batch))?;
        Ok((round.iter().map(|taken| taken.elapsed_ns.iter().sum()).max().unwrap_or(0), wall))
    }

    /// Warms up with the very loop that is timed, and sizes batches from it. Returns the batch, the estimated time that a
    /// sample takes until all ranks have done it, in nanoseconds, and the iterations that were run.
    fn warm_up(&self, kernel: &mut dyn OpenKernel) -> Result<(u64, f64, u64)> {
        let (mut run, mut iteration_ns, mut wall_ns) = (0, f64::INFINITY, f64::INFINITY);
        if let Effort::Fixed { warmup, .. } = self.effort {
            if warmup > 0 {
                iteration_ns = self.iterate(kernel, warmup)?.0 as f64 / warmup as f64;
            }
            run = warmup;
        } else {
            let (mut spent, mut next) = (0, 1);
            while next > 0 {
                let (elapsed, wall) = self.iterate(kernel, next)?;
                (spent, run) = (spent + wall, run + next);
                // The fastest so far: a batch sized by it hides the stamp from every one.
                iteration_ns = iteration_ns.min(elapsed as f64 / next as f64);
                wall_ns = wall_ns.min(wall as f64 / next as f64);
                next = self.session.team.broadcast_value(stop::more_warm_up(run, spent, wall_ns))?;
            }
        }
        let stamp_ns = self.session.clock.facts().overhead_ns;
        let calibrated = || stop::batch_for(iteration_ns, stamp_ns);
        let batch = self.session.plan.batch.or(kernel.batch()).unwrap_or_else(calibrated);
        let batch = self.session.team.broadcast_value(batch)?;
        Ok((batch, wall_ns * batch as f64, run))
    }

    /// Rounds of samples until the stop rule, evaluated by rank 0 alone, ends them.
    fn sample(&self, kernel: &mut dyn OpenKernel, batch: u64, sample_ns: f64) -> Result<Sampled> {
        let Session { team, plan, .. } = *self.session;
        let most = self.most_samples();
        let (batch, first) = match self.effort {
            Effort::Fixed { iterations, .. } => {
                let (samples, batch) = match plan.batch {
                    Some(chosen) => (iterations.div_ceil(chosen), chosen),
                    // Part of a turn of roots would say nothing of broadcasts that overlap.
                    None if kernel.batch().is_some() => (iterations.div_ceil(batch), batch),
                    None => stop::divide(iterations, batch),
                };
                (batch, samples)
            }
            Effort::Precision { max_time, .. } => {
                (batch, stop::first_round(sample_ns, max_time / self.sharing).min(most))
            }
        };
        let mut samples: Vec<Samples> = Vec::new();
        let mut spent = Duration::ZERO;
        let mut more = team.broadcast_value(first)?;
        let mut total = 0;
        let (mut ending, mut summary) = (None, None);
        while more > 0 {
            let (round, wall) = self.round(kernel, batch, more)?;
            total += more;
            spent += Duration::from_nanos(wall);
            extend(&mut samples, batch, collect(team, self.across, round)?);
            more = 0;
            if team.rank() == Rank(0) {
                summary = Measurement::summarise(&samples, self.legs);
                if let Effort::Precision { precision, max_time } = self.effort {
                    let reached = summary.as_ref().and_then(Summary::precision);
                    let max_time = max_time / self.sharing;
                    match stop::next_round(total, spent, reached, precision, max_time) {
                        Ok(_) if total >= most => ending = Some(Ending::OutOfBudget),
                        Ok(next) => more = next.min(most - total),
                        Err(why) => ending = Some(why),
                    }
                }
            }
            self.session.sink.alive();
            more = team.broadcast_value(more)?;
        }
        let stamped = kernel.batch().is_some();
        Ok(Sampled { samples, iterations: total * batch, ending, summary, spent, batch, stamped })
    }

    /// Samples of a row at the most: where those of every rank are kept, they must fit into rank 0 and the file.
    fn most_samples(&self) -> u64 {
        let clocks = if self.across == Aggregation::Origin { 1 } else { self.session.team.size() };
        (MOST_KEPT / u64::from(clocks)).clamp(stop::LEAST_SAMPLES, stop::MOST_SAMPLES)
    }

    /// One round of samples, none on a rank that answers, and the time until all ranks had done it. Storage is touched
    /// before timing starts.
    fn round(
        &self,
        kernel: &mut dyn OpenKernel,
        batch: u64,
        samples: u64,
    ) -> Result<(Vec<RoundSamples>, u64)> {
        let Session { team, clock, .. } = *self.session;
        let mut stamps = match self.role {
            Role::Active => vec![vec![u64::MAX; kernel.readings(samples) as usize]; kernel.clocks()],
            Role::Passive => Vec::new(),
        };
        team.barrier()?;
        let start = clock.mark();
        match self.role {
            Role::Active => kernel.timed(clock, batch, &mut stamps)?,
            Role::Passive => kernel.answered(batch, samples)?,
        }
        team.barrier()?;
        let wall = start.elapsed_ns();
        Ok((stamps.iter().map(|stamps| kernel.taken(clock, stamps)).collect(), wall))
    }

    /// Fills the row from what was measured; collective, because every rank's counters count.
    fn conclude(&self, row: &mut Measurement, sampled: Sampled, vitals: Counters) -> Result<()> {
        let Session { team, standing, .. } = *self.session;
        let vitals = team.gather(&vitals.to_bytes())?.unwrap_or_default();
        let vitals = vitals.iter().map(|b| Counters::from_bytes(b)).fold(Counters::default(), Counters::and);
        if let Check::Failed(mismatch) = &row.check {
            row.outcome = Outcome::Failed(format!("data arrived wrong at {mismatch}"));
        }
        row.trust = standing.to_vec();
        if let (Some(summary), Some(floor_ns)) = (&sampled.summary, self.floor_ns) {
            row.figures.insert("one_way_us".into(), Figure::Value(floor_ns / 1e3));
            row.trust.extend(trust::below_one_way(summary, floor_ns));
        }
        if self.across == Aggregation::Global {
            let late: usize = sampled.samples.iter().map(|s| s.late.len()).sum();
            row.figures.insert("late_starts".into(), Figure::Value(late as f64));
            row.trust.extend(trust::late_starts(&sampled.samples));
        }
        if let Some(summary) = &sampled.summary {
            if sampled.stamped {
                let (stamp_ns, legs) = (self.session.clock.facts().overhead_ns, self.legs as f64);
                row.trust.extend(trust::costly_clock(stamp_ns, summary.median * legs * sampled.batch as f64));
            }
            let precision = match self.effort {
                Effort::Precision { precision, .. } => precision,
                Effort::Fixed { .. } => f64::INFINITY,
            };
            row.trust.extend(trust::of_row(trust::RowFacts {
                summary,
                vitals,
                cpu_ns: sampled.spent.as_nanos() as f64 * f64::from(team.size()),
                ending: sampled.ending,
                precision,
                verified: !matches!(row.check, Check::Off | Check::Unsupported),
            }));
        }
        row.samples = sampled.samples;
        row.summary = sampled.summary;
        Ok(())
    }
}
