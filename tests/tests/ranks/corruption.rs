//! Data that arrives wrong: a FAILED row, exit 5, and the place of the first wrong byte.

use std::collections::BTreeSet;

use ombx_core::{
    payload::{Check, Mismatch},
    result::Outcome,
};
use ombx_tests::{interpose, mpi, results, tell};
use serde_json::Value;

use crate::{
    Kept,
    one_sided::{SYNCS, WINDOWS, cell, for_compare_and_swap, is_active, registered, unavailable},
};

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

/// What is spoilt of an operation on its way.
struct Spoilt {
    /// As `interpose.c` calls it.
    what: &'static str,
    /// The benchmarks of the operation.
    benches: &'static [&'static str],
    arrives: Arrives,
    counts: &'static str,
    sizes: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Arrives {
    AtTarget,
    /// The same, once added to what stands there: carries may change bits above the one that was flipped.
    Summed,
    AtOrigin,
}

const MANY: &str = "--iterations 50";
/// One iteration, so that nothing fetched is spoilt too, and what was summed is spoilt once.
const ONE: &str = "--iterations 1 --warmup 0";
const MESSAGES: &str = "8,100,64K";
const ELEMENTS: &str = "4,8";

#[rustfmt::skip]
const ONE_SIDED: &[Spoilt] = {
    use Arrives::{AtOrigin, AtTarget, Summed};
    const fn row(
        what: &'static str, benches: &'static [&'static str], arrives: Arrives, counts: &'static str, sizes: &'static str,
    ) -> Spoilt {
        Spoilt { what, benches, arrives, counts, sizes }
    }
    &[
        row("put", &["rma.put_latency", "rma.put_bw", "rma.put_bibw"], AtTarget, MANY, MESSAGES),
        row("rput", &["rma.rput_latency", "rma.rput_bw"], AtTarget, MANY, MESSAGES),
        row("get", &["rma.get_latency", "rma.get_bw", "rma.get_bibw"], AtOrigin, MANY, MESSAGES),
        row("rget", &["rma.rget_latency", "rma.rget_bw"], AtOrigin, MANY, MESSAGES),
        row("acc", &["rma.acc_latency", "rma.acc_bw"], Summed, ONE, MESSAGES),
        row("get_acc", &["rma.get_acc_latency", "rma.get_acc_bw"], Summed, ONE, MESSAGES),
        row("get_acc_result", &["rma.get_acc_latency", "rma.get_acc_bw"], AtOrigin, MANY, MESSAGES),
        row("fop", &["rma.fop_latency"], Summed, ONE, ELEMENTS),
        row("fop_result", &["rma.fop_latency"], AtOrigin, MANY, ELEMENTS),
        row("cas", &["rma.cas_latency"], AtTarget, ONE, ELEMENTS),
        row("cas_result", &["rma.cas_latency"], AtOrigin, MANY, ELEMENTS),
    ]
};

/// The ranks on which something arrives.
fn arrives_on(arrives: Arrives, bench: &str, sync: &str) -> &'static [u32] {
    let both_ways = bench.ends_with("_bibw") || bench.ends_with("_latency") && is_active(sync);
    match arrives {
        _ if both_ways => &[0, 1],
        Arrives::AtTarget | Arrives::Summed => &[1],
        Arrives::AtOrigin => &[0],
    }
}

/// In every synchronisation and window the smallest message is left alone and passes; of all others one bit is wrong.
fn in_every_way(what: &str) {
    let spoilt = ONE_SIDED.iter().find(|spoilt| spoilt.what == what).expect("a row of the table");
    let Spoilt { what, benches, arrives, counts, sizes } = *spoilt;
    let kept = Kept::new();
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    let job = kept.job(&benches.join(" ")).args(interpose::arguments(library, what));
    let job = job.args(["--sync", "all", "--win", "all", "--window", "8", "--sizes", sizes]);
    let job = job.args(counts.split_whitespace()).args(["--allow-skips", "-n", "2"]);
    let job = if what.starts_with("cas") { for_compare_and_swap(job) } else { job };
    let done = job.run().expect(5);
    let run = kept.run();

    let first = Some(if sizes == ELEMENTS { 4 } else { 8 });
    let mut ways = BTreeSet::new();
    let mut caught = 0;
    for row in &run.rows {
        let (sync, name) = (row.axes["sync"].as_str(), format!("{what}: {}", row.key));
        ways.insert(cell(row));
        if let Some(why) = unavailable(&row.bench, sync) {
            assert!(matches!(&row.outcome, Outcome::Skipped(said) if said.contains(why)), "{name}\n{done}");
            continue;
        }
        if row.bytes == first {
            assert_eq!(row.check, Check::Passed, "{name}\n{done}");
            continue;
        }
        let Check::Failed(Mismatch { rank, slot, byte, expected, actual }) = row.check else {
            panic!("{name} was not noticed: {:?}\n{done}", row.outcome);
        };
        assert!(arrives_on(arrives, &row.bench, sync).contains(&rank.0), "{name}: on rank {rank}\n{done}");
        assert_eq!((slot, byte), (0, if sizes == ELEMENTS { 2 } else { 42 }), "{name}\n{done}");
        let wrong = expected ^ actual;
        assert!(
            wrong == 0x10 || arrives == Arrives::Summed && wrong.trailing_zeros() == 4,
            "{name}: {wrong:#x}"
        );
        let place =
            format!("rank {rank}, message 0, byte {byte}: expected {expected:#04x}, found {actual:#04x}");
        assert!(done.stdout.contains(&place), "{name}: {place} is not told\n{done}");
        caught += 1;
    }
    assert_eq!(ways.len(), benches.len() * SYNCS.len() * WINDOWS.len(), "{what}\n{done}");
    assert_eq!(done.stdout.matches("FAILED at ").count(), caught, "{what}\n{done}");
    assert_eq!(run.end.unwrap().1.corrupt as usize, caught, "{what}\n{done}");
    tell(&format!("{}: {what}: caught in {caught} rows of {} ways", mpi::name(), ways.len()));
}

#[test]
fn of_puts() {
    ["put", "rput"].into_iter().for_each(in_every_way);
}

#[test]
fn of_gets() {
    ["get", "rget"].into_iter().for_each(in_every_way);
}

#[test]
fn of_accumulates() {
    ["acc", "get_acc", "get_acc_result"].into_iter().for_each(in_every_way);
}

#[test]
fn of_atomics_on_one_element() {
    ["fop", "fop_result", "cas", "cas_result"].into_iter().for_each(in_every_way);
}

/// A new benchmark needs its row above.
#[test]
fn of_every_one_sided_benchmark() {
    let covered: BTreeSet<String> =
        ONE_SIDED.iter().flat_map(|spoilt| spoilt.benches).map(|&bench| bench.to_owned()).collect();
    assert_eq!(covered, registered());
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
