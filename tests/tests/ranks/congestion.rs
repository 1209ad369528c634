//! Test of `ombx congestion`: rows under loads, impact factors, and wrong data of a load.

use ombx_record::result::{Check, Figure, Measurement};
use ombx_tests::{Job, interpose, kept::Kept};

/// The library spoils every received message but the smallest: those of the second load, not those of the victims.
#[test]
fn rows_under_load_have_a_factor_or_fail_with_the_data_of_the_load() {
    let kept = Kept::new();
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    let loads = "nothing,p2p.latency:8,p2p.latency:100,nothing";
    let words = format!("congestion p2p.latency --sizes 8 --under {loads} -n 4 --iterations 3 --warmup 1 -o");
    let job = Job::ombx(&words).arg(kept.out()).arg("--quick");
    let done = job.args(interpose::arguments(library, "recv")).run().expect(5);
    let run = kept.run();
    let [before, loaded, spoilt, after] = &run.rows[..] else { panic!("{done}") };
    let load = |row: &Measurement| row.axes["under"].clone();
    assert_eq!(
        [before, loaded, spoilt, after].map(load),
        ["nothing", "p2p.latency:8", "p2p.latency:100", "nothing-again"]
    );
    assert!([before, loaded, after].iter().all(|row| row.check == Check::Passed && row.ranks == 2), "{done}");
    assert!(matches!(spoilt.check, Check::Failed(_)), "{done}");
    assert!(done.stdout.contains("data of the load p2p.latency arrived wrong at rank"), "{done}");
    // The factor is the ratio to the time without load, before and after.
    let median = |row: &Measurement| row.summary.as_ref().unwrap().median;
    let base = (median(before) * median(after)).sqrt();
    let Some(Figure::Value(factor)) = loaded.figures.get("impact_times") else { panic!("{done}") };
    assert!((factor * base / median(loaded) - 1.0).abs() < 1e-9, "{factor}");
}
