//! Comparisons of files and of turns.

use std::sync::LazyLock;

use ombx_compare::{Comparison, Settings, SideResults, Turn, Verdict};
use ombx_estimate::{launches::LOOKS, state};
use ombx_record::{
    file::{self, RunWithRows},
    result::{Launched, Measurement},
    stats::Summary,
};

use super::Lines;
use crate::random::Uniform;

const MARGIN: f64 = 0.05;
/// Rows of a comparison, which share part of the scatter.
const ROWS: usize = 8;

/// Scatter of runs or turns as logarithms: what all rows share, and what each has.
#[derive(Debug, Clone, Copy)]
struct Scatter {
    shared: f64,
    own: f64,
}

const fn scatter(shared: f64, own: f64) -> Scatter {
    Scatter { shared, own }
}

/// Two sides: numbers of runs or turns, scatter of each side, and how many times as long the new side takes.
#[derive(Debug, Clone, Copy)]
struct Model {
    units: [usize; 2],
    scatter: [Scatter; 2],
    slower: f64,
    rows: usize,
    /// Number of rows in which the new side is slower.
    slower_rows: usize,
}

pub(super) fn simulate(lines: &mut Lines, times: u64, seed: u64) {
    let (small, large) = (scatter(0.02, 0.02), scatter(0.1, 0.05));
    let edge = 1.0 + MARGIN;
    let decided = |v: &Verdict| matches!(v, Verdict::Worse | Verdict::Better);
    let is_worse = |v: &Verdict| *v == Verdict::Worse;
    for (name, units, scatter) in [
        ("4 and 4 runs, scatter 3 %", [4, 4], [small; 2]),
        ("6 and 6 runs, scatter 3 %", [6, 6], [small; 2]),
        ("6 and 6 runs, scatter 11 %", [6, 6], [large; 2]),
        ("4 and 4 runs, scatter 11 and 3 %", [4, 4], [large, small]),
        ("6 and 30 runs, scatter 11 and 3 %", [6, 30], [large, small]),
        ("30 and 6 runs, scatter 3 and 11 %", [30, 6], [small, large]),
    ] {
        let of = |slower| Model { units, scatter, slower, rows: ROWS, slower_rows: ROWS };
        let any = |slower, verdict: fn(&Verdict) -> bool| {
            count(times, seed, |random| compared(of(slower), random), verdict)
        };
        lines.share("any row worse or better, equal sides", name, any(1.0, decided), [0.0, 5.0]);
        lines.share("any row worse, true difference = margin", name, any(edge, is_worse), [0.0, 6.0]);
    }
    let fixed = |model: Model, verdict: fn(&Verdict) -> bool| {
        count(times, seed, |random| turns(model, random), verdict)
    };
    let open = |model: Model, verdict: fn(&Verdict) -> bool| {
        count(times, seed, |random| looked(model, random), verdict)
    };
    let same = |v: &Verdict| *v == Verdict::Same;
    let found = fixed(one_row(12, 1.1, 0.03), is_worse);
    lines.share("worse at +10 %, 12 turns", "scatter 3 %", found, [94.0, 100.0]);
    let found = open(one_row(30, 1.2, 0.05), is_worse);
    lines.share("worse at +20 %, looks of ab", "scatter 5 %", found, [95.0, 100.0]);
    let found = fixed(one_row(6, edge, 0.03), is_worse);
    lines.share("worse, true difference = margin, 6 turns", "scatter 3 %", found, [0.0, 5.0]);
    let found = open(one_row(30, edge, 0.03), is_worse);
    lines.share("worse, true difference = margin, looks at 2.5 %", "scatter 3 %", found, [0.0, 5.0]);
    let found = open(one_row(30, edge, 0.03), same);
    lines.share("same, true difference = margin, looks at 2.5 %", "scatter 3 %", found, [0.0, 5.0]);
    let found = open(Model { scatter: [large; 2], ..rows_of(ROWS, 30, 1.0, 0.03) }, decided);
    let rule = "any row worse or better, equal sides, looks of ab";
    lines.share(rule, "8 rows, scatter 11 %", found, [0.0, 1.5]);
    finds(lines, times, seed);
    same_at_margin(lines, times, seed);
}

/// Returns a model of several rows, all of which are slower.
fn rows_of(rows: usize, units: usize, slower: f64, own: f64) -> Model {
    Model { units: [units; 2], scatter: [scatter(0.0, own); 2], slower, rows, slower_rows: rows }
}

/// Returns a model of one row.
fn one_row(units: usize, slower: f64, own: f64) -> Model {
    rows_of(1, units, slower, own)
}

/// Counts comparisons in which any row has a verdict.
fn count(
    times: u64,
    seed: u64,
    compare: impl Fn(&mut Uniform) -> Comparison,
    is_counted: impl Fn(&Verdict) -> bool,
) -> [u64; 2] {
    let mut random = Uniform::new(seed);
    let any = |comparison: &Comparison| comparison.cases.iter().any(|case| is_counted(&case.verdict));
    let hits = (0..times).filter(|_| any(&compare(&mut random))).count();
    [hits as u64, times]
}

/// A difference of the size that `finds` tells is found at least four times in five, also in one row of many.
fn finds(lines: &mut Lines, times: u64, seed: u64) {
    type Compare = fn(Model, &mut Uniform) -> Comparison;
    for (what, compare, units) in
        [("12 turns", turns as Compare, 12), ("6 and 6 runs", compared as Compare, 6)]
    {
        for (rows, own) in [(1, 0.01), (1, 0.05), (6, 0.01), (6, 0.05), (24, 0.05)] {
            let model = rows_of(rows, units, 1.0, own);
            let mut random = Uniform::new(seed);
            let detectable = |random: &mut Uniform| {
                compare(model, random).cases.remove(0).power.map_or(0.0, |power| power.detectable)
            };
            let told = (0..times).map(|_| detectable(&mut random)).sum::<f64>() / times as f64;
            let slower = Model { slower: 1.0 + told, slower_rows: 1, ..model };
            let mut random = Uniform::new(seed + 1);
            let is_found = |_: &u64| compare(slower, &mut random).cases[0].verdict == Verdict::Worse;
            let found = (0..times).filter(is_found).count() as u64;
            let model = format!("{what}, one slow row of {rows}, scatter {:.0} %", own * 100.0);
            lines.share("worse at the difference of `finds`", &model, [found, times], [80.0, 100.0]);
        }
    }
}

/// Rows whose difference is the margin are called the same in few comparisons, however many rows there are.
fn same_at_margin(lines: &mut Lines, times: u64, seed: u64) {
    let is_same = |v: &Verdict| *v == Verdict::Same;
    for rows in [6, 24] {
        let model = |units: usize| rows_of(rows, units, 1.0 + MARGIN, 0.03);
        let rule = "any row the same, true difference = margin";
        let found = count(times, seed, |random| turns(model(12), random), is_same);
        lines.share(rule, &format!("12 turns, {rows} rows, scatter 3 %"), found, [0.0, 5.0]);
        let found = count(times, seed, |random| compared(model(6), random), is_same);
        lines.share(rule, &format!("6 and 6 runs, {rows} rows, scatter 3 %"), found, [0.0, 5.0]);
    }
    let found = count(times, seed, |random| turns(rows_of(6, 12, 1.0, 0.01), random), is_same);
    lines.share("any row the same, equal sides", "12 turns, 6 rows, scatter 1 %", found, [95.0, 100.0]);
}

static TEMPLATE: LazyLock<RunWithRows> = LazyLock::new(|| {
    let golden = include_bytes!("../../../../crates/record/tests/golden/one_launch.jsonl");
    let mut run = file::read(golden.as_slice()).unwrap_or_default().runs.remove(0);
    run.run.places.truncate(1);
    run.run.plan = [(state::BEFORE.to_owned(), "58".to_owned())].into();
    run.run.launched = Some(Launched { core_to_core_ns: Some(58.0), ..Launched::default() });
    run.rows.truncate(1);
    run
});

/// Returns a launch whose rows have these times.
fn launch(turn: Option<Turn>, times: impl Iterator<Item = f64>) -> RunWithRows {
    let template = &*TEMPLATE;
    let mut run = template.run.clone();
    if let Some(turn) = turn {
        turn.add_to(&mut run);
    }
    let rows = (1..).zip(times).map(|(bytes, time)| Measurement {
        key: format!("p2p.latency/bytes={bytes}"),
        bytes: Some(bytes),
        summary: Summary::new(&[1000.0 * time; 6]),
        samples: Vec::new(),
        trust: Vec::new(),
        ..template.rows[0].clone()
    });
    RunWithRows { rows: rows.collect(), ..RunWithRows::new(run) }
}

fn times(model: Model, side: usize, random: &mut Uniform) -> Vec<f64> {
    let Scatter { shared, own } = model.scatter[side];
    let level = (shared * random.normal()).exp();
    let slower = |row: usize| if side == 1 && row < model.slower_rows { model.slower } else { 1.0 };
    (0..model.rows).map(|row| slower(row) * level * (own * random.normal()).exp()).collect()
}

/// Compares files of runs, each of one launch: how many launches a run has does not matter.
fn compared(model: Model, random: &mut Uniform) -> Comparison {
    let sides = [0, 1].map(|side| {
        let mut results = SideResults::named("x");
        (0..model.units[side])
            .for_each(|_| results.run(&launch(None, times(model, side, random).into_iter())));
        results
    });
    Comparison::new(&sides[0], &sides[1], Settings { margin: MARGIN })
}

/// Returns sides that have taken no turn.
fn no_turns() -> [SideResults; 2] {
    [SideResults::named("a"), SideResults::named("b")]
}

fn take_turn(sides: &mut [SideResults; 2], number: usize, model: Model, is_open: bool, random: &mut Uniform) {
    for (at, side) in sides.iter_mut().enumerate() {
        let turn = Turn { of: "ab".into(), number: number as u32, is_open };
        side.run(&launch(Some(turn), times(model, at, random).into_iter()));
    }
}

fn turns(model: Model, random: &mut Uniform) -> Comparison {
    let mut sides = no_turns();
    (1..=model.units[0]).for_each(|number| take_turn(&mut sides, number, model, false, random));
    Comparison::new(&sides[0], &sides[1], Settings { margin: MARGIN })
}

/// Takes turns as `ab` does: until two looks in a row have decided every row, or 30 turns.
fn looked(model: Model, random: &mut Uniform) -> Comparison {
    let (mut sides, mut was_decided, mut number) = (no_turns(), false, 0);
    loop {
        number += 1;
        take_turn(&mut sides, number, model, true, random);
        if !LOOKS.contains(&(number as u32)) {
            continue;
        }
        let comparison = Comparison::new(&sides[0], &sides[1], Settings { margin: MARGIN });
        let is_decided = !comparison.more_could_decide();
        if number >= model.units[0] || (was_decided && is_decided) {
            return comparison;
        }
        was_decided = is_decided;
    }
}
