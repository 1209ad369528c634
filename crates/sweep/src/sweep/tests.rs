//! Sweeps over simulated links of known cost.

use std::{collections::BTreeSet, time::Duration};

use ombx_core::{
    benchmark::Benchmark,
    measure::plan::{Effort, LaunchSettings, RowBounds},
    two_sided::pattern::{PatternKernel, Semidirectional},
};
use ombx_links::verdict::{TIMES_AGAIN, TimesBySize, find_slow};
use ombx_record::{unit::parse_sizes, verdict::Component};
use ombx_testkit::{Delay, Probe, SimLink, on_uneven_ranks};

use super::*;

static SIM: Benchmark =
    Benchmark::new::<PatternKernel<Semidirectional, SimLink<5000, 2>>>("sim.link", "a link of known cost");

/// Benchmark of all ranks. Size 404 is not supported.
static ALL: Benchmark =
    Benchmark::new::<Probe<5000>>("sim.all", "a probe on all ranks").layout(Layout::Everyone { least: 2 });

fn task(mode: Mode) -> Task {
    let choice = Choice { bench: &SIM, preset: &[] };
    Task { choice, mode, rounds: None, seed: None, retest: 0, warm_up: None, criteria: Criteria::default() }
}

fn plan(sizes: &str) -> Plan {
    let effort = Effort::Precision { precision: 0.01, max_time: Duration::from_micros(400) };
    Plan { sizes: Some(parse_sizes(sizes).unwrap()), effort, ..Plan::default() }
}

fn sweep(ranks: u32, mode: Mode, seed: Option<u64>, retest: u32, delay: Delay) -> Memory {
    swept(ranks, &Task { seed, retest, ..task(mode) }, &plan("8,1000"), delay)
}

fn swept(ranks: u32, task: &Task, plan: &Plan, delay: Delay) -> Memory {
    let mut all = on_uneven_ranks(ranks, delay, |team| {
        let mut sink = Memory::default();
        run(team, task, plan, &team.clock, &mut sink, vec![]).unwrap();
        sink
    });
    assert!(all[1..].iter().all(|other| other.rows.is_empty()));
    all.swap_remove(0)
}

fn axis(row: &Measurement, name: &str) -> u32 {
    row.axes[name].parse().unwrap()
}

#[test]
fn every_direction_of_every_pair_is_a_row_of_each_size() {
    for ranks in [2, 5, 6] {
        for (mode, seed) in [(Mode::Parallel, None), (Mode::Serial, None), (Mode::Parallel, Some(5))] {
            let memory = sweep(ranks, mode, seed, 0, |_, _| 0);
            let rows = (ranks * (ranks - 1) * 2) as usize;
            assert_eq!((memory.rows.len(), memory.tally.unwrap().cases), (rows, rows as u64), "{ranks}");
            assert_eq!(mode.extent(ranks, 2, None).1, rows as u64);
            let keys: BTreeSet<&str> = memory.rows.iter().map(|r| r.key.as_str()).collect();
            assert_eq!(keys.len(), rows);
            assert!(keys.iter().all(|key| !key.contains("round=") && !key.contains("depth=")), "{keys:?}");
            for row in &memory.rows {
                assert_eq!(
                    (row.outcome.clone(), row.check.clone(), row.ranks),
                    (Outcome::Ok, Check::Passed, 2)
                );
                assert_eq!(row.samples[0].rank, axis(row, "from"));
                let leg = 5000.0 + 2.0 * row.bytes.unwrap() as f64;
                assert_eq!(row.summary.as_ref().unwrap().median, leg, "{}", row.key);
            }
        }
    }
}

#[test]
fn pairs_of_a_round_share_no_rank() {
    let memory = sweep(6, Mode::Parallel, Some(1), 0, |_, _| 0);
    for round in 0..5 {
        let of_round = memory.rows.iter().filter(|r| axis(r, "round") == round && r.bytes == Some(8));
        let ends: Vec<u32> = of_round.flat_map(|r| [axis(r, "from"), axis(r, "to")]).collect();
        assert_eq!((ends.len(), ends.iter().collect::<BTreeSet<_>>().len()), (12, 6));
    }
}

#[test]
fn a_sample_of_the_rounds_pairs_every_rank_as_often() {
    for (mode, all) in [(Mode::Parallel, 7), (Mode::Halves, 4), (Mode::Serial, 7)] {
        for rounds in [1, 3, 99] {
            let task = Task { rounds: Some(rounds), seed: Some(3), ..task(mode) };
            let memory = swept(8, &task, &plan("8"), |_, _| 0);
            let measured = rounds.min(all);
            assert_eq!(mode.extent(8, 1, Some(rounds)).1, memory.rows.len() as u64);
            for rank in 0..8 {
                let of_rank = memory.rows.iter().filter(|row| axis(row, "from") == rank);
                let partners: BTreeSet<u32> = of_rank.map(|row| axis(row, "to")).collect();
                assert_eq!(partners.len() as u32, measured, "{mode:?}, {rounds} rounds");
            }
            assert_eq!(memory.run.unwrap().plan["rounds"], rounds.to_string());
        }
    }
}

#[test]
fn a_bisection_is_one_round() {
    for ranks in 2..=7 {
        let rows = sweep(ranks, Mode::Bisection, None, 0, |_, _| 0).rows;
        assert_eq!(rows.len() as u32, ranks / 2 * 4, "{ranks}");
        assert!(rows.iter().all(|r| axis(r, "from").abs_diff(axis(r, "to")) == ranks / 2));
    }
}

#[test]
fn every_pair_between_halves_is_measured_in_rounds() {
    for ranks in 2..=7 {
        let memory = sweep(ranks, Mode::Halves, None, 0, |_, _| 0);
        let (lower, upper) = (ranks / 2, ranks.div_ceil(2));
        let links: BTreeSet<(u32, u32)> =
            memory.rows.iter().map(|r| (axis(r, "from"), axis(r, "to"))).collect();
        assert_eq!(links.len() as u32, 2 * lower * upper, "{ranks}");
        assert!(links.iter().all(|(from, to)| (*from < lower) != (*to < lower)), "{ranks}");
        assert_eq!(Mode::Halves.extent(ranks, 2, None), (4 * u64::from(upper), 4 * u64::from(lower * upper)));
        assert_eq!(memory.run.unwrap().plan["links"], "halves");
    }
}

#[test]
fn launches_have_other_partitions_of_the_same_links() {
    let of = |number: u32, seed: u64| {
        let launch = Launch { number, of: 2, order: seed };
        let settings = LaunchSettings { launch: Some(launch), ..LaunchSettings::default() };
        let plan = Plan { settings, ..plan("8") };
        let memory = swept(6, &Task { seed: Some(seed), ..task(Mode::Parallel) }, &plan, |_, _| 0);
        let run = memory.run.unwrap();
        assert_eq!((&*run.plan["launch"], &*run.plan["launches"]), (&*number.to_string(), "2"));
        assert_eq!(run.plan["randomize"], seed.to_string());
        // Which links are measured at the same time, whatever the order of the rounds.
        let in_round = |round: u32| -> BTreeSet<(u32, u32)> {
            let of_round = memory.rows.iter().filter(|row| axis(row, "round") == round);
            of_round.map(|row| (axis(row, "from"), axis(row, "to"))).collect()
        };
        let rounds: BTreeSet<_> = (0..5).map(in_round).collect();
        let keys: BTreeSet<String> = memory.rows.iter().map(|r| r.key.clone()).collect();
        (rounds, keys)
    };
    let (first, second) = (of(1, 11), of(2, 12));
    assert_ne!(first.0, second.0, "other pairs at the same time");
    assert_eq!(first.1, second.1, "the same names of rows");
}

#[test]
fn a_minimum_time_is_kept_with_a_count_and_with_a_precision() {
    let sampled = |least_us: u64, effort: Effort| {
        let bounds = RowBounds { least_time: Duration::from_micros(least_us), ..RowBounds::default() };
        let plan = Plan { bounds, effort, ..plan("8") };
        let memory = swept(2, &task(Mode::Parallel), &plan, |_, _| 0);
        if least_us > 0 {
            assert_eq!(memory.run.unwrap().plan["min_time_s"], (least_us as f64 / 1e6).to_string());
        }
        let samples = &memory.rows[0].samples[0];
        (samples.elapsed_ns.iter().sum::<u64>(), samples.batch * samples.elapsed_ns.len() as u64)
    };
    let fixed = Effort::Fixed { iterations: 20, warmup: 2 };
    // An iteration takes two legs of 5016 ns.
    assert_eq!(sampled(0, fixed), (20 * 10_032, 20));
    let (ns, iterations) = sampled(2000, fixed);
    assert!((2_000_000..2_400_000).contains(&ns) && iterations == ns / 10_032, "{ns} ns, {iterations}");
    assert_eq!(sampled(10, fixed), (20 * 10_032, 20), "the count is a minimum too");
    let precise = Effort::Precision { precision: 0.5, max_time: Duration::from_micros(400) };
    assert!(sampled(0, precise).0 <= 400_000);
    assert!(sampled(2000, precise).0 >= 2_000_000);
}

#[test]
fn all_ranks_warm_up_before_the_sweep() {
    let task = Task { warm_up: Some(Choice { bench: &ALL, preset: &[] }), ..task(Mode::Parallel) };
    for (sizes, ran) in [("8,404,1000", "sim.all 8,1000"), ("404", "sim.all none")] {
        let memory = swept(4, &task, &plan(sizes), |_, _| 0);
        assert_eq!(memory.run.unwrap().plan["warm_up"], ran);
        assert!(memory.rows.iter().all(|row| row.bench == "links" && row.outcome == Outcome::Ok));
        assert_eq!(memory.rows.len(), 12 * sizes.split(',').count());
    }
    assert!(!sweep(2, Mode::Parallel, None, 0, |_, _| 0).run.unwrap().plan.contains_key("warm_up"));
}

#[test]
fn a_slow_link_is_measured_again_and_named() {
    fn slow(from: u32, to: u32) -> u64 {
        if (from.min(to), from.max(to)) == (2, 4) { 2500 } else { 0 }
    }
    let memory = sweep(6, Mode::Parallel, None, 4, slow);
    let hosts = Hosts::new(["n0", "n0", "n0", "n0", "n0", "n0"]);
    let mut times = TimesBySize::default();
    memory.rows.iter().for_each(|row| times.add(row, &hosts, MOST_ROWS));
    let retests: Vec<&Measurement> =
        memory.rows.iter().filter(|r| r.axes.get("retest").is_some_and(|v| v == "alone")).collect();
    // Rows in which these threads waited for a CPU are measured again, as often once more.
    let as_often = |rows: usize, links: usize| {
        let least = 2 * links * TIMES_AGAIN;
        assert!((least..=2 * least).contains(&rows), "{links} links: {rows} rows");
    };
    as_often(retests.len(), 4);
    let keys: BTreeSet<&str> = memory.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys.len(), memory.rows.len());
    as_often(retests.iter().filter(|r| (axis(r, "from"), axis(r, "to")) == (2, 4)).count(), 1);
    let ordinary = memory.rows.iter().filter(|r| r.axes.get("retest").is_some_and(|v| v == "reference"));
    // Few links are all measured again.
    as_often(ordinary.count(), 15 - 4);
    let found = find_slow(&times.0, &hosts);
    assert_eq!(found.iter().map(|s| s.component.clone()).collect::<Vec<_>>(), [Component::Link(2, 4)]);
    assert!(find_slow(&times.0[..0], &hosts).is_empty());
}

#[test]
fn one_rank_has_no_links() {
    let result = std::panic::catch_unwind(|| sweep(1, Mode::Parallel, None, 0, |_, _| 0));
    assert!(result.is_err());
}
