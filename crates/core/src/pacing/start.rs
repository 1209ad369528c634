//! Ways in which ranks start a sample together: by a barrier, or at an agreed time.

use ombx_record::{error::Result, unit::Rank};

use crate::{
    benchmark::Context,
    clock::Clock,
    pacing::{clock_sync::ClockModel, mesh::Mesh},
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
