//! Benchmarks that end their ranks: each costs one row, and new ranks measure the rest. Ranks that become slow.

use std::{collections::BTreeSet, path::Path, process::Command};

use ombx_core::result::Outcome;

use crate::{
    case::{Case, Place},
    cases::output::shell,
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

/// Two benchmarks for two of three ranks, which make a communicator before their first case, and one for all.
const PARTS: &str =
    "run p2p.latency collective.scan p2p.bw --sizes 8 --iterations 10 --warmup 2 --batch 1 -n 3 --window 2";
/// A benchmark that cannot run on one rank, and one that can.
const UNAVAILABLE: &str = "run p2p.latency collective.scan --sizes 8 --iterations 10 -n 1";
/// Rows that end by time.
const TIMED: &str = "run p2p.latency --sizes 1..64 --max-time 200ms -n 2";
const CHECK: &str = "budget = \"60s\"\nbusy = \"never\"\n[[entry]]\nrun = \"p2p.latency\"\nsizes = \"64\"\nlatency = \"<900ms\"\n";

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
        let case = case.says(&["collective.scan", "measured row"]).look(|done| others(done, OTHERS));
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
        Case::of("rank 1 hangs: one row", Place::Measuring, "collective.scan", HANGING, 6).deadline(900);
    cases.push(case.rule(rule).says(&["no progress for "]).look(|done| others(done, 3)).on_demand());
    let fault = "rank 1 crashes before the first case: one row";
    cases.push(
        Case::of(fault, Place::Open, "p2p.latency", PARTS, 6)
            .rule(Rule::new("Comm_split", "segv").on(1))
            .says(&["p2p.latency/: rank ", "before the first case of p2p.bw", "1 measured row is in"])
            .look(|done| others(done, 1)),
    );
    let fault = "rank 0 crashes after a benchmark that cannot run: no row twice";
    cases.push(
        Case::of(fault, Place::Between, "p2p.latency", UNAVAILABLE, 6)
            .rule(Rule::new("Ibarrier", "segv").on(0))
            .says(&["between cases of p2p.latency"])
            .look(|done| others(done, 1))
            .on_demand(),
    );
    cases.push(
        Case::of("a rank of a user's launcher has an MPI error", Place::Measuring, "collective.scan", "run collective.scan p2p.latency p2p.bw --sizes 8", 6)
            .says(&["MPI_Scan", "not measured: the rest of collective.scan; p2p.latency, and 1 more", "--from 2"])
            .without_out()
            .prepared(|c, stage, directory| {
                let launcher = stage.mpi.mpiexec.display();
                let script = format!(
                    "exec '{launcher}' -n 2 env LD_PRELOAD='{}' OMBX_FAULTS=call=Scan,do=error:ERR_OTHER,rank=1 \"$@\"",
                    stage.library.display()
                );
                shell(c, directory, &script)
            })
            .on_demand(),
    );
    cases.push(
        Case::of("all ranks share one CPU", Place::Measuring, "p2p.latency", TIMED, 0)
            .rows(7)
            .deadline(120)
            .prepared(|c, _, directory| shell(c, directory, "exec taskset -c 0 \"$@\""))
            .on_demand(),
    );
    cases.push(
        // A row that becomes slower by a factor of 10,000 makes no progress.
        Case::of("all ranks get one CPU in the middle", Place::Measuring, "p2p.latency", TIMED, 0)
            .or_code(6)
            .rows(7)
            .deadline(120)
            .act(|job| {
                job.until_rows(2)?;
                for rank in [0, 1] {
                    let process = job.rank(rank)?.pid.as_raw_nonzero().to_string();
                    let bound = Command::new("taskset").args(["-apc", "0", &process]).output();
                    bound.map_err(|e| format!("taskset: {e}"))?;
                }
                Ok(())
            })
            .on_demand(),
    );
    for (fault, rule, code) in [
        ("wrong data in a check", "call=Recv,do=flip,rank=1,bytes=64,byte=0", 5),
        ("rank 1 crashes in a check", "call=Recv,do=segv,rank=1,bytes=64", 6),
    ] {
        cases.push(
            Case::of(fault, Place::Measuring, "check", "check", code)
                .deadline(900)
                .without_out()
                .prepared(move |c, stage, directory| checked(c, stage, directory, rule))
                .on_demand(),
        );
    }
    for (what, call) in [("at the start of MPI", "Init"), ("in every message", "Send")] {
        let case = Case::of(&format!("rank 1 crashes {what}"), Place::Start, "p2p.bw", JOB, 6);
        cases.push(case.rule(Rule::new(call, "segv").on(1)).on_demand());
    }
    cases
}

/// Lets a check measure with a rule in its ranks.
fn checked(command: &mut Command, stage: &Stage, directory: &Path, rule: &str) -> Result<(), String> {
    let file = directory.join("check.toml");
    std::fs::write(&file, CHECK).map_err(|e| e.to_string())?;
    command.arg(file).env("LD_PRELOAD", &stage.library).env("OMBX_FAULTS", rule);
    Ok(())
}

/// Checks that a file has these measured rows, and one other row at least, each once.
fn others(done: &Done, measured: usize) -> Result<String, String> {
    let Some(Ok(file)) = &done.out else { return Err("no result file".into()) };
    let rows: Vec<_> = file.runs.iter().flat_map(|run| &run.rows).collect();
    let keys: BTreeSet<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    if keys.len() < rows.len() {
        return Err(format!("{} rows have {} keys", rows.len(), keys.len()));
    }
    let good = rows.iter().filter(|row| row.outcome == Outcome::Ok).count();
    if good == measured && rows.len() > good {
        Ok(format!("{good} rows measured"))
    } else {
        Err(format!("{good} rows are measured of {measured}, and {} are not", rows.len() - good))
    }
}
