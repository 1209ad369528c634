//! Benchmarks that end their ranks: each costs one row, and new ranks measure the rest. Ranks that become slow.

use std::{collections::BTreeSet, process::Command};

use ombx_record::result::Outcome;

use crate::{
    case::{Case, Place, shell},
    run::Done,
    stage::Stage,
};

/// Three benchmarks with two sizes. The faults are in messages of 64 bytes of the second.
const JOB: &str = "run p2p.bw collective.scan p2p.latency --sizes 8,64 --iterations 10 --warmup 2 --batch \
                   1 -n 2 --window 2";
/// Its rows without the one that fails.
const OTHERS: usize = 5;
/// A job whose cases have a limit of 30 s.
const HANGING: &str = "run collective.scan collective.exscan --sizes 8,64 --max-time 10ms -n 2";

/// Two benchmarks for two of three ranks, which make a communicator before their first case, and one for all.
const PARTS: &str =
    "run p2p.latency collective.scan p2p.bw --sizes 8 --iterations 10 --warmup 2 --batch 1 -n 3 --window 2";
/// A benchmark that cannot run on one rank, and one that can.
const UNAVAILABLE: &str = "run p2p.latency collective.scan --sizes 8 --iterations 10 -n 1";
/// A job under a launcher of the user.
const OF_USER: &str = "run collective.scan p2p.latency p2p.bw --sizes 8";
/// Rows that end by time.
const TIMED: &str = "run p2p.latency --sizes 1..64 --max-time 200ms -n 2";
const CHECK: &str = "budget = \"60s\"\nbusy = \"never\"\n[[entry]]\nrun = \"p2p.latency\"\nsizes = \"64\"\n\
                     latency = \"<900ms\"\n";

const ENDS: [(&str, &str); 6] = [
    ("crashes", "segv"),
    ("exits with 0", "exit:0"),
    ("exits with 3", "exit:3"),
    ("aborts", "abort"),
    ("is killed", "kill"),
    ("has an MPI error", "error:ERR_OTHER"),
];

pub(crate) fn cases(_: &Stage) -> Vec<Case> {
    let of = |fault: &str, words: &str, rule: String| {
        Case::new(fault, Place::Measuring, words, 6).subject("collective.scan").rule(rule)
    };
    let mut cases = Vec::new();
    for (rank, what, how) in ENDS.iter().flat_map(|(what, how)| [0, 1].map(|rank| (rank, what, how))) {
        let rule = format!("call=Scan,do={how},rank={rank},bytes=64,nth=3");
        let case = of(&format!("rank {rank} {what}: one row"), JOB, rule);
        let case = case.says(&["collective.scan", "measured row"]).look(|done| others(done, OTHERS));
        cases.push(case.gate((rank, *how) == (1, "segv")));
    }
    let six_sizes = JOB.replace("8,64", "8,16,32,64,128,256");
    cases.extend([
        of("every case of a benchmark crashes: its rows", &six_sizes, "call=Scan,do=segv,rank=1".into())
            .says(&["left out"])
            .look(|done| others(done, 12)),
        of("rank 1 hangs: one row", HANGING, "call=Scan,do=hang,rank=1,bytes=64".into())
            .deadline(900)
            .says(&["no progress for "])
            .look(|done| others(done, 3)),
        Case::new("rank 1 crashes before the first case: one row", Place::Open, PARTS, 6)
            .rule("call=Comm_split,do=segv,rank=1")
            .says(&["p2p.latency/: rank ", "before the first case of p2p.bw", "1 measured row is in"])
            .look(|done| others(done, 1))
            .gate(true),
        Case::new(
            "rank 0 crashes after a benchmark that cannot run: no row twice",
            Place::Between,
            UNAVAILABLE,
            6,
        )
        .rule("call=Ibarrier,do=segv,rank=0")
        .says(&["between cases of p2p.latency"])
        .look(|done| others(done, 1)),
        Case::new("a rank of a user's launcher has an MPI error", Place::Measuring, OF_USER, 6)
            .says(&["MPI_Scan", "not measured: the rest of collective.scan; p2p.latency, and 1 more", "--from 2"])
            .without_out()
            .prepared(|c, stage, directory| {
                let launcher = stage.mpi.mpiexec.display();
                let script = format!(
                    "exec '{launcher}' -n 2 env LD_PRELOAD='{}' OMBX_FAULTS=call=Scan,do=error:ERR_OTHER,rank=1 \"$@\"",
                    stage.library.display()
                );
                shell(c, directory, &script)
            }),
        Case::new("all ranks share one CPU", Place::Measuring, TIMED, 0)
            .rows(7)
            .deadline(120)
            .shell("exec taskset -c 0 \"$@\""),
        // A row that becomes slower by a factor of 10,000 makes no progress.
        Case::new("all ranks get one CPU in the middle", Place::Measuring, TIMED, 0)
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
            }),
    ]);
    for (fault, rule, code) in [
        ("wrong data in a check", "call=Recv,do=flip,rank=1,bytes=64,byte=0", 5),
        ("rank 1 crashes in a check", "call=Recv,do=segv,rank=1,bytes=64", 6),
    ] {
        let case = Case::new(fault, Place::Measuring, "check", code).deadline(900).without_out();
        cases.push(case.prepared(move |command, stage, directory| {
            let file = directory.join("check.toml");
            std::fs::write(&file, CHECK).map_err(|e| e.to_string())?;
            command.arg(file).env("LD_PRELOAD", &stage.library).env("OMBX_FAULTS", rule);
            Ok(())
        }));
    }
    for (what, call) in [("at the start of MPI", "Init"), ("in every message", "Send")] {
        let case = Case::new(&format!("rank 1 crashes {what}"), Place::Start, JOB, 6);
        cases.push(case.rule(format!("call={call},do=segv,rank=1")));
    }
    cases
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
