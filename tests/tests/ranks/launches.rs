//! Tests of `--launches` and of `ombx ab`.

use ombx_results::file;
use ombx_tests::{Files, Job, mpi};

const SMALL: &str = "p2p.latency p2p.bw --sizes 8,64 --max-time 20ms";

#[test]
fn each_launch_is_a_run_in_the_file_with_its_own_case_order() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    let words = format!("run {SMALL} --launches 4 --seed 3 -o");
    let done = Job::ombx(&words).arg(&out).run().expect(0);
    assert!(done.stderr.is_empty(), "{done}");
    assert!(
        done.stdout.contains("4 launches, cases in random order") && done.stdout.contains("spread"),
        "{done}"
    );
    let file = file::open(&out).unwrap();
    assert_eq!(file.runs.len(), 4);
    let mut orders = std::collections::BTreeSet::new();
    for (number, run) in (1..).zip(&file.runs) {
        let plan = &run.run.plan;
        assert_eq!((plan["launch"].clone(), plan["launches"].as_str()), (number.to_string(), "4"));
        assert_eq!(plan["order"], (3 + number).to_string());
        assert_eq!((run.rows.len(), run.end.unwrap().0), (4, file::RunOutcome::Complete));
        assert!(run.run.argv.iter().all(|word| !word.starts_with("--launch=")), "{:?}", run.run.argv);
        orders.insert(run.rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>());
    }
    assert!(orders.len() > 1, "{orders:?}");
    let shown = Job::ombx("show").arg(&out).run().expect(0);
    assert_eq!(shown.stdout, done.stdout);
    let csv = Job::ombx("show --format csv").arg(&out).run().expect(0);
    assert_eq!(csv.stdout.lines().count(), 1 + 4 * 4, "{csv}");
    done.leaves_nothing();
}

#[test]
fn launches_are_rejected_under_a_launcher() {
    let done = Job::mpiexec(2, "run p2p.latency --sizes 8 --launches 2").run();
    assert_ne!(done.code, Some(0), "{done}");
    done.complains(&["--launches cannot repeat ranks that a launcher has started"]);
}

#[test]
fn two_builds_are_measured_alternately_and_compared() {
    let files = Files::default();
    let out = files.path("ab.jsonl");
    let build = mpi::ombx();
    let job = Job::ombx("ab --launches 2 --json --quiet --a").arg(build).arg("--b").arg(build);
    let done = job.args(SMALL.split_whitespace()).arg("-o").arg(&out).run().expect(0);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json["cases"].as_array().unwrap().len(), 4, "{done}");
    for side in ["a", "b"] {
        let file = file::open(files.path(&format!("ab-{side}.jsonl"))).unwrap();
        assert_eq!(file.runs.len(), 2);
        assert!(file.runs.iter().all(|run| run.rows.len() == 4 && run.run.plan["max_time_s"] == "0.02"));
    }
    done.leaves_nothing();
}

#[test]
fn a_program_that_is_no_build_of_ombx_is_an_error() {
    let files = Files::default();
    let build = mpi::ombx();
    let with = |program: &std::path::Path, code| {
        let job = Job::ombx("ab --launches 1 --quiet p2p.latency --sizes 8 --iterations 10 --a").arg(build);
        job.arg("--b").arg(program).run().expect(code)
    };
    with(&files.path("nothing"), 2).complains(&["nothing is not a build of ombx"]);
    with(std::path::Path::new("/bin/false"), 6).complains(&["/bin/false ended early, with exit code 1"]);
    let done = with(std::path::Path::new("/bin/echo"), 6);
    done.complains(&["prints something other than results"]);
    done.leaves_nothing();
}
