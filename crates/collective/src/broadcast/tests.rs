//! Ways to time a broadcast, on simulated links of known cost.

use ombx_core::{
    benchmark::{Aggregation, Benchmark, Figure, Kernel, Layout, Method, Metric, ParameterValue, Root},
    measure::plan::{Effort, Plan},
    result::{Check, MarkCode, Measurement, Outcome},
    unit::{Rank, parse_sizes},
};
use ombx_testkit::{SimMesh, measure};

use crate::broadcast::{
    acked::{AckCorrection, run_acked, run_last_ack},
    kernel::{BackToBack, Binomial, Broadcast, Linear, SingleBroadcast, Tree, run_back_to_back},
};

/// Time of a message on its link.
const LATENCY: u64 = 5000;
/// Time for which a message occupies its sender.
const PER_BYTE: u64 = 2;
type Net = SimMesh<LATENCY, PER_BYTE>;
type Binomials = Tree<Binomial, Net>;
type Linears = Tree<Linear, Net>;

const METHOD: Method = <SingleBroadcast<Binomials> as Kernel>::METHOD;

const fn acked<B: Broadcast>() -> Benchmark {
    Benchmark::custom("sim.bcast_acked", "acked", Metric::Latency, METHOD, run_acked::<B, Net>)
        .layout(Layout::Star)
        .with(&[AckCorrection::PARAMETER, Root::PARAMETER])
}

const fn round<B: Broadcast>() -> Benchmark {
    Benchmark::custom(
        "sim.bcast_round",
        "naive",
        Metric::Latency,
        METHOD,
        run_back_to_back::<BackToBack<B>, Net>,
    )
    .layout(Layout::Everyone { least: 2 })
}

static ACKED: Benchmark = acked::<Binomials>();
static LINEAR_ACKED: Benchmark = acked::<Linears>();
static ROUND: Benchmark = round::<Binomials>();
static LINEAR_ROUND: Benchmark = round::<Linears>();
static LAST: Benchmark = Benchmark::custom(
    "sim.bcast_ack",
    "acked by the last",
    Metric::Latency,
    METHOD,
    run_last_ack::<Binomials, Net>,
)
.layout(Layout::Star)
.with(&[AckCorrection::PARAMETER, Root::PARAMETER]);
static WINDOW: Benchmark = Benchmark::paced::<SingleBroadcast<Binomials>, Net>("sim.bcast_window", "window")
    .usually(&[("pace", "window")])
    .above_one_way();
static ROOTED: Benchmark =
    Benchmark::paced::<SingleBroadcast<Linears>, Net>("sim.bcast", "any root").with(&[Root::PARAMETER]);
static ROTATED: Benchmark =
    Benchmark::paced::<SingleBroadcast<Linears, true>, Net>("sim.bcast", "any root").with(&[Root::PARAMETER]);

fn plan(sizes: &str) -> Plan {
    Plan {
        sizes: Some(parse_sizes(sizes).unwrap()),
        effort: Effort::Fixed { iterations: 400, warmup: 20 },
        ..Plan::default()
    }
}

fn rooted(root: Root) -> Plan {
    let mut plan = plan("1000");
    plan.chosen.choose([root]);
    plan
}

fn corrected(how: &'static str) -> Plan {
    let mut plan = plan("1000");
    plan.chosen.set("ack-correction", [how]);
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
fn the_acked_broadcast_of_any_root_measures_the_same_time() {
    for root in 0..4 {
        let plan = rooted(Root::Fixed(Rank(root)));
        let rows = measure(4, &ACKED, &plan).unwrap().rows;
        let ackers: Vec<&str> = rows.iter().map(|row| row.axes["acker"].as_str()).collect();
        let others: Vec<String> =
            (0..4).filter(|acker| *acker != root).map(|acker| acker.to_string()).collect();
        assert_eq!(ackers[..3], others, "every rank but the root");
        let slowest = rows.last().unwrap();
        let (found, programmed) = (median(slowest), completion(4));
        assert!((found / programmed - 1.0).abs() < 0.02, "root {root}: {found} instead of {programmed}");
        let trips = figure(slowest, "round_trip_us") / (2.0 * LATENCY as f64 / 1e3);
        assert!((trips - 1.0).abs() < 0.01, "round trips of rank {root}");
        assert!(rows.iter().all(|row| row.samples[0].rank == root), "the root is timed");
        let named = slowest.axes.get("root").map(String::as_str);
        assert_eq!(named, Some(root.to_string()).as_deref().filter(|_| root > 0));
        let last = measure(4, &LAST, &plan).unwrap().rows.remove(0);
        assert!(last.samples[0].round_trips.is_some(), "{}", last.key);
    }
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

/// Rank 2 has the message after 7 us and sends it to rank 3 before it acknowledges. Rank 1 gets the second message of the root.
#[test]
fn each_acker_has_the_time_of_its_own_acknowledgement() {
    let rows = measure(4, &ACKED, &plan("1000")).unwrap().rows;
    let programmed = [("1", 9000.0), ("2", 9000.0), ("3", 14_000.0), ("slowest", 14_000.0)];
    assert_eq!(rows.len(), programmed.len());
    for (row, (acker, ns)) in rows.iter().zip(programmed) {
        assert_eq!(row.axes["acker"], acker);
        assert!((median(row) / ns - 1.0).abs() < 0.001, "{acker}: {} ns instead of {ns}", median(row));
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
    assert!(rows[0].trust.iter().all(|n| n.code != MarkCode::BelowOneWay), "{:?}", rows[0].trust);
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
        measure(2, &ACKED, &plan).unwrap().rows.remove(0)
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
    // Rank 3 is two messages away, and its acknowledgement one. By default, the acknowledgement does not count.
    let way = LATENCY as f64;
    let corrections = [("half", 0.0), ("none", way), ("round-trip", -way)];
    let rows = corrections.map(|(how, beside)| (measure(4, &LAST, &corrected(how)).unwrap().rows, beside));
    let default = measure(4, &LAST, &plan("1000")).unwrap().rows;
    for (rows, beside) in rows.into_iter().chain([(default, 0.0)]) {
        assert_eq!(rows.len(), 1);
        let programmed = 2.0 * 7000.0 + beside;
        assert!((median(&rows[0]) / programmed - 1.0).abs() < 0.02, "{}: {programmed}", median(&rows[0]));
    }
}

/// A message of 4000 bytes occupies its sender for 8 us and travels for 5 us.
#[test]
fn acknowledgements_rank_trees_right_and_the_naive_round_ranks_them_wrong() {
    let (occupied, travels) = (8000.0, LATENCY as f64);
    for ranks in [4, 8] {
        let long = plan("4000");
        let [linear, binomial] =
            [&LINEAR_ACKED, &ACKED].map(|b| median(measure(ranks, b, &long).unwrap().rows.last().unwrap()));
        let [naive_linear, naive_binomial] =
            [&LINEAR_ROUND, &ROUND].map(|b| median(&measure(ranks, b, &long).unwrap().rows[0]));
        let found = format!(
            "{ranks} ranks: acked {linear} and {binomial}, naive {naive_linear} and {naive_binomial}"
        );
        // The root sends n - 1 messages; the last of log2 n messages in sequence completes the binomial tree.
        let truth =
            [f64::from(ranks - 1) * occupied + travels, f64::from(ranks.ilog2()) * (occupied + travels)];
        for (acked, truth) in [linear, binomial].into_iter().zip(truth) {
            assert!((acked / truth - 1.0).abs() < 0.01, "{found}, programmed {truth:?}");
        }
        assert!(linear > 1.1 * binomial, "{found}");
        assert!(naive_linear < 0.8 * naive_binomial, "{found}");
        assert!(naive_linear < 0.8 * linear && naive_binomial < 0.9 * binomial, "{found}");
    }
    // Short messages do not occupy the root: the linear broadcast takes one message one way, by both methods.
    let short = plan("1");
    let acked = [&LINEAR_ACKED, &ACKED].map(|b| median(measure(4, b, &short).unwrap().rows.last().unwrap()));
    assert!((acked[0] / travels - 1.0).abs() < 0.01 && (acked[1] / travels - 2.0).abs() < 0.01, "{acked:?}");
}

#[test]
fn a_tree_has_any_root() {
    for (root, bench) in [("2", &ROOTED), ("rotate", &ROTATED)] {
        let plan = rooted(Root::parse(root).unwrap());
        let row = measure(3, bench, &plan).unwrap().rows.remove(0);
        // The root has sent its second message after 4 us.
        assert!((median(&row) / 9000.0 - 1.0).abs() < 0.01, "{}", median(&row));
        assert_eq!(row.axes["root"], root);
    }
    let nowhere = rooted(Root::Fixed(Rank(3)));
    let row = measure(3, &ROOTED, &nowhere).unwrap().rows.remove(0);
    assert!(matches!(&row.outcome, Outcome::Skipped(why) if why.contains("root 3")), "{:?}", row.outcome);
}
