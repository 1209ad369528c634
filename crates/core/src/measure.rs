//! What surrounds the timed loop: opens a case on every rank, warms up, times rounds of samples, verifies, and records the row.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    case::Case,
    clock::Clock,
    engine::{Opened, Session},
    env::Vitals,
    error::{Kind, Result},
    kernel::{Cx, Metric, Role, Work},
    layout::{Across, PAIRING},
    payload::{Check, Fill, Mismatch},
    plan::Effort,
    result::{Measurement, Outcome, Samples},
    stats::Summary,
    stop::{self, Ending},
    trust,
    unit::Rank,
};

/// Time for which a case is warmed up, if the user gives no number of iterations.
const WARM: Duration = Duration::from_millis(3);
/// Iterations before measuring at the least: first touch of pages and connections is not what is measured.
const LEAST_WARM: u64 = 2;

/// A kind of kernel, as values.
pub(crate) struct Make<'k> {
    pub(crate) metric: Metric,
    pub(crate) work: fn(&Case) -> Work,
    pub(crate) open: fn(&Cx<'_>, &Case) -> Result<Box<dyn Opened + 'k>>,
}

/// Measures every case of a session and hands the rows to its sink.
pub(crate) fn every_case(session: &mut Session<'_>, make: &Make<'_>) -> Result<()> {
    for case in session.cases()? {
        let key = case.key(session.bench.name, session.bench.streams);
        session.team.name_task(&key);
        session.sink.starting(session.bench.name, &case);
        let row = measure(session, make, &case).map_err(|e| e.within(&key))?;
        if session.team.rank() == Rank(0) {
            session.sink.case(&row)?;
        }
    }
    Ok(())
}

/// Measures one case. Every rank returns a row; rank 0's is the one that counts.
fn measure(session: &Session<'_>, make: &Make<'_>, case: &Case) -> Result<Measurement> {
    let (team, bench) = (session.team, session.bench);
    let seating = session.seating.paired(case.axis(&PAIRING));
    let (role, peer) = seating.role(team.rank());
    let mut row = Measurement {
        bench: bench.name.into(),
        key: case.key(bench.name, bench.streams),
        metric: make.metric,
        bytes: Some(case.bytes.0),
        depth: bench.streams.then_some(case.depth),
        pairs: case.pairs,
        ranks: team.size(),
        axes: choices(case),
        work: Some((make.work)(case)),
        across: seating.across(),
        outcome: Outcome::Ok,
        check: Check::Off,
        samples: Vec::new(),
        summary: None,
        trust: Vec::new(),
    };
    let mut kernel = match team.agree((make.open)(&Cx { team, role, peer, thread: 0 }, case)) {
        Ok(kernel) => kernel,
        Err(e) if e.kind() == Kind::Unsupported => {
            row.outcome = Outcome::Skipped(e.to_string());
            return Ok(row);
        }
        Err(e) => return Err(e),
    };
    let rig = Rig { session, role, legs: (make.work)(case).legs, across: seating.across() };
    let mut fill = Fill { round: 0, bytes: case.bytes.0, iterations: 0 };
    let verify = session.plan.verify;
    rig.prepare(&mut *kernel, fill, verify)?;

    let (batch, sample_ns, warmed) = rig.warm_up(&mut *kernel)?;
    let before = Vitals::now();
    let sampled = rig.sample(&mut *kernel, batch, sample_ns)?;
    let vitals = Vitals::now().since(before);

    kernel.end()?;
    if verify {
        team.barrier()?;
        fill.iterations = warmed + sampled.iterations;
        let mut found = rig.verdict(kernel.check(fill)?)?;
        if found == Check::Passed {
            // Once more with a fresh pattern: what was checked must have moved now, not in an earlier round.
            fill = Fill { round: 1, iterations: 1, ..fill };
            team.barrier()?;
            rig.prepare(&mut *kernel, fill, true)?;
            rig.iterate(&mut *kernel, 1)?;
            kernel.end()?;
            team.barrier()?;
            found = rig.verdict(kernel.check(fill)?)?;
        }
        row.check = found;
    }
    team.barrier()?;
    kernel.close()?;
    rig.conclude(&mut row, sampled, vitals)?;
    Ok(row)
}

/// What a row names: values on axes, and threads.
fn choices(case: &Case) -> BTreeMap<String, String> {
    let axes = case.axes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    axes.chain(case.threads.map(|threads| ("threads".into(), threads.to_string()))).collect()
}

/// Adds a round of every rank and thread to what is known of them.
fn extend(all: &mut Vec<Samples>, batch: u64, round: impl Iterator<Item = ((u32, u32), Vec<u64>)>) {
    for (at, ((rank, thread), elapsed_ns)) in round.enumerate() {
        match all.get_mut(at) {
            Some(known) => known.elapsed_ns.extend(elapsed_ns),
            None => all.push(Samples { rank, thread, batch, elapsed_ns }),
        }
    }
}

/// What the steps of measuring a case have in common on one rank.
struct Rig<'s, 'a> {
    session: &'s Session<'a>,
    role: Role,
    legs: u64,
    across: Across,
}

/// The samples of a case.
struct Sampled {
    /// Of every timed rank, on rank 0; elsewhere this rank's own.
    samples: Vec<Samples>,
    iterations: u64,
    ending: Option<Ending>,
    summary: Option<Summary>,
    spent: Duration,
}

impl Rig<'_, '_> {
    fn prepare(&self, kernel: &mut dyn Opened, fill: Fill, verify: bool) -> Result<()> {
        if verify {
            kernel.fill(fill)?;
        }
        self.session.team.barrier()?;
        kernel.begin()
    }

    /// Runs iterations by role, between two barriers. Returns the time that they took on a timed rank and the time until
    /// all ranks had done theirs, in nanoseconds.
    fn iterate(&self, kernel: &mut dyn Opened, iterations: u64) -> Result<(u64, u64)> {
        let Session { team, clock, .. } = *self.session;
        let mut stamps = vec![vec![0; 2]; kernel.clocks()];
        team.barrier()?;
        let start = clock.mark();
        match self.role {
            Role::Active => kernel.timed(clock, iterations, &mut stamps)?,
            Role::Passive => kernel.answered(iterations)?,
        }
        team.barrier()?;
        let elapsed = stamps.iter().map(|s| clock.nanos(s[0], s[1])).max();
        Ok((elapsed.unwrap_or(0), start.elapsed_ns()))
    }

    /// Warms up with the very loop that is timed, and sizes batches from it. Returns the batch, the estimated time that a
    /// sample takes until all ranks have done it, in nanoseconds, and the iterations that were run.
    fn warm_up(&self, kernel: &mut dyn Opened) -> Result<(u64, f64, u64)> {
        let (mut run, mut iteration_ns, mut wall_ns) = (0, f64::INFINITY, f64::INFINITY);
        if let Effort::Fixed { warmup, .. } = self.session.plan.effort {
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
                let warm = run >= LEAST_WARM && u128::from(spent) >= WARM.as_nanos() || run >= 1 << 40;
                next = self.session.team.tell(if warm { 0 } else { run })?;
            }
        }
        let stamp_ns = self.session.clock.facts().overhead_ns;
        let calibrated = self.session.plan.batch.unwrap_or_else(|| stop::batch_for(iteration_ns, stamp_ns));
        let batch = self.session.team.tell(calibrated)?;
        Ok((batch, wall_ns * batch as f64, run))
    }

    /// Rounds of samples until the stop rule, evaluated by rank 0 alone, ends them.
    fn sample(&self, kernel: &mut dyn Opened, batch: u64, sample_ns: f64) -> Result<Sampled> {
        let Session { team, plan, clock, .. } = *self.session;
        let (batch, first) = match plan.effort {
            Effort::Fixed { iterations, .. } => {
                let (samples, batch) = match plan.batch {
                    Some(chosen) => (iterations.div_ceil(chosen), chosen),
                    None => stop::divide(iterations, batch),
                };
                (batch, samples)
            }
            Effort::Precision { max_time, .. } => (batch, stop::first_round(sample_ns, max_time)),
        };
        let mut mine: Vec<Samples> = Vec::new();
        let mut all: Vec<Samples> = Vec::new();
        let mut spent = Duration::ZERO;
        let mut more = team.tell(first)?;
        let mut total = 0;
        let (mut ending, mut summary) = (None, None);
        while more > 0 {
            let (round, wall) = self.round(kernel, batch, more, clock)?;
            total += more;
            spent += Duration::from_nanos(wall);
            all = self.collect(all, batch, &round)?;
            extend(&mut mine, batch, (0..).zip(round).map(|(thread, ns)| ((team.rank().0, thread), ns)));
            more = 0;
            if team.rank() == Rank(0) {
                summary = Summary::of(&Measurement::combine(&all, self.legs));
                if let Effort::Precision { precision, max_time } = plan.effort {
                    let reached = summary.as_ref().and_then(Summary::precision);
                    match stop::next_round(total, spent, reached, precision, max_time) {
                        Ok(next) => more = next,
                        Err(why) => ending = Some(why),
                    }
                }
            }
            self.session.sink.alive();
            more = team.tell(more)?;
        }
        let samples = if all.is_empty() { mine } else { all };
        Ok(Sampled { samples, iterations: total * batch, ending, summary, spent })
    }

    /// One round of samples, none on a rank that answers, and the time until all ranks had done it. Storage is touched
    /// before timing starts.
    fn round(
        &self,
        kernel: &mut dyn Opened,
        batch: u64,
        samples: u64,
        clock: &Clock,
    ) -> Result<(Vec<Vec<u64>>, u64)> {
        let team = self.session.team;
        let mut stamps = match self.role {
            Role::Active => vec![vec![u64::MAX; samples as usize + 1]; kernel.clocks()],
            Role::Passive => Vec::new(),
        };
        team.barrier()?;
        let start = clock.mark();
        match self.role {
            Role::Active => kernel.timed(clock, batch, &mut stamps)?,
            Role::Passive => kernel.answered(batch * samples)?,
        }
        team.barrier()?;
        let wall = start.elapsed_ns();
        let between = |stamps: &Vec<u64>| stamps.windows(2).map(|w| clock.nanos(w[0], w[1])).collect();
        Ok((stamps.iter().map(between).collect(), wall))
    }

    /// Adds a round's samples of every rank whose clock counts to those that rank 0 has.
    fn collect(&self, mut all: Vec<Samples>, batch: u64, round: &[Vec<u64>]) -> Result<Vec<Samples>> {
        let team = self.session.team;
        let rounds: Vec<((u32, u32), Vec<u64>)> = match self.across {
            Across::Origin if team.rank() == Rank(0) => {
                (0..).zip(round).map(|(thread, ns)| ((0, thread), ns.clone())).collect()
            }
            Across::Origin => return Ok(all),
            Across::Pairs | Across::Slowest => {
                let bytes: Vec<u8> = round.iter().flatten().flat_map(|ns| ns.to_le_bytes()).collect();
                let words = |b: Vec<u8>| {
                    b.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap_or_default())).collect()
                };
                let gathered = team.gather(&bytes)?.unwrap_or_default();
                (0..)
                    .zip(gathered)
                    .filter(|(_, b)| !b.is_empty())
                    .map(|(rank, b)| ((rank, 0), words(b)))
                    .collect()
            }
        };
        extend(&mut all, batch, rounds.into_iter());
        Ok(all)
    }

    /// The first mismatch of any rank, on every rank.
    fn verdict(&self, mine: Check) -> Result<Check> {
        let note = match &mine {
            Check::Passed | Check::Off => vec![],
            Check::Unsupported => vec![0],
            Check::Failed(m) => {
                let mut note = vec![1, m.expected, m.actual];
                note.extend([m.slot, m.byte].iter().flat_map(|n| n.to_le_bytes()));
                note
            }
        };
        let all = self.session.team.gather(&note)?.unwrap_or_default();
        let worst = all.iter().enumerate().max_by_key(|(_, note)| note.len());
        let mut wire = [0; 24];
        if let Some((rank, note)) = worst.filter(|(_, note)| !note.is_empty()) {
            wire[0] = note[0] + 1;
            wire[1..note.len()].copy_from_slice(&note[1..]);
            wire[20..].copy_from_slice(&(rank as u32).to_le_bytes());
        }
        self.session.team.broadcast(&mut wire)?;
        let long = |at: usize| u64::from_le_bytes(wire[at..at + 8].try_into().unwrap_or_default());
        Ok(match wire[0] {
            0 => Check::Passed,
            1 => Check::Unsupported,
            _ => Check::Failed(Mismatch {
                rank: Rank(u32::from_le_bytes(wire[20..].try_into().unwrap_or_default())),
                slot: long(3),
                byte: long(11),
                expected: wire[1],
                actual: wire[2],
            }),
        })
    }

    /// Fills the row from what was measured; collective, because every rank's counters count.
    fn conclude(&self, row: &mut Measurement, sampled: Sampled, vitals: Vitals) -> Result<()> {
        let Session { team, plan, standing, .. } = *self.session;
        let vitals = team.gather(&vitals.to_bytes())?.unwrap_or_default();
        let vitals = vitals.iter().map(|b| Vitals::from_bytes(b)).fold(Vitals::default(), |a, b| Vitals {
            preemptions: a.preemptions + b.preemptions,
            stolen_ticks: a.stolen_ticks + b.stolen_ticks,
        });
        if let Check::Failed(mismatch) = &row.check {
            row.outcome = Outcome::Failed(format!("data arrived wrong at {mismatch}"));
        }
        row.trust = standing.to_vec();
        if let Some(summary) = &sampled.summary {
            let precision = match plan.effort {
                Effort::Precision { precision, .. } => precision,
                Effort::Fixed { .. } => f64::INFINITY,
            };
            row.trust.extend(trust::of_row(trust::Happened {
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
