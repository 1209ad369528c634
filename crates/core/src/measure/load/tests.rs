//! Loads on threads as ranks, in virtual time.

use std::collections::BTreeSet;

use ombx_record::{
    result::{Check, Figure, Measurement, Mismatch, Outcome},
    unit::{Rank, parse_sizes},
};

use crate::{
    benchmark::{Benchmark, Choice, Layout, Pairs},
    measure::{
        plan::{Effort, Launch, LaunchSettings, Plan},
        runner::{Part, run_all},
        session::Memory,
    },
    testkit::{SimLink, measure, on_uneven_ranks},
    two_sided::pattern::{PatternKernel, PingPong, Stream},
};

type Link = SimLink<1000, 1>;
type BrokenLink = SimLink<1000, 1, 3>;

static PAIRS: Benchmark =
    Benchmark::new::<PatternKernel<PingPong, Link>>("sim.pings", "x").layout(Layout::Pairs(Pairs::Most));
static VICTIM: Benchmark = Benchmark::new::<PatternKernel<PingPong, Link>>("sim.ping", "x");

inventory::submit!(Benchmark::new::<PatternKernel<Stream, Link>>("sim.flow", "x").streaming());
inventory::submit!(Benchmark::new::<PatternKernel<Stream, BrokenLink>>("sim.broken_flow", "x").streaming());
inventory::submit!(
    Benchmark::new::<PatternKernel<Stream, Link>>("sim.absent", "x")
        .available(|| Err("it is not built".into()))
);
inventory::submit!(
    Benchmark::new::<PatternKernel<Stream, Link>>("sim.crowd", "x").layout(Layout::Everyone { least: 9 })
);

fn rows(ranks: u32, under: &str) -> Vec<Measurement> {
    let plan = Plan {
        sizes: Some(parse_sizes("8,1000").unwrap()),
        effort: Effort::Fixed { iterations: 60, warmup: 2 },
        under: under.split(',').map(|load| load.parse().unwrap()).collect(),
        ..Plan::default()
    };
    measure(ranks, &VICTIM, &plan).unwrap().rows
}

fn value(row: &Measurement, name: &str) -> Option<f64> {
    match row.figures.get(name) {
        Some(Figure::Value(value)) => Some(*value),
        _ => None,
    }
}

#[test]
fn each_load_has_its_rows() {
    // With five ranks, one of the three that are kept for the load has no partner and sleeps.
    for ranks in [4, 5, 6] {
        let rows = rows(ranks, "nothing,sim.flow:1K,nothing");
        let keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
        let of = |under: &str, bytes| format!("sim.ping/under={under},bytes={bytes}");
        let expected = ["nothing", "sim.flow:1K", "nothing-again"].map(|load| [of(load, 8), of(load, 1000)]);
        assert_eq!(keys, expected.concat());
        for row in &rows {
            assert_eq!(
                (&row.outcome, &row.check, row.ranks),
                (&Outcome::Ok, &Check::Passed, 2),
                "{}",
                row.key
            );
            let is_loaded = row.axes["under"] == "sim.flow:1K";
            assert_eq!(value(row, "congestors_mb_per_s").is_some(), is_loaded, "{}", row.key);
            // These links share nothing, and virtual time is exact.
            let factor = (row.axes["under"] != "nothing").then_some(1.0);
            assert_eq!(value(row, "impact_times"), factor, "{}", row.key);
        }
        let rate = value(&rows[2], "congestors_mb_per_s").unwrap();
        // A byte takes a nanosecond on each link, and latencies take a part of the time.
        let links = f64::from((ranks - 2) / 2);
        assert!(rate > 500.0 * links && rate <= 1000.0 * links, "{ranks} ranks: {rate}");
    }
}

#[test]
fn several_benchmarks_are_one_load() {
    let one = rows(4, "sim.flow:1K");
    let rows = rows(6, "sim.flow:1K+sim.flow:1000");
    assert_eq!(rows[0].key, "sim.ping/under=sim.flow:1K+sim.flow:1000,bytes=8");
    assert_eq!((&rows[0].outcome, &rows[0].check), (&Outcome::Ok, &Check::Passed));
    let [alone, both] = [&one[0], &rows[0]].map(|row| value(row, "congestors_mb_per_s").unwrap());
    assert!((both / alone - 2.0).abs() < 0.1, "{both} is the rate of two pairs, {alone} that of one");
}

#[test]
fn wrong_data_of_one_of_two_loads_fails_the_row() {
    let rows = rows(6, "sim.flow:64+sim.broken_flow:64");
    assert!(rows.iter().all(|row| matches!(row.check, Check::Failed(_))));
}

#[test]
fn a_fifth_of_the_ranks_is_measured() {
    for (ranks, victims) in [(10, 2), (20, 4), (29, 4), (30, 6)] {
        let plan = Plan {
            sizes: Some(parse_sizes("8").unwrap()),
            effort: Effort::Fixed { iterations: 20, warmup: 1 },
            under: vec!["sim.flow".parse().unwrap()],
            ..Plan::default()
        };
        let row = measure(ranks, &PAIRS, &plan).unwrap().rows.remove(0);
        assert_eq!((row.ranks, row.pairs), (victims, victims / 2), "of {ranks} ranks");
    }
}

/// The latency tells which rank rank 0 exchanges messages with.
#[test]
fn launches_measure_other_ranks() {
    let partner = |order: u64| {
        let plan = Plan {
            sizes: Some(parse_sizes("0").unwrap()),
            effort: Effort::Fixed { iterations: 20, warmup: 1 },
            under: vec!["sim.flow".parse().unwrap()],
            settings: LaunchSettings {
                launch: Some(Launch { number: 1, of: 2, order }),
                ..LaunchSettings::default()
            },
            ..Plan::default()
        };
        let far = |from: u32, to: u32| 1000 * u64::from(from.max(to));
        let mut all = on_uneven_ranks(8, far, |team| {
            let mut sink = Memory::default();
            let choice = Choice { bench: &VICTIM, preset: &[] };
            let part = Part { choices: vec![choice], plan: plan.clone() };
            run_all(team, &[part], &team.clock, &mut sink, Vec::new()).unwrap();
            sink
        });
        let median = all[0].rows.remove(0).summary.unwrap().median;
        (median - 1000.0) / 1000.0
    };
    let partners: Vec<f64> = (0..20).map(partner).collect();
    assert!(partners.iter().all(|partner| (1..8).any(|rank| *partner == f64::from(rank))), "{partners:?}");
    let different: BTreeSet<u64> = partners.iter().map(|partner| *partner as u64).collect();
    assert!(different.len() > 3, "{partners:?}");
}

#[test]
fn wrong_data_of_a_load_fails_the_row() {
    let rows = rows(4, "nothing,sim.broken_flow:64");
    assert!(rows[..2].iter().all(|row| row.check == Check::Passed));
    for row in &rows[2..] {
        let Check::Failed(Mismatch { rank: Rank(rank), byte, expected, actual, .. }) = row.check else {
            panic!("{row:?}")
        };
        assert_eq!((byte, expected ^ actual), (2, 1));
        assert!((1..4).contains(&rank), "the rank is one of the job: {rank}");
        let Outcome::Failed(why) = &row.outcome else { panic!("{row:?}") };
        assert!(why.contains("sim.broken_flow"), "{why}");
        assert_eq!(value(row, "impact_times"), None);
    }
}

#[test]
fn what_cannot_run_is_a_skipped_row() {
    let reasons = [
        (3, "sim.flow", "needs 4 ranks"),
        (4, "sim.absent", "it is not built"),
        (5, "sim.flow+sim.flow", "needs 6 ranks"),
        (4, "sim.crowd", "needs 9 ranks"),
    ];
    for (ranks, load, reason) in reasons {
        let rows = rows(ranks, load);
        let [row] = &*rows else { panic!("{rows:?}") };
        let Outcome::Skipped(why) = &row.outcome else { panic!("{row:?}") };
        assert!(why.contains(reason), "{why}");
    }
    // What follows in the list is measured.
    let under: BTreeSet<String> =
        rows(4, "sim.absent,sim.flow").into_iter().filter_map(|row| row.axes.get("under").cloned()).collect();
    assert_eq!(under.into_iter().collect::<Vec<_>>(), ["sim.absent:4K", "sim.flow:4K"]);
}
