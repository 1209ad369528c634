//! Ways to time a broadcast, on simulated links of known cost.

mod simulation;

use crate::broadcast::{
    acked::{AckCorrection, run_acked, run_last_ack},
    back_to_back::{BackToBack, run_back_to_back},
    kernel::SingleBroadcast,
    tests::simulation::SimBroadcast,
};
use ombx_core::{
    benchmark::{Aggregation, AxisValue, Benchmark, Figure, Kernel, Layout, Metric, payload::Check},
    measure::plan::{Effort, Plan, parse_sizes},
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
    <SingleBroadcast<Tree> as Kernel>::METHOD,
    run_acked::<Tree, Acks>,
)
.layout(Layout::Star)
.axes(&[AckCorrection::AXIS]);
/// A broadcast of 0 bytes sends one byte here, which takes as long as an acknowledgement.
static EVEN: Benchmark = Benchmark::custom(
    "sim.bcast_even",
    "acked",
    Metric::Latency,
    <SingleBroadcast<Tree> as Kernel>::METHOD,
    run_acked::<SimBroadcast<LATENCY, 1>, Acks>,
)
.layout(Layout::Star)
.axes(&[AckCorrection::AXIS]);
static LAST: Benchmark = Benchmark::custom(
    "sim.bcast_ack",
    "acked by the last",
    Metric::Latency,
    <SingleBroadcast<Tree> as Kernel>::METHOD,
    run_last_ack::<Tree, Acks>,
)
.layout(Layout::Star)
.axes(&[AckCorrection::AXIS]);
static ROUND: Benchmark = Benchmark::custom(
    "sim.bcast_round",
    "naive",
    Metric::Latency,
    <BackToBack<Tree> as Kernel>::METHOD,
    run_back_to_back::<BackToBack<Tree>, Acks>,
)
.layout(Layout::Everyone { least: 2 });
static WINDOW: Benchmark = Benchmark::paced::<SingleBroadcast<Tree>, Acks>("sim.bcast_window", "window")
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

/// Returns when the last of 2, 4 or 8 ranks has a message of 1000 bytes: after log2 n messages in sequence.
fn completion(ranks: u32) -> f64 {
    f64::from(ranks.ilog2()) * (LATENCY as f64 + 2000.0)
}

#[test]
fn the_acked_broadcast_measures_the_simulated_time() {
    for ranks in [2, 4, 8] {
        let rows = measure(ranks, &ACKED, &plan("1000")).unwrap().rows;
        assert_eq!(rows.len(), ranks as usize, "a row for each acker and the slowest");
        let slowest = rows.last().unwrap();
        assert_eq!((slowest.axes["acker"].as_str(), slowest.aggregation), ("slowest", Aggregation::Origin));
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
fn broadcasts_back_to_back_take_less_than_one_broadcast() {
    for ranks in [4, 8] {
        let naive = measure(ranks, &ROUND, &plan("0,1000")).unwrap().rows;
        let honest = measure(ranks, &ACKED, &plan("0,1000")).unwrap().rows;
        let last = &honest[honest.len() - 2..];
        for (naive, honest) in naive.iter().zip(last) {
            assert!(median(naive) < 0.8 * median(honest), "{} against {}", median(naive), median(honest));
        }
    }
    // Two ranks that send to each other in turn cannot overlap.
    let rows = measure(2, &ROUND, &plan("1")).unwrap().rows;
    assert!(rows[0].trust.iter().all(|n| n.code != "below_one_way"), "{:?}", rows[0].trust);
}

#[test]
fn windows_and_acknowledgements_measure_the_same_time() {
    for ranks in [2, 4, 8] {
        let acked = median(measure(ranks, &ACKED, &plan("1000")).unwrap().rows.last().unwrap());
        let row = measure(ranks, &WINDOW, &plan("1000")).unwrap().rows.remove(0);
        assert_eq!((row.aggregation, row.samples.len()), (Aggregation::Global, ranks as usize));
        assert!((median(&row) / acked - 1.0).abs() < 0.02, "{ranks} ranks: {} and {acked}", median(&row));
        assert!(figure(&row, "sync_residual_max_us") < 1.0 && figure(&row, "sync_residual_range_us") < 1.0);
        assert_eq!(figure(&row, "late_starts"), 0.0);
        assert!((figure(&row, "one_way_us") - LATENCY as f64 / 1e3).abs() < 0.01);
    }
}

#[test]
fn the_time_of_an_empty_broadcast_on_two_ranks_depends_on_the_correction() {
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
fn the_last_rank_acknowledges() {
    let rows = measure(4, &LAST, &corrected("none")).unwrap().rows;
    assert_eq!(rows.len(), 1);
    // Rank 3 is two messages away, and its acknowledgement one.
    let programmed = 2.0 * 7000.0 + LATENCY as f64;
    assert!((median(&rows[0]) / programmed - 1.0).abs() < 0.02, "{}", median(&rows[0]));
}
