//! Functions that run the kernel of an entry in every case, on one thread or several.

use ombx_record::{
    error::{Error, Result},
    result::{Aggregation, Check, ConnectionCounters, Figures},
};

use crate::{
    benchmark::{Benchmark, Case, Context, Kernel, Role, SHARED_THREADS, Threading, payload::Fill},
    clock::{Clock, Reading},
    measure::{
        collect::RoundSamples,
        row::{self, KernelFactory, KernelKind},
        session::Session,
        timed_loop::{Iteration, answered, paced, timed},
        workers,
    },
    pacing::{paced_kernel::Start, sample_pacer::Starters},
    team::Team,
};

impl Benchmark {
    /// Returns an entry that runs kernel `K`, by default on one pair of ranks with 1 B to 4 MiB.
    #[track_caller]
    pub const fn new<K: Kernel>(name: &'static str, about: &'static str) -> Benchmark {
        Benchmark::custom(name, about, K::METRIC, K::METHOD, run::<K>)
    }

    /// Returns an entry that runs a kernel on several threads of each rank at the same time.
    #[track_caller]
    pub const fn threaded<K: Kernel + Send>(name: &'static str, about: &'static str) -> Benchmark {
        let entry = Benchmark::custom(name, about, K::METRIC, K::METHOD, run_threaded::<K>);
        entry.needing(Threading::Multiple).with(&[SHARED_THREADS])
    }
}

/// Opens a kernel for a case.
pub type OpenLoops<L = dyn Loops> = fn(&Context<'_>, &Case) -> Result<Box<L>>;

/// Runs a kernel in every case of a session. [`Benchmark::new`] registers it.
pub fn run<K: Kernel>(session: &mut Session<'_>) -> Result<()> {
    run_loops(session, const { KernelKind::new::<K>() }, open::<K>)
}

/// Runs kernel `K` in every case that it supports, and `L` in the others. Both use the same method.
pub fn run_either<K: Kernel, L: Kernel>(session: &mut Session<'_>) -> Result<()> {
    run_loops(session, const { KernelKind::new::<K>() }, |cx, case| {
        if K::supports(case) { open::<K>(cx, case) } else { open::<L>(cx, case) }
    })
}

/// Runs a kernel on several threads of each rank at the same time. [`Benchmark::threaded`] registers it.
pub fn run_threaded<K: Kernel + Send>(session: &mut Session<'_>) -> Result<()> {
    let open = |cx: &Context<'_>, case: &Case| workers::open_pool(cx, case, open_on_thread::<K>);
    row::every_case(session, &KernelFactory::new(const { KernelKind::new::<K>() }, &open))
}

/// Opens a kernel and forgets its type.
pub fn open<K: Kernel>(cx: &Context<'_>, case: &Case) -> Result<Box<dyn Loops>> {
    Ok(Box::new(K::open(cx, case)?))
}

/// Opens a kernel for a thread and forgets its type.
pub(crate) fn open_on_thread<K: Kernel + Send>(
    cx: &Context<'_>,
    case: &Case,
) -> Result<Box<dyn Loops + Send>> {
    Ok(Box::new(K::open(cx, case)?))
}

/// Runs kernels in every case of a session. Several pairs begin each sample together; one pair runs the plain loop.
fn run_loops(session: &mut Session<'_>, kind: KernelKind, open: OpenLoops) -> Result<()> {
    let (team, clock) = (session.team, session.clock);
    let open = |cx: &Context<'_>, case: &Case| -> Result<Box<dyn OpenKernel + '_>> {
        let kernel = open(cx, case);
        Ok(Box::new(if case.pairs == 1 {
            OneThread::chained(kernel?, None)
        } else {
            OneThread::together(cx.agree(kernel)?, (team, clock, cx.role))?
        }))
    };
    row::every_case(session, &KernelFactory::new(kind, &open))
}

/// Ends all ranks after an error of this rank alone. The caller has printed the message.
pub fn give_up(team: &dyn Team, error: &Error) -> ! {
    team.abort(error.kind().exit_code())
}

/// Steps of an open kernel outside its loops. The engine calls them through a trait object, so that it is compiled once.
pub trait Steps {
    /// Fills the buffers; see [`Kernel::fill`].
    fn fill(&mut self, fill: Fill) -> Result<()>;
    /// Opens what iterations need; see [`Kernel::begin`].
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    /// Closes what `begin` opened; see [`Kernel::end`].
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns figures in addition to times; see [`Kernel::figures`].
    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }
    /// Returns the counters of the connections; see [`Kernel::connections`].
    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        Ok(None)
    }
    /// Verifies what arrived; see [`Kernel::check`].
    fn check(&mut self, fill: Fill) -> Result<Check>;
    /// Releases the kernel; see [`Kernel::close`].
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl<K: Kernel> Steps for K {
    fn fill(&mut self, fill: Fill) -> Result<()> {
        Kernel::fill(self, fill)
    }

    fn begin(&mut self) -> Result<()> {
        Kernel::begin(self)
    }

    fn end(&mut self) -> Result<()> {
        Kernel::end(self)
    }

    fn figures(&mut self) -> Result<Figures> {
        Kernel::figures(self)
    }

    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        Kernel::connections(self)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Kernel::check(self, fill)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Kernel::close(*self)
    }
}

/// Samples whose start the ranks agree on.
pub trait PacedLoop {
    /// Times batches one by one; see `paced`.
    fn paced(&mut self, start: &mut dyn Start, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()>;
}

impl<I: Iteration> PacedLoop for I {
    fn paced(&mut self, start: &mut dyn Start, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
        let mut start = start;
        paced(self, &mut start, clock, batch, stamps)
    }
}

/// An open kernel with its timed loops, which alone are compiled for its type. Each is one dynamic call per round.
pub trait Loops: Steps + PacedLoop {
    /// Times batches back to back; see `timed`.
    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()>;
    /// Runs iterations on a rank that answers; see `answered`.
    fn answered(&mut self, iterations: u64) -> Result<()>;
}

impl<K: Kernel> Loops for K {
    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
        timed(self, clock, batch, stamps)
    }

    fn answered(&mut self, iterations: u64) -> Result<()> {
        answered(self, iterations)
    }
}

/// What the engine runs for a case: an open kernel, and how its samples start. The engine makes one dynamic call per round and none
/// per iteration.
pub trait OpenKernel {
    /// Returns the kernel.
    fn steps(&mut self) -> &mut dyn Steps;
    /// Returns the number of timed threads; each has its own stamps.
    fn clocks(&self) -> usize {
        1
    }
    /// Fills the buffers.
    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.steps().fill(fill)
    }
    /// Returns how the times of ranks are aggregated. `usual` is the aggregation of the layout.
    fn aggregation(&self, usual: Aggregation) -> Aggregation {
        usual
    }
    /// Returns the iterations per sample if the kernel fixes them; `None` if they are calibrated.
    fn batch(&self) -> Option<u64> {
        None
    }
    /// Returns the mean interval of samples that follow a schedule; `None` if each sample starts after the one before it. A schedule
    /// is run in one round, because queues form while requests follow one another.
    fn interval_ns(&self) -> Option<f64> {
        None
    }
    /// Returns the minimum time of a sample on rank 0, in nanoseconds. Collective.
    fn least_sample_ns(&mut self, _clock: &Clock) -> Result<f64> {
        Ok(0.0)
    }
    /// Returns the number of clock readings for `samples` samples.
    fn readings(&self, samples: u64) -> u64 {
        samples + 1
    }
    /// Prepares sampling with what the warm-up has shown. Called once, after the warm-up. Collective, untimed.
    fn warmed_up(&mut self, _clock: &Clock) -> Result<()> {
        Ok(())
    }
    /// Runs a round on a timed rank. Writes the clock readings of each thread to its stamps.
    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()>;
    /// Runs a round like [`OpenKernel::timed`] of the operation alone, if the kernel also times something else.
    fn timed_alone(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        self.timed(clock, batch, stamps)
    }
    /// Runs a round on a rank that answers.
    ///
    /// # Errors
    /// A usage error if the kernel times every rank.
    fn answered(&mut self, _batch: u64, _samples: u64) -> Result<()> {
        Err(Error::usage("this benchmark times every rank: give its entry Layout::Everyone"))
    }
    /// Converts the clock readings of one thread to samples.
    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        RoundSamples::chained(stamps.windows(2).map(|w| clock.nanos(w[0], w[1])).collect())
    }
    /// Returns figures in addition to times.
    fn figures(&mut self) -> Result<Figures> {
        self.steps().figures()
    }
    /// Verifies what arrived.
    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.steps().check(fill)
    }
    /// Releases the kernel.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// A kernel on one thread. Its samples follow one another, or the ranks of several pairs start each together.
pub struct OneThread<'k> {
    kernel: Box<dyn Loops>,
    /// Iterations per sample, if they are fixed.
    batch: Option<u64>,
    together: Option<Starters<'k>>,
}

impl<'k> OneThread<'k> {
    /// Wraps a kernel whose samples follow one another, with the iterations per sample if they are fixed.
    pub fn chained(kernel: Box<dyn Loops>, batch: Option<u64>) -> OneThread<'k> {
        OneThread { kernel, batch, together: None }
    }

    /// Wraps a kernel of one of several pairs. Collective.
    pub(crate) fn together(
        kernel: Box<dyn Loops>,
        (team, clock, role): (&'k dyn Team, &Clock, Role),
    ) -> Result<OneThread<'k>> {
        Ok(OneThread { kernel, batch: None, together: Some(Starters::open(team, clock, role)?) })
    }
}

impl OpenKernel for OneThread<'_> {
    fn steps(&mut self) -> &mut dyn Steps {
        &mut *self.kernel
    }

    fn batch(&self) -> Option<u64> {
        self.batch
    }

    fn least_sample_ns(&mut self, clock: &Clock) -> Result<f64> {
        self.together.as_ref().map_or(Ok(0.0), |starters| starters.least_sample_ns(clock))
    }

    fn readings(&self, samples: u64) -> u64 {
        if self.together.is_some() { 2 * samples } else { samples + 1 }
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        let Some(stamps) = stamps.first_mut() else { return Ok(()) };
        match &mut self.together {
            Some(starters) => self.kernel.paced(starters, clock, batch, stamps),
            None => self.kernel.timed(clock, batch, stamps),
        }
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        let Some(starters) = &self.together else { return self.kernel.answered(batch * samples) };
        for _ in 0..samples {
            starters.team.barrier()?;
            self.kernel.answered(batch)?;
        }
        Ok(())
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        match &self.together {
            Some(starters) => starters.samples(clock, stamps),
            None => RoundSamples::chained(stamps.windows(2).map(|w| clock.nanos(w[0], w[1])).collect()),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.kernel.close()
    }
}

/// A stopwatch that is never stopped, so that its laps add up to the whole time.
pub(crate) struct Stopwatch<'c> {
    start: Reading<'c>,
    /// Time of the last lap since the start, in nanoseconds.
    last_ns: u64,
}

impl<'c> Stopwatch<'c> {
    /// Starts a stopwatch.
    pub(crate) fn start(clock: &'c Clock) -> Stopwatch<'c> {
        Stopwatch { start: clock.mark(), last_ns: 0 }
    }

    /// Returns the nanoseconds since the last lap or the start.
    pub(crate) fn lap(&mut self) -> u64 {
        let now = self.start.elapsed_ns();
        now - std::mem::replace(&mut self.last_ns, now)
    }
}

#[cfg(test)]
mod phases_tests {
    use ombx_record::result::Phases;

    use super::*;

    #[test]
    fn laps_add_up_to_the_whole() {
        let (clock, hand) = Clock::manual(1);
        let mut laps = Stopwatch::start(&clock);
        let measured: Vec<u64> = [5, 0, 17].map(|ns| (hand.advance(ns), laps.lap()).1).into();
        assert_eq!(measured, [5, 0, 17]);
        let real = Clock::measured();
        let (whole, mut laps) = (real.mark(), Stopwatch::start(&real));
        let sum: u64 = (0..1000).map(|_| laps.lap()).sum();
        assert!(sum <= whole.elapsed_ns() && sum > 0);
    }

    #[test]
    fn named_phases_are_complete() {
        let phases = Phases {
            open_ns: 1,
            fill_ns: 2,
            warm_up_ns: 4,
            sample_ns: 8,
            decide_ns: 16,
            verify_ns: 32,
            close_ns: 64,
        };
        assert_eq!(phases.total_ns(), 127);
        assert_eq!(phases.plus(phases).named().map(|(_, ns)| ns), phases.named().map(|(_, ns)| 2 * ns));
    }
}
