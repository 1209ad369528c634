//! A mesh of known latency, in virtual time.

use super::thread_team::{SimMessage, ThreadTeam};
use crate::{benchmark::Context, error::Result, pacing::mesh::Mesh, system::clock::Clock, unit::Rank};

/// Mesh whose messages occupy the sender for 1 ns and `PER_BYTE` ns per byte, and arrive `LATENCY` ns later, plus the delay of their
/// link.
///
/// The barrier takes no time after the last rank has entered it.
pub struct SimMesh<const LATENCY: u64, const PER_BYTE: u64 = 0> {
    team: ThreadTeam,
}

impl<const LATENCY: u64, const PER_BYTE: u64> Mesh for SimMesh<LATENCY, PER_BYTE> {
    fn open(cx: &Context<'_>) -> Result<Self> {
        Ok(SimMesh { team: cx.fabric::<ThreadTeam>()?.clone() })
    }

    fn barrier(&mut self) -> Result<()> {
        self.team.virtual_barrier()
    }

    fn pass(&mut self, to: Rank, from: Rank) -> Result<()> {
        self.send(to, &[])?;
        self.receive(from, &mut [])
    }

    fn send(&mut self, to: Rank, bytes: &[u8]) -> Result<()> {
        self.team.time.advance(1 + bytes.len() as u64 * PER_BYTE);
        let arrives_at = self.team.time.now() + LATENCY + self.team.delay_to(to);
        self.team.send_message(to, SimMessage { bytes: bytes.to_vec(), arrives_at });
        Ok(())
    }

    fn receive(&mut self, from: Rank, bytes: &mut [u8]) -> Result<()> {
        let message = self.team.receive_message(from)?;
        self.team.time.advance(message.arrives_at.saturating_sub(self.team.time.now()));
        bytes.copy_from_slice(&message.bytes);
        Ok(())
    }

    fn linger(&mut self, ticks: u64) {
        self.team.time.advance(ticks);
    }

    fn clock_name(&self, _: &Clock) -> String {
        self.team.rank.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        benchmark::{Aggregation, Benchmark, Choice, Figure, ParameterValue},
        measure::{
            plan::{Effort, Plan},
            runner::{self, Part},
            sink::Memory,
        },
        pacing::pace::{Chosen, Pacer, Pacing, Start},
        testkit::{Delay, Probe, SlowerByRank, measure, on_ranks, on_uneven_ranks},
    };
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn no_rank_leaves_a_dissemination_barrier_before_all_have_entered() {
        for ranks in 1..=9 {
            let times = on_ranks(ranks, |team| {
                let mut pacer = Pacer::<SimMesh<700>>::open(&Context::of(team)).unwrap();
                let mut times = Vec::new();
                for turn in 0..6 {
                    // In each turn, another rank enters much later than the others.
                    let late = if team.rank == turn % ranks { 1_000_000 } else { 10 * u64::from(team.rank) };
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

    #[test]
    fn samples_do_not_contain_the_time_of_pacing() {
        static PACED: Benchmark =
            Benchmark::paced::<Probe<3000>, SimMesh<50_000>>("sim.paced", "3 us").sizes("8");
        let mut plan = Plan { effort: Effort::Fixed { iterations: 40, warmup: 2 }, ..Plan::default() };
        plan.chosen.set("pace", Pacing::PARAMETER.names().iter().copied());
        for ranks in [2, 3, 5] {
            let rows = measure(ranks, &PACED, &plan).unwrap().rows;
            assert_eq!(rows.len(), Pacing::ALL.len());
            for row in rows {
                assert_eq!((row.samples.len(), row.samples[0].batch), (ranks as usize, 1), "{}", row.key);
                assert_eq!(row.summary.unwrap().median, 3000.0, "{}", row.key);
            }
        }
    }

    #[test]
    fn the_slowest_rank_of_each_sample_is_the_headline() {
        static UNEVEN: Benchmark =
            Benchmark::paced::<SlowerByRank, SimMesh<100>>("sim.uneven", "uneven").sizes("8");
        let plan = Plan { effort: Effort::Fixed { iterations: 40, warmup: 2 }, ..Plan::default() };
        let row = measure(4, &UNEVEN, &plan).unwrap().rows.remove(0);
        // Rank r takes 1000 (r + 1) ns.
        assert_eq!((row.aggregation, row.summary.as_ref().unwrap().median), (Aggregation::Slowest, 4000.0));
        let ranks = row.across_ranks().unwrap();
        assert_eq!((ranks.mean, ranks.min, ranks.max), (2500.0, 1000.0, 4000.0));
    }

    /// Messages from rank 0 to rank 1 before the windows of the only row: first fit, refresh and first residual.
    const MESSAGES_BEFORE: u64 = 400 + 80 + 50;

    /// Delays messages to rank 1 after the first residual, which shifts what ping-pongs show by 200 ns.
    fn delayed_at_the_end(from: u32, to: u32) -> u64 {
        static SENT: AtomicU64 = AtomicU64::new(0);
        let late = (from, to) == (0, 1) && SENT.fetch_add(1, Ordering::Relaxed) >= MESSAGES_BEFORE;
        if late { 400 } else { 0 }
    }

    #[test]
    fn a_row_in_windows_says_how_far_clocks_are_apart() {
        static WINDOW: Benchmark =
            Benchmark::paced::<Probe<3000>, SimMesh<5000>>("sim.window", "3 us").sizes("8");
        let mut plan = Plan { effort: Effort::Fixed { iterations: 40, warmup: 2 }, ..Plan::default() };
        plan.chosen.set("pace", ["window"]);
        let marked = |delay: Delay| {
            let mut all = on_uneven_ranks(2, delay, |team| {
                let mut sink = Memory::default();
                let part = Part { choices: vec![Choice { bench: &WINDOW, preset: &[] }], plan: plan.clone() };
                runner::run_all(team, &[part], &team.clock, &mut sink, Vec::new()).unwrap();
                sink
            });
            let row = all.swap_remove(0).rows.remove(0);
            let Figure::Value(range) = row.figures["sync_residual_range_us"] else { panic!("{row:?}") };
            let mark = row.trust.into_iter().find(|mark| mark.code == "clocks_apart");
            (range, mark.map(|mark| mark.short))
        };
        let (range, mark) = marked(|_, _| 0);
        assert!(range < 0.01 && mark.is_none(), "{range} us, {mark:?}");
        let (range, mark) = marked(delayed_at_the_end);
        assert!((range - 0.2).abs() < 0.01, "{range} us");
        assert_eq!(mark.as_deref(), Some("clocks apart 7%"), "0.2 of 3 us");
    }

    #[test]
    fn a_high_cost_of_the_clock_has_a_notice() {
        static SHORT: Benchmark =
            Benchmark::paced::<Probe<300>, SimMesh<100>>("sim.short", "300 ns").sizes("8");
        let notice = |batch| {
            let plan = Plan { batch, ..Plan::default() };
            let row = measure(2, &SHORT, &plan).unwrap().rows.remove(0);
            row.trust.into_iter().find(|notice| notice.code == "clock_cost").map(|notice| notice.short)
        };
        assert_eq!(notice(None).as_deref(), Some("clock 3%"), "9 ns of 300");
        assert_eq!(notice(Some(10)), None);
    }
}
