//! Tests of wrong data: a FAILED row, exit code 5, and the position of the first wrong byte. `cargo xtask faults` tests every
//! benchmark.

use ombx_core::{
    benchmark::payload::{Check, Mismatch},
    result::Outcome,
};
use ombx_tests::{interpose, results};
use serde_json::Value;

use crate::Kept;

const SIZES: &str = "--sizes 8,100,64K --iterations 50";

fn interposed(kept: &Kept, bench: &str, options: &str, what: &str) -> ombx_tests::Job {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    kept.job(&format!("{bench} {SIZES} {options}")).args(interpose::arguments(library, what))
}

/// The library changes one bit in every message but the smallest, on both ranks.
#[test]
fn a_flipped_bit_fails_the_row() {
    let kept = Kept::new();
    let done = interposed(&kept, "p2p.latency", "", "recv").run().expect(5);
    let run = kept.run();
    assert_eq!(run.rows[0].check, Check::Passed, "{done}");
    for row in &run.rows[1..] {
        let Check::Failed(Mismatch { slot, byte, expected, actual, .. }) = row.check else {
            panic!("{} was not detected\n{done}", row.key);
        };
        assert_eq!((slot, byte, expected ^ actual), (0, 42, 0x10), "{done}");
    }
    assert_eq!(run.end.unwrap().1.corrupt, 2, "{done}");
    assert!(done.stdout.contains("FAILED") && done.stdout.contains("message 0, byte 42"), "{done}");
    let lines = results::lines_of(&kept.out());
    let row = results::rows(&lines)[1];
    assert_eq!((&row["outcome"], &row["check"]), (&Value::from("failed"), &Value::from("failed")), "{row}");
    assert!(row["mismatch"]["byte"] == 42 && row["reason"].is_string(), "{row}");
}

/// The library changes one bit on rank 3 alone, which is in the second of two groups.
#[test]
fn a_flipped_bit_in_the_second_group_fails_the_row() {
    let kept = Kept::new();
    let options = "--sizes 8,1000 --groups 2 -n 4 --launches 1 --iterations 10";
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    let done = kept
        .job(&format!("collective.allreduce {options}"))
        .args(interpose::arguments(library, "allreduce"))
        .run()
        .expect(5);
    let run = kept.run();
    let [small, large] = &run.rows[..] else { panic!("{done}") };
    assert_eq!(small.check, Check::Passed, "{done}");
    let Check::Failed(Mismatch { rank, byte, expected, actual, .. }) = large.check else { panic!("{done}") };
    assert_eq!((rank.0, byte, expected ^ actual), (3, 42, 0x10), "{done}");
}

/// Rows pass with a library that does nothing. Without verification, wrong data is not detected.
#[test]
fn a_library_without_effect_changes_nothing() {
    let kept = Kept::new();
    let done = interposed(
        &kept,
        "p2p.* rma.put_latency rma.put_bw rma.get_latency rma.get_bw",
        "--sync pscw,flush",
        "none",
    )
    .arg("--allow-skips")
    .run()
    .expect(0);
    let runs = results::runs_of(&kept.out());
    assert_eq!(runs.len(), 2, "p2p.latency_mt has ranks of its own\n{done}");
    let rows: Vec<_> = runs.into_iter().flat_map(|run| run.rows).collect();
    let measured = rows.iter().filter(|row| row.outcome == Outcome::Ok);
    assert!(
        measured.clone().count() > 20 && measured.clone().all(|row| row.check == Check::Passed),
        "{done}"
    );
    interposed(&kept, "p2p.latency", "--no-verify --force", "recv").run().expect(0);
}
