//! Tests of suites on ranks: several plans in one start, and options that override the file.

use std::fs;

use ombx_host::since::Since;
use ombx_tests::{Files, Job, mpi, results};

const MINE: &str = "
about = 'two plans'

[defaults]
sizes = '8'
iterations = 20
warmup = 2

[[entry]]
run = ['p2p.latency', 'osu_multi_lat']

[[entry]]
run = 'p2p.link'
pattern = ['semidirectional', 'unidirectional']
sizes = [64, '1K']
window = 4
no-verify = true
";

#[test]
fn several_plans_in_one_start() {
    let files = Files::default();
    let (suite, out) = (files.write("mine.toml", MINE), files.path("r.jsonl"));
    let job =
        Job::ombx("run").arg(&suite).arg("-o").arg(&out).env("OMBX_MPIEXEC", mpi::counting_launcher(&files));
    job.run().expect(0);
    assert_eq!(fs::read_to_string(files.path("starts")).unwrap(), "start\n");
    let run = results::run_of(&out);
    let rows: Vec<&str> = run.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(
        rows,
        [
            "p2p.latency/bytes=8",
            "p2p.multi_latency/bytes=8",
            "p2p.link/pattern=semidirectional,bytes=64",
            "p2p.link/pattern=semidirectional,bytes=1024",
            "p2p.link/pattern=unidirectional,bytes=64,depth=4",
            "p2p.link/pattern=unidirectional,bytes=1024,depth=4",
        ]
    );
    let checked = |row: &ombx_record::result::Measurement| row.check == ombx_record::result::Check::Passed;
    assert_eq!(run.rows.iter().map(checked).collect::<Vec<_>>(), [true, true, false, false, false, false]);
    assert_eq!((run.run.plan["1.sizes"].as_str(), run.run.plan["2.window"].as_str()), ("8", "4"));
}

#[test]
fn every_row_has_the_time_of_each_phase() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    let words = "run p2p.latency rma.put_bw --sizes 8 --max-time 20ms -q -o";
    let since = Since::now();
    Job::ombx(words).arg(&out).run().expect(0);
    let whole = since.elapsed().as_nanos();
    let run = results::run_of(&out);
    let mut all = 0;
    for row in &run.rows {
        let phases = row.phases.expect("a measured row has phases");
        let sampled: u64 = row.samples.iter().filter(|s| s.rank == 0).flat_map(|s| &s.elapsed_ns).sum();
        assert!(phases.sample_ns >= sampled, "{}: {phases:?} with {sampled} ns of samples", row.key);
        assert!(phases.warm_up_ns >= 3_000_000, "{}: {phases:?}", row.key);
        assert!(phases.named().iter().all(|(_, ns)| *ns > 0), "{}: {phases:?}", row.key);
        all += u128::from(phases.total_ns());
    }
    assert_eq!(run.rows.len(), 2);
    assert!(all < whole, "rows took {all} ns of {whole}");
}

#[test]
fn the_command_line_overrides_the_suite_file() {
    let files = Files::default();
    let (suite, out) = (files.write("mine.toml", MINE), files.path("r.jsonl"));
    let words = ["--sizes", "16", "--pattern", "bidirectional", "--max-time", "10ms", "-o"];
    Job::ombx("run").arg(format!("suite:{}", suite.display())).args(words).arg(&out).run().expect(0);
    let run = results::run_of(&out);
    let keys: Vec<&str> = run.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(
        keys,
        ["p2p.latency/bytes=16", "p2p.multi_latency/bytes=16", "p2p.link/pattern=bidirectional,bytes=16"]
    );
    assert_eq!(run.run.plan["1.max_time_s"], "0.01");
}

#[test]
fn under_a_launcher_every_rank_reads_the_file() {
    let files = Files::default();
    let suite = files.write("mine.toml", MINE);
    let job = Job::on_ranks(2, mpi::ombx()).arg("run").arg(suite).args(["--format", "csv"]);
    assert_eq!(job.run().expect(0).stdout.lines().count(), 1 + 6);
}
