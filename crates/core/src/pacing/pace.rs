//! Pacing methods: how ranks are synchronised before each sample of a collective operation, outside the timed region.

use crate::{
    benchmark::Context,
    error::Result,
    pacing::{clock_sync::ClockModel, mesh::Mesh},
    system::clock::Clock,
    unit::Rank,
};

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

/// How a timed loop waits. It is a type, so that the loop has no branch.
pub(crate) trait Pace<M> {
    /// Waits until this rank may start its next sample.
    fn wait(pacer: &mut Pacer<M>, clock: &Clock) -> Result<()>;
}

/// Barrier of the library.
pub(crate) enum Barrier {}

/// Any other way to start together: one dynamic call before the start of a sample is read.
pub(crate) enum Together {}

/// A way in which ranks start a sample together.
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

impl<M> Pacer<M> {
    /// Returns a pacer with neither start times nor rounds, as for [`Together`].
    pub(crate) fn with(mesh: M) -> Pacer<M> {
        Pacer { mesh, starts: StartTimes::default(), rounds: Vec::new() }
    }
}

/// Returns receiver and sender of a rank in each round of a dissemination barrier [Hensgen, Finkel & Manber, 1988].
fn rounds(me: Rank, ranks: u32) -> Vec<(Rank, Rank)> {
    let steps =
        std::iter::successors(Some(1u32), |step| step.checked_mul(2)).take_while(|step| *step < ranks);
    let at = |step| Rank(((u64::from(me.0) + u64::from(step)) % u64::from(ranks)) as u32);
    steps.map(|step| (at(step), at(ranks - step))).collect()
}

impl<M: Mesh> Pace<M> for Barrier {
    #[inline(always)]
    fn wait(pacer: &mut Pacer<M>, _: &Clock) -> Result<()> {
        pacer.mesh.barrier()
    }
}

impl Pace<&mut dyn Start> for Together {
    #[inline(always)]
    fn wait(pacer: &mut Pacer<&mut dyn Start>, clock: &Clock) -> Result<()> {
        pacer.mesh.wait(clock)
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
