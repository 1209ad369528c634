//! Kernels whose ranks are synchronised before each sample.

use std::{cell::RefCell, rc::Rc, time::Duration};

use ombx_record::{
    error::Result,
    result::{Aggregation, Figures},
};

use crate::{
    benchmark::{Benchmark, Case, Context, Groups, Kernel, Layout, ParameterValue},
    clock::Clock,
    measure::{
        collect::RoundSamples,
        open_kernel::{OpenKernel, OpenLoops, Steps},
        row::{self, KernelFactory, KernelKind},
        session::Session,
    },
    pacing::{
        clock_sync::{ClockSync, SyncHosts, learning_time},
        mesh::Mesh,
        one_way::one_way_ns,
        sample_pacer::{BarrierLoop, SamplePacer},
        start::Pacing,
        windows::{SharedClockSync, WindowPacing},
    },
    team::Team,
};

impl Benchmark {
    /// Returns the entry of a kernel whose ranks are all timed, and are synchronised before each sample over a mesh.
    ///
    /// It needs two ranks and has the parameters [`Pacing`] and [`SyncHosts`].
    #[track_caller]
    pub const fn paced<K: Kernel, M: Mesh>(name: &'static str, about: &'static str) -> Benchmark {
        let entry = Benchmark::custom(name, about, K::METRIC, K::METHOD, run_paced::<K, M>);
        entry.layout(Layout::Everyone { least: 2 }).with(&[Pacing::PARAMETER, SyncHosts::PARAMETER])
    }
}

/// An open kernel whose samples are paced over a mesh.
pub(crate) trait PacedLoops<M>: Steps + BarrierLoop<M> {}

impl<K: Kernel, M: Mesh> PacedLoops<M> for K {}

/// Runs all cases of a kernel with each selected method of [`Pacing`]. [`Benchmark::paced`] registers this function.
pub fn run_paced<K: Kernel, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    run_loops::<M>(session, const { KernelKind::new::<K>() }, |cx, case| Ok(Box::new(K::open(cx, case)?)))
}

fn run_loops<M: Mesh>(
    session: &mut Session<'_>,
    kind: KernelKind,
    open: OpenLoops<dyn PacedLoops<M>>,
) -> Result<()> {
    // The ranks of a group may be nearer than rank 0 and the farthest rank of all.
    let floor_ns = if session.bench.one_way && session.get::<Groups>().is_one() {
        one_way_ns::<M>(session.team, session.clock)?
    } else {
        None
    };
    session.split(|session, pace: Pacing| {
        let pacing = PacedKernels::<M>::new(session, pace);
        let open = |cx: &Context<'_>, case: &Case| -> Result<Box<dyn OpenKernel + '_>> {
            // Clock synchronisation is collective: all ranks agree first that the kernel is open.
            let kernel = cx.agree(open(cx, case))?;
            Ok(Box::new(Paced { kernel, pacer: pacing.pacer(cx, case)? }))
        };
        row::every_case(session, &KernelFactory { floor_ns, ..KernelFactory::new(kind, &open) })
    })
}

/// One pacing method for all cases of a session; clocks are synchronised once per session.
pub(crate) struct PacedKernels<'a, M> {
    pace: Pacing,
    team: &'a dyn Team,
    clock: &'a Clock,
    /// Time over which clock synchronisation learns drift.
    learning: Duration,
    /// The synchronised clocks, with the value of [`SyncHosts`] that they were synchronised for.
    synchronised: RefCell<Option<(SyncHosts, SharedClockSync<'a, M>)>>,
}

impl<'a, M: Mesh> PacedKernels<'a, M> {
    /// Does not synchronise clocks yet: the first case that needs them does.
    pub(crate) fn new(session: &Session<'a>, pace: Pacing) -> PacedKernels<'a, M> {
        PacedKernels {
            pace,
            team: session.team,
            clock: session.clock,
            learning: learning_time(session.plan.effort.time()),
            synchronised: RefCell::default(),
        }
    }

    /// Opens what paces the samples of a case. Collective.
    pub(crate) fn pacer(&self, cx: &Context<'_>, case: &Case) -> Result<SamplePacer<'a, M>> {
        let windows = if self.pace == Pacing::Window {
            Some(WindowPacing::open(self.team, self.clocks(case.get())?)?)
        } else {
            None
        };
        SamplePacer::open(cx, self.pace, windows)
    }

    /// Returns the synchronised clocks. Synchronises them if necessary, which is collective.
    fn clocks(&self, hosts: SyncHosts) -> Result<SharedClockSync<'a, M>> {
        let known = self.synchronised.borrow().clone().filter(|(known, _)| *known == hosts);
        if let Some((_, sync)) = known {
            return Ok(sync);
        }
        let sync = ClockSync::new(&Context::new(self.team), self.clock, hosts, self.learning)?;
        let sync = Rc::new(RefCell::new(sync));
        *self.synchronised.borrow_mut() = Some((hosts, Rc::clone(&sync)));
        Ok(sync)
    }
}

/// A kernel whose samples are paced.
struct Paced<'k, M> {
    kernel: Box<dyn PacedLoops<M>>,
    pacer: SamplePacer<'k, M>,
}

impl<M: Mesh> OpenKernel for Paced<'_, M> {
    fn steps(&mut self) -> &mut dyn Steps {
        &mut *self.kernel
    }

    fn batch(&self) -> Option<u64> {
        Some(1)
    }

    fn readings(&self, samples: u64) -> u64 {
        SamplePacer::<M>::readings(samples)
    }

    fn aggregation(&self, usual: Aggregation) -> Aggregation {
        self.pacer.aggregation(usual)
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        let Paced { kernel, pacer } = self;
        stamps.iter_mut().try_for_each(|stamps| pacer.timed(&mut **kernel, clock, batch, stamps))
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        self.pacer.samples(clock, stamps)
    }

    fn figures(&mut self) -> Result<Figures> {
        let mut figures = self.kernel.figures()?;
        figures.extend(self.pacer.figures()?);
        Ok(figures)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.kernel.close()
    }
}
