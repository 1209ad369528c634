//! Kernels whose ranks are synchronised before each sample.

use std::{cell::RefCell, rc::Rc, time::Duration};

use crate::{
    benchmark::{
        Aggregation, Benchmark, Case, Context, Figures, Groups, Kernel, Layout, ParameterValue,
        payload::{Check, Fill},
    },
    error::{Error, Result},
    measure::{
        collect::RoundSamples,
        opened::OpenKernel,
        row::{self, KernelFactory},
        session::Session,
    },
    pacing::{
        clock_sync::{ClockSync, SyncHosts, learning_time},
        mesh::Mesh,
        one_way::one_way_ns,
        pace::Pacing,
        sample_pacer::SamplePacer,
        windows::{SharedClockSync, WindowPacing},
    },
    system::clock::Clock,
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

/// Runs all cases of a kernel with each selected method of [`Pacing`]. [`Benchmark::paced`] registers this function.
pub fn run_paced<K: Kernel, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    // The ranks of a group may be nearer than rank 0 and the farthest rank of all.
    let floor_ns = match session.bench.one_way && session.get::<Groups>().is_one() {
        true => one_way_ns::<M>(session.team, session.clock)?,
        false => None,
    };
    session.split(|session, pace: Pacing| {
        let pacing = PacedKernels::<M>::of(session, pace);
        // Clock synchronisation is collective: all ranks agree first that the kernel is open.
        let open = |cx: &Context<'_>, case: &Case| pacing.opened(cx, case, cx.agree(K::open(cx, case))?);
        row::every_case(session, &KernelFactory { floor_ns, ..KernelFactory::of::<K>(&open) })
    })
}

/// One pacing method for all cases of a session; clocks are synchronised once per session.
pub struct PacedKernels<'a, M> {
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
    pub fn of(session: &Session<'a>, pace: Pacing) -> PacedKernels<'a, M> {
        PacedKernels {
            pace,
            team: session.team,
            clock: session.clock,
            learning: learning_time(session.plan.effort.time()),
            synchronised: RefCell::default(),
        }
    }

    /// Wraps an open kernel so that each of its samples is paced. Collective.
    pub fn opened<'k, K: Kernel + 'k>(
        &self,
        cx: &Context<'_>,
        case: &Case,
        kernel: K,
    ) -> Result<Box<dyn OpenKernel + 'k>>
    where
        'a: 'k,
        M: 'k,
    {
        Ok(Box::new(Paced { kernel, pacer: self.pacer(cx, case)? }))
    }

    /// Opens what paces the samples of a case. Collective.
    pub fn pacer(&self, cx: &Context<'_>, case: &Case) -> Result<SamplePacer<'a, M>> {
        let windows = match self.pace {
            Pacing::Window => Some(WindowPacing::open(self.team, self.clocks(case.get())?)?),
            _ => None,
        };
        SamplePacer::open(cx, self.pace, windows)
    }

    /// Returns the synchronised clocks. Synchronises them if necessary, which is collective.
    fn clocks(&self, hosts: SyncHosts) -> Result<SharedClockSync<'a, M>> {
        let known = self.synchronised.borrow().clone().filter(|(known, _)| *known == hosts);
        if let Some((_, sync)) = known {
            return Ok(sync);
        }
        let sync = ClockSync::new(&Context::of(self.team), self.clock, hosts, self.learning)?;
        let sync = Rc::new(RefCell::new(sync));
        *self.synchronised.borrow_mut() = Some((hosts, Rc::clone(&sync)));
        Ok(sync)
    }
}

struct Paced<'k, K, M> {
    kernel: K,
    pacer: SamplePacer<'k, M>,
}

impl<K: Kernel, M: Mesh> OpenKernel for Paced<'_, K, M> {
    fn clocks(&self) -> usize {
        1
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

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.kernel.fill(fill)
    }

    fn begin(&mut self) -> Result<()> {
        self.kernel.begin()
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        let Paced { kernel, pacer } = self;
        stamps.iter_mut().try_for_each(|stamps| pacer.timed(kernel, clock, batch, stamps))
    }

    fn answered(&mut self, _: u64, _: u64) -> Result<()> {
        Err(Error::usage("a paced benchmark times every rank: give its entry Layout::Everyone"))
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        self.pacer.samples(clock, stamps)
    }

    fn end(&mut self) -> Result<()> {
        self.kernel.end()
    }

    fn figures(&mut self) -> Result<Figures> {
        let mut figures = self.kernel.figures()?;
        figures.extend(self.pacer.figures()?);
        Ok(figures)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.kernel.check(fill)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.kernel.close()
    }
}
