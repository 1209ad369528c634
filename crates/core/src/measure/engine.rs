//! Functions that run the kernel of an entry in every case, on one thread or several.

use ombx_record::error::{Error, Result};

use crate::{
    benchmark::{Benchmark, Case, Context, Kernel, Role, SHARED_THREADS, Threading},
    clock::Clock,
    measure::{
        collect::RoundSamples,
        open_kernel::{Loops, OpenKernel, OpenLoops, Steps, open, open_on_thread},
        row::{self, KernelFactory, KernelKind},
        session::Session,
        workers,
    },
    pacing::sample_pacer::Starters,
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
