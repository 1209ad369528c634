//! Nonblocking operations of known progress in virtual time.

use super::*;
use ombx_core::{
    benchmark::{axis::AxisValue, entry::Benchmark, layout::Layout},
    error::Error,
    measure::plan::{Effort, Plan},
    system::clock::VirtualTime,
    testkit::{SimMesh, ThreadTeam, measure},
};

/// Nanoseconds that the operation needs.
const NEEDS: u64 = 10_000;

/// It makes progress by itself, as with a network card that does the work.
const ALONE: u8 = 0;
/// It makes progress only inside calls to the library; each test does a hundredth.
const IN_CALLS: u8 = 1;

/// An operation that needs [`NEEDS`] ns of progress.
struct Simulated<const PROGRESS: u8> {
    time: VirtualTime,
    wrong: bool,
}

struct Pass(VirtualTime, Duration);

impl Busy for Pass {
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
            return Err(Error::unsupported("404 is not to be had"));
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

impl<const PROGRESS: u8> Nonblocking for Simulated<PROGRESS> {
    type Busy = Pass;

    fn busy(&self, time: Duration) -> Pass {
        Pass(self.time.clone(), time)
    }

    fn overlapped(&mut self, tests: u32, mut slice: impl FnMut()) -> Result<()> {
        let started = self.time.now();
        let mut left = NEEDS;
        slice();
        for _ in 0..tests {
            if PROGRESS == IN_CALLS {
                let step = left.min(NEEDS / 100);
                self.time.advance(step);
                left -= step;
            }
            slice();
        }
        if PROGRESS == ALONE {
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

static OFFLOADED: Benchmark = entry::<ALONE>("sim.offloaded");
static LAZY: Benchmark = entry::<IN_CALLS>("sim.lazy");

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
fn what_progresses_by_itself_hides_behind_computing() {
    let row = row(&OFFLOADED, "8", "0");
    assert_eq!(row.summary.as_ref().unwrap().median, NEEDS as f64, "overall is no more than the computing");
    assert_eq!((figure(&row, "pure_us"), figure(&row, "compute_us")), (10.0, 10.0));
    assert!((figure(&row, "overlap_percent") - 100.0).abs() < 1.0, "{:?}", row.figures);
}

#[test]
fn what_progresses_in_calls_only_does_not() {
    let row = row(&LAZY, "8", "0");
    assert_eq!(row.summary.as_ref().unwrap().median, 2.0 * NEEDS as f64, "one after the other");
    assert!(figure(&row, "overlap_percent") < 1.0, "{:?}", row.figures);
}

#[test]
fn computing_is_as_long_however_often_it_is_interrupted() {
    for tests in ["1", "10", "100"] {
        let row = row(&OFFLOADED, "8", tests);
        assert!((figure(&row, "compute_us") - 10.0).abs() < 0.2, "{tests}: {:?}", row.figures);
        assert!((figure(&row, "overlap_percent") - 100.0).abs() < 2.0, "{tests}: {:?}", row.figures);
        assert!(row.key.contains(&format!("tests={tests}")), "{}", row.key);
    }
}

#[test]
fn a_case_that_is_skipped_or_wrong_has_no_overlap() {
    let skipped = row(&OFFLOADED, "404", "0");
    assert_eq!(skipped.outcome, Outcome::Skipped("404 is not to be had".into()));
    let wrong = row(&OFFLOADED, "500", "0");
    assert!(matches!(wrong.outcome, Outcome::Failed(_)) && wrong.figures.is_empty(), "{wrong:?}");
}

fn around(median: f64, half: f64) -> Summary {
    Summary { ci95: Some([median - half, median + half]), ..Summary::of(&[median; 30]).unwrap() }
}

#[test]
fn the_formula_is_that_of_the_osu_benchmarks_and_says_when_it_has_no_answer() {
    let clock = Facts { source: "manual", resolution_ns: 10, overhead_ns: 9 };
    let percent = |pure: f64, compute: f64, overall: f64, half: f64| {
        overlap_percent(&around(pure, half), &around(compute, half), &around(overall, half), clock)
    };
    assert_eq!(percent(100.0, 100.0, 125.0, 1.0), Ok(75.0));
    assert_eq!(
        percent(100.0, 100.0, 300.0, 1.0),
        Ok(0.0),
        "slower together than one after the other is none"
    );
    assert!(percent(10.0, 10.0, 20.0, 0.0).unwrap_err().contains("step of the clock"));
    assert!(percent(100.0, 100.0, 200.0, 80.0).unwrap_err().contains("known to 0.11 us"));
}
