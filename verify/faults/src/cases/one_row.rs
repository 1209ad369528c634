//! Benchmarks that end their ranks: each costs one row, and new ranks measure the rest.

use ombx_core::result::Outcome;

use crate::{
    case::{Case, Place},
    interpose::Rule,
    run::Done,
    stage::Stage,
};

/// Three benchmarks with two sizes. The faults are in messages of 64 bytes of the second.
const JOB: &str = "run p2p.bw collective.scan p2p.latency --sizes 8,64 --iterations 10 --warmup 2 --batch 1 -n 2 --window 2";
/// Its rows without the one that fails.
const OTHERS: usize = 5;
/// A job whose cases have a limit of 30 s.
const HANGING: &str = "run collective.scan collective.exscan --sizes 8,64 --max-time 10ms -n 2";

const ENDS: [(&str, &str); 6] = [
    ("crashes", "segv"),
    ("exits with 0", "exit:0"),
    ("exits with 3", "exit:3"),
    ("aborts", "abort"),
    ("is killed", "kill"),
    ("has an MPI error", "error:ERR_OTHER"),
];

pub(crate) fn cases(_: &Stage) -> Vec<Case> {
    let mut cases = Vec::new();
    for (rank, what, how) in ENDS.iter().flat_map(|(what, how)| [0, 1].map(|rank| (rank, what, how))) {
        let fault = format!("rank {rank} {what}: one row");
        let rule = Rule::new("Scan", how).on(rank).bytes(64).nth(3);
        let case = Case::of(&fault, Place::Measuring, "collective.scan", JOB, 6).rule(rule);
        let case = case.says(&["collective.scan", "measured rows are in"]).look(|done| others(done, OTHERS));
        cases.push(if (rank, *how) == (1, "segv") { case } else { case.on_demand() });
    }
    let fault = "every case of a benchmark crashes: its rows";
    let case =
        Case::of(fault, Place::Measuring, "collective.scan", &JOB.replace("8,64", "8,16,32,64,128,256"), 6);
    cases.push(
        case.rule(Rule::new("Scan", "segv").on(1))
            .says(&["left out"])
            .look(|done| others(done, 12))
            .on_demand(),
    );
    let rule = Rule::new("Scan", "hang").on(1).bytes(64);
    let case =
        Case::of("rank 1 hangs: one row", Place::Measuring, "collective.scan", HANGING, 6).deadline(90);
    cases.push(case.rule(rule).says(&["no progress for 30 s"]).look(|done| others(done, 3)).on_demand());
    for (what, call) in [("at the start of MPI", "Init"), ("in every message", "Send")] {
        let case = Case::of(&format!("rank 1 crashes {what}"), Place::Start, "p2p.bw", JOB, 6);
        cases.push(case.rule(Rule::new(call, "segv").on(1)).on_demand());
    }
    cases
}

/// Checks that a file has these measured rows, and one failed row at least.
fn others(done: &Done, measured: usize) -> Result<String, String> {
    let Some(Ok(file)) = &done.out else { return Err("no result file".into()) };
    let rows: Vec<_> = file.runs.iter().flat_map(|run| &run.rows).collect();
    let good = rows.iter().filter(|row| row.outcome == Outcome::Ok).count();
    if good == measured && rows.len() > good {
        Ok(format!("{good} rows measured"))
    } else {
        Err(format!("{good} rows are measured of {measured}, and {} are not", rows.len() - good))
    }
}
