//! Output formats of rows.

mod csv;
mod document;
mod openmetrics;
mod osu;
mod pipeline;
mod table;

use std::borrow::Cow;

use ombx_estimate::{
    launches::Cases,
    number::{RateUnit, TimeUnit, Units},
    percentiles::Percentiles,
};
use ombx_record::{
    event::Event,
    file,
    result::{BusTraffic, Measurement, Metric, OverLaunches, Run, RunOutcome, Samples, Tally, Work},
    stats::Summary,
};
use ombx_show::{Renderer, Shown};

const GOLDEN: &str = include_str!("../../../record/tests/golden/one_launch.jsonl");

fn golden() -> file::RunWithRows {
    file::read(GOLDEN.as_bytes()).unwrap().runs.remove(0)
}

/// Returns three launches as one run.
fn of_launches() -> file::RunWithRows {
    let mut cases = Cases::default();
    let launches = file::read(include_str!("../../../record/tests/golden/three_launches.jsonl").as_bytes())
        .unwrap()
        .runs;
    launches.iter().for_each(|launch| cases.launch(launch));
    (&cases.groups()[0]).into()
}

/// Returns units by name, and percentiles.
fn shown(units: (Option<TimeUnit>, Option<RateUnit>), percentiles: &str) -> Shown {
    let percentiles =
        if percentiles.is_empty() { Percentiles::default() } else { percentiles.parse().unwrap() };
    Shown { units: Units { time: units.0, rate: units.1 }, percentiles, ..Shown::default() }
}

/// Returns what nine launches with this median add to a row.
fn nine_launches(median_ns: f64) -> Option<OverLaunches> {
    Some(OverLaunches::of_one_state(vec![median_ns; 9], median_ns, None, 0.961))
}

/// Renders a whole run.
fn rendered(
    renderer: &mut dyn Renderer,
    run: &Run,
    rows: &[Measurement],
    outcome: ombx_record::result::RunOutcome,
) -> String {
    let mut out = Vec::new();
    let mut tally = Tally::default();
    renderer.event(&mut out, &Event::Run(Cow::Borrowed(run))).unwrap();
    for row in rows {
        tally.add(row);
        renderer.event(&mut out, &Event::row(row)).unwrap();
    }
    renderer.event(&mut out, &Event::End { outcome, tally }).unwrap();
    String::from_utf8(out).unwrap()
}

/// Renders rows of a complete run.
fn complete(renderer: &mut dyn Renderer, rows: &[Measurement]) -> String {
    rendered(renderer, &golden().run, rows, RunOutcome::Complete)
}

/// Returns a row of a ping-pong with one iteration per sample.
fn latency(bytes: u64, elapsed_ns: &[u64]) -> Measurement {
    let samples = vec![Samples { batch: 1, elapsed_ns: elapsed_ns.to_vec(), ..Samples::default() }];
    Measurement {
        key: format!("p2p.latency/bytes={bytes}"),
        bytes: Some(bytes),
        work: Some(Work { bytes: 2 * bytes, ops: 2, legs: 2 }),
        summary: Summary::new(&Measurement::combine(&samples, 2)),
        samples,
        trust: Vec::new(),
        ..golden().rows.swap_remove(0)
    }
}

/// Returns a row of a stream of 64 messages.
fn bandwidth(bytes: u64, elapsed_ns: &[u64]) -> Measurement {
    let row = latency(bytes, elapsed_ns);
    Measurement {
        bench: "rma.put_bw".into(),
        key: format!("rma.put_bw/sync=pscw,win=allocate,bytes={bytes},depth=64"),
        metric: Metric::Bandwidth,
        depth: Some(64),
        axes: [("sync", "pscw"), ("win", "allocate")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        work: Some(Work { bytes: 64 * bytes, ops: 64, legs: 1 }),
        summary: Summary::new(&Measurement::combine(&row.samples, 1)),
        ..row
    }
}

/// Returns a row of an operation with a bus bandwidth.
fn allreduce(bytes: u64, elapsed_ns: &[u64]) -> Measurement {
    let row = latency(bytes, elapsed_ns);
    Measurement {
        bench: "collective.allreduce".into(),
        key: format!("collective.allreduce/bytes={bytes}"),
        work: Some(Work { bytes: 4 * bytes, ops: 1, legs: 1 }),
        bus: Some(BusTraffic { bytes, factor: 1.5 }),
        summary: Summary::new(&Measurement::combine(&row.samples, 1)),
        ..row
    }
}

/// Returns different times within 1 % above a value, unordered.
fn around(ns: u64, samples: u64) -> Vec<u64> {
    (0..samples).map(|i| ns + i * 7919 % samples * ns / samples / 100).collect()
}
