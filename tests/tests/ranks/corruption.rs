//! Tests of wrong data: rows that fail, and how they are shown. `cargo xtask faults` flips bytes of every benchmark.

use ombx_record::result::{Check, Mismatch};
use ombx_tests::{interpose, kept::Kept, results};
use serde_json::Value;

/// One benchmark of each call that the library spoils.
const SPOILT: &str = "p2p.latency p2p.sendrecv p2p.unirandom collective.bcast collective.bcast_ack collective.alltoall \
                      rma.put_latency";
const COUNTS: &str = "--iterations 2 --warmup 1 -n 2";

/// The library spoils messages of MPI_DOUBLE alone: the calls have the type of the row.
#[test]
fn wrong_data_fails_the_rows_of_its_type() {
    let kept = Kept::new();
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    let words = format!("{SPOILT} --type double,int64,byte --sizes 1K {COUNTS}");
    let done = kept.job(&words).args(interpose::arguments(library, "doubles")).run().expect(5);
    let run = kept.run();
    assert_eq!(run.rows.len(), 7 * 3, "{done}");
    for row in &run.rows {
        let is_double = row.axes.get("type").is_some_and(|element| element == "double");
        match row.check {
            Check::Failed(Mismatch { slot, byte, expected, actual, .. }) if is_double => {
                assert_eq!((slot, byte, expected ^ actual), (0, 42, 0x10), "{}\n{done}", row.key);
            }
            Check::Passed if !is_double => {}
            _ => panic!("{}: {:?}\n{done}", row.key, row.check),
        }
    }
    assert_eq!(run.end.unwrap().1.corrupt, 7, "{done}");
    assert!(done.stdout.contains("FAILED") && done.stdout.contains("message 0, byte 42"), "{done}");
    let lines = results::lines_of(&kept.out());
    let row = *results::rows(&lines).iter().find(|row| row["check"] == "failed").expect("a failed row");
    assert_eq!(row["outcome"], Value::from("failed"), "{row}");
    assert!(row["mismatch"]["byte"] == 42 && row["reason"].is_string(), "{row}");
}

#[test]
fn wrong_data_is_not_noticed_without_verification() {
    let kept = Kept::new();
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    let job = kept.job(&format!("p2p.latency --no-verify --sizes 1K {COUNTS}"));
    job.args(interpose::arguments(library, "recv")).run().expect(0);
    assert_eq!(kept.run().rows[0].check, Check::Off);
}
