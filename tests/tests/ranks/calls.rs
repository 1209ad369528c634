//! What `ombx list --long` says of each benchmark, against the calls of MPI that its ranks make in every iteration.

use std::{collections::BTreeSet, fs};

use ombx_tests::{Files, Job, interpose, mpi};
use serde_json::Value;

/// Iterations of a row, in one sample where that is possible. Other calls of a rank are fewer.
const ITERATIONS: u64 = 1000;
/// The same of benchmarks that synchronise files.
const OF_FILES: u64 = 100;

/// Phrases of sentences, and the calls of which each needs one in every iteration.
const PHRASES: [(&str, &[&str]); 12] = [
    (" blocking send", &["MPI_Send"]),
    (" blocking receive", &["MPI_Recv"]),
    ("nonblocking send", &["MPI_Isend"]),
    ("nonblocking receive", &["MPI_Irecv"]),
    ("nonblocking message", &["MPI_Isend"]),
    ("persistent", &["MPI_Start", "MPI_Startall"]),
    ("partition", &["MPI_Pready"]),
    ("blocking ping-pong", &["MPI_Send"]),
    ("wait for all", &["MPI_Waitall"]),
    ("waiting for all", &["MPI_Waitall"]),
    ("broadcast", &["MPI_Bcast", "MPI_Ibcast", "MPI_Start"]),
    ("accumulate", &["MPI_Accumulate", "MPI_Get_accumulate"]),
];
/// Calls that a sentence must name by one of these words.
const NAMED: [(&str, &[&str]); 7] = [
    ("MPI_Start", &["start"]),
    ("MPI_Startall", &["start"]),
    ("MPI_Pready", &["ready"]),
    ("MPI_Isend", &["nonblocking", "in flight", "polls"]),
    ("MPI_Send", &["send", "message", "ping-pong"]),
    ("MPI_Waitall", &["wait", "epoch"]),
    ("MPI_Win_create", &["MPI_Win_create"]),
];
/// Beginnings of calls that `--sync` chooses.
const OF_SYNC: [&str; 2] = ["MPI_Win_", "MPI_Waitall"];

/// Returns the calls that a rank of a benchmark makes in every iteration; `None` if this MPI library cannot run it.
fn traced(bench: &Value) -> Option<BTreeSet<String>> {
    let name = bench["name"].as_str().unwrap();
    let (files, calls) = (Files::default(), Files::default());
    let of_files = name.starts_with("io.");
    let iterations = if of_files { OF_FILES } else { ITERATIONS };
    let mut words = format!("run {name} --quick --iterations {iterations} --warmup 0 --no-verify");
    if bench["sizes"].as_str().unwrap().contains("..") {
        words += " --sizes 8";
    }
    words += match name {
        "p2p.request" => " --rate 100000",
        _ if of_files => "",
        _ => " --batch 1000",
    };
    let mut job = Job::ombx(&words);
    if of_files {
        job = job.arg("--directory").arg(files.root());
    }
    let library = interpose::counter(env!("CARGO_TARGET_TMPDIR"));
    let job = job.args(mpi::variable_of_ranks("LD_PRELOAD", library));
    let done = job.args(mpi::variable_of_ranks("OMBX_CALLS", calls.root())).run();
    if done.stdout.contains("skipped 1 row") {
        return None;
    }
    done.expect(0);
    let files = fs::read_dir(calls.root()).unwrap().map(|file| file.unwrap().path());
    let counts: String = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    let counts = counts.lines().map(|line| line.split_once(' ').unwrap());
    let is_repeated = |count: &str| count.parse::<u64>().unwrap() >= iterations;
    Some(counts.filter(|(_, count)| is_repeated(count)).map(|(call, _)| call.to_owned()).collect())
}

/// Returns what is wrong with the description of a benchmark.
fn mistakes(bench: &Value) -> Vec<String> {
    let Some(traced) = traced(bench) else { return Vec::new() };
    let name = bench["name"].as_str().unwrap();
    let doc = bench["doc"].as_str().unwrap();
    let timed = doc.lines().find(|line| line.starts_with("- Timed: ")).unwrap();
    let sentences = format!("{timed} {}", bench["about"].as_str().unwrap());
    let has_sync = bench["axes"].as_array().unwrap().iter().any(|axis| axis["name"] == "sync");
    let declared: BTreeSet<&str> =
        bench["calls"].as_array().unwrap().iter().map(|call| call.as_str().unwrap()).collect();
    let mut found = Vec::new();
    // The usual number of calls of MPI_Test is zero.
    for call in declared.iter().filter(|call| **call != "MPI_Test" && !traced.contains(**call)) {
        found.push(format!("{name} does not call {call}"));
    }
    let is_known = |call: &str| {
        declared.contains(call) || has_sync && OF_SYNC.iter().any(|start| call.starts_with(start))
    };
    // The ranks meet before each access to a file, and set its place back.
    for call in traced.iter().filter(|call| !is_known(call) && !name.starts_with("io.")) {
        found.push(format!("{name} calls {call}, which its description lacks"));
    }
    for (phrase, calls) in PHRASES.iter().filter(|(phrase, _)| sentences.contains(phrase)) {
        if !calls.iter().any(|call| traced.contains(*call)) {
            found.push(format!("{name} says {phrase:?} and calls {traced:?}"));
        }
    }
    for (call, words) in NAMED.iter().filter(|(call, _)| declared.contains(call)) {
        if !words.iter().any(|word| sentences.contains(word)) {
            found.push(format!("{name} calls {call} and its description has none of {words:?}"));
        }
    }
    found
}

/// Checks the benchmarks of a family, except those that this MPI lacks and those that happen once in a launch.
#[track_caller]
fn descriptions_are_true(pattern: &str) {
    let listed = Job::ombx(&format!("list {pattern} --format json")).run().expect(0).stdout;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let is_repeated = |bench: &&Value| bench["available"] == true && bench["name"] != "collective.init";
    let found: Vec<String> = listed.iter().filter(is_repeated).flat_map(mistakes).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn of_messages() {
    descriptions_are_true("p2p.*");
}

#[test]
fn of_one_sided_operations() {
    descriptions_are_true("rma.*");
}

#[test]
fn of_collective_operations() {
    descriptions_are_true("collective.[a-h]* collective.[j-z]*");
}

#[test]
fn of_nonblocking_collective_operations() {
    descriptions_are_true("collective.i*");
}

#[test]
fn of_files() {
    descriptions_are_true("io.*");
}
