//! Data that arrives wrong: a FAILED row, exit 5, and the place of the first wrong byte, as users see them. That every benchmark
//! catches it is for `cargo xtask faults`.

use ombx_core::{
    benchmark::payload::{Check, Mismatch},
    result::Outcome,
};
use ombx_tests::{interpose, results};
use serde_json::Value;

use crate::Kept;

const SIZES: &str = "--sizes 8,100,64K --iterations 50 --window 8";

fn interposed(kept: &Kept, bench: &str, options: &str, what: &str) -> ombx_tests::Job {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    kept.job(&format!("{bench} {SIZES} {options}")).args(interpose::arguments(library, what))
}

/// The small message is left alone and passes; of the others one bit is wrong on both ranks.
#[test]
fn of_a_ping_pong() {
    let kept = Kept::new();
    let done = interposed(&kept, "p2p.latency", "", "recv").run().expect(5);
    let run = kept.run();
    assert_eq!(run.rows[0].check, Check::Passed, "{done}");
    for row in &run.rows[1..] {
        let Check::Failed(Mismatch { slot, byte, expected, actual, .. }) = row.check else {
            panic!("{} was not noticed\n{done}", row.key);
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

/// The library that does nothing changes nothing, and unverified rows do not see what is wrong.
#[test]
fn of_nothing() {
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
    let rows = kept.run().rows;
    let measured = rows.iter().filter(|row| row.outcome == Outcome::Ok);
    assert!(
        measured.clone().count() > 20 && measured.clone().all(|row| row.check == Check::Passed),
        "{done}"
    );
    interposed(&kept, "p2p.latency", "--no-verify", "recv").run().expect(0);
}
