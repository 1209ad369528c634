//! Comparisons with a known difference: launches with simulated scatter, and simulated links.

use std::sync::LazyLock;

use ombx_core::{
    benchmark::{Benchmark, Chosen, Depth},
    measure::plan::{Effort, Plan},
    random::SplitMix64,
    two_sided::pattern::{PatternKernel, PingPong, Stream},
};
use ombx_estimate::state;
use ombx_host::performance::INSTRUCTIONS;
use ombx_record::{
    file::RunWithRows,
    result::{
        Aggregation, Figure, Launched, Mark, MarkCode, Measurement, Metric, Outcome, Run, RunOutcome, Tally,
        Work,
    },
    stats::Summary,
    unit::parse_sizes,
};
use ombx_testkit::{SimLink, golden, measure};

use crate::*;

mod states;

type Fair = SimLink<5000, 20>;
/// 10 % slower in everything.
type Slowed = SimLink<5500, 22>;

static FAIR_PING: Benchmark = Benchmark::new::<PatternKernel<PingPong, Fair>>("sim.latency", "x");
static FAIR_STREAM: Benchmark = Benchmark::new::<PatternKernel<Stream, Fair>>("sim.bw", "x").streaming();
static SLOW_PING: Benchmark = Benchmark::new::<PatternKernel<PingPong, Slowed>>("sim.latency", "x");
static SLOW_STREAM: Benchmark = Benchmark::new::<PatternKernel<Stream, Slowed>>("sim.bw", "x").streaming();

/// Number of simulated comparisons per model.
const COMPARISONS: usize = 120;
/// Most of them with a false verdict if 5 % is the true rate: 2.6 standard deviations above the mean.
const MOST_FALSE: usize = 12;

/// Deterministic noise.
struct Noise(SplitMix64);

impl Noise {
    fn new(seed: u64) -> Noise {
        Noise(SplitMix64(seed))
    }

    /// Returns a value above 0 and at most 1.
    fn flat(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns a normal value with standard deviation 1, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.flat().ln()).sqrt() * (std::f64::consts::TAU * self.flat()).cos()
    }
}

/// Scatter of launches around the true value, as logarithms.
#[derive(Clone, Copy, Default)]
struct Scatter {
    /// Standard deviation of what all rows of a launch share.
    launch: f64,
    /// Standard deviation of each row.
    row: f64,
    /// Standard deviation of one row in ten, which is far larger.
    tail: f64,
    /// Probability that a row of a launch is 30 % slower.
    second_mode: f64,
}

/// What the launches of `p2p.latency` on MPICH look like.
const MPICH: Scatter = Scatter { launch: 0.17, row: 0.03, tail: 0.03, second_mode: 0.0 };

/// Run and row from which others are made.
static TEMPLATE: LazyLock<RunWithRows> = LazyLock::new(golden);

fn run_at(second: usize) -> Run {
    let run = TEMPLATE.run.clone();
    Run {
        id: format!("run-{second}"),
        started: format!("2026-01-02T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60),
        places: vec![run.places[0].clone(); 2],
        plan: [(state::BEFORE.to_owned(), "58".to_owned())].into(),
        loaded: None,
        launched: Some(Launched { core_to_core_ns: Some(61.0), ..Launched::default() }),
        ..run
    }
}

/// Makes the launches of a side turns of `ab`.
fn as_turns(mut side: SideResults, is_open: bool) -> SideResults {
    for (number, launch) in (1..).zip(&mut side.launched) {
        launch.turn = Some(Turn { of: "ab".into(), number, is_open });
    }
    side
}

fn row(bytes: u64, median_ns: f64) -> Measurement {
    Measurement {
        key: format!("p2p.latency/bytes={bytes}"),
        bytes: Some(bytes),
        work: Some(Work { bytes: 2 * bytes, ops: 2, legs: 2 }),
        summary: Summary::new(&[median_ns; 6]),
        samples: Vec::new(),
        trust: Vec::new(),
        ..TEMPLATE.rows[0].clone()
    }
}

fn rows(count: u64) -> Vec<Measurement> {
    (0..count).map(|case| row(8 << case, 1000.0)).collect()
}

fn of_launches(launches: impl IntoIterator<Item = (usize, Vec<Measurement>)>) -> SideResults {
    let mut side = SideResults::named("x");
    for (second, rows) in launches {
        let end = Some((RunOutcome::Complete, Tally::default()));
        side.run(&RunWithRows { rows, end, ..RunWithRows::new(run_at(second)) });
    }
    side
}

/// Builds launches of the same rows. The side that starts at 0 takes turns with the one that starts at 1.
fn side(
    rows: &[Measurement],
    launches: usize,
    first: usize,
    slower: f64,
    scatter: Scatter,
    noise: &mut Noise,
) -> SideResults {
    of_launches((0..launches).map(|turn| {
        let shared = scatter.launch * noise.normal();
        let mut scattered = |row: &Measurement| {
            let own = if noise.flat() > 0.9 { scatter.tail } else { scatter.row } * noise.normal();
            let mode = if noise.flat() < scatter.second_mode { 1.3 } else { 1.0 };
            let median = row.summary.as_ref().unwrap().median * slower * mode * (shared + own).exp();
            Measurement { summary: Summary::new(&[median; 6]), ..row.clone() }
        };
        (2 * turn + first, rows.iter().map(&mut scattered).collect())
    }))
}

fn compared(base: &SideResults, new: &SideResults) -> Comparison {
    Comparison::new(base, new, Settings::default())
}

#[test]
fn few_comparisons_of_equal_sides_have_a_false_verdict() {
    let models = [
        ("lognormal", Scatter { row: 0.1, tail: 0.1, ..Scatter::default() }),
        ("shared", MPICH),
        ("two modes", Scatter { row: 0.01, tail: 0.01, second_mode: 0.3, ..Scatter::default() }),
        ("heavy tails", Scatter { row: 0.03, tail: 0.5, ..Scatter::default() }),
    ];
    for (name, scatter) in models {
        for (launches, unit) in [(4, Unit::Run), (6, Unit::Run), (6, Unit::Turn)] {
            let mut noise = Noise::new(launches as u64);
            let rows = rows(8);
            let (mut wrong, mut differ) = (0, 0);
            for _ in 0..COMPARISONS {
                let [base, new] = [0, 1].map(|first| {
                    let side = side(&rows, launches, first, 1.0, scatter, &mut noise);
                    if unit == Unit::Turn { as_turns(side, true) } else { side }
                });
                let comparison = compared(&base, &new);
                assert_eq!(comparison.unit, unit);
                let counts = comparison.counts();
                wrong += usize::from(counts.worse + counts.better > 0);
                let differs = |case: &CaseComparison| case.p_adjusted.is_some_and(|p| p < 0.05);
                differ += usize::from(comparison.cases.iter().any(differs));
            }
            assert!(
                wrong <= MOST_FALSE && differ <= MOST_FALSE,
                "{name}, {launches} of {unit:?}: {wrong} and {differ} of {COMPARISONS}"
            );
        }
    }
}

#[test]
fn equal_sides_are_seldom_called_the_same_within_less_than_their_scatter() {
    let mut noise = Noise::new(3);
    let rows = rows(6);
    for _ in 0..40 {
        let [base, new] = [0, 1].map(|first| side(&rows, 6, first, 1.0, MPICH, &mut noise));
        assert_eq!(compared(&base, &new).counts().same, 0);
    }
    let calm = Scatter { launch: 0.01, row: 0.01, tail: 0.01, second_mode: 0.0 };
    let [base, new] = [0, 1].map(|first| side(&rows, 9, first, 1.0, calm, &mut noise));
    assert_eq!(compared(&base, &new).counts(), Counts { same: 6, ..Counts::default() });
}

#[test]
fn a_difference_beyond_the_margin_is_seldom_called_the_same() {
    let mut noise = Noise::new(5);
    let (rows, scatter) = (rows(1), Scatter { launch: 0.02, ..Scatter::default() });
    let same = (0..COMPARISONS).filter(|_| {
        let base = side(&rows, 6, 0, 1.0, scatter, &mut noise);
        let new = side(&rows, 6, 1, 1.05, scatter, &mut noise);
        compared(&base, &new).counts().same > 0
    });
    let same = same.count();
    assert!(same <= MOST_FALSE, "{same} of {COMPARISONS}");
}

/// Times of launches scatter by 17 %, and counts of instructions by 0.01 %; those of another case by 1 %.
#[test]
fn one_percent_more_instructions_is_seen_where_times_cannot_decide() {
    let mut noise = Noise::new(8);
    let counted = |side_of: f64, noise: &mut Noise, first: usize| {
        let mut launch = |turn: usize| {
            let median = 1000.0 * (0.17 * noise.normal()).exp();
            let count = 2500.0 * side_of * (1e-4 * noise.normal()).exp();
            let scattered = 2500.0 * (0.01 * noise.normal()).exp();
            let mut rows = vec![row(8, median), row(64, median), row(512, median)];
            rows[2].figures.insert(INSTRUCTIONS.into(), Figure::Value(scattered));
            rows[0].figures.insert(INSTRUCTIONS.into(), Figure::Value(count));
            rows[1].figures.insert(INSTRUCTIONS.into(), Figure::Unresolved("unavailable: a test".into()));
            (2 * turn + first, rows)
        };
        of_launches((0..9).map(&mut launch))
    };
    let [base, more] = [(1.0, 0), (1.01, 1)].map(|(of, first)| counted(of, &mut noise, first));
    let comparison = compared(&base, &more);
    assert_eq!(comparison.counts().undecided, 3);
    let by = |case: &CaseComparison| case.instructions.as_ref().map(|counted| counted.verdict.clone());
    assert_eq!(comparison.cases[..2].iter().map(by).collect::<Vec<_>>(), [Some(Verdict::Worse), None]);
    assert!(matches!(by(&comparison.cases[2]), Some(Verdict::Undecided(_))));
    assert_eq!(comparison.cases[0].decided_by(), Some(DecidedBy::Instructions));
    let change = comparison.cases[0].instructions.as_ref().unwrap().change.estimate;
    assert!((change - 0.01).abs() < 0.001, "{change}");
    let notes: Vec<&str> = comparison.notes.iter().map(|note| note.text.as_str()).collect();
    assert!(
        notes.contains(&"instructions are not compared in 1 of 3 cases: unavailable: a test"),
        "{notes:?}"
    );
    let same = compared(&base, &counted(1.0, &mut noise, 1));
    assert_eq!(by(&same.cases[0]), Some(Verdict::Same));
}

#[test]
fn a_twofold_slowdown_is_found_whatever_the_launches_do() {
    for (launches, times) in [(6, 40), (7, 3), (12, 3)] {
        let mut noise = Noise::new(launches as u64);
        let rows = rows(8);
        for _ in 0..times {
            let base = side(&rows, launches, 0, 1.0, MPICH, &mut noise);
            let new = side(&rows, launches, 1, 2.0, MPICH, &mut noise);
            let comparison = compared(&base, &new);
            assert!(comparison.counts().worse >= 7, "{launches} launches: {:?}", comparison.counts());
        }
    }
}

#[test]
fn one_slow_case_among_many_is_found_and_the_others_are_not_accused() {
    let mut noise = Noise::new(11);
    let mut found = 0;
    let mut accused = 0;
    for _ in 0..40 {
        let scatter = Scatter { launch: 0.05, row: 0.02, tail: 0.02, second_mode: 0.0 };
        let base = side(&rows(24), 6, 0, 1.0, scatter, &mut noise);
        let mut slow = rows(24);
        slow[5].summary = Summary::new(&[1300.0; 6]);
        let comparison = compared(&base, &side(&slow, 6, 1, 1.0, scatter, &mut noise));
        for case in comparison.cases.iter().filter(|case| case.verdict == Verdict::Worse) {
            if case.id.bytes == slow[5].bytes { found += 1 } else { accused += 1 }
        }
    }
    assert!(found >= 38 && accused <= 5, "{found} found, {accused} accused");
}

/// Measures a link of known cost with the engine.
fn on_link(ping: &'static Benchmark, stream: &'static Benchmark) -> Vec<Measurement> {
    let plan = Plan {
        sizes: Some(parse_sizes("0,8,512,4K").unwrap()),
        chosen: Chosen::default().with(Depth(8)),
        effort: Effort::Fixed { iterations: 60, warmup: 2 },
        ..Plan::default()
    };
    let mut rows: Vec<_> =
        [ping, stream].into_iter().flat_map(|bench| measure(2, bench, &plan).unwrap().rows).collect();
    // Time is simulated: activity of the machine does not matter.
    rows.iter_mut().for_each(|row| row.trust.clear());
    rows
}

#[test]
fn a_link_that_is_slower_by_a_tenth_is_worse_in_latency_and_bandwidth() {
    let (fair, slow) = (on_link(&FAIR_PING, &FAIR_STREAM), on_link(&SLOW_PING, &SLOW_STREAM));
    let calm = Scatter { launch: 0.004, row: 0.004, tail: 0.004, second_mode: 0.0 };
    for (margin, worse) in [(0.05, 8), (0.2, 0)] {
        let mut noise = Noise::new(7);
        let base = side(&fair, 6, 0, 1.0, calm, &mut noise);
        let new = side(&slow, 6, 1, 1.0, calm, &mut noise);
        let settings = Settings { margin };
        let comparison = Comparison::new(&base, &new, settings);
        assert_eq!(comparison.counts(), Counts { worse, same: 8 - worse, ..Counts::default() });
        assert!(comparison.cases.iter().any(|case| case.id.metric == Metric::Bandwidth));
        for case in &comparison.cases {
            let [low, high] = case.change.ci90.unwrap();
            assert!((0.08..0.12).contains(&case.change.estimate) && low <= high, "{case:?}");
            assert!(case.power.unwrap().detectable < margin + 0.03, "{case:?}");
        }
        let back = Comparison::new(&new, &base, settings).counts();
        assert_eq!((back.better, back.worse), (worse, 0));
    }
}

#[test]
fn few_launches_give_a_ratio_and_no_verdict() {
    let mut noise = Noise::new(1);
    for (launches, few) in [(1, true), (2, true), (3, true), (4, false)] {
        let base = side(&rows(2), 6, 0, 1.0, MPICH, &mut noise);
        let new = side(&rows(2), launches, 1, 2.0, MPICH, &mut noise);
        let comparison = compared(&base, &new);
        for case in &comparison.cases {
            assert_eq!(case.verdict == Verdict::Undecided(Reason::FewUnits(Unit::Run)), few, "{case:?}");
            assert_eq!((case.change.ci90.is_none(), case.p_adjusted.is_none()), (few, few), "{case:?}");
            assert!((0.3..3.0).contains(&case.change.estimate), "{case:?}");
        }
        assert_eq!(comparison.undecided().count(), if few { 2 } else { comparison.undecided().count() });
    }
}

/// Launches of rows over several pairs: a pause lengthens the mean of the launch that it meets.
#[test]
fn rows_over_several_pairs_have_the_total_time_over_the_total_work_of_a_run() {
    let of_pairs = |metric: Metric, samples: usize, mean_ns: f64| {
        let summary =
            Summary { median: mean_ns, mean: mean_ns, ..Summary::new(&vec![100.0; samples]).unwrap() };
        let aggregation = Aggregation::Pairs;
        Measurement { metric, aggregation, summary: Some(summary), ..row(8, 100.0) }
    };
    for (metric, expected) in [(Metric::Latency, 0.16), (Metric::Bandwidth, 50.0)] {
        let rows = [(6, 100.0), (6, 100.0), (3, 400.0)].map(|(n, mean)| vec![of_pairs(metric, n, mean)]);
        let side = || of_launches(rows.clone().into_iter().enumerate());
        let figure = compared(&side(), &side()).cases[0].base.median;
        assert!((figure - expected).abs() < 1e-9, "{figure} instead of {expected}");
    }
    // Of one pair, the headline is a median, also over launches.
    let side = || of_launches([100.0, 100.0, 340.0].map(|ns| vec![row(8, ns)]).into_iter().enumerate());
    assert!((compared(&side(), &side()).cases[0].base.median - 0.1).abs() < 1e-9);
}

#[test]
fn no_verdict_rests_on_rows_that_are_invalid() {
    let calm = Scatter { launch: 0.01, ..Scatter::default() };
    let sides = |marked_launches: usize| {
        let mut noise = Noise::new(1);
        let [base, new] = [(0, 1.0), (1, 2.0)].map(|(first, slower)| {
            of_launches((0..10).map(|turn| {
                let level = slower * (calm.launch * noise.normal()).exp();
                let mut rows = vec![row(8, 1000.0 * level), row(16, 1000.0 * level)];
                rows[0].trust.extend(
                    (turn < marked_launches).then(|| Mark::with_advice(MarkCode::Oversubscribed, "x", "x")),
                );
                rows[1].trust.push(Mark::with_advice(MarkCode::Bimodal, "x", "x"));
                (2 * turn + first, rows)
            }))
        });
        compared(&base, &new)
    };
    let some = sides(4);
    assert_eq!((some.counts().worse, some.cases[0].base.values.len()), (2, 6));
    let too_many = sides(7);
    let marked = Verdict::Undecided(Reason::Marked("oversubscribed".into()));
    assert_eq!((&too_many.cases[0].verdict, too_many.counts().worse), (&marked, 1));
    assert_eq!((too_many.undecided().count(), too_many.more_could_decide()), (1, false));
}

#[test]
fn cases_that_some_launches_lack_are_compared() {
    let calm = Scatter { launch: 0.02, row: 0.01, tail: 0.01, second_mode: 0.0 };
    let mut noise = Noise::new(2);
    let [base, new] = [(0, 1.0), (1, 2.0)].map(|(first, slower)| {
        of_launches((0..10).map(|turn| {
            let level = slower * (calm.launch * noise.normal()).exp();
            let mut rows = vec![row(8, 1000.0 * level), row(16, 1000.0 * level), row(32, 1000.0 * level)];
            if turn >= 6 {
                rows.remove(1);
            }
            if turn >= 3 {
                rows.remove(0);
            }
            (2 * turn + first, rows)
        }))
    });
    let comparison = compared(&base, &new);
    let verdicts: Vec<&str> = comparison.cases.iter().map(|case| case.verdict.name()).collect();
    assert_eq!(verdicts, ["undecided", "worse", "worse"]);
    let lengths: Vec<usize> = comparison.cases.iter().map(|case| case.new.values.len()).collect();
    assert_eq!(lengths, [3, 6, 10]);
}

#[test]
fn missing_and_broken_cases_are_listed() {
    let of = |second, rows: Vec<Measurement>| {
        let mut side = SideResults::named("x");
        side.run(&RunWithRows { rows, ..RunWithRows::new(run_at(second)) });
        side
    };
    let failed = Measurement {
        outcome: Outcome::Failed("data arrived wrong".into()),
        summary: None,
        ..row(16, 1000.0)
    };
    let skipped =
        Measurement { outcome: Outcome::Skipped("needs 4 ranks".into()), summary: None, ..row(32, 1000.0) };
    let base = of(0, [rows(3), vec![row(64, 1000.0)]].concat());
    let comparison = compared(&base, &of(1, vec![row(8, 1000.0), failed, skipped]));
    assert_eq!(comparison.cases.len(), 1);
    let lost: Vec<(&str, &str)> =
        comparison.unmatched.iter().map(|l| (l.key.as_str(), l.why.as_str())).collect();
    let key = |bytes: u64| format!("p2p.latency/bytes={bytes}");
    let (k16, k32, k64) = (key(16), key(32), key(64));
    assert_eq!(
        lost,
        [(k16.as_str(), "failed: data arrived wrong"), (&k32, "skipped: needs 4 ranks"), (&k64, "not there")]
    );
    assert_eq!(comparison.broken, [(k16, "data arrived wrong".to_owned())]);
}

#[test]
fn another_library_host_or_clock_is_noted() {
    let of = |run: Run| {
        let mut side = SideResults::named("x");
        side.run(&RunWithRows {
            rows: rows(1),
            end: Some((RunOutcome::Complete, Default::default())),
            ..RunWithRows::new(run)
        });
        side
    };
    let mut other = run_at(1);
    other.library = "MPI 2.0, built somewhere".into();
    other.profile = "debug".into();
    other.clock.source = "monotonic".into();
    other.places[1].host = "n02".into();
    let codes: Vec<&str> = compared(&of(run_at(0)), &of(other)).notes.iter().map(|n| n.code).collect();
    assert_eq!(codes, ["library", "hosts", "placement", "clock", "profile"]);
    let same: Vec<&str> = compared(&of(run_at(0)), &of(run_at(1))).notes.iter().map(|n| n.code).collect();
    assert!(same.is_empty(), "{same:?}");
}
