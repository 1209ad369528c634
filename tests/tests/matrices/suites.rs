//! Tests of suites on more ranks, and of one that ombx has.

use std::fs;

use ombx_tests::{Files, Job, mpi, results};

const MIXED: &str = "
about = 'as many ranks as each needs'

[defaults]
sizes = '8'
iterations = 5
warmup = 2

[[entry]]
run = ['p2p.latency', 'rma.put_latency']

[[entry]]
run = 'p2p.multi_latency'
pairs = 2
";

#[test]
fn benchmarks_on_different_numbers_of_ranks_share_one_start() {
    let files = Files::default();
    let (suite, out) = (files.write("mixed.toml", MIXED), files.path("r.jsonl"));
    let job =
        Job::ombx("run").arg(&suite).arg("-o").arg(&out).env("OMBX_MPIEXEC", mpi::counting_launcher(&files));
    job.run().expect(0);
    assert_eq!(fs::read_to_string(files.path("starts")).unwrap(), "start\n");
    let run = results::run_of(&out);
    let ranks: Vec<(&str, u32)> = run.rows.iter().map(|row| (row.bench.as_str(), row.ranks)).collect();
    assert_eq!(ranks, [("p2p.latency", 2), ("rma.put_latency", 2), ("p2p.multi_latency", 4)]);
    assert_eq!(run.run.places.len(), 4);
}

#[test]
fn the_smoke_suite_passes() {
    let out = Files::default();
    let job = Job::ombx("run suite:smoke --sizes 8 -q -o").arg(out.path("r.jsonl"));
    job.run().expect(0);
    assert!(results::run_of(&out.path("r.jsonl")).rows.len() > 2);
}
