//! Sweeps over simulated links of known cost.

use std::{collections::BTreeSet, time::Duration};

use super::*;
use ombx_core::{
    benchmark::Benchmark,
    measure::plan::{Effort, parse_sizes},
    testkit::{Delay, SimLink, on_uneven_ranks},
    two_sided::pattern::{PatternKernel, Semidirectional},
};
use ombx_results::verdict::{Component, TimesBySize, find_slow};

static SIM: Benchmark =
    Benchmark::of::<PatternKernel<Semidirectional, SimLink<5000, 2>>>("sim.link", "a link of known cost");

fn sweep(ranks: u32, mode: Mode, seed: Option<u64>, retest: u32, delay: Delay) -> Memory {
    let choice = Choice { bench: &SIM, preset: &[] };
    let task = Task { choice, mode, seed, retest, criteria: Criteria::default() };
    let effort = Effort::Precision { precision: 0.01, max_time: Duration::from_micros(400) };
    let plan = Plan { sizes: Some(parse_sizes("8,1000").unwrap()), effort, ..Plan::default() };
    let mut all = on_uneven_ranks(ranks, delay, |team| {
        let mut sink = Memory::default();
        run(team, &task, &plan, &team.clock, &mut sink, vec![]).unwrap();
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
    for ranks in 2..=7 {
        for (mode, seed) in [(Mode::Parallel, None), (Mode::Serial, None), (Mode::Parallel, Some(5))] {
            let memory = sweep(ranks, mode, seed, 0, |_, _| 0);
            let rows = (ranks * (ranks - 1) * 2) as usize;
            assert_eq!((memory.rows.len(), memory.tally.unwrap().cases), (rows, rows as u64), "{ranks}");
            assert_eq!(mode.extent(ranks, 2).1, rows as u64);
            let keys: BTreeSet<&str> = memory.rows.iter().map(|r| r.key.as_str()).collect();
            assert_eq!(keys.len(), rows);
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
fn a_bisection_is_one_round() {
    for ranks in 2..=7 {
        let rows = sweep(ranks, Mode::Bisection, None, 0, |_, _| 0).rows;
        assert_eq!(rows.len() as u32, ranks / 2 * 4, "{ranks}");
        assert!(rows.iter().all(|r| axis(r, "from").abs_diff(axis(r, "to")) == ranks / 2));
    }
}

#[test]
fn a_slow_link_is_measured_again_and_named() {
    fn slow(from: u32, to: u32) -> u64 {
        if (from.min(to), from.max(to)) == (2, 4) { 2500 } else { 0 }
    }
    let memory = sweep(6, Mode::Parallel, None, 4, slow);
    let mut times = TimesBySize::default();
    memory.rows.iter().for_each(|row| times.add(row));
    let retests: Vec<&Measurement> =
        memory.rows.iter().filter(|r| r.axes.get("retest").is_some_and(|v| v == "alone")).collect();
    assert_eq!(retests.len(), 2 * 4);
    assert_eq!(retests.iter().filter(|r| (axis(r, "from"), axis(r, "to")) == (2, 4)).count(), 2);
    let ordinary = memory.rows.iter().filter(|r| r.axes.get("retest").is_some_and(|v| v == "reference"));
    assert_eq!(ordinary.count(), 2 * (15 - 4), "few links are all measured again");
    let hosts = Hosts::of(["n0", "n0", "n0", "n0", "n0", "n0"]);
    let found = find_slow(&times.0, &hosts);
    assert_eq!(found.iter().map(|s| s.component.clone()).collect::<Vec<_>>(), [Component::Link(2, 4)]);
    assert!(find_slow(&times.0[..0], &hosts).is_empty());
}

#[test]
fn one_rank_has_no_links() {
    let result = std::panic::catch_unwind(|| sweep(1, Mode::Parallel, None, 0, |_, _| 0));
    assert!(result.is_err());
}
