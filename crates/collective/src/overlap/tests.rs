//! Overlap of simulated operations, in virtual time.

use super::*;
use ombx_core::{
    benchmark::{AxisValue, Benchmark, Layout},
    error::Error,
    measure::plan::{Effort, Plan},
    system::clock::VirtualTime,
    testkit::{SimMesh, ThreadTeam, measure},
};

/// Duration of the operation in nanoseconds.
const DURATION_NS: u64 = 10_000;

/// Progress by a network card, without the CPU.
const OFFLOADED_PROGRESS: u8 = 0;
/// Progress only in calls of the library. Each test does a hundredth of the operation.
const PROGRESS_IN_CALLS: u8 = 1;

/// An operation that takes [`DURATION_NS`]. Size 404 is unsupported; with size 500, the data is wrong.
struct Simulated<const PROGRESS: u8> {
    time: VirtualTime,
    wrong: bool,
}

struct LetTimePass(VirtualTime, Duration);

impl Busy for LetTimePass {
    fn run(&self) {
        self.0.advance(self.1.as_nanos() as u64);
    }
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
        let mismatch = ombx_core::benchmark::payload::Mismatch {
            rank: ombx_core::unit::Rank(0),
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
        LetTimePass(self.time.clone(), time)
    }

    fn overlapped(&mut self, tests: u32, mut slice: impl FnMut()) -> Result<()> {
        let started = self.time.now();
        let mut left = DURATION_NS;
        slice();
        for _ in 0..tests {
            if PROGRESS == PROGRESS_IN_CALLS {
                let step = left.min(DURATION_NS / 100);
                self.time.advance(step);
                left -= step;
            }
            slice();
        }
        if PROGRESS == OFFLOADED_PROGRESS {
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
        .axes(&[TestCalls::AXIS])
}

static OFFLOADED: Benchmark = entry::<OFFLOADED_PROGRESS>("sim.offloaded");
static LAZY: Benchmark = entry::<PROGRESS_IN_CALLS>("sim.lazy");

fn row(bench: &'static Benchmark, sizes: &str, tests: &'static str) -> Measurement {
    let mut plan = Plan {
        sizes: Some(ombx_core::measure::plan::parse_sizes(sizes).unwrap()),
        effort: Effort::Fixed { iterations: 40, warmup: 2 },
        ..Plan::default()
    };
    plan.axes.insert("tests".into(), vec![tests]);
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
fn a_skipped_or_wrong_case_has_no_overlap() {
    let skipped = row(&OFFLOADED, "404", "0");
    assert_eq!(skipped.outcome, Outcome::Skipped("404 is not supported".into()));
    let wrong = row(&OFFLOADED, "500", "0");
    assert!(matches!(wrong.outcome, Outcome::Failed(_)) && wrong.figures.is_empty(), "{wrong:?}");
}

fn around(median: f64, half: f64) -> Summary {
    Summary { ci95: Some([median - half, median + half]), ..Summary::of(&[median; 30]).unwrap() }
}

#[test]
fn the_formula_is_that_of_the_osu_benchmarks_or_gives_a_reason() {
    let clock = Facts { source: "manual", resolution_ns: 10, overhead_ns: 9 };
    let percent = |pure: f64, compute: f64, overall: f64, half: f64| {
        overlap_percent(&around(pure, half), &around(compute, half), &around(overall, half), clock)
    };
    assert_eq!(percent(100.0, 100.0, 125.0, 1.0), Ok(75.0));
    assert_eq!(percent(100.0, 100.0, 300.0, 1.0), Ok(0.0), "slower together than in sequence: no overlap");
    assert!(percent(10.0, 10.0, 20.0, 0.0).unwrap_err().contains("resolution of the clock"));
    assert!(percent(100.0, 100.0, 200.0, 80.0).unwrap_err().contains("compute is 0.11 us"));
}
