//! Overlap of a nonblocking operation with computation: times of the operation, of the computation, and of both together.

use std::time::Duration;

use ombx_record::{
    error::Result,
    result::{ALONE, Aggregation, Check, ClockProperties, Figure, Figures, OVERLAPPING, interval_names},
    stats::Summary,
};

use crate::{
    benchmark::{
        Busy, Case, Context, Kernel, Method,
        cold::{Cold, Movable},
        payload::Fill,
    },
    clock::Clock,
    measure::{
        collect::RoundSamples,
        open_kernel::{OpenKernel, OpenLoops, Steps},
        row::{self, KernelFactory, KernelKind},
        session::Session,
        timed_loop::Iteration,
    },
    pacing::{mesh::Mesh, paced_kernel::PacedKernels, sample_pacer::SamplePacer, start::Pacing},
    team::Team,
};

crate::parameter! {
    /// Calls of MPI_Test during the computation that overlaps a nonblocking operation
    pub enum TestCalls: "tests", IfChosen, default None {
        /// No calls
        None = "0",
        /// One call
        One = "1",
        /// 10 calls
        Ten = "10",
        /// 100 calls
        Hundred = "100",
        /// 1000 calls
        Thousand = "1000",
    }
}

crate::parameter! {
    /// Computation between the start of a nonblocking operation and the wait for it
    pub enum Computation: "overlap", IfChosen, default Overlapped {
        /// Computation that lasts as long as the operation alone
        Overlapped = "measured",
        /// No computation: the operation alone
        None = "none",
    }
}

crate::parameter! {
    /// Times of the parts of a nonblocking operation that overlaps with computation
    pub enum Parts: "parts", IfChosen, default Off {
        /// No times of parts
        Off = "off",
        /// Times of its start, its tests and its wait, from samples of their own, and the least and largest time of a rank without computation
        On = "on",
    }
}

impl TestCalls {
    const fn count(self) -> u32 {
        match self {
            TestCalls::None => 0,
            TestCalls::One => 1,
            TestCalls::Ten => 10,
            TestCalls::Hundred => 100,
            TestCalls::Thousand => 1000,
        }
    }
}

/// A nonblocking operation. As a kernel, it starts the operation and waits for it without computation in between.
pub trait Overlappable: Kernel {
    /// Work that keeps the CPU busy without calls of the library.
    type Computation: Busy;

    /// Returns work that takes the given time.
    fn computation(&self, time: Duration) -> Self::Computation;
    /// Starts the operation, runs `slice`, tests the operation and runs `slice` again `tests` times, and waits.
    fn overlapped(&mut self, tests: u32, slice: impl FnMut()) -> Result<()>;
}

impl<N: Overlappable + Movable> Overlappable for Cold<N> {
    type Computation = N::Computation;

    fn computation(&self, time: Duration) -> N::Computation {
        self.kernel.computation(time)
    }

    #[inline(always)]
    fn overlapped(&mut self, tests: u32, slice: impl FnMut()) -> Result<()> {
        self.kernel.overlapped(tests, slice)?;
        self.advance();
        Ok(())
    }
}

/// Description of the method, for registry entries.
pub const METHOD: Method = Method {
    timed: "starting the operation, computation that lasts as long as the operation alone, with --tests \
            calls of MPI_Test in between, and waiting for the operation; with --overlap none the start and \
            the wait alone",
    untimed: "the operation alone (pure_us) and the computation alone (compute_us), which alternate with the samples; \
              buffers, filling and checking them",
    like: "osu_i*, which calibrates the computation of each rank to that rank's time; ombx uses the slowest rank's; \
           --overlap none: the benchmarks of IMB-NBC whose names end with _pure",
};

/// Number of samples of a phase before the next phase takes its turn. A multiple of the samples per agreed start of a window.
const SAMPLES_PER_TURN: usize = 20;
/// Samples of the operation alone from which the length of the computation is calibrated: at a time, and in all.
const CALIBRATION: (u64, usize) = (3, 30);
/// Time after which calibration ends with fewer samples.
const CALIBRATION_NS: u64 = 10_000_000;
/// Maximum half width of the interval of an overlap that is reported, in percentage points.
const MAX_HALF_WIDTH: f64 = 25.0;

/// Measures a nonblocking operation in every case of a session.
///
/// Three phases alternate, each with its own samples: the operation alone, a computation as long as the median of the operation,
/// and both together. The time of the row is that of both together.
pub fn run<N: Overlappable, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    run_phases::<M>(session, const { KernelKind::new::<N>() }, |cx, case| {
        let operation = N::open(cx, case)?;
        Ok(Box::new(OpenOperation { slice: operation.computation(Duration::ZERO), operation }))
    })
}

fn run_phases<M: Mesh>(
    session: &mut Session<'_>,
    kind: KernelKind,
    open: OpenLoops<dyn PhaseLoops<M>>,
) -> Result<()> {
    session.split(|session, pace: Pacing| {
        let (team, facts) = (session.team, session.clock.facts());
        let pacing = PacedKernels::<M>::new(session, pace);
        let open = |cx: &Context<'_>, case: &Case| -> Result<Box<dyn OpenKernel + '_>> {
            // Opening pacers is collective: all ranks agree first that the operation is open.
            let operation = cx.agree(open(cx, case))?;
            let pacer = || pacing.pacer(cx, case);
            Ok(Box::new(Phases {
                team,
                facts,
                legs: (kind.work)(case).legs,
                operation,
                tests: case.get::<TestCalls>().count(),
                parts: (case.get::<Parts>() == Parts::On).then(PartTimes::default),
                pacers: [pacer()?, pacer()?, pacer()?],
                taken: Default::default(),
                round: RoundSamples::default(),
                batch: 1,
                done: 0,
                verifying: false,
            }))
        };
        row::every_case(session, &KernelFactory::new(kind, &open))
    })
}

/// One operation in three phases that take turns: alone, computation alone, and both. The samples of the row are those of both.
///
/// All phases use the same buffers, so that only the computation distinguishes them.
struct Phases<'a, M> {
    team: &'a dyn Team,
    facts: ClockProperties,
    legs: u64,
    operation: Box<dyn PhaseLoops<M>>,
    tests: u32,
    /// Sums of a fourth phase, if it was asked for.
    parts: Option<PartTimes>,
    /// Pacing of each phase.
    pacers: [SamplePacer<'a, M>; 3],
    /// Samples of each phase since the warm-up.
    taken: [RoundSamples; 3],
    /// Samples of both phases together in this round.
    round: RoundSamples,
    /// Iterations per sample.
    batch: u64,
    /// Operations since the buffers were filled.
    done: u64,
    /// Whether the next iteration is the one that is verified. It does not take turns.
    verifying: bool,
}

/// What a phase times.
enum Phase<'t> {
    Operation,
    Computation,
    Both,
    /// Both, with the times of the parts.
    InParts(&'t mut PartTimes),
}

/// Loops of an open operation and its computation.
trait PhaseLoops<M> {
    fn steps(&mut self) -> &mut dyn Steps;
    /// Sets the time of a slice of the computation.
    fn set_slice(&mut self, time: Duration);
    /// Times as many samples of a phase as there is room for, of `batch` iterations each. Collective.
    fn timed(
        &mut self,
        phase: Phase<'_>,
        tests: u32,
        pacer: &mut SamplePacer<'_, M>,
        clock: &Clock,
        batch: u64,
        stamps: &mut [u64],
    ) -> Result<()>;
    fn close(self: Box<Self>) -> Result<()>;
}

/// An open operation, and a slice of the computation that it overlaps with.
struct OpenOperation<N: Overlappable> {
    operation: N,
    slice: N::Computation,
}

impl<N: Overlappable, M: Mesh> PhaseLoops<M> for OpenOperation<N> {
    fn steps(&mut self) -> &mut dyn Steps {
        &mut self.operation
    }

    fn set_slice(&mut self, time: Duration) {
        self.slice = self.operation.computation(time);
    }

    fn timed(
        &mut self,
        phase: Phase<'_>,
        tests: u32,
        pacer: &mut SamplePacer<'_, M>,
        clock: &Clock,
        batch: u64,
        stamps: &mut [u64],
    ) -> Result<()> {
        let OpenOperation { operation, slice } = self;
        let slice = &*slice;
        match phase {
            Phase::Operation => pacer.timed(operation, clock, batch, stamps),
            Phase::Computation => pacer.timed(&mut ComputationAlone { slice, tests }, clock, batch, stamps),
            Phase::Both => pacer.timed(&mut Overlapped { operation, slice, tests }, clock, batch, stamps),
            Phase::InParts(times) => {
                let overlapped = Overlapped { operation, slice, tests };
                pacer.timed(&mut InParts { overlapped, clock, times }, clock, batch, stamps)
            }
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.operation.close()
    }
}

/// Computation alone, in as many slices as when it overlaps.
struct ComputationAlone<'v, C> {
    slice: &'v C,
    tests: u32,
}

impl<C: Busy> Iteration for ComputationAlone<'_, C> {
    #[inline(always)]
    fn iterate(&mut self) -> Result<()> {
        for _ in 0..=self.tests {
            self.slice.run();
        }
        Ok(())
    }
}

/// Operation and computation together.
struct Overlapped<'v, N: Overlappable> {
    operation: &'v mut N,
    slice: &'v N::Computation,
    tests: u32,
}

impl<N: Overlappable> Iteration for Overlapped<'_, N> {
    #[inline(always)]
    fn prepare(&mut self) -> Result<()> {
        self.operation.rewind()
    }

    #[inline(always)]
    fn iterate(&mut self) -> Result<()> {
        let slice = self.slice;
        self.operation.overlapped(self.tests, || slice.run())
    }
}

/// Times of the parts of overlapped operations, in nanoseconds, summed over iterations.
#[derive(Debug, Clone, Copy, Default)]
struct PartTimes {
    start: u64,
    tests: u64,
    wait: u64,
    iterations: u64,
}

/// Operation and computation together, with readings of the clock around each slice of the computation.
struct InParts<'v, N: Overlappable> {
    overlapped: Overlapped<'v, N>,
    clock: &'v Clock,
    times: &'v mut PartTimes,
}

impl<N: Overlappable> Iteration for InParts<'_, N> {
    fn prepare(&mut self) -> Result<()> {
        self.overlapped.prepare()
    }

    fn iterate(&mut self) -> Result<()> {
        let InParts { overlapped: Overlapped { operation, slice, tests }, clock, times } = self;
        let (mut last, mut is_first) = (clock.mark(), true);
        operation.overlapped(*tests, || {
            let part = if is_first { &mut times.start } else { &mut times.tests };
            *part += last.elapsed_ns();
            is_first = false;
            slice.run();
            last = clock.mark();
        })?;
        times.wait += last.elapsed_ns();
        times.iterations += 1;
        Ok(())
    }
}

impl<M: Mesh> Phases<'_, M> {
    /// Times a phase with one of the pacers.
    fn phase(
        &mut self,
        phase: Phase<'_>,
        pacer: usize,
        clock: &Clock,
        batch: u64,
        stamps: &mut [u64],
    ) -> Result<RoundSamples> {
        if !matches!(phase, Phase::Computation) {
            self.done += batch * stamps.len() as u64 / SamplePacer::<M>::readings(1);
        }
        let pacer = &mut self.pacers[pacer];
        self.operation.timed(phase, self.tests, pacer, clock, batch, &mut *stamps)?;
        Ok(pacer.samples(clock, stamps))
    }

    /// Returns the figures of the parts: means over ranks of means, and the ends over ranks of the mean time of the operation alone.
    /// Only rank 0 has them. Collective.
    fn part_figures(&self, alone: &RoundSamples) -> Result<Figures> {
        let Some(times) = self.parts else { return Ok(Figures::new()) };
        let mean = |sum: u64, count: usize| sum as f64 / count.max(1) as f64 / 1e3;
        let count = times.iterations as usize;
        let pure = mean(alone.elapsed_ns.iter().sum(), alone.elapsed_ns.len());
        let mine = [mean(times.start, count), mean(times.tests, count), mean(times.wait, count), pure];
        let all: Option<Vec<[f64; 4]>> = self.team.gather_messages(&mine)?;
        let Some(all) = all else { return Ok(Figures::new()) };
        let over_ranks = |part: usize| all.iter().map(move |times| times[part]);
        let mean = |part| over_ranks(part).sum::<f64>() / all.len() as f64;
        let figures = [
            ("init_us", mean(0)),
            ("test_us", mean(1)),
            ("wait_us", mean(2)),
            ("pure_min_us", over_ranks(3).fold(f64::INFINITY, f64::min)),
            ("pure_max_us", over_ranks(3).fold(0.0, f64::max)),
        ];
        Ok(figures.map(|(name, us)| (name.to_owned(), Figure::Value(us))).into())
    }
}

impl<M: Mesh> OpenKernel for Phases<'_, M> {
    fn steps(&mut self) -> &mut dyn Steps {
        self.operation.steps()
    }

    fn aggregation(&self, usual: Aggregation) -> Aggregation {
        self.pacers[2].aggregation(usual)
    }

    fn batch(&self) -> Option<u64> {
        Some(1)
    }

    fn readings(&self, samples: u64) -> u64 {
        SamplePacer::<M>::readings(samples)
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        (self.done, self.verifying) = (0, fill.round > 0);
        self.steps().fill(fill)
    }

    /// Makes the computation as long as the operation, which the warm-up has run without computation.
    fn warmed_up(&mut self, clock: &Clock) -> Result<()> {
        let (start, mut alone) = (clock.mark(), RoundSamples::default());
        let mut more = 1;
        while more > 0 {
            let mut stamps = vec![u64::MAX; SamplePacer::<M>::readings(CALIBRATION.0) as usize];
            alone.append(self.phase(Phase::Operation, 0, clock, 1, &mut stamps)?);
            let enough = alone.elapsed_ns.len() >= CALIBRATION.1 || start.elapsed_ns() > CALIBRATION_NS;
            more = self.team.broadcast_value(u64::from(!enough))?;
        }
        let pure = self.pacers[0].summarise(self.team, 1, self.legs, self.facts, alone)?;
        let time = self.team.broadcast_value(pure.map_or(0.0, |pure| pure.median) as u64)?;
        self.operation.set_slice(Duration::from_nanos(time) / (self.tests + 1));
        self.taken = Default::default();
        self.parts = self.parts.map(|_| PartTimes::default());
        Ok(())
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        self.batch = batch;
        for stamps in stamps {
            for stamps in stamps.chunks_mut(SamplePacer::<M>::readings(SAMPLES_PER_TURN as u64) as usize) {
                if !self.verifying {
                    let pure = self.phase(Phase::Operation, 0, clock, batch, &mut *stamps)?;
                    self.taken[0].append(pure);
                    let compute = self.phase(Phase::Computation, 1, clock, batch, &mut *stamps)?;
                    self.taken[1].append(compute);
                    if let Some(mut times) = self.parts {
                        self.phase(Phase::InParts(&mut times), 2, clock, batch, &mut *stamps)?;
                        self.parts = Some(times);
                    }
                }
                let overall = self.phase(Phase::Both, 2, clock, batch, &mut *stamps)?;
                self.round.append(overall);
            }
        }
        Ok(())
    }

    fn timed_alone(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        let Phases { operation, pacers: [pacer, ..], tests, .. } = self;
        let mut timed =
            |stamps: &mut Vec<u64>| operation.timed(Phase::Operation, *tests, pacer, clock, batch, stamps);
        stamps.iter_mut().try_for_each(&mut timed)
    }

    fn has_rounds(&self) -> bool {
        false
    }

    fn samples(&mut self, _: &Clock, _: &[u64]) -> RoundSamples {
        let round = std::mem::take(&mut self.round);
        self.taken[2].append(round.clone());
        round
    }

    fn figures(&mut self) -> Result<Figures> {
        let mut figures = self.steps().figures()?;
        figures.extend(self.pacers[2].figures()?);
        let taken = std::mem::take(&mut self.taken);
        figures.extend(self.part_figures(&taken[0])?);
        let mut summaries =
            self.pacers.iter().zip(taken).map(|(pacer, samples)| {
                pacer.summarise(self.team, self.batch, self.legs, self.facts, samples)
            });
        let mut next = || summaries.next().unwrap_or(Ok(None));
        if let [Some(pure), Some(compute), Some(overall)] = [next()?, next()?, next()?] {
            let us = |summary: &Summary| Figure::Value(summary.median / 1e3);
            figures.insert(ALONE.into(), us(&pure));
            figures.insert(OVERLAPPING.into(), us(&compute));
            let ends = interval_names(ALONE).zip(pure.ci95).map(|(names, ends)| names.into_iter().zip(ends));
            figures.extend(ends.into_iter().flatten().map(|(name, ns)| (name, Figure::Value(ns / 1e3))));
            figures.extend(overlap(&pure, &compute, &overall, self.facts));
        }
        Ok(figures)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let fill = Fill { iterations: self.done, ..fill };
        self.steps().check(fill)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.operation.close()
    }
}

/// Returns the overlap and the ends of its interval, or the reason why the samples do not resolve it.
fn overlap(pure: &Summary, compute: &Summary, overall: &Summary, clock: ClockProperties) -> Figures {
    match overlap_percent(pure, compute, overall, clock) {
        Err(why) => Figures::from([("overlap_percent".into(), Figure::Unresolved(why))]),
        Ok(Overlap { percent, half_width }) => {
            // `interval_names` of core defines the names.
            let all = [
                ("overlap_percent", percent),
                ("overlap_low_percent", percent - half_width),
                ("overlap_high_percent", percent + half_width),
            ];
            all.map(|(name, percent)| (name.to_owned(), Figure::Value(percent.max(0.0)))).into()
        }
    }
}

/// Overlap as the OSU benchmarks define it, before negative values become 0, and half the width of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    /// 100 - 100 (overall - compute) / pure.
    pub percent: f64,
    /// In percentage points.
    pub half_width: f64,
}

/// Returns the overlap with the interval that follows from the intervals of the three times, as of independent errors.
///
/// # Errors
/// The reason why the samples do not resolve the overlap.
pub fn overlap_percent(
    pure: &Summary,
    compute: &Summary,
    overall: &Summary,
    clock: ClockProperties,
) -> std::result::Result<Overlap, String> {
    if pure.median <= clock.resolution_ns as f64 {
        return Err(format!(
            "the operation alone takes at most the resolution of the clock, {} ns",
            clock.resolution_ns
        ));
    }
    let half = |summary: &Summary| summary.ci95.map(|[low, high]| (high - low) / 2.0);
    let [Some(of_pure), Some(of_compute), Some(of_overall)] = [pure, compute, overall].map(half) else {
        return Err("one of the three times of the overlap has no 95% interval: raise --max-time".into());
    };
    let exposed = (overall.median - compute.median) / pure.median;
    let error = of_overall.hypot(of_compute).hypot(exposed * of_pure);
    let overlap = Overlap { percent: 100.0 - 100.0 * exposed, half_width: 100.0 * error / pure.median };
    if overlap.half_width > MAX_HALF_WIDTH {
        return Err(format!(
            "the overlap is {:.0} % with an error of {:.0} points, more than {MAX_HALF_WIDTH:.0}: raise --max-time",
            overlap.percent, overlap.half_width
        ));
    }
    Ok(overlap)
}

#[cfg(test)]
mod tests;
