//! How ranks are brought together before each sample of a collective operation, outside the time that is measured.

use crate::{
    benchmark::context::Context,
    error::Result,
    pacing::{mesh::Mesh, windows::Starts},
    system::clock::Clock,
    unit::Rank,
};

crate::axis! {
    /// How ranks are synchronised before each sample of a collective
    pub enum Pacing: "pace", Always, default Barrier {
        /// The library's barrier
        Barrier = "barrier",
        /// Dissemination barrier of ombx over empty messages
        Dissemination = "dissemination",
        /// Start at an agreed time on one clock
        Window = "window",
    }
}

/// One way of pacing; a type, so that the loop has no choice to make.
pub(crate) trait Pace<M> {
    /// Returns when this rank may start its next sample.
    fn wait(pacer: &mut Pacer<M>, clock: &Clock) -> Result<()>;
}

/// The library's barrier.
pub(crate) enum Barrier {}

/// Dissemination: in round k every rank signals the one 2^k above it and waits for the one 2^k below, log2 n rounds.
pub(crate) enum Dissemination {}

/// Windows: every rank waits for the time of its next start on the clock of all.
pub(crate) enum Window {}

/// What pacing needs on one rank, whichever way is taken.
pub(crate) struct Pacer<M> {
    pub(crate) mesh: M,
    /// The next starts, on this rank's clock.
    pub(crate) starts: Starts,
    /// Whom this rank signals and for whom it waits, round by round.
    rounds: Vec<(Rank, Rank)>,
}

impl<M: Mesh> Pacer<M> {
    /// Collective, untimed.
    pub(crate) fn open(cx: &Context<'_>) -> Result<Pacer<M>> {
        Ok(Pacer { mesh: M::open(cx)?, starts: Starts::default(), rounds: rounds(cx.rank(), cx.team.size()) })
    }
}

/// The partners of a rank in a dissemination barrier of `ranks` [Hensgen, Finkel & Manber, 1988].
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

impl<M: Mesh> Pace<M> for Window {
    #[inline(always)]
    fn wait(pacer: &mut Pacer<M>, clock: &Clock) -> Result<()> {
        let start = pacer.starts.next_ticks();
        clock.wait_until(start, |left| pacer.mesh.linger(left));
        Ok(())
    }
}
