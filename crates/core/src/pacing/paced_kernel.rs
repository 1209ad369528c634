//! Kernels whose ranks are synchronised before each sample.

use std::{cell::RefCell, rc::Rc};

use crate::{
    benchmark::{
        Aggregation, AxisValue, Benchmark, Case, Context, Figures, Kernel, Layout,
        payload::{Check, Fill},
    },
    error::{Error, Result},
    measure::{
        collect::RoundSamples,
        opened::OpenKernel,
        row::{self, KernelFactory},
        session::Session,
        timed_loop::paced,
    },
    pacing::{
        clock_sync::{ClockSync, SyncHosts},
        mesh::Mesh,
        one_way::one_way_ns,
        pace::{self, Pacer, Pacing},
        windows::{SharedClockSync, WindowPacing},
    },
    system::clock::Clock,
    team::Team,
};

impl Benchmark {
    /// Returns the entry of a kernel whose ranks are all timed, and are synchronised before each sample over a mesh.
    ///
    /// It needs two ranks and has the axes [`Pacing`] and [`SyncHosts`], unless later calls change that.
    #[track_caller]
    pub const fn paced<K: Kernel, M: Mesh>(name: &'static str, about: &'static str) -> Benchmark {
        let entry = Benchmark::custom(name, about, K::METRIC, K::METHOD, run_paced::<K, M>);
        Benchmark { layout: Layout::Everyone { least: 2 }, axes: &[Pacing::AXIS, SyncHosts::AXIS], ..entry }
    }
}

/// Runs all cases of a kernel with each selected method of [`Pacing`]. [`Benchmark::paced`] registers this function.
pub fn run_paced<K: Kernel, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let floor_ns = match session.bench.one_way {
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
    /// The synchronised clocks, with the value of [`SyncHosts`] that they were synchronised for.
    synchronised: RefCell<Option<(SyncHosts, SharedClockSync<'a, M>)>>,
}

impl<'a, M: Mesh> PacedKernels<'a, M> {
    /// Does not synchronise clocks yet: the first case that needs them does.
    pub fn of(session: &Session<'a>, pace: Pacing) -> PacedKernels<'a, M> {
        PacedKernels { pace, team: session.team, clock: session.clock, synchronised: RefCell::default() }
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
        let sample_loop: SampleLoop<K, M> = match self.pace {
            Pacing::Window => paced::<K, pace::Window, M>,
            Pacing::Dissemination => paced::<K, pace::Dissemination, M>,
            Pacing::Barrier => paced::<K, pace::Barrier, M>,
        };
        let pacer = Pacer::<M>::open(cx)?;
        let windows = match self.pace {
            Pacing::Window => Some(WindowPacing::open(self.team, self.clocks(case.choice())?)?),
            _ => None,
        };
        Ok(Box::new(Paced { kernel, pacer, windows, sample_loop }))
    }

    /// Returns the synchronised clocks. Synchronises them if necessary, which is collective.
    fn clocks(&self, hosts: SyncHosts) -> Result<SharedClockSync<'a, M>> {
        let known = self.synchronised.borrow().clone().filter(|(known, _)| *known == hosts);
        if let Some((_, sync)) = known {
            return Ok(sync);
        }
        let sync = ClockSync::new(&Context::of(self.team), self.clock, hosts)?;
        let sync = Rc::new(RefCell::new(sync));
        *self.synchronised.borrow_mut() = Some((hosts, Rc::clone(&sync)));
        Ok(sync)
    }
}

/// Timed loop of one kernel with one pacing method.
type SampleLoop<K, M> = fn(&mut K, &mut Pacer<M>, &Clock, u64, &mut [u64]) -> Result<()>;

struct Paced<'k, K, M> {
    kernel: K,
    pacer: Pacer<M>,
    windows: Option<WindowPacing<'k, M>>,
    sample_loop: SampleLoop<K, M>,
}

impl<K: Kernel, M: Mesh> OpenKernel for Paced<'_, K, M> {
    fn clocks(&self) -> usize {
        1
    }

    fn batch(&self) -> Option<u64> {
        Some(1)
    }

    fn readings(&self, samples: u64) -> u64 {
        2 * samples
    }

    fn aggregation(&self, usual: Aggregation) -> Aggregation {
        if self.windows.is_some() { Aggregation::Global } else { usual }
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.kernel.fill(fill)
    }

    fn begin(&mut self) -> Result<()> {
        self.kernel.begin()
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        let Paced { kernel, pacer, windows, sample_loop } = self;
        for stamps in stamps {
            match windows {
                None => sample_loop(kernel, pacer, clock, batch, stamps)?,
                Some(windows) => {
                    windows.round(pacer, stamps, |pacer, stamps| {
                        sample_loop(kernel, pacer, clock, batch, stamps)
                    })?;
                }
            }
        }
        Ok(())
    }

    fn answered(&mut self, _: u64, _: u64) -> Result<()> {
        Err(Error::usage("a paced benchmark times every rank: give its entry Layout::Everyone"))
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let Some(windows) = &mut self.windows else {
            return RoundSamples::chained(
                stamps.as_chunks().0.iter().map(|[start, end]| clock.nanos(*start, *end)).collect(),
            );
        };
        let spans = windows.spans(stamps);
        let late = WindowPacing::<M>::late(&spans);
        // Ranks wait for the agreed time by the same model. Only rounding makes a start negative.
        let (started_ns, elapsed_ns) =
            spans.iter().map(|(start, end)| (start.max(0.0) as u64, end.max(0.0) as u64)).unzip();
        RoundSamples { elapsed_ns, started_ns, late, ..RoundSamples::default() }
    }

    fn end(&mut self) -> Result<()> {
        self.kernel.end()
    }

    fn figures(&mut self) -> Result<Figures> {
        let mut figures = self.kernel.figures()?;
        if let Some(windows) = &mut self.windows {
            figures.extend(windows.figures()?);
        }
        Ok(figures)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.kernel.check(fill)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.kernel.close()
    }
}
