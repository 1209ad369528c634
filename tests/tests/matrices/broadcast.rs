//! Tests of the four methods that time a broadcast, of its rows, and of its suite.

use ombx_record::result::{Aggregation, Check, Figure, Measurement, Outcome};
use ombx_tests::{Job, interpose, kept::Kept, mpi, results};

/// Runs to success and returns the rows of all runs, all of them verified. Benchmarks with threads have ranks of their own.
fn rows_of(options: &str) -> Vec<Measurement> {
    let kept = Kept::new();
    let done = kept.job(options).run().expect(0);
    let rows: Vec<Measurement> = results::runs_of(&kept.out()).into_iter().flat_map(|run| run.rows).collect();
    for row in &rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
    }
    rows
}

fn value(row: &Measurement, figure: &str) -> f64 {
    match row.figures.get(figure) {
        Some(Figure::Value(x)) => *x,
        other => panic!("{}: {figure} is {other:?}", row.key),
    }
}

fn find_row<'r>(rows: &'r [Measurement], bench: &str, axis: (&str, &str)) -> &'r Measurement {
    let wanted = |row: &&Measurement| {
        row.bench == bench && (axis.0.is_empty() || row.axes.get(axis.0).is_some_and(|value| value == axis.1))
    };
    rows.iter().find(wanted).unwrap_or_else(|| panic!("no row of {bench} with {axis:?}"))
}

#[test]
fn one_command_measures_every_method() {
    let rows = rows_of("collective.bcast* -n 2 --sizes 8,4K --iterations 20");
    for (bench, across) in [
        ("collective.bcast_round", Aggregation::Slowest),
        ("collective.bcast_window", Aggregation::Global),
        ("collective.bcast_ack", Aggregation::Origin),
        ("collective.bcast_acked", Aggregation::Origin),
    ] {
        assert_eq!(find_row(&rows, bench, ("", "")).aggregation, across, "{bench}");
    }
    assert!(find_row(&rows, "collective.bcast_round", ("", "")).summary.is_some());
    for row in rows.iter().filter(|row| row.figures.contains_key("one_way_us")) {
        let Some(summary) = &row.summary else {
            // A busy machine may not resolve the correction, and the row says so.
            assert!(matches!(row.figures.get("corrected_us"), Some(Figure::Unresolved(_))), "{}", row.key);
            continue;
        };
        let most = summary.ci95.map_or(summary.median, |[_, high]| high) / 1e3;
        let has_notice = row.trust.iter().any(|notice| notice.code.name() == "below_one_way");
        assert_eq!(has_notice, most < value(row, "one_way_us"), "{}: {most} us, {:?}", row.key, row.trust);
    }
}

/// `MPI_Bcast` of 0 bytes may send nothing, so that a byte is sent.
#[test]
fn an_acked_broadcast_of_0_bytes_has_a_time_or_a_reason() {
    let kept = Kept::new();
    let options = "collective.bcast_acked -n 2 --sizes 0 --iterations 50 --ack-correction all";
    kept.job(options).run().expect(0);
    let rows = kept.run().rows;
    for row in &rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}", row.key);
        assert!(row.trust.iter().any(|notice| notice.code.name() == "one_byte"), "{}", row.key);
        // The row has a positive time, or the reason why there is none.
        match (&row.summary, row.figures.get("corrected_us")) {
            (Some(summary), None) => assert!(summary.min > 0.0 && summary.median > 0.0, "{}", row.key),
            (None, Some(Figure::Unresolved(why))) => assert!(why.contains("not resolved"), "{why}"),
            other => panic!("{}: {other:?}", row.key),
        }
    }
}

#[test]
fn a_root_and_a_type_of_choice() {
    let rows = rows_of("collective.bcast_acked -n 3 --root 1 --type int32 --sizes 0,64 --iterations 20");
    let ackers: Vec<&str> = rows.iter().map(|row| row.axes["acker"].as_str()).collect();
    assert_eq!(ackers, ["0", "0", "2", "2", "slowest", "slowest"]);
    for row in &rows {
        assert_eq!((row.axes["root"].as_str(), row.axes["type"].as_str()), ("1", "int32"), "{}", row.key);
        assert_eq!((row.samples[0].rank, &row.check), (1, &Check::Passed), "{}", row.key);
        assert!(row.samples[0].round_trips.is_some(), "{}", row.key);
    }
}

#[test]
fn every_acker_has_a_row_and_the_slowest_counts() {
    let rows = rows_of("collective.bcast_acked -n 3 --sizes 64K --iterations 20 --batch 1 --warmup 2");
    let ackers: Vec<&str> = rows.iter().map(|row| row.axes["acker"].as_str()).collect();
    assert_eq!(ackers, ["1", "2", "slowest"]);
    for row in &rows {
        let trips = row.samples[0].round_trips.as_ref().unwrap();
        // The first half of the samples chose the slowest.
        let samples = if row.axes["acker"] == "slowest" { 10 } else { 20 };
        assert_eq!(
            (row.samples[0].elapsed_ns.len(), trips.elapsed_ns.len(), trips.halves),
            (samples, samples, 1)
        );
        assert!((value(row, "bound_us") * 2.0 - value(row, "round_trip_us")).abs() < 1e-9);
    }
    let second_half = |row: &Measurement| row.samples[0].elapsed_ns[10..].to_vec();
    assert!(rows[..2].iter().any(|row| second_half(row) == rows[2].samples[0].elapsed_ns));
}

/// Rank 0 has the reference clock, and there is one more.
#[test]
fn synchronized_clocks_have_residuals() {
    let rows = rows_of("collective.bcast_window -n 2 --sizes 8 --no-sync-hosts --iterations 20 --warmup 2");
    let [median, max, range] = ["sync_residual_us", "sync_residual_max_us", "sync_residual_range_us"]
        .map(|name| value(&rows[0], name));
    assert!(0.0 <= median && median <= max && max == range, "{median} {max} {range}");
    assert!(value(&rows[0], "sync_error_us") >= 0.0);
    let late: usize = rows[0].samples.iter().map(|samples| samples.late.len()).sum();
    assert_eq!(late as f64, value(&rows[0], "late_starts"), "warming up is not counted");
}

#[test]
fn each_pacing_times_every_rank() {
    let rows = rows_of("collective.bcast_window -n 3 --sizes 8 --pace all --iterations 10 --warmup 2");
    let paces: Vec<&str> = rows.iter().map(|row| row.axes["pace"].as_str()).collect();
    assert_eq!(paces, ["barrier", "dissemination", "window"]);
    for row in &rows {
        assert_eq!((row.samples.len(), row.samples[2].elapsed_ns.len()), (3, 10), "{}", row.key);
        let ranks = row.across_ranks().unwrap();
        assert!(ranks.min <= ranks.mean && ranks.mean <= ranks.max, "{ranks:?}");
    }
}

/// A tree of messages exists for 0 bytes too.
#[test]
fn a_message_tree_of_0_bytes_sends_0_bytes() {
    let rows =
        rows_of("collective.bcast_acked -n 2 --by binomial --sizes 0 --iterations 20 --ack-correction all");
    // Of each acker and of the slowest.
    assert_eq!(rows.len(), 2 * 3);
    assert!(rows.iter().all(|row| row.trust.iter().all(|notice| notice.code.name() != "one_byte")));
}

/// Checks the data of every algorithm under every method, also with a root that rotates. Five spinning ranks of MPICH would take
/// longer than all the others.
#[test]
fn every_method_times_every_algorithm() {
    let most = if mpi::is_open_mpi() { 5 } else { 4 };
    let methods = ["bcast_round", "bcast_window", "bcast_ack", "bcast_acked"];
    let names = methods.map(|method| format!("collective.{method}")).join(" ");
    for ranks in 2..=most {
        let rows = rows_of(&format!("{names} -n {ranks} --by all --sizes 1,64K --iterations 3 --warmup 1"));
        // The acknowledged broadcast has a row for each acker and the slowest.
        assert_eq!(rows.len(), 2 * 3 * (3 + ranks as usize));
        for bench in methods {
            for by in ["linear", "binomial"] {
                find_row(&rows, &format!("collective.{bench}"), ("by", by));
            }
        }
        // Rows name an algorithm only if it is not that of the library.
        assert!(rows.iter().all(|row| row.axes.get("by").is_none_or(|by| by != "library")));
    }
    let rows =
        rows_of("collective.bcast -n 3 --by all --root rotate --sizes 0,8,64K --iterations 4 --warmup 1");
    assert_eq!(rows.len(), 9);
    assert!(rows.iter().any(|row| row.key == "collective.bcast/pace=barrier,bytes=0,root=rotate"));
    assert!(rows.iter().any(|row| row.key == "collective.bcast/by=linear,pace=barrier,bytes=8,root=rotate"));
}

/// The root of a linear tree sends every message. In a binomial tree of 4 ranks, rank 2 sends one of three.
#[test]
fn each_algorithm_sends_along_its_tree() {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    for (bench, by) in ["bcast", "bcast_window", "bcast_ack", "bcast_acked"]
        .into_iter()
        .flat_map(|bench| ["linear", "binomial"].map(|by| (bench, by)))
    {
        let kept = Kept::new();
        let words =
            format!("collective.{bench} -n 4 --by {by} --sizes 1K --iterations 3 --warmup 1 --verbose");
        let done = kept.job(&words).args(interpose::arguments(library, "count")).run().expect(0);
        let ranks = interpose::calls(&done);
        let sends: Vec<u64> = ranks.iter().map(|calls| calls.get("send").copied().unwrap_or(0)).collect();
        let broadcasts = sends.iter().sum::<u64>() / 3;
        assert!(broadcasts >= 3, "{sends:?}\n{done}");
        let shares = if by == "linear" { [3, 0, 0, 0] } else { [2, 0, 1, 0] };
        assert_eq!(sends, shares.map(|share| share * broadcasts), "{bench} {by}");
    }
}

#[test]
fn the_suite_compares_algorithms_and_methods() {
    let kept = Kept::new();
    let words = "run suite:broadcast -n 2 --sizes 8 --iterations 20 --warmup 2 --launches 6 -o";
    let done = Job::ombx(words).arg(kept.out()).run().expect(0);
    let shown = Job::ombx("show").arg(kept.out()).run().expect(0);
    for text in [&done.stdout, &shown.stdout] {
        assert!(text.contains("Which broadcast is faster"), "{done}");
        let verdict = text.lines().find(|line| line.starts_with("  8 bytes: "));
        let both =
            |line: &str| line.contains("bcast_acked ack-correction=half: ") && line.contains("bcast_round: ");
        assert!(verdict.is_some_and(both), "{done}");
        assert!(text.contains("with fewer than 4 ranks"), "{done}");
    }
    // A single launch has no verdict.
    let once = Job::ombx("run suite:broadcast -n 2 --sizes 8 --iterations 20 --warmup 2").run().expect(0);
    assert!(once.stdout.contains("undecided: a verdict needs 6 launches, not 1"), "{once}");
}
