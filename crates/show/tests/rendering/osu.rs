//! OSU format.

use ombx_core::benchmark::Osu;
use ombx_drop_in::osu::{OsuColumns, OsuTable};
use ombx_record::{
    file,
    result::{Aggregation, Check, Figure, Measurement, Mismatch, Outcome, RunOutcome, Samples, Work},
    stats::Summary,
    unit::Rank,
};

use crate::{around, bandwidth, complete, golden, latency, rendered};

fn titles(bench: &str) -> Option<Osu> {
    let (name, title) = match bench {
        "p2p.latency" => ("osu_latency", "OSU MPI Latency Test"),
        "p2p.mbw_mr" => ("osu_mbw_mr", "OSU MPI Multiple Bandwidth / Message Rate Test"),
        "rma.put_bw" => ("osu_put_bw", "OSU MPI_Put Bandwidth Test"),
        "p2p.latency_mt" => ("osu_latency_mt", "OSU MPI Multi-threaded Latency Test"),
        "p2p.latency_mp" => ("osu_latency_mp", "OSU MPI Multi-process Latency Test"),
        "collective.allreduce" => ("osu_allreduce", "OSU MPI Allreduce Latency Test"),
        "collective.iallreduce" => ("osu_iallreduce", "OSU MPI Non-blocking Allreduce Latency Test"),
        "collective.barrier" => ("osu_barrier", "OSU MPI Barrier Latency Test"),
        "collective.ibarrier" => ("osu_ibarrier", "OSU MPI Non-blocking Barrier Latency Test"),
        "rma.get_latency" => ("osu_get_latency", "OSU MPI_Get latency Test"),
        _ => return None,
    };
    Some(Osu { name, title, axes: &[] })
}

/// Returns what a drop-in program prints.
fn osu(rows: &[Measurement]) -> String {
    complete(&mut OsuTable::with(titles, OsuColumns::default()), rows)
}

/// Returns what a parser with the multi-line expression `^SIZE\s+(\S+)` finds.
fn parsed<'a>(text: &'a str, size: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.strip_prefix(size))
        .filter(|rest| rest.starts_with(char::is_whitespace))
        .find_map(|rest| rest.split_whitespace().next())
}

#[test]
fn of_the_golden_run() {
    let file::RunWithRows { run, rows, .. } = golden();
    insta::assert_snapshot!(rendered(&mut OsuTable::new(titles), &run, &rows, RunOutcome::Complete));
}

#[test]
fn a_one_sided_bandwidth_test_has_window_and_synchronization() {
    let text = osu(&[bandwidth(8, &[0, 9885, 0].repeat(10)), bandwidth(65536, &[1_000_000; 20])]);
    let expected = "\
# OSU MPI_Put Bandwidth Test v7.4 (ombx 0.1.0)
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_post/start/complete/wait
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
8                     155.39
65536                4194.30
";
    assert_eq!(text, expected, "the mean is a time, although the median is none");
    // 64 messages of 8 bytes in 4.9425 us.
    let text = osu(&[bandwidth(8, &[4942, 4943].repeat(10))]);
    assert_eq!(text.lines().last(), Some("8                     103.59"));
    assert_eq!(text.lines().last().map(str::len), Some(10 + 18));
}

#[test]
fn a_latency_test_shows_the_mean_of_half_the_round_trips() {
    let text = osu(&[latency(8, &[320, 320, 320, 640]), latency(4_194_304, &around(2_000_000, 400))]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(""), "two-sided programs begin with an empty line");
    assert_eq!(lines.next(), Some("# OSU MPI Latency Test v7.4 (ombx 0.1.0)"));
    assert_eq!(lines.next(), Some("# Datatype: MPI_CHAR."));
    assert_eq!(lines.next(), Some("# Size       Avg Latency(us)"));
    assert_eq!(lines.next(), Some("8                       0.20"));
    assert_eq!(lines.next(), Some("4194304              1004.99"));
    assert_eq!(lines.next(), None);
}

#[test]
fn a_one_sided_latency_test_has_its_own_column_line() {
    let mut row = latency(8, &[7760; 10]);
    row.bench = "rma.get_latency".into();
    row.axes = [("sync", "flush"), ("win", "create")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let expected = "\
# OSU MPI_Get latency Test v7.4 (ombx 0.1.0)
# Window creation: MPI_Win_create
# Synchronization: MPI_Win_flush
# Datatype: MPI_CHAR.
# Size          Latency (us)
8                       3.88
";
    assert_eq!(osu(&[row.clone()]), expected);
    for (sync, calls) in [
        ("pscw", "MPI_Win_post/start/complete/wait"),
        ("fence", "MPI_Win_fence"),
        ("lock", "MPI_Win_lock/unlock"),
        ("lock_all", "MPI_Win_lock_all/unlock_all"),
        ("flush_local", "MPI_Win_flush_local"),
    ] {
        row.axes.insert("sync".into(), sync.into());
        assert!(osu(&[row.clone()]).contains(&format!("# Synchronization: {calls}\n")), "{sync}");
    }
}

#[test]
fn a_message_rate_test_has_two_columns() {
    let mut row = bandwidth(8, &[3357; 10]);
    (row.bench, row.axes) = ("p2p.mbw_mr".into(), Default::default());
    let expected = "\
# OSU MPI Multiple Bandwidth / Message Rate Test v7.4 (ombx 0.1.0)
# [ pairs: 1 ] [ window size: 64 ]
# Datatype: MPI_CHAR.
# Size                  MB/s        Messages/s
8                     152.52       19064641.05
";
    assert_eq!(osu(&[row]), expected);
}

#[test]
fn parsers_find_only_the_figure() {
    let text = osu(&[latency(8, &[320; 10]), latency(80, &[640; 10]), latency(18, &[960; 10])]);
    assert_eq!(
        (parsed(&text, "8"), parsed(&text, "80"), parsed(&text, "1")),
        (Some("0.16"), Some("0.32"), None)
    );
    let mut failed = latency(8, &[320; 10]);
    failed.outcome = Outcome::Failed("wrong\n8   1.00".into());
    let text = osu(&[failed]);
    assert_eq!(parsed(&text, "8"), None, "a failed row is a comment: {text}");
    assert!(text.ends_with("# FAILED at size 8: wrong 8   1.00\n"), "{text}");
}

#[test]
fn other_benchmarks_print_no_osu_version() {
    let mut row = latency(8, &[320; 10]);
    row.bench = "acme.ping".into();
    assert!(osu(&[row]).starts_with("\n# acme.ping (ombx 0.1.0)\n# Datatype"));
}

#[test]
fn comments_name_choices_and_means() {
    let [fence, pscw] = ["fence", "pscw"].map(|sync| {
        [1, 8].map(|bytes| {
            let mut row = bandwidth(bytes, &[4942, 4943].repeat(10));
            row.axes.insert("sync".into(), sync.into());
            row
        })
    });
    let latency = latency(8, &[320; 10]);
    let rows = [fence.to_vec(), pscw.to_vec(), vec![latency]].concat();
    let text = complete(&mut OsuTable::new(titles), &rows);
    let comments: Vec<&str> = text.lines().filter(|line| !line.starts_with(char::is_numeric)).collect();
    assert_eq!(comments[0], "# Means over samples, as OMB prints them; tables of ombx have medians");
    let choices = |sync: &str| format!("# sync={sync} win=allocate window=64");
    for sync in ["fence", "pscw"] {
        let found: Vec<&str> = text.split(&choices(sync)).collect();
        let [_, rows] = found[..] else { panic!("{sync} is named once: {text}") };
        let rows: Vec<&str> = rows.lines().skip(1).map(|line| line.split(' ').next().unwrap_or("")).collect();
        assert_eq!(rows[..2], ["1", "8"], "directly above its rows: {text}");
    }
    assert!(text.ends_with("# Size       Avg Latency(us)\n8                       0.16\n"), "{text}");
    assert!(
        !osu(&rows).contains("Means") && !osu(&rows).contains("win=allocate"),
        "drop-in programs have no such lines"
    );
}

#[test]
fn an_incomplete_run_ends_with_a_comment() {
    let row = latency(8, &[320; 10]);
    let text = rendered(&mut OsuTable::new(titles), &golden().run, &[row], RunOutcome::Interrupted);
    assert!(text.ends_with("# not complete: the run ended after 1 rows\n"), "{text}");
}

fn with(columns: OsuColumns, rows: &[Measurement]) -> String {
    complete(&mut OsuTable::with(titles, columns), rows)
}

/// Returns a row of a collective on two ranks.
fn collective(bench: &str, bytes: u64, elapsed_ns: [&[u64]; 2]) -> Measurement {
    let row = latency(bytes, elapsed_ns[0]);
    let samples: Vec<Samples> = (0..)
        .zip(elapsed_ns)
        .map(|(rank, ns)| Samples { rank, elapsed_ns: ns.to_vec(), ..row.samples[0].clone() })
        .collect();
    Measurement {
        bench: bench.into(),
        work: Some(Work { bytes, ops: 1, legs: 1 }),
        aggregation: Aggregation::Slowest,
        summary: Summary::new(&Measurement::combine(&samples, 1)),
        samples,
        ..row
    }
}

#[test]
fn a_collective_is_the_mean_of_its_ranks() {
    let row = collective("collective.allreduce", 8, [&[350; 10], &[450; 10]]);
    let expected = "
# OSU MPI Allreduce Latency Test v7.4 (ombx 0.1.0)
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
8                       0.40              0.35              0.45          10
";
    let counters = vec![("PAPI_TOT_INS", "instructions_per_op"), ("PAPI_TOT_CYC", "cycles_per_op")];
    let counted = OsuColumns { counters, ..OsuColumns::default() };
    let mut with_counters = row.clone();
    with_counters.figures.insert("instructions_per_op".into(), Figure::Value(1234.5));
    with_counters.figures.insert("cycles_per_op".into(), Figure::Unresolved("unavailable: none".into()));
    let text = with(counted, &[with_counters]);
    assert!(
        text.ends_with("# counters at size 8: PAPI_TOT_INS 1234.50, PAPI_TOT_CYC unavailable: none\n"),
        "{text}"
    );
    let full = OsuColumns { full: true, ..OsuColumns::default() };
    assert_eq!(with(full, std::slice::from_ref(&row)), expected);
    assert_eq!(osu(&[row]).lines().last(), Some("8                       0.40"));
}

#[test]
fn a_barrier_has_no_sizes() {
    let row = collective("collective.barrier", 0, [&[380; 10], &[380; 10]]);
    let expected = "
# OSU MPI Barrier Latency Test v7.4 (ombx 0.1.0)
# Avg Latency(us)
             0.38
";
    assert_eq!(osu(&[row]), expected);
}

#[test]
fn a_nonblocking_collective_has_overlap_columns() {
    let mut row = collective("collective.iallreduce", 8, [&[2790; 10], &[2790; 10]]);
    let figures = [("compute_us", 1.38), ("pure_us", 1.09), ("overlap_percent", 0.0)];
    row.figures = figures.map(|(name, value)| (name.to_owned(), Figure::Value(value))).into();
    let expected = "
# OSU MPI Non-blocking Allreduce Latency Test v7.4 (ombx 0.1.0)
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_CHAR.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
8                       2.79              1.38              1.09              0.00
";
    assert_eq!(osu(&[row.clone()]), expected);
    row.bench = "collective.ibarrier".into();
    let expected = "
# OSU MPI Non-blocking Barrier Latency Test v7.4 (ombx 0.1.0)
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
         2.79              1.38              1.09              0.00
";
    assert_eq!(osu(&[row]), expected);
}

#[test]
fn an_overlap_that_is_not_resolved_follows_from_the_times() {
    let mut row = collective("collective.iallreduce", 8, [&[2000; 10], &[2000; 10]]);
    row.figures = [("compute_us", 1.5), ("pure_us", 1.0)]
        .map(|(name, value)| (name.to_owned(), Figure::Value(value)))
        .into();
    row.figures.insert("overlap_percent".into(), Figure::Unresolved("noise".into()));
    assert!(osu(&[row]).ends_with("2.00              1.50              1.00             50.00\n"));
}

#[test]
fn rows_without_data_are_not_printed() {
    let text = osu(&[latency(0, &[320; 10])]);
    assert!(text.ends_with("# Size       Avg Latency(us)\n"), "{text}");
}

#[test]
fn a_site_leaves_the_name_out_of_the_title() {
    let columns = OsuColumns { without_ombx: true, ..OsuColumns::default() };
    assert!(with(columns, &[latency(8, &[320; 10])]).starts_with("\n# OSU MPI Latency Test v7.4\n"));
}

#[test]
fn validation_and_percentiles_are_columns() {
    let columns = OsuColumns { validation: true, percentiles: vec![50, 99], ..OsuColumns::default() };
    let expected = "
# OSU MPI Latency Test v7.4 (ombx 0.1.0)
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)        Validation  P50 Tail Lat(us)  P99 Tail Lat(us)
8                       0.20              Pass              0.16              0.32
";
    let mut row = latency(8, &[320, 320, 320, 640]);
    assert_eq!(with(columns.clone(), std::slice::from_ref(&row)), expected);
    row.check = Check::Failed(Mismatch { rank: Rank(1), slot: 0, byte: 3, expected: 7, actual: 9 });
    row.outcome = Outcome::Failed("data arrived wrong".into());
    let text = with(columns, std::slice::from_ref(&row));
    let expected = "# FAILED at size 8: data arrived wrong\n8                       0.20              Fail";
    assert!(text.contains(expected), "{text}");
    assert_eq!(parsed(&osu(&[row]), "8"), None);
}

#[test]
fn numbers_of_threads_and_processes_precede_the_title() {
    let mut row = latency(8, &[660; 10]);
    row.bench = "p2p.latency_mt".into();
    row.axes.insert("threads".into(), "1:2".into());
    let expected = "\
# Number of Sender threads: 1 \n# Number of Receiver threads: 2

# OSU MPI Multi-threaded Latency Test v7.4 (ombx 0.1.0)
";
    assert!(osu(&[row.clone()]).starts_with(expected));
    row.bench = "p2p.latency_mp".into();
    let text = osu(&[row]);
    assert!(text.starts_with("# Number of forked processes in sender: 1\n"), "{text}");
    assert!(text.ends_with("# Size       Avg Latency(us)\n8               0.33\n"), "{text}");
}

#[test]
fn pairs_have_the_formula_of_osu_mbw_mr() {
    let mut row = bandwidth(8, &[2000; 10]);
    row.bench = "p2p.mbw_mr".into();
    row.axes.clear();
    (row.pairs, row.aggregation) = (2, Aggregation::Pairs);
    row.work = Some(Work { bytes: 2 * 64 * 8, ops: 2 * 64, legs: 1 });
    let of = |rank, ns, started| Samples {
        rank,
        elapsed_ns: vec![ns; 10],
        started_ns: vec![started; 10],
        ..row.samples[0].clone()
    };
    row.samples = vec![of(0, 2000, 0), of(1, 3000, 1000)];
    row.summary = Summary::new(&Measurement::combine(&row.samples, 1));
    // The pairs take 2 and 3 us, and the last is done after 4 us.
    let figures: Vec<f64> =
        osu(&[row.clone()]).lines().last().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    assert_eq!(figures, [8.0, 409.6, 51_200_000.0], "2 x 64 x 8 bytes in 2.5 us");
    assert!((row.mb_per_s().unwrap().median - 256.0).abs() < 1e-9, "2 x 64 x 8 bytes in 4 us");
}
