//! Tests of `ombx links`, which measures every pair of ranks.

use std::{collections::BTreeSet, fs, path::Path};

use ombx_tests::{
    Files, Job,
    kept::Kept,
    links::{swept, undisturbed},
    mpi, results, skipped,
};
use serde_json::Value;

#[test]
fn every_ordered_pair_is_measured_once_at_each_size() {
    let rows: BTreeSet<(u32, u32, u64)> =
        swept("-n 3 --sizes 8 --iterations 3 --batch 1").into_iter().collect();
    let pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    assert_eq!(rows, pairs.map(|(from, to)| (from, to, 8)).into());
}

#[test]
fn the_slowest_links_are_measured_again() {
    let kept = Kept::new();
    let job = Job::ombx("links -n 2 --sizes 8 --iterations 20 --retest 1 -o").arg(kept.out());
    // Two ranks have one link, about which nothing can be said.
    let done = job.run().expect(10);
    for words in ["links, 8 bytes, semidirectional", "\n from ", "\nno verdict: "] {
        assert!(done.stdout.contains(words), "{words}\n{done}");
    }
    assert!(!done.stdout.contains("histogram"), "one link is one line\n{done}");
    assert!(!done.stdout.contains("bisection"), "all pairs are no bisection\n{done}");
    assert!(done.stdout.find("no verdict") < done.stdout.find("links, 8"), "the verdict comes first\n{done}");
    let again = results::run_of(&kept.out()).rows.into_iter().filter(|row| row.axes.contains_key("retest"));
    // The shortest of three counts; rows in which ranks waited for a CPU are measured again, as often once more.
    assert!((3..=6).contains(&again.count()), "{done}");
    let shown = Job::ombx("show").arg(kept.out()).run().expect(0);
    assert_eq!(shown.stdout, done.stdout);
    let csv = Job::ombx("show --format csv").arg(kept.out()).run().expect(0);
    assert!(csv.stdout.starts_with("run,from,to,from_host,to_host,"), "{csv}");
}

/// Demands that every machine meets, and that none meets.
const MET: &str = "--expect latency<60000ms --expect bw>0.000001MB/s";
const MISSED: &str = "--expect latency<0.001ns";

/// Returns a job with two ranks, which fit on two CPUs, so that demands are judged.
fn judged(options: &str) -> Job {
    Job::ombx(&format!("links -n 2 --iterations 10 --retest 0 {options}"))
}

#[test]
fn programs_get_the_verdict_as_json_and_as_one_line_for_monitoring() {
    let done = judged("--sizes 8,1K --format json").run().expect(10);
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&json["conclusion"], &json["sizes"][1]["bytes"]), (&"none".into(), &1024.into()), "{done}");
    assert!(done.stderr.is_empty(), "{done}");
    // A job that fails has a line too.
    let absent = Files::default().path("mpiexec");
    let failed = judged("--sizes 8 --format nagios").env("OMBX_MPIEXEC", absent).run();
    assert!(failed.stdout.starts_with("OMBX LINKS ") && failed.stdout.lines().count() == 1, "{failed}");
    assert!(matches!(failed.code, Some(2 | 3)), "{failed}");
    if mpi::cores() < 2 {
        return skipped("ranks that share a CPU have no verdict");
    }
    let missed = undisturbed(|| judged(&format!("--sizes 8 --format nagios {MISSED}"))).expect(2);
    assert!(missed.stdout.starts_with("OMBX LINKS CRITICAL - latency<0.001ns: missed"), "{missed}");
    assert!(missed.stdout.lines().count() == 1 && missed.stdout.contains(" missed=1;;;0 "), "{missed}");
}

#[test]
fn expectations_and_a_reference_decide_the_exit_code() {
    if mpi::cores() < 2 {
        return skipped("ranks that share a CPU have no verdict");
    }
    let kept = Kept::new();
    let done = judged(&format!("--sizes 8,1K {MET} -o")).arg(kept.out()).run().expect(0);
    assert!(done.stdout.contains("verdict: latency<60000ms: met by 1 link at 8 bytes"), "{done}");
    assert!(done.stdout.contains("verdict: bw>0.000001MB/s: met by 1 link at 1K bytes"), "{done}");
    let shown = Job::ombx("show").arg(kept.out()).run().expect(0);
    assert_eq!(shown.stdout, done.stdout, "the file keeps the expectations");
    // Several launches have one verdict, at the end.
    let done = undisturbed(|| judged(&format!("--sizes 8 --launches 2 --format csv {MISSED}"))).expect(9);
    assert_eq!(done.stderr.matches("verdict: latency<0.001ns: missed by 1 of 1 link").count(), 1, "{done}");
    // A reference that is faster than any link.
    let faster = kept.files.write("faster.jsonl", with_times_of_a_picosecond(&kept.out()));
    let done = undisturbed(|| judged("--sizes 8,1K --reference").arg(&faster)).expect(9);
    assert!(done.stdout.contains("links are slower than in "), "{done}");
    let done = judged("--sizes 16 --reference").arg(&faster).run().expect(2);
    assert!(done.stderr.contains("no links at 16 bytes"), "{done}");
    judged("--sizes 8 --pattern bidirectional --reference").arg(&faster).run().expect(2);
}

fn with_times_of_a_picosecond(file: &Path) -> String {
    let faster = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if let Some(summary) = record.get_mut("summary").and_then(|summary| summary.as_object_mut()) {
            summary.remove("ci95_ns");
            for figure in ["median_ns", "min_ns"] {
                summary.insert(figure.into(), 1e-3.into());
            }
            // Samples that contradict their median are refused.
            record["samples"] = serde_json::json!([]);
        }
        for ns in record.get_mut("median_ns").and_then(Value::as_array_mut).into_iter().flatten() {
            *ns = 1e-3.into();
        }
        format!("{record}\n")
    };
    fs::read_to_string(file).unwrap().lines().map(faster).collect()
}
