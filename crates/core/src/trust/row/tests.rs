//! Each mark for a known disturbance.

use ombx_record::result::Metric;

use super::*;

/// A hundred samples from 10.0 to 10.99, of which the median is 10.495.
fn ramp() -> Vec<f64> {
    (0..100).map(|i| 10.0 + f64::from(i * 37 % 100) / 100.0).collect()
}

fn quiet<'a>(samples: &'a [f64], summary: &'a Summary) -> RowFacts<'a> {
    RowFacts {
        samples: HeadlineOf::Median(samples),
        summary,
        legs_per_sample: 1.0,
        counters: Counters::default(),
        quota: None,
        grown: &[],
        wall_ns: 1e9,
        ranks: 2,
        ending: Some(Ending::Converged),
        precision: 0.01,
        check: &Check::Passed,
        checked: Some(1),
    }
}

#[test]
fn a_clock_that_runs_wrong_makes_a_row_invalid() {
    assert_eq!(wrong_clock([0.0, 0.000_9].into_iter()), None);
    assert_eq!(wrong_clock(std::iter::empty()), None);
    let mark = wrong_clock([0.0, 0.02].into_iter()).unwrap();
    assert_eq!((mark.level, mark.short.as_str()), (Level::Invalid, "clock off 2.0%"));
    assert!(mark.advice.contains("the clock of rank 1"), "{}", mark.advice);
}

fn marks(samples: &[f64], change: impl FnOnce(&mut RowFacts<'_>)) -> Vec<(Level, String, String)> {
    let summary = Summary::new(samples).unwrap();
    let mut facts = quiet(samples, &summary);
    change(&mut facts);
    of_row(facts).into_iter().map(|mark| (mark.level, mark.code.to_string(), mark.short)).collect()
}

fn one(samples: &[f64], change: impl FnOnce(&mut RowFacts<'_>)) -> (Level, String, String) {
    let [mark] = marks(samples, change).try_into().expect("one mark");
    mark
}

fn expected(level: Level, code: &str, short: &str) -> (Level, String, String) {
    (level, code.into(), short.into())
}

#[test]
fn an_undisturbed_row_gets_no_mark() {
    assert_eq!(marks(&[10.0, 10.1, 10.0, 10.1, 10.0, 10.1, 10.05, 10.0, 10.1, 10.0], |_| ()), []);
}

#[test]
fn preemptions_count_by_their_largest_effect() {
    let with = |n: u64, samples: &[f64]| one(samples, |row| row.counters.preemptions = n);
    // Without one of 100 samples the median is 10.49, 0.05 % lower.
    assert_eq!(with(1, &ramp()), expected(Level::Note, "preempted", "preempted 1x (up to 0.1%)"));
    // Without half of the samples it is 10.245, 2.4 % lower; the interval is within 1 %.
    assert_eq!(with(50, &ramp()), expected(Level::Caution, "preempted", "preempted 50x (up to 2.4%)"));
    // Nine of ten: with 90 samples of 10 and 10 of 5, the lowest ten have the median 5.
    let two: Vec<f64> = (0..100).map(|i| if i % 10 == 0 { 5.0 } else { 10.0 }).collect();
    let disturbed = marks(&two, |row| row.counters.preemptions = 90);
    assert_eq!(disturbed[0], expected(Level::Invalid, "preempted", "preempted 90x (up to 50%)"));
}

#[test]
fn as_many_interruptions_as_samples_have_no_bound() {
    let with = |n: u64| one(&[10.0; 200], |row| row.counters.preemptions = n);
    assert_eq!(with(199), expected(Level::Note, "preempted", "preempted 199x (up to 0.0%)"));
    assert_eq!(with(200), expected(Level::Caution, "preempted", "preempted 200x"));
    // The kernel has counted how long all waits took: 10 ns in 200 samples move the median by 10 / 101 ns at most.
    let short = one(&[10.0; 200], |row| {
        row.counters = Counters { preemptions: 200, slices: 300, waited_ns: 10, ..Counters::default() };
    });
    assert_eq!(short, expected(Level::Note, "preempted", "preempted 200x (up to 1.0%)"));
    let summary = Summary::new(&[10.0; 6]).unwrap();
    let counters = Counters { preemptions: 109, ..Counters::default() };
    let mark = &of_row(RowFacts { counters, ..quiet(&[10.0; 6], &summary) })[0];
    assert_eq!(mark.effect, None);
    assert!(mark.advice.contains("no sample is known to be undisturbed"), "{}", mark.advice);
}

#[test]
fn waiting_counts_by_its_largest_effect() {
    let waited = |share: f64, slices: u64| {
        let waited_ns = (share * 2e9) as u64;
        let counters = Counters { waited_ns, slices, ..Counters::default() };
        move |row: &mut RowFacts<'_>| row.counters = counters
    };
    assert_eq!(marks(&ramp(), waited(0.019, 100)), []);
    // One long wait is in one sample.
    assert_eq!(one(&ramp(), waited(0.3, 1)), expected(Level::Note, "waited", "waited 30% (up to 0.1%)"));
    // Many waits can be in every sample.
    assert_eq!(one(&ramp(), waited(0.03, 500)), expected(Level::Caution, "waited", "waited 3%"));
    // Programs that ran in so many samples also emptied caches, whatever these samples look like.
    assert_eq!(one(&[10.0; 200], waited(0.3, 11)), expected(Level::Caution, "waited", "waited 30%"));
    assert_eq!(one(&[10.0; 200], waited(0.3, 9)).0, Level::Note);
    assert_eq!(one(&[10.0; 200], waited(0.09, 11)).0, Level::Note);
    // Time that is short beside the samples cannot have moved them far.
    let mut long: Vec<f64> = ramp();
    long.iter_mut().for_each(|x| *x *= 1e9);
    assert_eq!(one(&long, waited(0.03, 500)).0, Level::Note);
}

#[test]
fn stolen_time_needs_three_ticks() {
    let stolen = |ticks: u64, wall_ns: f64| {
        let counters = Counters { stolen_ns: ticks * 10_000_000, ..Counters::default() };
        move |row: &mut RowFacts<'_>| (row.counters, row.wall_ns) = (counters, wall_ns)
    };
    assert_eq!(marks(&ramp(), stolen(2, 4e7)), []);
    assert_eq!(one(&ramp(), stolen(3, 4e8)), expected(Level::Caution, "stolen", "stolen 8%"));
    assert_eq!(marks(&ramp(), stolen(3, 4e9)), []);
    // 60 ms of two ranks, in 51 of 100 samples of 1 s.
    assert_eq!(one(&[1e9; 100], stolen(3, 1e9)), expected(Level::Note, "stolen", "stolen 3% (up to 0.2%)"));
}

#[test]
fn each_weakness_of_samples_gets_its_mark() {
    let codes = |marks: Vec<(Level, String, String)>| {
        marks.into_iter().map(|(level, code, _)| (level, code)).collect::<Vec<_>>()
    };
    let level = |level: Level, code: &str| (level, code.to_owned());
    let steady = [10.0; 200];
    assert_eq!(codes(marks(&steady, |row| row.check = &Check::Off)), [level(Level::Caution, "unverified")]);
    assert_eq!(
        codes(marks(&steady, |row| row.check = &Check::Unsupported)),
        [level(Level::Note, "unverified")]
    );
    assert_eq!(codes(marks(&steady, |row| row.checked = Some(0))), [level(Level::Note, "unverified")]);
    let wide = [10.0, 30.0, 12.0, 28.0, 11.0, 29.0, 13.0];
    let late = codes(marks(&wide, |row| row.ending = Some(Ending::OutOfBudget)));
    assert!(late.contains(&level(Level::Note, "not_converged")), "{late:?}");
    assert_eq!(codes(marks(&[10.0, 11.0], |row| row.ending = None)), [level(Level::Invalid, "no_interval")]);
    let drift: Vec<f64> = (0..100).map(f64::from).collect();
    assert_eq!(
        codes(marks(&drift, |_| ())),
        [level(Level::Invalid, "no_interval"), level(Level::Note, "autocorrelated")]
    );
    let two: Vec<f64> = (0..200).map(|i| if i * 7 % 10 < 5 { 10.0 } else { 20.0 }).collect();
    assert!(codes(marks(&two, |_| ())).contains(&level(Level::Caution, "bimodal")));
}

#[test]
fn clocks_that_differ_by_more_than_5_percent_of_a_row_get_a_mark() {
    let steady = Summary::new(&[1000.0; 200]).unwrap();
    let mark = clocks_apart(60.0, &steady).unwrap();
    assert_eq!((mark.level, mark.short.as_str()), (Level::Caution, "clocks apart 6%"));
    assert_eq!(clocks_apart(50.0, &steady), None);
}

fn grown(device: &str, counter: &str, by: u64) -> Growth {
    Growth { host: "n2".into(), device: device.into(), counter: counter.into(), by }
}

#[test]
fn errors_of_devices_are_marked_and_what_grows_under_load_is_not() {
    let samples = ramp();
    let summary = Summary::new(&samples).unwrap();
    let marks = |grown: &[Growth]| of_row(RowFacts { grown, ..quiet(&samples, &summary) });
    assert!(marks(&[grown("eth0", "rx_dropped", 99), grown("Tcp", "RetransSegs", 9)]).is_empty());
    let all = [grown("eth0", "rx_crc_errors", 1), grown("mlx5_0 port 1", "symbol_error", 2)];
    let few = &marks(&all)[0];
    assert_eq!((&few.code, few.level), (&MarkCode::DeviceErrors, Level::Note));
    assert!(
        few.short.starts_with("n2 mlx5_0 port 1 symbol_error +2, n2 eth0 rx_crc_errors +1 (up to "),
        "{few:?}"
    );
    // An error in every sample may have moved the median by as much as the samples scatter.
    assert!(marks(&[grown("eth0", "rx_crc_errors", 100)])[0].level > Level::Note);
    let hot = grown("cpu", "core_throttle_count", 4);
    assert!(marks(std::slice::from_ref(&hot)).is_empty());
    assert_eq!(throttled(&[hot]).unwrap().short, "n2 cpu core_throttle_count +4");
}

/// Returns rounds around these levels, whose samples scatter by 2 %.
fn rounds(levels: &[f64], samples: usize) -> Vec<Vec<f64>> {
    let scatter = |i: usize| 1.0 + 0.02 * ((i * 7 % samples) as f64 / samples as f64 - 0.5);
    levels.iter().map(|level| (0..samples).map(|i| level * scatter(i)).collect()).collect()
}

#[test]
fn rounds_that_differ_by_more_than_their_scatter_have_a_mark() {
    let row = Measurement::new("p2p.latency", "p2p.latency", Metric::Latency, 2);
    let to_and_fro = [3000.0, 4200.0, 3400.0, 3900.0, 3050.0, 4100.0, 3500.0, 3800.0];
    let mark = several_levels(&rounds(&to_and_fro, 16), &row).unwrap();
    assert_eq!(mark.short, "levels from 3.00 to 4.20 us");
    assert_eq!((mark.code, mark.level), (MarkCode::SeveralLevels, Level::Caution));
    assert_eq!(several_levels(&rounds(&to_and_fro, 8), &row), None, "quartiles of few samples");
    assert_eq!(several_levels(&rounds(&[3000.0, 3250.0, 3000.0, 3200.0], 16), &row), None);
    let drift = [3000.0, 3100.0, 3300.0, 3500.0, 3600.0, 3800.0, 4000.0, 4200.0];
    assert_eq!(several_levels(&rounds(&drift, 16), &row), None);
    assert_eq!(several_levels(&[], &row), None);
    assert_eq!(several_levels(&rounds(&[3000.0], 16), &row), None);
}

#[test]
fn stops_by_a_quota_are_named_with_it_and_accuse_no_other_program() {
    let samples = ramp();
    let summary = Summary::new(&samples).unwrap();
    let with = |number: u64, quota: Option<u64>| {
        let stops = QuotaStops { number, ns: 340_000_000 };
        let counters =
            Counters { preemptions: 1, waited_ns: 300_000_000, slices: 9, stops, ..Counters::default() };
        let quota = quota.and_then(|us| CpuQuota::new(us, 100_000));
        of_row(RowFacts { counters, quota, ..quiet(&samples, &summary) })
    };
    let [stopped, preempted, waited]: [Mark; 3] = with(12, Some(150_000)).try_into().unwrap();
    assert_eq!((stopped.code, stopped.level), (MarkCode::QuotaStops, Level::Caution));
    assert!(stopped.short.starts_with("stopped 12x by quota (up to "), "{}", stopped.short);
    let expected = "the control group, with a quota of 1.5 CPUs, stopped the ranks 12 times, for 340 ms added over CPUs, ";
    assert!(stopped.advice.starts_with(expected), "{}", stopped.advice);
    for mark in [stopped.advice, preempted.advice, waited.advice] {
        assert!(mark.contains("raise the quota") && !mark.contains("other programs"), "{mark}");
    }
    assert!(
        with(1, None)[0]
            .advice
            .starts_with("the control group stopped the ranks once, for 340 ms added over CPUs, ")
    );
    let [preempted, waited]: [Mark; 2] = with(0, Some(150_000)).try_into().unwrap();
    assert!([preempted, waited].iter().all(|mark| mark.advice.contains("stop other programs")));
    // Two ranks in all of 50 stops are all samples.
    assert_eq!(with(50, None)[0].effect, None);
}
