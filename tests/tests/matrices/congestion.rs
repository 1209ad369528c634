//! Tests of benchmarks under load: rows, impact factors.

use std::collections::BTreeSet;

use ombx_record::result::{Check, Figure, Measurement, Outcome};
use ombx_tests::{Job, kept::Kept, results};
use serde_json::Value;

fn value(row: &Measurement, name: &str) -> Option<f64> {
    match row.figures.get(name) {
        Some(Figure::Value(value)) => Some(*value),
        _ => None,
    }
}

fn load_of(row: &Measurement) -> &str {
    row.axes.get("under").map_or("", String::as_str)
}

#[test]
fn a_row_under_load_has_an_impact_factor() {
    let kept = Kept::new();
    let done = kept
        .job(
            "p2p.latency --sizes 8 --under \
              nothing,p2p.fan_in,collective.alltoall,collective.bcast:64K,nothing -n 5 --iterations 20",
        )
        .run()
        .expect(0);
    let run = kept.run();
    let loads: Vec<&str> = run.rows.iter().map(load_of).collect();
    let loaded = ["p2p.fan_in:4K", "collective.alltoall:4K", "collective.bcast:64K"];
    assert_eq!(loads, [&["nothing"][..], &loaded, &["nothing-again"]].concat(), "{done}");
    for row in &run.rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
        assert_eq!(row.ranks, 2, "{}", row.key);
        let rate = value(row, "congestors_mb_per_s");
        assert_eq!(
            rate.is_some_and(|rate| rate > 0.0),
            loaded.contains(&load_of(row)),
            "{}\n{done}",
            row.key
        );
    }
    let median = |row: &Measurement| row.summary.as_ref().unwrap().median;
    let base = (median(&run.rows[0]) * median(&run.rows[4])).sqrt();
    for row in &run.rows[1..4] {
        let factor = value(row, "impact_times").unwrap_or_else(|| panic!("{}\n{done}", row.key));
        assert!((factor * base / median(row) - 1.0).abs() < 1e-9, "{}: {factor}", row.key);
    }
    let again = value(&run.rows[4], "impact_times").unwrap();
    assert!((again * median(&run.rows[0]) / median(&run.rows[4]) - 1.0).abs() < 1e-9, "{again}");
    assert!(done.stdout.contains("impact times") && done.stdout.contains("p2p.fan_in:4K"), "{done}");
}

/// The factor of several launches is the median of the factors of each launch.
#[test]
fn factors_have_intervals_over_launches() {
    let kept = Kept::new();
    let options = "p2p.latency --sizes 8 --under nothing,p2p.bw,nothing -n 4 --iterations 10 --launches 3";
    let done = kept.job(options).run().expect(0);
    let lines = results::lines_of(&kept.out());
    let under = |line: &&Value| line["axes"]["under"] == "p2p.bw:4K";
    let rows: Vec<&Value> = lines.iter().filter(under).collect();
    let figure = |row: &Value, name: &str| row["figures"][name].as_f64();
    let factors: Vec<f64> = rows.iter().filter_map(|row| figure(row, "impact_times")).collect();
    // Three launches and the estimate over them.
    assert_eq!(factors.len(), 4, "{done}");
    let mut sorted = factors[..3].to_vec();
    sorted.sort_by(f64::total_cmp);
    assert!((factors[3] / sorted[1] - 1.0).abs() < 1e-9, "{factors:?}");
    let ends =
        ["low", "high"].map(|end| figure(rows[3], &format!("impact_{end}_times")).expect("an interval"));
    assert!((ends[0] / sorted[0] - 1.0).abs() < 1e-9 && (ends[1] / sorted[2] - 1.0).abs() < 1e-9, "{ends:?}");
}

/// One benchmark of each way in which a kernel is run ends when the victims are done.
#[test]
fn benchmarks_of_every_kind_can_be_a_load() {
    let loads = [
        "p2p.bibw_persistent",
        "p2p.exchange",
        "p2p.fan_out",
        "p2p.latency_mp",
        "p2p.link",
        "p2p.mbw_mr",
        "p2p.request",
        "rma.acc_bw",
        "rma.put_bibw",
        "rma.put_incast",
        "rma.rget_bw",
        "collective.barrier",
        "collective.bcast_acked",
        "collective.bcast_window",
        "collective.iallreduce",
        "collective.neighbor_alltoall",
    ];
    let kept = Kept::new();
    let options = format!("p2p.latency --sizes 8 --under {}:8 -n 5 --iterations 20", loads.join(":8,"));
    let done = kept.job(&options).run().expect(0);
    let run = kept.run();
    assert_eq!(run.rows.len(), loads.len(), "{done}");
    for (row, load) in run.rows.iter().zip(loads) {
        assert_eq!(load_of(row), format!("{load}:8"), "{done}");
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
    }
}

/// Every origin has its own part of the memory of rank 0.
#[test]
fn an_incast_of_puts_counts_the_bytes_of_every_origin() {
    for ranks in [2, 4] {
        let kept = Kept::new();
        let options = format!("rma.put_incast -n {ranks} --sizes 1,8,64K --window 8 --iterations 60");
        let done = kept.job(&options).run().expect(0);
        let run = kept.run();
        assert_eq!(run.rows.len(), 3, "{done}");
        for row in &run.rows {
            assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
            let origins = ranks - 1;
            assert_eq!(row.work.unwrap().bytes, 8 * origins * row.bytes.unwrap(), "{}", row.key);
            let timed: Vec<u64> = row.samples.iter().map(|samples| samples.rank.into()).collect();
            assert_eq!(timed, (1..ranks).collect::<Vec<u64>>(), "{}: the origins are timed", row.key);
        }
    }
}

#[test]
fn the_suite_measures_every_victim_under_every_load() {
    let kept = Kept::new();
    let out = kept.out();
    let done = Job::ombx("congestion -n 5 --quick --iterations 20 -o").arg(&out).run().expect(0);
    let run = kept.run();
    let benches: BTreeSet<&str> = run.rows.iter().map(|row| row.bench.as_str()).collect();
    assert_eq!(
        benches.into_iter().collect::<Vec<_>>(),
        ["collective.allreduce", "p2p.bw", "p2p.latency", "p2p.sendrecv"]
    );
    assert_eq!(run.rows.len(), 5 * 7, "{done}");
    for row in &run.rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
    }
}
