//! A broadcast down a binomial tree of links whose cost is known, in virtual time.

use crate::broadcast::kernel::Broadcast;
use ombx_core::{
    benchmark::{context::Context, payload::Slots},
    error::Result,
    team::Team,
    testkit::{Letter, ThreadTeam},
    unit::Rank,
};

/// A message occupies its sender for `PER_BYTE` ns a byte and arrives `LATENCY` ns later, plus the delay of its link. A rank passes it
/// on to the largest subtree first.
pub(super) struct SimBroadcast<const LATENCY: u64, const PER_BYTE: u64> {
    team: ThreadTeam,
    ranks: u32,
    buffer: Vec<u8>,
    bytes: usize,
}

impl<const LATENCY: u64, const PER_BYTE: u64> Broadcast for SimBroadcast<LATENCY, PER_BYTE> {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team = cx.fabric::<ThreadTeam>()?.clone();
        let buffer = vec![0; slots.total() as usize];
        Ok(SimBroadcast { team, ranks: cx.team.size(), buffer, bytes: slots.bytes as usize })
    }

    fn broadcast(&mut self, root: Rank) -> Result<()> {
        let SimBroadcast { team, ranks, buffer, bytes } = self;
        let at = |relative: u32| Rank((relative + root.0) % *ranks);
        let me = (team.rank().0 + *ranks - root.0) % *ranks;
        // The lowest bit that is set says from whom the message comes, all below it to whom it goes.
        let mut bit = if me == 0 { ranks.next_power_of_two() } else { 1 << me.trailing_zeros() };
        if me != 0 {
            let letter = team.fetch(at(me - bit))?;
            team.hand.advance(letter.arrives_at.saturating_sub(team.hand.now()));
            buffer[..*bytes].copy_from_slice(&letter.bytes);
        }
        while bit > 1 {
            bit /= 2;
            if me + bit < *ranks {
                let to = at(me + bit);
                team.hand.advance(*bytes as u64 * PER_BYTE);
                let arrives_at = team.hand.now() + LATENCY + team.delay_to(to);
                team.post(to, Letter { bytes: buffer[..*bytes].to_vec(), arrives_at });
            }
        }
        Ok(())
    }

    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broadcast::{
        acked::{AckCorrection, run_acked, run_last_ack},
        kernel::{Once, Round},
    };
    use ombx_core::benchmark::axis::AxisValue;
    use ombx_core::{
        benchmark::{
            entry::Benchmark,
            figure::Figure,
            kernel::Kernel,
            layout::{Aggregation, Layout},
            payload::Check,
            work::Metric,
        },
        measure::plan::{Effort, Plan, parse_sizes},
        pacing::paced::run_back_to_back,
        result::Measurement,
        testkit::{SimMesh, measure},
    };

    const LATENCY: u64 = 5000;
    type Tree = SimBroadcast<LATENCY, 2>;
    type Acks = SimMesh<LATENCY>;

    static ACKED: Benchmark = Benchmark::custom(
        "sim.bcast_acked",
        "acked",
        Metric::Latency,
        <Once<Tree> as Kernel>::METHOD,
        run_acked::<Tree, Acks>,
    )
    .layout(Layout::Star)
    .axes(&[AckCorrection::AXIS]);
    /// The one byte that stands for none takes as long as an acknowledgement.
    static EVEN: Benchmark = Benchmark::custom(
        "sim.bcast_even",
        "acked",
        Metric::Latency,
        <Once<Tree> as Kernel>::METHOD,
        run_acked::<SimBroadcast<LATENCY, 1>, Acks>,
    )
    .layout(Layout::Star)
    .axes(&[AckCorrection::AXIS]);
    static LAST: Benchmark = Benchmark::custom(
        "sim.bcast_ack",
        "acked by the last",
        Metric::Latency,
        <Once<Tree> as Kernel>::METHOD,
        run_last_ack::<Tree, Acks>,
    )
    .layout(Layout::Star)
    .axes(&[AckCorrection::AXIS]);
    static ROUND: Benchmark = Benchmark::custom(
        "sim.bcast_round",
        "naive",
        Metric::Latency,
        <Round<Tree> as Kernel>::METHOD,
        run_back_to_back::<Round<Tree>, Acks>,
    )
    .layout(Layout::Everyone { least: 2 });
    static WINDOW: Benchmark = Benchmark::paced::<Once<Tree>, Acks>("sim.bcast_window", "window")
        .usually(&[("pace", "window")])
        .above_one_way();

    fn plan(sizes: &str) -> Plan {
        Plan {
            sizes: Some(parse_sizes(sizes).unwrap()),
            effort: Effort::Fixed { iterations: 400, warmup: 20 },
            ..Plan::default()
        }
    }

    fn corrected(how: &'static str) -> Plan {
        let mut plan = plan("1000");
        plan.axes.insert("ack-correction".into(), vec![how]);
        plan
    }

    fn median(row: &Measurement) -> f64 {
        assert_eq!(row.check, Check::Passed, "{}", row.key);
        row.summary.as_ref().unwrap_or_else(|| panic!("{} {:?}", row.key, row.figures)).median
    }

    fn figure(row: &Measurement, name: &str) -> f64 {
        match &row.figures[name] {
            Figure::Value(x) => *x,
            Figure::Unresolved(why) => panic!("{name}: {why}"),
        }
    }

    /// When the last rank has a message of 1000 bytes: log2 n messages one after the other for 2, 4 and 8 ranks, with ranks
    /// sending to the largest subtree first.
    fn completion(ranks: u32) -> f64 {
        f64::from(ranks.ilog2()) * (LATENCY as f64 + 2000.0)
    }

    #[test]
    fn the_acked_broadcast_is_what_was_programmed() {
        for ranks in [2, 4, 8] {
            let rows = measure(ranks, &ACKED, &plan("1000")).unwrap().rows;
            assert_eq!(rows.len(), ranks as usize, "a row for each acker and the slowest");
            let slowest = rows.last().unwrap();
            assert_eq!(
                (slowest.axes["acker"].as_str(), slowest.aggregation),
                ("slowest", Aggregation::Origin)
            );
            assert!(
                slowest.key.starts_with("sim.bcast_acked/acker=slowest,ack-correction=half,"),
                "{}",
                slowest.key
            );
            let (found, programmed) = (median(slowest), completion(ranks));
            assert!((found / programmed - 1.0).abs() < 0.02, "{ranks} ranks: {found}, not {programmed}");
            let each: Vec<f64> = rows[..rows.len() - 1].iter().map(median).collect();
            assert_eq!(each.iter().copied().fold(0.0, f64::max), found);
            for row in &rows {
                assert!((figure(row, "bound_us") - LATENCY as f64 / 1e3).abs() < 0.01);
                assert!(figure(row, "variance_us2") >= 0.0);
            }
        }
    }

    #[test]
    fn the_naive_broadcast_reads_low_and_says_so() {
        for ranks in [4, 8] {
            let naive = measure(ranks, &ROUND, &plan("0,1000")).unwrap().rows;
            let honest = measure(ranks, &ACKED, &plan("0,1000")).unwrap().rows;
            let last = &honest[honest.len() - 2..];
            for (naive, honest) in naive.iter().zip(last) {
                assert!(median(naive) < 0.8 * median(honest), "{} against {}", median(naive), median(honest));
            }
        }
        // Two ranks that send to one another by turns cannot overlap.
        let rows = measure(2, &ROUND, &plan("1")).unwrap().rows;
        assert!(rows[0].trust.iter().all(|n| n.code != "below_one_way"), "{:?}", rows[0].trust);
    }

    #[test]
    fn the_window_agrees_with_the_acked() {
        for ranks in [2, 4, 8] {
            let acked = median(measure(ranks, &ACKED, &plan("1000")).unwrap().rows.last().unwrap());
            let row = measure(ranks, &WINDOW, &plan("1000")).unwrap().rows.remove(0);
            assert_eq!((row.aggregation, row.samples.len()), (Aggregation::Global, ranks as usize));
            assert!((median(&row) / acked - 1.0).abs() < 0.02, "{ranks} ranks: {} and {acked}", median(&row));
            assert!(figure(&row, "sync_residual_us") < 1.0 && figure(&row, "sync_residual_after_us") < 1.0);
            assert_eq!(figure(&row, "late_starts"), 0.0);
            assert!((figure(&row, "one_way_us") - LATENCY as f64 / 1e3).abs() < 0.01);
        }
    }

    #[test]
    fn with_two_ranks_and_no_bytes_half_a_round_trip_leaves_one_way_and_a_whole_one_nothing() {
        let none = |how| {
            let plan = Plan { sizes: Some(parse_sizes("0").unwrap()), ..corrected(how) };
            measure(2, &EVEN, &plan).unwrap().rows.remove(0)
        };
        let half = none("half");
        assert!((median(&half) / LATENCY as f64 - 1.0).abs() < 0.001, "{}", median(&half));
        assert!((median(&none("none")) / (2.0 * LATENCY as f64) - 1.0).abs() < 0.001);
        let whole = none("round-trip");
        assert_eq!(whole.summary, None);
        let Figure::Unresolved(why) = &whole.figures["corrected_us"] else { panic!("{:?}", whole.figures) };
        assert!(why.contains("not resolved"), "{why}");
        assert_eq!(whole.samples[0].elapsed_ns.len(), 400, "the raw samples are kept");
    }

    #[test]
    fn the_last_rank_alone_may_acknowledge() {
        let rows = measure(4, &LAST, &corrected("none")).unwrap().rows;
        assert_eq!(rows.len(), 1);
        // Rank 3 is two messages away, and its acknowledgement one.
        let programmed = 2.0 * 7000.0 + LATENCY as f64;
        assert!((median(&rows[0]) / programmed - 1.0).abs() < 0.02, "{}", median(&rows[0]));
    }
}
