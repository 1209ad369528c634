//! Kernels whose ranks are synchronised before each sample.

use std::{cell::RefCell, rc::Rc, time::Duration};

use crate::{
    benchmark::{Aggregation, Benchmark, Case, Context, Figures, Groups, Kernel, Layout, ParameterValue},
    error::Result,
    measure::{
        collect::RoundSamples,
        open_kernel::{OpenKernel, OpenLoops, Steps},
        row::{self, KernelFactory, KernelKind},
        session::Session,
    },
    pacing::{
        clock_sync::{ClockModel, ClockSync, SharedClockSync, SyncHosts, WindowPacing, learning_time},
        mesh::{Mesh, one_way_ns},
        sample_pacer::{BarrierLoop, SamplePacer},
    },
    system::clock::Clock,
    team::Team,
    unit::Rank,
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

crate::parameter! {
    /// How ranks are synchronised before each sample of a collective
    pub enum Pacing: "pace", Always, default Barrier {
        /// The library's barrier
        Barrier = "barrier",
        /// Dissemination barrier of ombx over empty messages
        Dissemination = "dissemination",
        /// Start at an agreed time on synchronised clocks
        Window = "window",
    }
}

/// A way in which ranks start a sample together. It is a type, so that a timed loop has no branch.
pub trait Start {
    /// Waits until this rank may start its next sample.
    fn wait(&mut self, clock: &Clock) -> Result<()>;
}

/// State of one rank for all pacing methods.
pub(crate) struct Pacer<M> {
    pub(crate) mesh: M,
    /// Start times of the next samples, for [`Pacing::Window`].
    pub(crate) starts: StartTimes,
    /// Receiver and sender of each round of [`Pacing::Dissemination`].
    rounds: Vec<(Rank, Rank)>,
}

impl<M: Mesh> Pacer<M> {
    /// Opens the mesh. Collective, untimed.
    pub(crate) fn open(cx: &Context<'_>) -> Result<Pacer<M>> {
        Ok(Pacer {
            mesh: M::open(cx)?,
            starts: StartTimes::default(),
            rounds: rounds(cx.rank(), cx.team.size()),
        })
    }
}

/// Returns receiver and sender of a rank in each round of a dissemination barrier [Hensgen, Finkel & Manber, 1988].
fn rounds(me: Rank, ranks: u32) -> Vec<(Rank, Rank)> {
    let steps =
        std::iter::successors(Some(1u32), |step| step.checked_mul(2)).take_while(|step| *step < ranks);
    let at = |step| Rank(((u64::from(me.0) + u64::from(step)) % u64::from(ranks)) as u32);
    steps.map(|step| (at(step), at(ranks - step))).collect()
}

/// The barrier of the library.
impl<M: Mesh> Start for Pacer<M> {
    #[inline(always)]
    fn wait(&mut self, _: &Clock) -> Result<()> {
        self.mesh.barrier()
    }
}

/// Any other way: one dynamic call before the start of a sample is read.
impl Start for &mut dyn Start {
    #[inline(always)]
    fn wait(&mut self, clock: &Clock) -> Result<()> {
        (**self).wait(clock)
    }
}

/// A pacing method that is chosen when a sample starts.
pub(crate) struct Chosen<'p, M>(pub(crate) Pacing, pub(crate) &'p mut Pacer<M>);

impl<M: Mesh> Start for Chosen<'_, M> {
    /// Enters a barrier, or waits for an agreed time on the synchronised clock of this rank. In round k of a dissemination barrier, rank r
    /// signals r + 2^k and waits for r - 2^k, modulo the number of ranks.
    fn wait(&mut self, clock: &Clock) -> Result<()> {
        let Chosen(pacing, Pacer { mesh, starts, rounds }) = self;
        match pacing {
            Pacing::Barrier => mesh.barrier(),
            Pacing::Dissemination => rounds.iter().try_for_each(|(to, from)| mesh.pass(*to, *from)),
            Pacing::Window => {
                clock.wait_until(starts.next_ticks(), |left| mesh.linger(left));
                Ok(())
            }
        }
    }
}

/// Window length before the operation was measured.
pub(crate) const FIRST_WINDOW_NS: f64 = 1_000_000.0;

/// Start times at equal distances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartTimes {
    /// Converts times of rank 0 to this rank's clock.
    pub(crate) model: ClockModel,
    /// Next start in rank 0's time.
    pub(crate) next_ns: f64,
    /// Distance of two starts: the window length.
    pub(crate) length_ns: f64,
}

impl Default for StartTimes {
    fn default() -> StartTimes {
        StartTimes { model: ClockModel::default(), next_ns: 0.0, length_ns: FIRST_WINDOW_NS }
    }
}

impl StartTimes {
    /// Returns the next start as a raw reading of this rank's clock.
    #[inline(always)]
    pub(crate) fn next_ticks(&mut self) -> u64 {
        let start = self.next_ns;
        self.next_ns += self.length_ns;
        self.model.ticks(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        team::Team,
        testkit::{SimMesh, on_ranks},
    };

    #[test]
    fn no_rank_leaves_a_dissemination_barrier_before_all_have_entered() {
        for ranks in 1..=9 {
            let times = on_ranks(ranks, |team| {
                let mut pacer = Pacer::<SimMesh<700>>::open(&Context::new(team)).unwrap();
                let mut times = Vec::new();
                for turn in 0..6 {
                    // In each turn, another rank enters much later than the others.
                    let late =
                        if team.rank().0 == turn % ranks { 1_000_000 } else { 10 * u64::from(team.rank().0) };
                    team.time.advance(late);
                    let entered = team.time.now();
                    Chosen(Pacing::Dissemination, &mut pacer).wait(&team.clock).unwrap();
                    times.push((entered, team.time.now()));
                }
                times
            });
            for turn in 0..6 {
                let last_entered = times.iter().map(|t| t[turn].0).max().unwrap();
                let first_left = times.iter().map(|t| t[turn].1).min().unwrap();
                assert!(
                    first_left >= last_entered,
                    "{ranks} ranks, turn {turn}: {first_left} < {last_entered}"
                );
                // A rank waits for at most log2 n messages in sequence.
                let last_left = times.iter().map(|t| t[turn].1).max().unwrap();
                let rounds = u64::from(ranks.next_power_of_two().ilog2());
                assert!(last_left <= last_entered + rounds * 702, "{ranks} ranks, turn {turn}");
            }
        }
    }
}
