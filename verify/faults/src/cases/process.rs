//! Ranks that exit, abort, are killed or stopped.

use std::{thread, time::Duration};

use rustix::process::Signal;

use crate::{
    case::{Case, Place},
    stage::Stage,
};
use ombx_toolchain::Flavour;

/// Two cases; each warm-up, timed and checked iteration is one message.
const SENDING: &str = "run p2p.latency --sizes 8,64 --iterations 10 --warmup 5 --batch 1 -n 2 --timeout 8s";
/// Two cases; the second opens and closes the second window.
const WINDOWS: &str =
    "run rma.put_latency --sync lock --win create --sizes 8,64 --iterations 10 --batch 1 -n 2 --timeout 8s";

/// One row that takes hours.
const ENDLESS: &str = "run p2p.latency --sizes 8 --iterations 4294967296 --batch 1000000 --timeout 60s -n 2";
/// Times from the start of a rank to its end in milliseconds, in which it loads its libraries and connects to the others.
const AFTER_START_MS: [u64; 8] = [0, 10, 20, 30, 50, 80, 120, 200];

/// Parts of the second case, each identified by the n-th of these MPI calls.
const PLACES: [(Place, &str, &str, &str, u64); 6] = [
    (Place::Open, "rma.put_latency", WINDOWS, "Win_create", 2),
    (Place::WarmUp, "p2p.latency", SENDING, "Recv", 3),
    (Place::Measuring, "p2p.latency", SENDING, "Recv", 10),
    (Place::Verifying, "p2p.latency", SENDING, "Recv", 16),
    (Place::Closing, "rma.put_latency", WINDOWS, "Win_free", 2),
    (Place::End, "p2p.latency", SENDING, "Finalize", 1),
];

const ENDS: [(&str, &str); 6] = [
    ("exits with 0", "exit:0"),
    ("exits with 3", "exit:3"),
    ("aborts", "abort"),
    ("crashes", "segv"),
    ("is killed", "kill"),
    ("is stopped", "stop"),
];

pub(crate) fn cases(stage: &Stage) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (what, how)) in (0..).zip(ENDS) {
        for (place, subject, words, call, nth) in PLACES {
            let rank = u32::from((number + nth) % 2 == 0);
            let size = if call == "Recv" { ",bytes=64" } else { "" };
            let rule = format!("call={call},do={how},rank={rank},nth={nth}{size}");
            let ends_late = place == Place::End;
            // All rows have arrived by then. A launcher may take an early exit for success, and hangs are ended without an error.
            let code = if ends_late && matches!(how, "exit:0" | "stop") { 0 } else { 6 };
            let case = Case::new(&format!("rank {rank} {what}"), place, words, code).rule(rule);
            let case = case.rows(if ends_late { 2 } else { 1 });
            let case = if ends_late { case.or_code(if how == "exit:0" { 6 } else { code }) } else { case };
            let case = if ends_late { case } else { case.says(&[subject, "measured row"]) };
            // Hydra does not report which rank exited.
            let exits = how.starts_with("exit") && (how == "exit:0" || stage.mpi.flavour == Flavour::Mpich);
            let known = !ends_late && how != "stop" && !exits;
            let case = if known { case.says(&[&format!("rank {rank} on ")]) } else { case };
            let often = how == "kill" || (how, place) == ("stop", Place::Measuring);
            cases.push(case.gate(often));
        }
    }
    for (number, after) in (0..).zip(AFTER_START_MS) {
        let rank = number % 2;
        let fault = format!("rank {rank} is killed after {after} ms");
        let case = Case::new(&fault, Place::Start, ENDLESS, 6).deadline(10).act(move |job| {
            let process = job.rank(rank)?;
            thread::sleep(Duration::from_millis(after));
            process.signal(Signal::KILL);
            Ok(())
        });
        cases.push(case.gate(number == 0));
    }
    cases
}
