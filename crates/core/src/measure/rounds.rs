//! The steps of an open case on one rank: warm-up, rounds of samples until the stop rule ends them, verification.

use std::{borrow::Cow, time::Duration};

use ombx_host::{
    environment::Counters,
    performance::{self, Counted, Meter},
};
use ombx_record::{
    error::Result,
    event::Event,
    result::{Aggregation, Check, ConnectionCounters, Measurement, Samples},
    stats::Summary,
    unit::Rank,
};

use crate::{
    benchmark::{Role, payload::Fill},
    measure::{
        alignment::{self, Affordable, Alignment, Part},
        background::{Background, Repeated},
        collect::{Intervals, RoundSamples, collect, compare_starts, extend, first_mismatch},
        open_kernel::OpenKernel,
        plan::{Effort, Verify},
        session::Session,
        stop::{self, Ending, WarmUpGoal},
    },
};

/// Maximum number of samples that a row keeps, over all ranks.
const MAX_KEPT_SAMPLES: u64 = 1 << 22;
/// Time from which on the parts of a warm-up of fixed length do not grow: a tenth of a second is far below the limit of a hang.
const WARM_UP_PART_NS: u64 = 100_000_000;
/// Maximum number of iterations that are checked before the ranks exchange what they found.
const MOST_UNREPORTED: u64 = 1024;
/// Time between two tests of whether the ranks that are measured are done, in nanoseconds. A test is a small broadcast among the
/// ranks of the load.
const ROUND_NS: u64 = 10_000_000;

/// Returns the counters of the connections on which this rank sends; `None` on a rank that answers.
fn connections(kernel: &mut dyn OpenKernel, role: Role) -> Result<Option<ConnectionCounters>> {
    if role == Role::Active { kernel.steps().connections() } else { Ok(None) }
}

/// A case whose kernel is open on this rank.
pub(crate) struct OpenCase<'s, 'a> {
    pub(crate) session: &'s mut Session<'a>,
    pub(crate) kernel: Box<dyn OpenKernel + 's>,
    pub(crate) role: Role,
    pub(crate) effort: Effort,
    pub(crate) legs: u64,
    pub(crate) aggregation: Aggregation,
    /// Rows that share the time budget of one row.
    pub(crate) sharing: u32,
    /// Iterations per sample in earlier launches of the run.
    pub(crate) known_batch: Option<u64>,
    /// Stable name of the row.
    pub(crate) key: String,
    /// Division of the samples into rounds.
    pub(crate) alignment: Alignment,
    /// Counters, while samples are taken, if the user wants them.
    pub(crate) meter: Option<Box<dyn Meter>>,
    /// On rank 0, if the user wants figures of intervals.
    pub(crate) intervals: Option<Intervals>,
}

/// Result of a warm-up.
pub(crate) struct WarmUp {
    /// Iterations that were run.
    pub(crate) iterations: u64,
    /// Iterations per sample.
    pub(crate) batch: u64,
    /// Estimated time until all ranks have run one sample, in nanoseconds, by the fastest part of the warm-up.
    pub(crate) sample_ns: f64,
    /// The same by its last part, in which ranks may have waited for a CPU.
    usual_ns: f64,
}

/// Samples of a case and how sampling ended.
#[derive(Default)]
pub(crate) struct Sampling {
    /// Samples of every timed rank on rank 0; empty on other ranks.
    pub(crate) samples: Vec<Samples>,
    /// Samples of single iterations, likewise; empty if `samples` are such samples.
    pub(crate) tail: Vec<Samples>,
    pub(crate) summary: Option<Summary>,
    pub(crate) ending: Option<Ending>,
    pub(crate) iterations: u64,
    /// Iterations of samples that do not count.
    pub(crate) untimed: u64,
    /// Time of the samples that count, and of the tail.
    pub(crate) spent: Duration,
    /// Time of all rounds without warm-up, and of the tail.
    pub(crate) wall: Duration,
    /// Iterations per sample.
    pub(crate) batch: u64,
    /// Whether the kernel fixes the batch, so that one sample contains one reading of the clock however short it is.
    pub(crate) one_stamp_each: bool,
    /// Requested precision; see [`Effort::precision`].
    pub(crate) precision: f64,
    /// What the counters of this rank counted, and in how many iterations.
    pub(crate) counted: Option<(Counted, u64)>,
    /// Whole iterations that were checked after the samples; `None` if another launch checks them.
    pub(crate) checked: Option<u64>,
    /// Counters of the scheduler on this rank, if samples were not taken now.
    pub(crate) counters: Option<Counters>,
}

impl OpenCase<'_, '_> {
    /// Fills the buffers, which makes their memory resident even if payloads are not checked, and opens what iterations need.
    pub(crate) fn begin(&mut self, fill: Fill) -> Result<()> {
        self.kernel.fill(fill)?;
        self.session.team.write_buffers()?;
        self.session.team.barrier()?;
        self.kernel.steps().begin()
    }

    /// Warms up with the loop that is timed, and sizes batches from it.
    pub(crate) fn warm_up(&mut self) -> Result<WarmUp> {
        let (team, facts) = (self.session.team, self.session.clock.facts());
        let (mut iterations, mut iteration_ns, mut wall_ns) = (0, f64::INFINITY, f64::INFINITY);
        let mut usual_ns = f64::INFINITY;
        if let Effort::Fixed { warmup, .. } = self.effort {
            // A minimum or maximum time needs the time of an iteration.
            let plan = self.session.plan;
            let is_timed = !plan.bounds.least_time.is_zero() || plan.bounds.most_time.is_some();
            let warmup = warmup - self.leading_iterations();
            let warmup = if is_timed { warmup.max(1) } else { warmup };
            // Parts are signs of progress. Each is twice as long as the one before, until it lasts long enough.
            let batch = self.kernel.batch().unwrap_or(1);
            let mut next = batch;
            while iterations < warmup {
                let part = next.min((warmup - iterations).next_multiple_of(batch));
                let (elapsed, wall) = self.iterate(part)?;
                iterations += part;
                iteration_ns = iteration_ns.min((elapsed + facts.resolution_ns) as f64 / part as f64);
                usual_ns = wall as f64 / part as f64;
                wall_ns = wall_ns.min(usual_ns);
                self.session.sink.event(&Event::Alive)?;
                next = team.broadcast_value(if wall < WARM_UP_PART_NS { 2 * next } else { next })?;
            }
        } else {
            let goal = match self.known_batch {
                Some(_) => WarmUpGoal::REPEAT,
                None => WarmUpGoal::CALIBRATE,
            };
            let (mut so_far, mut next) = (stop::WarmedUp::NOT, 1);
            let most = self.max_time();
            while next > 0 {
                let (elapsed, wall) = self.iterate(next)?;
                so_far.add(next, wall, elapsed as f64 / next as f64);
                iterations = so_far.iterations;
                // A batch sized by the fastest iteration hides the cost of the clock in every batch. A time that is shorter than a step
                // of the clock may read 0.
                iteration_ns = iteration_ns.min((elapsed + facts.resolution_ns) as f64 / next as f64);
                usual_ns = wall as f64 / next as f64;
                wall_ns = wall_ns.min(usual_ns);
                self.session.sink.event(&Event::Alive)?;
                next = team.broadcast_value(stop::more_warm_up(goal, so_far, most))?;
            }
        }
        self.kernel.warmed_up(self.session.clock)?;
        let chosen = self.session.plan.batch.or(self.kernel.batch()).or(self.known_batch);
        let batch = match chosen {
            Some(batch) => batch,
            None => {
                let least_ns = self.kernel.least_sample_ns(self.session.clock)?;
                let most = self.most_of_sample(usual_ns);
                let least_time = self.session.plan.bounds.least_time;
                stop::batch_for(iteration_ns, facts)
                    .max(stop::batch_lasting(least_ns, iteration_ns).min(most))
                    .max(stop::batch_within(least_time, self.max_samples(), iteration_ns))
            }
        };
        let batch = team.broadcast_value(batch)?;
        let [sample_ns, usual_ns] = [wall_ns, usual_ns].map(|iteration_ns| iteration_ns * batch as f64);
        Ok(WarmUp { iterations, batch, sample_ns, usual_ns })
    }

    /// Returns how many iterations a sample may have, so that the row has its least number of samples in its time.
    fn most_of_sample(&self, iteration_ns: f64) -> u64 {
        match self.effort {
            Effort::Fixed { .. } => u64::MAX,
            _ => {
                let longest = self.max_time() / self.least_samples(iteration_ns) as u32;
                (longest.as_nanos() as f64 / iteration_ns.max(1.0)) as u64
            }
        }
    }

    /// Runs rounds of samples until the stop rule ends them. Rank 0 alone evaluates the rule and broadcasts the decision.
    pub(crate) fn sample(&mut self, warm_up: &WarmUp) -> Result<Sampling> {
        let team = self.session.team;
        let (batch, first) = self.first_round(warm_up);
        self.align(warm_up, batch, first)?;
        let first = match self.effort {
            Effort::Fixed { .. } => first,
            _ => self.whole(first.max(self.alignment.spread()), self.max_samples()),
        };
        let mut sampling = Sampling {
            batch,
            one_stamp_each: self.kernel.batch().is_some(),
            precision: self.effort.precision(),
            ..Sampling::default()
        };
        let counters = self.session.plan.counters;
        self.meter = counters.filter(|_| self.kernel.clocks() == 1).map(|open| open());
        if let Some(intervals) = &mut self.intervals {
            connections(&mut *self.kernel, self.role)?.map(|now| intervals.count(now));
        }
        // On rank 0: what is left of the samples that the stop rule has chosen.
        let mut chosen = first;
        let planned_ns = self.planned_ns(first, warm_up.sample_ns);
        let mut more = team.broadcast_value(self.part_of(chosen, &sampling, warm_up.usual_ns))?;
        let mut total = 0;
        // Samples that are dropped.
        let leading = self.leading_iterations().div_ceil(batch);
        while more > 0 {
            let before = if total == 0 { leading } else { 0 };
            let mut parts = self.alignment.divide(more);
            // Nothing separates the rest of the warm-up from the samples.
            parts.iter_mut().take(1).for_each(|first| first.dropped = first.dropped.max(before));
            let dropped: u64 = parts.iter().map(|part| part.dropped).sum();
            let (round, wall) = self.round(batch, &parts)?;
            total += more;
            sampling.untimed += dropped * batch;
            let time =
                |samples: u64| Duration::from_nanos(wall).mul_f64(samples as f64 / (dropped + more) as f64);
            sampling.spent += time(more);
            sampling.wall += time(dropped + more - before);
            let mut round = collect(team, self.aggregation, round)?;
            compare_starts(&mut round, self.session.clock);
            if let Some(intervals) = &mut self.intervals {
                let (facts, of_round) = (self.session.clock.facts(), round.clone());
                if let Some(mut interval) = intervals.add(batch, self.legs, facts, of_round, sampling.spent) {
                    interval.connections =
                        connections(&mut *self.kernel, self.role)?.map(|now| intervals.count(now));
                    self.session.sink.event(&Event::Interval(Cow::Borrowed(&interval)))?;
                }
            }
            extend(&mut sampling.samples, batch, self.alignment.rounds(), round);
            if team.rank() == Rank(0) {
                sampling.summary =
                    Measurement::summarise(&sampling.samples, self.legs, self.session.clock.facts());
                chosen -= more;
                if chosen == 0 {
                    match self.next_round(total, &sampling) {
                        Ok(next) => chosen = next,
                        Err(ending) => sampling.ending = ending,
                    }
                } else if stop::is_slowed(sampling.spent, planned_ns) {
                    (chosen, sampling.ending) = (0, Some(Ending::Slowed));
                }
                let sample_ns = sampling.spent.as_nanos() as f64 / total as f64;
                more = self.part_of(chosen, &sampling, sample_ns);
            }
            self.session.sink.event(&Event::Alive)?;
            more = team.broadcast_value(more)?;
        }
        if let Some(intervals) = &mut self.intervals
            && let Some(mut last) = intervals.last(self.legs, self.session.clock.facts(), sampling.spent)
        {
            last.connections = connections(&mut *self.kernel, self.role)?.map(|now| intervals.count(now));
            self.session.sink.event(&Event::Interval(Cow::Borrowed(&last)))?;
        }
        sampling.iterations = total * batch;
        // A fixed number of iterations stays what it is. A kernel that fixes its batch has its own order of samples.
        if batch > 1 && self.effort.time().is_some() && self.kernel.batch().is_none() {
            self.sample_tail(&mut sampling)?;
        }
        let iterations = sampling.untimed + sampling.iterations;
        sampling.counted = match self.meter.take() {
            Some(mut meter) => Some((meter.counted(), iterations)),
            None => counters.map(|_| (performance::uncounted_threads(), iterations)),
        };
        if let Some(summary) = &mut sampling.summary {
            let single = [&*sampling.samples, &*sampling.tail];
            Measurement::take_percentiles(summary, single, self.legs, self.session.clock.facts());
        }
        Ok(sampling)
    }

    /// Returns how many iterations of a fixed warm-up run right before the samples: half of them. The messages with which ranks agree lie
    /// between the others and the samples, and would otherwise be part of what an average contains. Kernels with a schedule, or with an
    /// order of their own within a batch, have none.
    fn leading_iterations(&self) -> u64 {
        let is_plain =
            self.kernel.interval_ns().is_none() && self.kernel.batch().is_none_or(|batch| batch == 1);
        match self.effort {
            Effort::Fixed { warmup, .. } if is_plain => warmup / 2,
            _ => 0,
        }
    }

    /// Returns whether messages of the team move queues from which the samples take their time. Agreed starts adapt to all samples since the
    /// last decision.
    pub(crate) fn has_alignments(&self) -> bool {
        let team = self.session.team;
        self.kernel.has_rounds()
            && self.aggregation != Aggregation::Global
            && team.size() > 1
            && team.has_queues()
    }

    /// Agrees on the division of the samples into rounds.
    fn align(&mut self, warm_up: &WarmUp, batch: u64, first: u64) -> Result<()> {
        if !self.has_alignments() {
            return Ok(());
        }
        let sample_ns = warm_up.sample_ns / warm_up.batch as f64 * batch as f64;
        let affordable = match self.effort {
            Effort::Fixed { .. } => Affordable::Exactly(first),
            _ => Affordable::UpTo(stop::samples_within(self.max_time(), sample_ns).min(self.max_samples())),
        };
        let launch = self.session.plan.settings.launch.map(|launch| launch.order);
        let seed = alignment::seed(launch, &self.key);
        self.alignment.agree(self.session.team, affordable, seed)?;
        self.intervals.iter_mut().for_each(|intervals| intervals.rounds = self.alignment.rounds());
        Ok(())
    }

    /// Returns the nearest number of samples that are whole sets of rounds, at most `most`; it may be 0.
    fn whole(&self, samples: u64, most: u64) -> u64 {
        let spread = self.alignment.spread();
        ((samples + spread / 2) / spread * spread).min(most - most % spread)
    }

    /// Returns how many of the chosen samples are taken next: those that fit into the maximum time between two decisions, and into an
    /// interval whose figure the user wants; whole rounds. A schedule is not divided.
    fn part_of(&self, chosen: u64, sampling: &Sampling, sample_ns: f64) -> u64 {
        let part = match &self.intervals {
            Some(intervals) if chosen > 0 => intervals.part(chosen, sampling.spent, sample_ns),
            _ => chosen,
        };
        if self.kernel.interval_ns().is_some() {
            part
        } else {
            stop::part_of_round(part, sample_ns).next_multiple_of(self.alignment.round()).min(chosen)
        }
    }

    /// Returns the time for which a row is planned: that of its first round if the number of iterations is fixed.
    fn planned_ns(&self, first: u64, sample_ns: f64) -> f64 {
        match self.effort {
            Effort::Fixed { .. } => first as f64 * sample_ns,
            _ => self.max_time().max(self.session.plan.bounds.least_time).as_nanos() as f64,
        }
    }

    /// Times single iterations, from which percentiles come. Collective.
    fn sample_tail(&mut self, sampling: &mut Sampling) -> Result<()> {
        let team = self.session.team;
        let iteration_ns = sampling.spent.as_nanos() as f64 / sampling.iterations as f64;
        let affordable = self.effort.time().map_or(0, |time| stop::samples_within(time, iteration_ns));
        let least = self.session.plan.bounds.least_tail.min(affordable);
        let samples = stop::tail_samples(sampling.spent, iteration_ns).max(least).min(self.max_samples());
        let samples = team.broadcast_value(samples)?;
        if samples > 0 {
            let parts = self.alignment.divide(samples);
            let (round, wall) = self.round(1, &parts)?;
            extend(&mut sampling.tail, 1, None, collect(team, self.aggregation, round)?);
            let dropped: u64 = parts.iter().map(|part| part.dropped).sum();
            sampling.spent += Duration::from_nanos(wall).mul_f64(samples as f64 / (dropped + samples) as f64);
            sampling.wall += Duration::from_nanos(wall);
            sampling.iterations += samples;
            sampling.untimed += dropped;
            self.session.sink.event(&Event::Alive)?;
        }
        Ok(())
    }

    /// Compares what arrived, then runs many single iterations, each with a fresh pattern, and compares after each.
    ///
    /// A pattern of its own proves that the data moved in this iteration and not in an earlier one. `whole` such iterations show what
    /// the `operations` of one deliver. Returns the number of iterations that were checked so; `None` if another launch checks them.
    pub(crate) fn verify(
        &mut self,
        fill: Fill,
        whole: u64,
        operations: u64,
        sampling: &Sampling,
    ) -> Result<(Check, Option<u64>)> {
        let (team, verify) = (self.session.team, self.session.plan.verify);
        if verify == Verify::Off {
            return Ok((Check::Off, Some(0)));
        }
        team.barrier()?;
        team.read_buffers()?;
        let mut found = first_mismatch(team, self.kernel.check(fill)?)?;
        let launch = self.session.plan.settings.launch;
        let each = sampling.spent / sampling.iterations.clamp(1, u32::MAX.into()) as u32;
        let is_here =
            verify == Verify::Full || stop::is_checked_here(each, [whole, operations], launch, &self.key);
        // Ranks differ in the times that they have seen.
        if team.broadcast_value(is_here.into())? == 0 {
            return Ok((found, None));
        }
        let wanted = stop::checks_of_row(whole, operations, launch);
        let (start, mut checked, mut more) = (self.session.clock.mark(), 0, 1);
        while found == Check::Passed && more > 0 {
            let mut mine = Check::Passed;
            for _ in 0..more {
                checked += 1;
                let fresh = Fill { round: checked, iterations: 1, ..fill };
                team.barrier()?;
                self.begin(fresh)?;
                self.iterate(1)?;
                self.kernel.steps().end()?;
                team.barrier()?;
                team.read_buffers()?;
                mine = mine.and(self.kernel.check(fresh)?);
                self.session.sink.event(&Event::Alive)?;
            }
            found = first_mismatch(team, mine)?;
            let spent = Duration::from_nanos(start.elapsed_ns());
            let next = match verify {
                Verify::Full => sampling.iterations.saturating_sub(checked).min(checked).min(MOST_UNREPORTED),
                _ => stop::more_checks(checked, wanted, spent, sampling.spent),
            };
            more = team.broadcast_value(next)?;
        }
        Ok((found, Some(checked)))
    }

    /// Repeats iterations until those that are measured are done, then verifies. Collective over the ranks of the load.
    ///
    /// `bytes` is what all ranks send in an iteration.
    pub(crate) fn repeat(&mut self, background: &dyn Background, fill: Fill, bytes: u64) -> Result<()> {
        let team = self.session.team;
        // The first iteration opens connections.
        self.iterate(1)?;
        background.start()?;
        let (mut iterations, mut spent_ns, mut next) = (0, 0u64, 1);
        while next > 0 {
            let (_, wall_ns) = self.iterate(next)?;
            (iterations, spent_ns) = (iterations + next, spent_ns + wall_ns);
            self.session.sink.event(&Event::Alive)?;
            let fitting = (ROUND_NS * next / wall_ns.max(1)).clamp(1, 2 * next);
            next = team.broadcast_value(if background.is_over()? { 0 } else { fitting })?;
        }
        while !background.is_over()? {
            std::thread::yield_now();
        }
        self.kernel.steps().end()?;
        let last = Fill { iterations: iterations + 1, ..fill };
        let spent = Duration::from_nanos(spent_ns);
        let untimed =
            Sampling { iterations, spent, batch: 1, precision: f64::INFINITY, ..Sampling::default() };
        let (check, _) = self.verify(last, 1, 1, &untimed)?;
        background.ended(Repeated { bytes: bytes * iterations, spent_ns }, check);
        team.barrier()
    }

    /// Returns the iterations per sample and the number of samples of the first round.
    pub(crate) fn first_round(&self, warm_up: &WarmUp) -> (u64, u64) {
        let batch = warm_up.batch;
        match self.effort {
            Effort::Fixed { iterations, .. } => {
                let (samples, batch) = match self.session.plan.batch {
                    Some(chosen) => (iterations.div_ceil(chosen), chosen),
                    // A kernel that fixes its batch needs whole batches.
                    None if self.kernel.batch().is_some() => (iterations.div_ceil(batch), batch),
                    // The batch is sized so that the samples of a row last the minimum time.
                    None if !self.session.plan.bounds.least_time.is_zero() => {
                        (iterations.div_ceil(batch).max(stop::LEAST_FOR_INTERVAL), batch)
                    }
                    None => stop::divide(iterations, batch),
                };
                let sample_ns = warm_up.sample_ns / warm_up.batch as f64 * batch as f64;
                let affordable = |time| stop::samples_within(time, sample_ns).max(1);
                (
                    batch,
                    self.session.plan.bounds.most_time.map_or(samples, |time| samples.min(affordable(time))),
                )
            }
            Effort::Precision { .. } | Effort::Time(_) => {
                let max_time = self.max_time();
                let samples = match self.kernel.interval_ns() {
                    None => {
                        let least = self.least_samples(warm_up.sample_ns);
                        stop::first_round(warm_up.sample_ns, max_time, least)
                    }
                    Some(interval_ns) => {
                        let time = max_time.max(self.session.plan.bounds.least_time);
                        stop::scheduled_round(warm_up.sample_ns.max(interval_ns), time)
                            .max(self.session.plan.bounds.least_tail)
                    }
                };
                (batch, samples.min(self.max_samples()))
            }
        }
    }

    /// Returns the number of samples of the next round, or the reason for stopping. A minimum time and chosen percentiles come before
    /// any reason.
    fn next_round(&self, total: u64, sampling: &Sampling) -> std::result::Result<u64, Option<Ending>> {
        if self.kernel.interval_ns().is_some() {
            return Err(self
                .by_effort(total, sampling)
                .map_or_else(|ending| ending, |_| Some(Ending::OutOfBudget)));
        }
        let least = self.session.plan.bounds.least_time;
        let for_time = stop::samples_until(least, total, sampling.spent, self.max_samples());
        let next =
            match (self.by_effort(total, sampling), for_time.max(self.for_percentiles(total, sampling))) {
                (Err(_), more @ 1..) => Ok(more.next_multiple_of(self.alignment.spread())),
                (next, _) => next,
            };
        match self.whole(next?, self.max_samples().saturating_sub(total)) {
            0 => Err(match self.by_effort(total, sampling) {
                Err(ending) => ending,
                Ok(_) => (!matches!(self.effort, Effort::Time(_))).then_some(Ending::OutOfBudget),
            }),
            more => Ok(more),
        }
    }

    /// Returns how many single iterations the chosen percentiles lack and the time of the row allows. Batches have a pass of their own.
    fn for_percentiles(&self, total: u64, sampling: &Sampling) -> u64 {
        let Some(time) = self.effort.time().filter(|_| sampling.batch == 1) else { return 0 };
        let iteration_ns = sampling.spent.as_nanos() as f64 / total as f64;
        let affordable = stop::samples_within(time.saturating_sub(sampling.spent), iteration_ns);
        let most = affordable.min(self.max_samples().saturating_sub(total));
        self.session.plan.bounds.least_tail.saturating_sub(total).min(most)
    }

    /// Returns what the effort demands.
    fn by_effort(&self, total: u64, sampling: &Sampling) -> std::result::Result<u64, Option<Ending>> {
        let limits = stop::RowLimits { time: self.max_time(), samples: self.max_samples() };
        stop::next_by_effort(self.effort, total, sampling.spent, sampling.summary.as_ref(), limits)
    }

    /// Returns the minimum number of samples of this row.
    fn least_samples(&self, sample_ns: f64) -> u64 {
        let is_of_launches =
            matches!(self.effort, Effort::Time(_)) && self.session.plan.settings.launch.is_some();
        if is_of_launches { stop::least_of_launch(sample_ns) } else { stop::LEAST_FOR_INTERVAL }
    }

    /// Returns the time of sampling for this row.
    fn max_time(&self) -> Duration {
        self.effort.time().unwrap_or_default() / self.sharing
    }

    /// Returns the maximum number of samples of the row. Where every rank's samples are kept, they must fit into rank 0's memory
    /// and the result file.
    fn max_samples(&self) -> u64 {
        let clocks = if self.aggregation == Aggregation::Origin { 1 } else { self.session.team.size() };
        let most = match self.effort {
            Effort::Time(_) => stop::MOST_SAMPLES_OF_LAUNCH,
            _ => stop::MOST_SAMPLES,
        };
        (MAX_KEPT_SAMPLES / u64::from(clocks)).clamp(stop::LEAST_SAMPLES, most)
    }

    /// Runs iterations between two barriers. Returns their time on the slowest timed thread of this rank and the time until all
    /// ranks were done, in nanoseconds; the latter twice on a rank that is not timed.
    pub(crate) fn iterate(&mut self, iterations: u64) -> Result<(u64, u64)> {
        let batch = self.kernel.batch().unwrap_or(iterations);
        let (round, wall) = self.round(batch, &[Part::plain(iterations.div_ceil(batch))])?;
        Ok((round.iter().map(|thread| thread.elapsed_ns.iter().sum()).max().unwrap_or(wall), wall))
    }

    /// Runs parts one after the other. Returns the samples of each timed thread and the time until all ranks were done, in nanoseconds.
    pub(crate) fn round(&mut self, batch: u64, parts: &[Part]) -> Result<(Vec<RoundSamples>, u64)> {
        let Session { team, clock, .. } = *self.session;
        let kernel = &mut self.kernel;
        // The pages of the stamps are touched before timing starts.
        let mut stamps: Vec<Vec<Vec<u64>>> = parts
            .iter()
            .map(|part| match self.role {
                Role::Active => vec![vec![u64::MAX; kernel.readings(part.all()) as usize]; kernel.clocks()],
                Role::Passive => Vec::new(),
            })
            .collect();
        team.barrier()?;
        let start = clock.mark();
        let mut threads = vec![RoundSamples::default(); kernel.clocks()];
        for (part, stamps) in parts.iter().zip(&mut stamps) {
            part.shift.map_or(Ok(()), |messages| team.shift(messages))?;
            self.meter.iter_mut().for_each(|meter| meter.start());
            match self.role {
                Role::Active => kernel.timed(clock, batch, stamps)?,
                Role::Passive => kernel.answered(batch, part.all())?,
            }
            self.meter.iter_mut().for_each(|meter| meter.stop());
            // A kernel with agreed starts keeps them until the next part.
            for (thread, stamps) in threads.iter_mut().zip(stamps) {
                let mut samples = kernel.samples(clock, stamps);
                samples.skip(part.dropped as usize);
                thread.append(samples);
            }
        }
        team.barrier()?;
        let spent_ns = start.elapsed_ns();
        // A sample of several scheduled messages is a multiple of the mean interval, which may be longer than the round.
        let is_mean = kernel.interval_ns().is_some() && kernel.batch() > Some(1);
        let wall_ns = if is_mean { 0 } else { spent_ns };
        threads.iter_mut().for_each(|thread| thread.wall_ns = wall_ns);
        let is_timed = self.role == Role::Active;
        Ok((if is_timed { threads } else { Vec::new() }, spent_ns))
    }
}

#[cfg(test)]
mod tests;
