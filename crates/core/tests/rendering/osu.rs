//! The OSU format, which parsers in frameworks and site scripts read.

use ombx_core::{
    registry::Osu,
    render::OsuTable,
    result::{Measurement, Outcome},
    wire,
};

use crate::{around, bandwidth, complete, golden, latency, rendered};

fn titles(bench: &str) -> Option<Osu> {
    let (name, title) = match bench {
        "p2p.latency" => ("osu_latency", "OSU MPI Latency Test"),
        "p2p.mbw_mr" => ("osu_mbw_mr", "OSU MPI Multiple Bandwidth / Message Rate Test"),
        "rma.put_bw" => ("osu_put_bw", "OSU MPI_Put Bandwidth Test"),
        "rma.get_latency" => ("osu_get_latency", "OSU MPI_Get latency Test"),
        _ => return None,
    };
    Some(Osu { name, title, axes: &[] })
}

fn osu(rows: &[Measurement]) -> String {
    complete(&mut OsuTable::new(titles), rows)
}

/// What a parser with `^SIZE\s+(\S+)` in multi-line mode finds.
fn parsed<'a>(text: &'a str, size: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.strip_prefix(size))
        .filter(|rest| rest.starts_with(char::is_whitespace))
        .find_map(|rest| rest.split_whitespace().next())
}

#[test]
fn of_the_golden_run() {
    let wire::RunWithRows { run, rows, .. } = golden();
    insta::assert_snapshot!(rendered(&mut OsuTable::new(titles), &run, &rows, wire::Outcome::Complete));
}

#[test]
fn a_one_sided_bandwidth_test_looks_as_it_always_did() {
    let text = osu(&[bandwidth(8, &[0, 9885, 0].repeat(10)), bandwidth(65536, &[1_000_000; 20])]);
    let expected = "\
# OSU MPI_Put Bandwidth Test v7.4 (ombx 0.1.0)
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_post/start/complete/wait
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
8                        n/a
65536                4194.30
";
    assert_eq!(text, expected, "a median of no time cannot be turned into a rate");
    // 64 messages of 8 bytes in 4.9425 us.
    let text = osu(&[bandwidth(8, &[4942, 4943].repeat(10))]);
    assert_eq!(text.lines().last(), Some("8                     103.59"));
    assert_eq!(text.lines().last().map(str::len), Some(10 + 18));
}

#[test]
fn a_latency_test_shows_the_mean_of_half_the_round_trips() {
    let text = osu(&[latency(8, &[320, 320, 320, 640]), latency(4_194_304, &around(2_000_000, 400))]);
    let mut lines = text.lines();
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
fn parsers_find_the_figure_and_nothing_else() {
    let text = osu(&[latency(8, &[320; 10]), latency(80, &[640; 10]), latency(18, &[960; 10])]);
    assert_eq!(
        (parsed(&text, "8"), parsed(&text, "80"), parsed(&text, "1")),
        (Some("0.16"), Some("0.32"), None)
    );
    let mut failed = latency(8, &[320; 10]);
    failed.outcome = Outcome::Failed("wrong\n8   1.00".into());
    let text = osu(&[failed]);
    assert_eq!(parsed(&text, "8"), None, "a failed row is a comment: {text}");
    assert!(text.ends_with("# 8 FAILED: wrong 8   1.00\n"), "{text}");
}

#[test]
fn other_benchmarks_claim_no_version_of_theirs() {
    let mut row = latency(8, &[320; 10]);
    row.bench = "acme.ping".into();
    assert!(osu(&[row]).starts_with("# acme.ping (ombx 0.1.0)\n# Datatype"));
}

#[test]
fn an_incomplete_run_ends_with_a_comment() {
    let row = latency(8, &[320; 10]);
    let text = rendered(&mut OsuTable::new(titles), &golden().run, &[row], wire::Outcome::Interrupted);
    assert!(text.ends_with("# not complete: the run ended after 1 rows\n"), "{text}");
}
