//! Work of ombx on results that is benched by criterion and counted in instructions by valgrind.

use std::{borrow::Cow, hint::black_box};

use ombx_estimate::launches::Cases;
use ombx_links::verdict::LinkSweep;
use ombx_record::{
    event::{Event, Round, Rounds},
    file::{self, RunWithRows},
    result::{Check, Measurement, Metric, Place, Run, Samples, Work as Amount},
    stats::Summary,
    unit::Rank,
};
use ombx_sweep::schedule::Mode;

use crate::link;

const GOLDEN: &str = include_str!("../../../crates/record/tests/golden/one_launch.jsonl");

/// Work that is done again and again; it returns a number that depends on its result.
pub type Repeated = Box<dyn Fn() -> usize>;

/// Function that prepares work.
pub type Prepare = fn() -> Repeated;

/// Names of the work, and the functions that prepare it.
pub const WORK: [(&str, Prepare); 6] = [
    ("write 200 rows of 200 samples", writer),
    ("read 200 rows of 200 samples", reader),
    ("write 20 rounds of 1000 links", round_writer),
    ("read 20 rounds of 1000 links", round_reader),
    ("estimate 100 rows of 9 launches", estimator),
    ("judge all links of 100 hosts", verdict),
];

/// Returns times in whole nanoseconds: most similar, a few far off, unordered.
pub fn times(n: u64, seed: u64) -> Vec<u64> {
    let mut state = seed;
    let mut next = |range: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % range
    };
    (0..n).map(|_| 20_000 + next(400) + if next(50) == 0 { next(30_000) } else { 0 }).collect()
}

fn golden() -> RunWithRows {
    let runs = file::read(GOLDEN.as_bytes()).map(|file| file.runs).unwrap_or_default();
    runs.into_iter().next().unwrap_or_else(|| unreachable!("the golden file has a run"))
}

/// Returns a row of 200 samples.
fn row(case: u64, launch: u64) -> Measurement {
    let samples =
        vec![Samples { batch: 20, elapsed_ns: times(200, 1 + case + 1000 * launch), ..Samples::default() }];
    Measurement {
        bytes: Some(case),
        work: Some(Amount { bytes: 2 * case, ops: 2, legs: 2 }),
        check: Check::Passed,
        checked: 100,
        summary: Summary::of_batches(&Measurement::combine(&samples, 2)),
        samples,
        ..Measurement::new("p2p.latency", format!("p2p.latency/bytes={case}"), Metric::Latency, 2)
    }
}

/// Returns the bytes of a file with these records.
fn written(run: &Run, records: &[Event<'static>]) -> Vec<u8> {
    let mut out = Vec::new();
    let run = Event::Run(Cow::Owned(run.clone()));
    for record in std::iter::once(&run).chain(records) {
        file::write(&mut out, record).unwrap_or_else(|e| unreachable!("memory can be written: {e}"));
    }
    out
}

fn rows() -> Vec<Event<'static>> {
    (0..200).map(|case| Event::Row(Cow::Owned(row(case, 0)))).collect()
}

fn writer() -> Repeated {
    let (run, rows) = (golden().run, rows());
    Box::new(move || written(&run, black_box(&rows)).len())
}

fn reader() -> Repeated {
    of_reading(written(&golden().run, &rows()))
}

fn of_reading(bytes: Vec<u8>) -> Repeated {
    Box::new(move || {
        let file = file::read(black_box(bytes.as_slice()));
        file.map_or(0, |file| file.runs.iter().map(RunWithRows::row_count).sum())
    })
}

fn rounds() -> Vec<Event<'static>> {
    let of_round = |number: u32| {
        let ends = (0..1000).map(|from| [from, (from + 1 + number) % 1000]);
        Event::Round(Cow::Owned(round(number, ends.collect())))
    };
    (0..20).map(of_round).collect()
}

/// Longest time of a link between hosts that are not slow. A sweep measures links again that stand out.
const LONGEST_NS: u64 = 20_400;

/// Returns the round of these links. Rank 7 is slow.
fn round(number: u32, links: Vec<[u32; 2]>) -> Round {
    let noise = times(links.len() as u64, 1 + u64::from(number)).into_iter().map(|ns| ns.min(LONGEST_NS));
    let ns = |(ends, ns): (&[u32; 2], u64)| ns as f32 / 4.0 * if ends.contains(&7) { 2.0 } else { 1.0 };
    Round {
        row: link::shared(),
        number: Some(number),
        from: links.iter().map(|ends| ends[0]).collect(),
        to: links.iter().map(|ends| ends[1]).collect(),
        median_ns: links.iter().zip(noise).map(ns).collect(),
        marks: Vec::new(),
    }
}

fn round_writer() -> Repeated {
    let (run, rounds) = (golden().run, rounds());
    Box::new(move || {
        // Rows become rounds, as in the output of a sweep.
        let Some(Event::Round(first)) = rounds.first() else { return 0 };
        let mut collected = Rounds::default();
        let taken = first.rows().filter(|row| collected.add(row).1).count();
        taken + written(&run, black_box(&rounds)).len()
    })
}

fn round_reader() -> Repeated {
    of_reading(written(&golden().run, &rounds()))
}

fn estimator() -> Repeated {
    let run = golden().run;
    let launch = |launch: u64| {
        let mut run = run.clone();
        run.id = format!("{}-{launch}", run.id);
        RunWithRows { rows: (0..100).map(|case| row(case, launch)).collect(), ..RunWithRows::new(run) }
    };
    let launches: Vec<RunWithRows> = (0..9).map(launch).collect();
    Box::new(move || {
        let mut cases = Cases::default();
        black_box(&launches).iter().for_each(|launch| cases.launch(launch));
        cases.groups().iter().map(|group| group.estimates().len()).sum()
    })
}

fn verdict() -> Repeated {
    let mut run = golden().run;
    let place = run.places.remove(0);
    run.places = (0..100).map(|host| Place { host: format!("n{host:03}"), ..place.clone() }).collect();
    let schedule = Mode::Parallel.schedule(100, Some(1));
    let of_round = |number: u32| {
        let pairs = (0..schedule.pairs()).map(|turn| schedule.pair(number, turn));
        round(number, pairs.flat_map(|(Rank(a), Rank(b))| [[a, b], [b, a]]).collect())
    };
    let rounds: Vec<Round> = (0..schedule.rounds()).map(of_round).collect();
    Box::new(move || {
        let mut sweep = LinkSweep::of_run(&run);
        black_box(&rounds).iter().for_each(|round| sweep.add_round(round));
        sweep.verdict().slow.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_work_is_done() {
        let done: Vec<usize> = WORK.iter().map(|(_, prepare)| prepare()()).collect();
        assert_eq!((done[1], done[3], done[4], done[5]), (200, 20_000, 100, 1), "{done:?}");
        assert!(done[0] > 200_000 && done[2] > 200_000, "{done:?}");
    }
}
