//! Figures that are derived from samples.

use crate::result::{Figure, *};

const CLOCK: ClockProperties = ClockProperties { source: "manual", resolution_ns: 1, overhead_ns: 9 };

fn row(metric: Metric, work: Work, leg_ns: f64) -> Measurement {
    Measurement {
        bytes: Some(8),
        work: Some(work),
        check: Check::Passed,
        summary: Summary::new(&[leg_ns; 10]),
        ..Measurement::new("x.y", "x.y/bytes=8", metric, 2)
    }
}

#[test]
fn bandwidth_is_bytes_by_the_time_of_an_iteration() {
    let stream = row(Metric::Bandwidth, Work { bytes: 64_000_000, ops: 64, legs: 1 }, 1e9);
    assert!((stream.mb_per_s().unwrap().median - 64.0).abs() < 1e-9);
    assert!((stream.messages_per_s().unwrap().median - 64.0).abs() < 1e-9);
    // A ping-pong of 2 x 1 MB in 2 ms moves 1 MB in each leg of 1 ms.
    let ping = row(Metric::Bandwidth, Work { bytes: 2_000_000, ops: 2, legs: 2 }, 1e6);
    assert!((ping.mb_per_s().unwrap().median - 1000.0).abs() < 1e-9);
    assert_eq!(row(Metric::Latency, Work { bytes: 16, ops: 2, legs: 2 }, 1e3).mb_per_s(), None);
    assert_eq!(row(Metric::Bandwidth, Work { bytes: 0, ops: 64, legs: 1 }, 1e3).mb_per_s(), None);
}

#[test]
fn the_headline_has_the_unit_of_its_metric() {
    let work = Work { bytes: 2_000_000, ops: 2, legs: 2 };
    assert_eq!(row(Metric::Latency, work, 1500.0).headline().unwrap().value, 1.5);
    assert_eq!(row(Metric::Bandwidth, work, 1e6).headline().unwrap().value, 1000.0);
    assert_eq!(row(Metric::Latency, work, 0.0).headline(), None);
    let failed = Measurement { outcome: Outcome::Failed("x".into()), ..row(Metric::Latency, work, 1e3) };
    assert_eq!(failed.headline(), None);
}

#[test]
fn the_interval_of_a_rate_is_reversed() {
    let mut slow = row(Metric::Bandwidth, Work { bytes: 1_000_000, ops: 1, legs: 1 }, 1e9);
    slow.summary.as_mut().unwrap().ci95 = Some([0.5e9, 2e9]);
    assert_eq!(slow.mb_per_s().unwrap().ci95, Some([0.5, 2.0]));
    slow.summary.as_mut().unwrap().ci95 = Some([0.0, 2e9]);
    assert_eq!(slow.mb_per_s().unwrap().ci95, None);
}

#[test]
fn bus_bandwidth_is_algorithm_bandwidth_by_its_factor() {
    let mut allreduce = Measurement {
        bus: Some(BusTraffic { bytes: 1_000_000, factor: 1.5 }),
        ..row(Metric::Latency, Work { bytes: 4_000_000, ops: 1, legs: 1 }, 1e6)
    };
    allreduce.summary.as_mut().unwrap().ci95 = Some([0.5e6, 2e6]);
    let algorithm = allreduce.algorithm_mb_per_s().unwrap();
    assert_eq!((algorithm.median, algorithm.ci95), (1000.0, Some([500.0, 2000.0])));
    let bus = allreduce.bus_bandwidth().unwrap();
    assert_eq!((bus.value, bus.ci95), (1500.0, Some([750.0, 3000.0])));
    // The time of a collective operation stays its headline.
    assert_eq!((allreduce.headline().unwrap().value, allreduce.mb_per_s()), (1000.0, None));
    allreduce.outcome = Outcome::Failed("x".into());
    assert_eq!(allreduce.bus_bandwidth(), None);
    let barrier = row(Metric::Latency, Work { bytes: 0, ops: 1, legs: 1 }, 1e3);
    assert_eq!((barrier.algorithm_mb_per_s(), barrier.bus_mb_per_s()), (None, None));
}

#[test]
fn samples_are_aggregated_by_the_slowest_rank() {
    let of = |rank, batch, elapsed_ns: &[u64]| Samples {
        rank,
        thread: 0,
        batch,
        elapsed_ns: elapsed_ns.to_vec(),
        ..Samples::default()
    };
    let both = [of(0, 10, &[100, 300]), of(1, 10, &[200, 100])];
    assert_eq!(Measurement::combine(&both, 1), [20.0, 30.0]);
    assert_eq!(Measurement::combine(&both[..1], 2), [5.0, 15.0]);
    // Late samples are left out, unless all are late.
    let late =
        |late: &[u64]| [of(0, 10, &[100, 300]), Samples { late: late.to_vec(), ..of(1, 10, &[200, 100]) }];
    assert_eq!(Measurement::combine(&late(&[0]), 1), [30.0]);
    assert_eq!(Measurement::combine(&late(&[0, 1]), 1), [20.0, 30.0]);
    // The samples of threads are separate values.
    let threads = [of(0, 10, &[100, 300]), Samples { thread: 1, ..of(0, 10, &[200, 100]) }];
    assert_eq!(Measurement::combine(&threads, 1), [10.0, 20.0, 30.0, 10.0]);
}

#[test]
fn half_a_round_trip_is_subtracted_and_widens_the_interval() {
    let times: Vec<u64> = (0..40).map(|i| 2000 + 10 * (i % 5)).collect();
    let with = |halves| {
        let round_trips =
            Some(RoundTrips { halves, batch: 10, elapsed_ns: times.iter().map(|t| 5 * t).collect() });
        let elapsed_ns = times.clone();
        Measurement::summarise(
            &[Samples { batch: 1, elapsed_ns, round_trips, ..Samples::default() }],
            1,
            CLOCK,
        )
        .unwrap()
    };
    // A round trip takes half as long as a sample: 1010 ns.
    assert_eq!([0, 1, 2].map(|halves| with(halves).median), [2020.0, 1515.0, 1010.0]);
    let width = |halves| with(halves).ci95.map(|[low, high]| high - low).unwrap();
    assert!(width(0) > 0.0 && width(1) > width(0) && width(2) > width(1));
}

#[test]
fn an_interval_contains_a_step_of_the_clock_at_each_end() {
    let of = |batch, legs, resolution_ns| {
        let samples = Samples { batch, elapsed_ns: vec![4000; 40], ..Samples::default() };
        Measurement::summarise(&[samples], legs, ClockProperties { resolution_ns, ..CLOCK }).unwrap().ci95
    };
    assert_eq!(of(1, 1, 40), Some([3960.0, 4040.0]));
    assert_eq!(of(10, 2, 40), Some([198.0, 202.0]));
    assert_eq!(of(1, 1, 5000), Some([0.0, 9000.0]));
}

#[test]
fn percentiles_come_from_single_iterations_that_are_long_beside_a_reading() {
    // One of 50 iterations takes twice as long, in no order.
    let slow = |i: u64| (i * 7919).is_multiple_of(50);
    let of = |iteration_ns: u64| {
        let elapsed_ns = (0..1000).map(|i| if slow(i) { 2 } else { 1 } * iteration_ns).collect();
        let batches = [Samples { batch: 10, elapsed_ns: vec![10 * iteration_ns; 40], ..Samples::default() }];
        let single = [Samples { batch: 1, elapsed_ns, ..Samples::default() }];
        let mut summary = Measurement::summarise(&batches, 2, CLOCK).unwrap();
        assert_eq!((summary.n, summary.tail_n, summary.p99), (40, 0, None));
        Measurement::take_percentiles(&mut summary, [&batches, &single], 2, CLOCK);
        assert_eq!((summary.n, summary.tail_n), (40, 1000));
        summary
    };
    let summary = of(400);
    assert_eq!((summary.median, summary.max), (200.0, 200.0));
    assert_eq!(summary.p95.map(|p| p.value), Some(200.0));
    assert_eq!(summary.p99, Some(Percentile { value: 400.0, ci95: Some([399.5, 400.5]) }));
    assert_eq!(summary.p999, None);
    // A reading of 9 ns is more than 5 % of 100 ns, but not of 200 ns.
    let summary = of(100);
    assert_eq!((summary.p95, summary.p99.map(|p| p.value)), (None, Some(100.0)));
}

#[test]
fn ranks_are_averaged_as_omb_does() {
    let of = |rank, elapsed_ns: &[u64]| Samples {
        rank,
        thread: 0,
        batch: 10,
        elapsed_ns: elapsed_ns.to_vec(),
        ..Samples::default()
    };
    let mut row = row(Metric::Latency, Work { bytes: 8, ops: 1, legs: 1 }, 1e3);
    row.samples = vec![of(0, &[100, 300]), of(1, &[100, 100]), of(2, &[1000, 400])];
    assert_eq!(row.across_ranks(), None, "only rank 0's clock counts");
    row.aggregation = Aggregation::Slowest;
    let AcrossRanks { mean, min, max } = row.across_ranks().unwrap();
    assert_eq!((mean, min, max), ((20.0 + 10.0 + 70.0) / 3.0, 10.0, 70.0));
    row.samples.clear();
    assert_eq!(row.across_ranks(), None);
}

#[test]
fn a_wrong_payload_decides_the_exit_code() {
    let mut tally = Tally { cases: 9, skipped: 1, failed: 1, corrupt: 1 };
    assert_eq!(tally.exit_code(true), 5);
    tally.corrupt = 0;
    assert_eq!(tally.exit_code(true), 4);
    tally.failed = 0;
    assert_eq!((tally.exit_code(true), tally.exit_code(false)), (0, 4));
}

#[test]
fn pairs_take_from_the_first_start_to_the_last_end() {
    let of = |rank, elapsed_ns: [u64; 2], started_ns: [u64; 2]| Samples {
        rank,
        batch: 10,
        elapsed_ns: elapsed_ns.to_vec(),
        started_ns: started_ns.to_vec(),
        ..Samples::default()
    };
    let samples = [of(0, [1000, 3000], [0, 500]), of(2, [900, 3100], [400, 0])];
    assert_eq!(Measurement::combine(&samples, 1), [130.0, 350.0]);
    let summary = Measurement::summarise(&samples, 1, CLOCK).unwrap();
    assert_eq!((summary.median, summary.n), (240.0, 2), "total time over total work");
    let row = Measurement {
        samples: samples.to_vec(),
        aggregation: Aggregation::Pairs,
        ..row(Metric::Bandwidth, Work { bytes: 80, ops: 10, legs: 1 }, 1.0)
    };
    assert_eq!(
        row.across_ranks(),
        Some(AcrossRanks { mean: 200.0, min: 200.0, max: 200.0 }),
        "without delays"
    );
}

#[test]
fn messages_of_0_bytes_have_a_rate() {
    let empty = row(Metric::Bandwidth, Work { bytes: 0, ops: 64, legs: 1 }, 1e6);
    assert_eq!((empty.headline(), empty.message_rate().map(|rate| rate.value)), (None, Some(64.0)));
    assert_eq!(row(Metric::Latency, Work { bytes: 0, ops: 2, legs: 2 }, 1e3).message_rate(), None);
}

#[test]
fn bandwidth_of_an_overlapped_operation_is_that_of_the_operation_alone() {
    let bus = Some(BusTraffic { bytes: 1000, factor: 1.5 });
    let mut row = Measurement { bus, ..row(Metric::Latency, Work { bytes: 8, ops: 1, legs: 1 }, 2e3) };
    let rounded = |rate: Option<Rate>| {
        rate.map(|rate| (rate.median.round(), rate.ci95.map(|ends| ends.map(f64::round))))
    };
    assert_eq!(rounded(row.algorithm_mb_per_s()).unwrap().0, 500.0);
    let figures = [("compute_us", 1.0), ("pure_us", 1.0), ("pure_low_us", 0.8), ("pure_high_us", 1.25)];
    row.figures = figures.map(|(name, us)| (name.to_owned(), Figure::Value(us))).into();
    assert_eq!(rounded(row.algorithm_mb_per_s()), Some((1000.0, Some([800.0, 1250.0]))));
    assert_eq!(rounded(row.bus_mb_per_s()), Some((1500.0, Some([1200.0, 1875.0]))));
    row.figures.remove("pure_us");
    assert_eq!(row.bus_mb_per_s(), None, "without the time of the operation alone there is no bandwidth");
}
