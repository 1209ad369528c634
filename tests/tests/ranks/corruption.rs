//! Data that arrives wrong: a FAILED row, exit 5, and the place of the first wrong byte.

use ombx_core::payload::{Check, Mismatch};
use ombx_tests::{interpose, results};
use serde_json::Value;

use crate::Kept;

const SIZES: &str = "--sizes 8,100,64K --iterations 50 --window 8";

fn interposed(kept: &Kept, bench: &str, options: &str, what: &str) -> ombx_tests::Job {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    kept.job(&format!("{bench} {SIZES} {options}")).args(interpose::arguments(library, what))
}

/// The small message is left alone and passes; of the others one bit is wrong, on the rank where it arrives.
fn spoilt(bench: &str, options: &str, what: &str, arrives_on: &[u32]) {
    let kept = Kept::new();
    let done = interposed(&kept, bench, options, what).run().expect(5);
    let run = kept.run();
    let name = format!("{bench} {options} {what}");
    assert_eq!(run.rows[0].check, Check::Passed, "{name}\n{done}");
    for row in &run.rows[1..] {
        let Check::Failed(Mismatch { rank, slot, byte, expected, actual }) = row.check else {
            panic!("{name}: {} was not noticed\n{done}", row.key);
        };
        assert!(arrives_on.contains(&rank.0), "{name}: on rank {rank}\n{done}");
        assert_eq!((slot, byte, expected ^ actual), (0, 42, 0x10), "{name}\n{done}");
    }
    assert_eq!(run.end.unwrap().1.corrupt, 2, "{name}\n{done}");
    let place = format!("rank {}, message 0, byte 42", arrives_on[0]);
    assert!(done.stdout.contains("FAILED"), "{name}\n{done}");
    assert!(arrives_on.len() > 1 || done.stdout.contains(&place), "{name}\n{done}");
    let lines = results::lines_of(&kept.out());
    let row = results::rows(&lines)[1];
    assert_eq!((&row["outcome"], &row["check"]), (&Value::from("failed"), &Value::from("failed")), "{row}");
    assert!(row["mismatch"]["byte"] == 42 && row["reason"].is_string(), "{row}");
}

#[test]
fn of_a_ping_pong() {
    spoilt("p2p.latency", "", "recv", &[0, 1]);
}

#[test]
fn of_a_stream() {
    spoilt("p2p.bw", "", "irecv", &[1]);
}

#[test]
fn of_puts() {
    for sync in ["fence", "pscw"] {
        spoilt("rma.put_latency", &format!("--sync {sync} --win create"), "put", &[0, 1]);
    }
    for sync in ["lock", "lock_exclusive", "lock_all", "flush", "flush_local"] {
        spoilt("rma.put_latency", &format!("--sync {sync}"), "put", &[1]);
    }
    spoilt("rma.put_bw", "--sync pscw --win dynamic", "put", &[1]);
    spoilt("rma.put_bw", "--sync lock", "put", &[1]);
}

#[test]
fn of_gets() {
    for sync in ["fence", "pscw"] {
        spoilt("rma.get_latency", &format!("--sync {sync} --win create"), "get", &[0, 1]);
    }
    for sync in ["lock", "lock_exclusive", "lock_all", "flush", "flush_local"] {
        spoilt("rma.get_latency", &format!("--sync {sync}"), "get", &[0]);
    }
    spoilt("rma.get_bw", "--sync pscw --win dynamic", "get", &[0]);
    spoilt("rma.get_bw", "--sync flush", "get", &[0]);
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
    .run()
    .expect(0);
    assert!(kept.run().rows.iter().all(|row| row.check == Check::Passed), "{done}");
    interposed(&kept, "p2p.latency", "--no-verify", "recv").run().expect(0);
}
