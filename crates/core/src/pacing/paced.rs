//! Kernels whose ranks are paced before each sample, and the one-way time below which no broadcast can be.

use std::{cell::RefCell, rc::Rc};

use crate::{
    benchmark::{
        axis::AxisValue,
        case::Case,
        context::Context,
        entry::Benchmark,
        figure::Figures,
        kernel::Kernel,
        layout::{Aggregation, Layout},
        payload::{Check, Fill},
    },
    error::{Error, Result},
    measure::{
        collect::RoundSamples,
        opened::{OpenKernel, SingleThreaded},
        row::{self, KernelFactory},
        session::Session,
        timed_loop::{paced, round_trips},
    },
    pacing::{
        clock_sync::{Sync, SyncHosts},
        mesh::Mesh,
        pace::{self, Pacer, Pacing},
        windows::{Shared, Windows},
    },
    stats::Summary,
    system::clock::Clock,
    team::Team,
    unit::Rank,
};

impl Benchmark {
    /// An entry that runs a kernel on every rank, paced before each sample over a mesh: two ranks or more, unless said otherwise.
    #[track_caller]
    pub const fn paced<K: Kernel, M: Mesh>(name: &'static str, about: &'static str) -> Benchmark {
        let entry = Benchmark::custom(name, about, K::METRIC, K::METHOD, run_paced::<K, M>);
        Benchmark { layout: Layout::Everyone { least: 2 }, axes: &[Pacing::AXIS, SyncHosts::AXIS], ..entry }
    }
}

/// Runs a kernel whose ranks are paced, by each selected way of [`Pacing`]: what [`crate::benchmark::entry::Benchmark::paced`] registers.
pub fn run_paced<K: Kernel, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let floor_ns = floor::<M>(session, session.bench.one_way)?;
    session.split(|session, pace: Pacing| {
        let pacing = PacedKernels::<M>::of(session, pace);
        // Learning clocks is collective: no rank may be alone in it.
        let open = |cx: &Context<'_>, case: &Case| pacing.opened(cx, case, cx.agree(K::open(cx, case))?);
        row::every_case(session, &KernelFactory { floor_ns, ..KernelFactory::of::<K>(&open) })
    })
}

/// One way of pacing for the cases of a session, whose clocks are synchronised once.
pub struct PacedKernels<'a, M> {
    pace: Pacing,
    team: &'a dyn Team,
    clock: &'a Clock,
    /// Whether ranks of a host share a clock, and what is known of the clocks.
    learnt: RefCell<Option<(SyncHosts, Shared<'a, M>)>>,
}

impl<'a, M: Mesh> PacedKernels<'a, M> {
    /// Nothing is learnt yet.
    pub fn of(session: &Session<'a>, pace: Pacing) -> PacedKernels<'a, M> {
        PacedKernels { pace, team: session.team, clock: session.clock, learnt: RefCell::default() }
    }

    /// A kernel that is open, paced. Collective.
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
        let each: Each<K, M> = match self.pace {
            Pacing::Window => paced::<K, pace::Window, M>,
            Pacing::Dissemination => paced::<K, pace::Dissemination, M>,
            Pacing::Barrier => paced::<K, pace::Barrier, M>,
        };
        let pacer = Pacer::<M>::open(cx)?;
        let windows = match self.pace {
            Pacing::Window => Some(Windows::open(self.team, self.clocks(case.choice())?)?),
            _ => None,
        };
        Ok(Box::new(Paced { kernel, pacer, windows, each }))
    }

    /// What is known of the clocks; collective where it is not known yet.
    fn clocks(&self, hosts: SyncHosts) -> Result<Shared<'a, M>> {
        let known = self.learnt.borrow().clone().filter(|(known, _)| *known == hosts);
        if let Some((_, sync)) = known {
            return Ok(sync);
        }
        let sync =
            Rc::new(RefCell::new(Sync::learn(&Context::of(self.team), self.clock, hosts == SyncHosts::On)?));
        *self.learnt.borrow_mut() = Some((hosts, Rc::clone(&sync)));
        Ok(sync)
    }
}

/// Runs a broadcast kernel back to back, so many times in a sample that every rank is root some times, and says where it takes
/// less than an empty message one way.
pub fn run_back_to_back<K: Kernel, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let floor_ns = floor::<M>(session, true)?;
    let batch = TURNS * u64::from(session.team.size());
    let open = |cx: &Context<'_>, case: &Case| {
        Ok(Box::new(SingleThreaded(K::open(cx, case)?, Some(batch))) as Box<dyn OpenKernel + '_>)
    };
    row::every_case(session, &KernelFactory { floor_ns, ..KernelFactory::of::<K>(&open) })
}

/// Turns of every rank as root in a sample of broadcasts back to back.
const TURNS: u64 = 4;

/// The loop for one kernel and one way of pacing.
type Each<K, M> = fn(&mut K, &mut Pacer<M>, &Clock, u64, &mut [u64]) -> Result<()>;

struct Paced<'k, K, M> {
    kernel: K,
    pacer: Pacer<M>,
    windows: Option<Windows<'k, M>>,
    each: Each<K, M>,
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
        let Paced { kernel, pacer, windows, each } = self;
        for stamps in stamps {
            match windows {
                None => each(kernel, pacer, clock, batch, stamps)?,
                Some(windows) => {
                    windows
                        .round(pacer, stamps, |pacer, stamps| each(kernel, pacer, clock, batch, stamps))?;
                }
            }
        }
        Ok(())
    }

    fn answered(&mut self, _: u64, _: u64) -> Result<()> {
        Err(Error::usage("a paced benchmark times every rank: register it with Layout::Everyone"))
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let Some(windows) = &mut self.windows else {
            return RoundSamples::chained(
                stamps.as_chunks().0.iter().map(|[start, end]| clock.nanos(*start, *end)).collect(),
            );
        };
        let spans = windows.spans(stamps);
        let late = Windows::<M>::late(&spans);
        // No rank starts before the agreed time by the model that it waits by; rounding may say so.
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

/// Round trips in a sample of the one-way time, samples in a block, and blocks at the most: all of it is far from a row's time.
const ECHOES: (u64, usize, u32) = (4, 5, 8);
/// Time for the one-way time to one rank.
const PATIENCE_NS: u64 = 5_000_000;

/// The time of an empty message one way from rank 0 to the rank that is farthest from it, on rank 0; half the median round trip.
/// Collective. `None` where it is not asked for.
fn floor<M: Mesh>(session: &Session<'_>, wanted: bool) -> Result<Option<f64>> {
    let (team, clock) = (session.team, session.clock);
    if !wanted {
        return Ok(None);
    }
    let mut mesh = M::open(&Context::of(team))?;
    let (batch, samples, blocks) = ECHOES;
    let mut farthest: Option<f64> = None;
    team.barrier()?;
    for other in (1..team.size()).map(Rank) {
        let (mut times, start, mut more) = (Vec::new(), clock.mark(), [1]);
        for block in 0.. {
            if team.rank() == Rank(0) {
                let mut stamps = vec![0; samples + 1];
                round_trips(&mut mesh, other, clock, batch, &mut stamps)?;
                // The first block warms up.
                if block > 0 {
                    times.extend(stamps.windows(2).map(|w| clock.nanos(w[0], w[1]) as f64 / batch as f64));
                }
                let enough = block + 1 == blocks || block > 0 && start.elapsed_ns() > PATIENCE_NS;
                more = [u8::from(!enough)];
                mesh.send(other, &more)?;
            } else if team.rank() == other {
                for _ in 0..batch * samples as u64 {
                    mesh.receive(Rank(0), &mut [])?;
                    mesh.send(Rank(0), &[])?;
                }
                mesh.receive(Rank(0), &mut more)?;
            } else {
                break;
            }
            if more == [0] {
                break;
            }
        }
        let one_way = Summary::of(&times).map(|s| s.median / 2.0);
        farthest = farthest.into_iter().chain(one_way).reduce(f64::max);
    }
    Ok(farthest)
}
