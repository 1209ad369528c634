//! Threads of ranks that are threads themselves.

use std::sync::{Mutex, PoisonError};

use ombx_record::{
    result::{Aggregation, Measurement, Metric, Mismatch, Outcome},
    unit::{Bytes, Rank},
};

use super::*;
use crate::{
    benchmark::{Choice, Chosen, Layout, Pairs, Threads},
    measure::{
        plan::{Effort, Plan},
        runner::{self, Part},
        session::Memory,
    },
    testkit::{ThreadTeam, on_ranks},
};

/// Size with which thread 1 of rank 1 has wrong data.
const WRONG: u64 = 13;
/// Size with which thread 1 of rank 0 fails.
const BROKEN: u64 = 17;

/// Thread, size and size in the pattern of each filling on rank 0.
static FILLED: Mutex<Vec<(u32, u64, u64)>> = Mutex::new(Vec::new());

/// Kernel that counts its iterations.
struct Counting {
    rank: Rank,
    thread: u32,
    bytes: u64,
    iterations: u64,
}

impl Kernel for Counting {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "nothing" };

    fn work(case: &Case) -> Work {
        Work { bytes: case.bytes.0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        assert_eq!(cx.team.size(), cx.fabric::<ThreadTeam>()?.size());
        Ok(Counting { rank: cx.rank(), thread: cx.thread, bytes: case.bytes.0, iterations: 0 })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.iterations = 0;
        if self.rank == Rank(0) {
            let mut filled = FILLED.lock().unwrap_or_else(PoisonError::into_inner);
            filled.push((self.thread, self.bytes, fill.bytes));
        }
        Ok(())
    }

    fn active(&mut self) -> Result<()> {
        self.iterations += 1;
        match (self.bytes, self.rank, self.thread) {
            (BROKEN, Rank(0), 1) => Err(Error::fabric("thread 1 broke")),
            _ => Ok(()),
        }
    }

    fn passive(&mut self) -> Result<()> {
        self.iterations += 1;
        Ok(())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        assert_eq!(self.iterations, fill.iterations, "every thread runs every iteration");
        Ok(match (self.bytes, self.rank, self.thread) {
            (WRONG, Rank(1), 1) => {
                Check::Failed(Mismatch { rank: self.rank, slot: 0, byte: 5, expected: 1, actual: 2 })
            }
            _ => Check::Passed,
        })
    }
}

static PAIRS: Benchmark =
    Benchmark::matched_threads::<Counting, Many>("test.pairs_mt", "pairs", Counting::METHOD)
        .layout(Layout::Pairs(Pairs::Most));
static EVERYONE: Benchmark =
    Benchmark::matched_threads::<Counting, One>("test.all_mt", "all", Counting::METHOD)
        .layout(Layout::Everyone { least: 1 });

/// Returns the rows of rank 0.
fn rows(bench: &'static Benchmark, ranks: u32, size: u64) -> Result<Vec<Measurement>> {
    let plan = Plan {
        sizes: Some(vec![Bytes(size)]),
        chosen: Chosen::default().with(Threads::Each(2)),
        effort: Effort::Fixed { iterations: 10, warmup: 1 },
        ..Plan::default()
    };
    let mut all = on_ranks(ranks, |team| {
        let mut sink = Memory::default();
        let part = Part { choices: vec![Choice { bench, preset: &[] }], plan: plan.clone() };
        runner::run_all(team, &[part], &Clock::measured(), &mut sink, vec!["threads".into()]).map(|_| sink)
    });
    Ok(all.swap_remove(0)?.rows)
}

#[test]
fn threads_of_a_rank_are_one_sample() {
    let cases = [
        (&PAIRS, 2, 1, Aggregation::Pairs),
        (&PAIRS, 4, 2, Aggregation::Pairs),
        (&EVERYONE, 2, 2, Aggregation::Slowest),
    ];
    for (bench, ranks, timed, aggregation) in cases {
        let rows = rows(bench, ranks, 8).unwrap();
        let row = &rows[0];
        assert_eq!((row.outcome.clone(), row.check.clone()), (Outcome::Ok, Check::Passed));
        assert_eq!(row.aggregation, aggregation);
        assert_eq!(row.axes["threads"], "2");
        assert_eq!(row.work.unwrap(), Work { bytes: 16, ops: 2, legs: 1 });
        let of: Vec<u32> = row.samples.iter().map(|samples| samples.rank).collect();
        assert_eq!(of, (0..timed).collect::<Vec<u32>>());
        for name in ["thread_min_us", "thread_mean_us", "thread_max_us"] {
            assert!(matches!(row.figures[name], Figure::Value(us) if us >= 0.0), "{name}");
        }
    }
}

#[test]
fn every_thread_has_a_pattern_of_its_own() {
    rows(&EVERYONE, 2, 24).unwrap();
    let filled = FILLED.lock().unwrap_or_else(PoisonError::into_inner);
    let patterns = filled.iter().filter(|(_, bytes, _)| *bytes == 24);
    assert!(patterns.clone().all(|(thread, _, pattern)| *pattern == 24 | u64::from(*thread) << 40));
    assert!((0..2).all(|thread| patterns.clone().any(|(other, ..)| *other == thread)));
}

#[test]
fn wrong_data_of_any_thread_fails_the_row() {
    let rows = rows(&EVERYONE, 2, WRONG).unwrap();
    assert!(matches!(rows[0].check, Check::Failed(Mismatch { rank: Rank(1), byte: 5, .. })));
}

/// The error names the cause, and the other threads do not wait.
#[test]
fn the_error_of_a_thread_is_that_of_the_rank() {
    let error = rows(&EVERYONE, 1, BROKEN).unwrap_err();
    assert!(error.to_string().contains("thread 1 broke"), "{error}");
}

#[test]
fn a_sample_is_from_the_first_start_to_the_last_end() {
    let mut stamps = [0; 4];
    envelope(&[vec![5, 9, 20, 30], vec![4, 8, 22, 31]], &mut stamps);
    assert_eq!(stamps, [4, 9, 20, 31]);
}
