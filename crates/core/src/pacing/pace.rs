//! Pacing methods: how ranks are synchronised before each sample of a collective operation, outside the timed region.

use crate::{
    benchmark::Context,
    error::Result,
    pacing::{mesh::Mesh, start_times::StartTimes},
    system::clock::Clock,
    team::Team,
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

/// A pacing method. It is a type, so that the timed loop has no branch.
pub(crate) trait Pace<M> {
    /// Waits until this rank may start its next sample.
    fn wait(pacer: &mut Pacer<M>, clock: &Clock) -> Result<()>;
}

/// Barrier of the library.
pub(crate) enum Barrier {}

/// Dissemination barrier. In round k, rank r signals r + 2^k and waits for r - 2^k, modulo the number of ranks.
pub(crate) enum Dissemination {}

/// Barrier of the team, for kernels of any transport.
pub(crate) enum TeamBarrier {}

/// Agreed start times: every rank waits for the next one on its synchronised clock.
pub(crate) enum Window {}

/// State of one rank for all pacing methods.
pub(crate) struct Pacer<M> {
    pub(crate) mesh: M,
    /// Start times of the next samples, for [`Window`].
    pub(crate) starts: StartTimes,
    /// Receiver and sender of each round of [`Dissemination`].
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
    /// Returns a pacer with neither start times nor rounds, as for [`TeamBarrier`].
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

impl<M: Mesh> Pace<M> for Dissemination {
    #[inline(always)]
    fn wait(pacer: &mut Pacer<M>, _: &Clock) -> Result<()> {
        for (to, from) in &pacer.rounds {
            pacer.mesh.pass(*to, *from)?;
        }
        Ok(())
    }
}

impl<'t> Pace<&'t dyn Team> for TeamBarrier {
    #[inline(always)]
    fn wait(pacer: &mut Pacer<&'t dyn Team>, _: &Clock) -> Result<()> {
        pacer.mesh.barrier()
    }
}

impl<M: Mesh> Pace<M> for Window {
    #[inline(always)]
    fn wait(pacer: &mut Pacer<M>, clock: &Clock) -> Result<()> {
        let start = pacer.starts.next_ticks();
        clock.wait_until(start, |left| pacer.mesh.linger(left));
        Ok(())
    }
}
