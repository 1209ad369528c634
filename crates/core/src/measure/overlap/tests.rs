//! Overlap of simulated operations, in virtual time.

use ombx_record::{
    error::Error,
    result::{Measurement, Metric, Outcome, Work},
};

use super::*;
use crate::{
    benchmark::{Benchmark, Layout, ParameterValue},
    clock::VirtualTime,
    measure::plan::{Effort, Plan},
    testkit::{SimMesh, ThreadTeam, measure, noise::Noise},
};

/// Duration of the operation in nanoseconds.
const DURATION_NS: u64 = 10_000;

/// Progress by a network card, without the CPU.
const OFFLOADED_PROGRESS: u8 = 0;
/// Progress only in calls of the library. Each test does a hundredth of the operation.
const PROGRESS_IN_CALLS: u8 = 1;
/// Progress by a network card, on a machine that becomes slower.
const SLOWING: u8 = 2;
/// Time after which a machine that becomes slower takes twice as long for everything.
const TWICE_AS_LONG_NS: u64 = 30_000_000;

/// An operation that takes [`DURATION_NS`]. Size 404 is unsupported; with size 500, the data is wrong.
struct Simulated<const PROGRESS: u8> {
    time: VirtualTime,
    wrong: bool,
}

struct LetTimePass {
    time: VirtualTime,
    lasts: Duration,
    slowing: bool,
}

impl Busy for LetTimePass {
    fn run(&self) {
        self.time.advance(slowed(&self.time, self.lasts.as_nanos() as u64, self.slowing));
    }
}

/// Returns what work takes now that takes `ns` on the undisturbed machine.
fn slowed(time: &VirtualTime, ns: u64, slowing: bool) -> u64 {
    if slowing { ns + ns * time.now() / TWICE_AS_LONG_NS } else { ns }
}

impl<const PROGRESS: u8> Kernel for Simulated<PROGRESS> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = METHOD;

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        if case.bytes.0 == 404 {
            return Err(Error::unsupported("404 is not supported"));
        }
        Ok(Simulated { time: cx.fabric::<ThreadTeam>()?.time.clone(), wrong: case.bytes.0 == 500 })
    }

    fn active(&mut self) -> Result<()> {
        self.overlapped(0, || ())
    }

    fn check(&mut self, _: Fill) -> Result<Check> {
        let mismatch = ombx_record::result::Mismatch {
            rank: ombx_record::unit::Rank(0),
            slot: 0,
            byte: 0,
            expected: 1,
            actual: 0,
        };
        Ok(if self.wrong { Check::Failed(mismatch) } else { Check::Passed })
    }
}

impl<const PROGRESS: u8> Overlappable for Simulated<PROGRESS> {
    type Computation = LetTimePass;

    fn computation(&self, time: Duration) -> LetTimePass {
        LetTimePass { time: self.time.clone(), lasts: time, slowing: PROGRESS == SLOWING }
    }

    fn overlapped(&mut self, tests: u32, mut slice: impl FnMut()) -> Result<()> {
        let started = self.time.now();
        let mut left = slowed(&self.time, DURATION_NS, PROGRESS == SLOWING);
        slice();
        for _ in 0..tests {
            if PROGRESS == PROGRESS_IN_CALLS {
                let step = left.min(DURATION_NS / 100);
                self.time.advance(step);
                left -= step;
            }
            slice();
        }
        if PROGRESS != PROGRESS_IN_CALLS {
            left = left.saturating_sub(self.time.now() - started);
        }
        self.time.advance(left);
        Ok(())
    }
}

const fn entry<const PROGRESS: u8>(name: &'static str) -> Benchmark {
    Benchmark::custom(name, "an operation", Metric::Latency, METHOD, run::<Simulated<PROGRESS>, SimMesh<0>>)
        .layout(Layout::Everyone { least: 1 })
        .sizes("8")
        .with(&[TestCalls::PARAMETER, Parts::PARAMETER])
}

static OFFLOADED: Benchmark = entry::<OFFLOADED_PROGRESS>("sim.offloaded");
static LAZY: Benchmark = entry::<PROGRESS_IN_CALLS>("sim.lazy");
static SLOWER: Benchmark = entry::<SLOWING>("sim.slower");

fn row(bench: &'static Benchmark, sizes: &str, tests: &'static str) -> Measurement {
    row_of(bench, sizes, tests, 40)
}

fn row_of(bench: &'static Benchmark, sizes: &str, tests: &'static str, iterations: u64) -> Measurement {
    let mut plan = Plan {
        sizes: Some(ombx_record::unit::parse_sizes(sizes).unwrap()),
        effort: Effort::Fixed { iterations, warmup: 2 },
        ..Plan::default()
    };
    plan.chosen.set("tests", [tests]);
    measure(3, bench, &plan).unwrap().rows.remove(0)
}

fn figure(row: &Measurement, name: &str) -> f64 {
    match &row.figures[name] {
        Figure::Value(value) => *value,
        Figure::Unresolved(why) => panic!("{name}: {why}"),
    }
}

#[test]
fn an_offloaded_operation_overlaps_completely() {
    let row = row(&OFFLOADED, "8", "0");
    assert_eq!(
        row.summary.as_ref().unwrap().median,
        DURATION_NS as f64,
        "overall is as long as the computation"
    );
    assert_eq!((figure(&row, "pure_us"), figure(&row, "compute_us")), (10.0, 10.0));
    assert!((figure(&row, "overlap_percent") - 100.0).abs() < 1.0, "{:?}", row.figures);
    assert_eq!(row.samples[0].elapsed_ns.len(), 40, "the row has the samples of both together");
    let ends = ["overlap_low_percent", "overlap_high_percent"].map(|name| figure(&row, name));
    let error = "samples without noise are wrong by a step of the clock at most";
    assert!(ends[0] <= 100.0 && 100.0 <= ends[1] && ends[1] - ends[0] < 0.1, "{error}: {ends:?}");
}

#[test]
fn a_machine_that_becomes_slower_disturbs_all_three_times_alike() {
    // Phase after phase, the last time would be a third of the row later than the first.
    let row = row_of(&SLOWER, "8", "0", 1000);
    let overall = row.summary.as_ref().unwrap();
    assert!(overall.max > 2.0 * overall.min, "{overall:?}");
    for name in ["pure_us", "compute_us"] {
        let ratio = figure(&row, name) / (overall.median / 1e3);
        assert!((ratio - 1.0).abs() < 0.05, "{name} is {ratio} of both together");
    }
}

#[test]
fn an_operation_that_progresses_in_calls_does_not_overlap() {
    let row = row(&LAZY, "8", "0");
    assert_eq!(row.summary.as_ref().unwrap().median, 2.0 * DURATION_NS as f64, "in sequence");
    assert!(figure(&row, "overlap_percent") < 1.0, "{:?}", row.figures);
}

#[test]
fn tests_do_not_change_the_length_of_the_computation() {
    for tests in ["1", "10", "100"] {
        let row = row(&OFFLOADED, "8", tests);
        assert!((figure(&row, "compute_us") - 10.0).abs() < 0.2, "{tests}: {:?}", row.figures);
        assert!((figure(&row, "overlap_percent") - 100.0).abs() < 2.0, "{tests}: {:?}", row.figures);
        assert!(row.key.contains(&format!("tests={tests}")), "{}", row.key);
    }
}

#[test]
fn a_case_may_be_skipped_or_fail() {
    let skipped = row(&OFFLOADED, "404", "0");
    assert_eq!(skipped.outcome, Outcome::Skipped("404 is not supported".into()));
    let wrong = row(&OFFLOADED, "500", "0");
    assert!(matches!(wrong.outcome, Outcome::Failed(_)), "{wrong:?}");
}

fn around(median: f64, half: f64) -> Summary {
    Summary { ci95: Some([median - half, median + half]), ..Summary::new(&[median; 30]).unwrap() }
}

/// Returns the overlap for times of known medians, whose intervals have the same half width.
fn percent(pure: f64, compute: f64, overall: f64, half: f64) -> std::result::Result<Overlap, String> {
    let clock = ClockProperties { source: "manual", resolution_ns: 10, overhead_ns: 9 };
    overlap_percent(&around(pure, half), &around(compute, half), &around(overall, half), clock)
}

#[test]
fn the_formula_is_that_of_the_osu_benchmarks_or_gives_a_reason() {
    assert_eq!(percent(100.0, 100.0, 125.0, 1.0).unwrap().percent, 75.0);
    assert_eq!(percent(100.0, 100.0, 300.0, 1.0).unwrap().percent, -100.0);
    assert!(percent(10.0, 10.0, 20.0, 0.0).unwrap_err().contains("resolution of the clock"));
    let slower = overlap(
        &around(100.0, 1.0),
        &around(100.0, 1.0),
        &around(300.0, 1.0),
        ClockProperties { source: "manual", resolution_ns: 10, overhead_ns: 9 },
    );
    assert_eq!(slower["overlap_percent"], Figure::Value(0.0), "slower together than in sequence: no overlap");
    assert_eq!(slower["overlap_high_percent"], Figure::Value(0.0));
}

#[test]
fn the_error_contains_all_three_intervals() {
    // 100/p sqrt(h^2 + h^2 + ((o - c)/p h)^2)
    let wide = percent(1000.0, 1000.0, 1500.0, 40.0).unwrap();
    assert!((wide.half_width - 100.0 / 1000.0 * (2.25f64 * 1600.0).sqrt()).abs() < 1e-9, "{wide:?}");
    let why = percent(1000.0, 1000.0, 1500.0, 170.0).unwrap_err();
    assert!(why.contains("50 % with an error of 26 points"), "{why}");
    let clock = ClockProperties { source: "manual", resolution_ns: 10, overhead_ns: 9 };
    let [good, bad] = [around(1000.0, 1.0), Summary { ci95: None, ..around(1000.0, 1.0) }];
    assert!(overlap_percent(&bad, &good, &good, clock).unwrap_err().contains("no 95% interval"));
}

/// Intervals from noisy times of known medians contain the known overlap.
#[test]
fn the_interval_covers_the_overlap() {
    let clock = ClockProperties { source: "manual", resolution_ns: 1, overhead_ns: 9 };
    let mut noise = Noise::Independent { sigma: 0.1 }.stream(16);
    let mut times = |median: f64| {
        Summary::new(&(0..200).map(|_| median * noise.next_time()).collect::<Vec<_>>()).unwrap()
    };
    for known in [0.0, 40.0, 95.0] {
        let (mut covered, mut resolved) = (0, 0);
        for _ in 0..400 {
            let (pure, compute) = (times(5000.0), times(5000.0));
            let overall = times(5000.0 + 50.0 * (100.0 - known));
            if let Ok(Overlap { percent, half_width }) = overlap_percent(&pure, &compute, &overall, clock) {
                resolved += 1;
                covered += u32::from((percent - known).abs() <= half_width);
            }
        }
        assert!(resolved > 390 && covered * 100 >= resolved * 93, "{known} %: {covered} of {resolved}");
    }
}

#[test]
fn parts_of_an_overlapped_operation_are_times_of_their_own() {
    let mut plan = Plan {
        sizes: Some(vec![ombx_record::unit::Bytes(8)]),
        effort: Effort::Fixed { iterations: 40, warmup: 2 },
        ..Plan::default()
    };
    plan.chosen.set("parts", ["on"]);
    plan.chosen.set("tests", ["1"]);
    let row = measure(3, &LAZY, &plan).unwrap().rows.remove(0);
    let all = ["init_us", "test_us", "wait_us", "pure_min_us", "pure_max_us"].map(|name| figure(&row, name));
    // A test does a hundredth of the operation of 10 us, and the wait the rest.
    let is_close = |(found, expected): (&f64, f64)| (found - expected).abs() < 1e-9;
    assert!(all.iter().zip([0.0, 0.1, 9.9, 10.0, 10.0]).all(is_close), "{all:?}");
    assert!(!row_of(&LAZY, "8", "1", 40).figures.contains_key("init_us"));
}
