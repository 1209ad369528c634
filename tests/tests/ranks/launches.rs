//! Tests of `--launches` and of `ombx ab`.

use ombx_results::file;
use ombx_tests::{Files, Job, interpose, mpi};
use rustix::process::Signal;

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
fn a_side_is_compared_with_itself_and_is_never_worse() {
    let files = Files::default();
    let out = files.path("ab.jsonl");
    let build = mpi::ombx();
    let job = Job::ombx("ab --launches 4 --json --quiet --fail-on 5% --a").arg(build).arg("--b").arg(build);
    let done = job.args(SMALL.split_whitespace()).arg("-o").arg(&out).run();
    assert!(matches!(done.code, Some(0 | 8)), "{done}");
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json["cases"].as_array().unwrap().len(), 4, "{done}");
    assert_eq!((&json["base"]["label"], &json["new"]["label"]), (&"A".into(), &"B".into()));
    for side in ["a", "b"] {
        let file = file::open(files.path(&format!("ab-{side}.jsonl"))).unwrap();
        assert_eq!(file.runs.len(), 4);
        assert!(file.runs.iter().all(|run| run.rows.len() == 4 && run.run.plan["row_time_s"] == "0.02"));
    }
    done.leaves_nothing();
}

#[test]
fn a_side_that_a_variable_slows_is_worse() {
    let files = Files::default();
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR")).display();
    let job = Job::ombx("ab --launches 6 --json --quiet --names plain,slow --env-b OMBX_INTERPOSE=delay");
    let job = job.arg(format!("--env-a=LD_PRELOAD={library}")).arg(format!("--env-b=LD_PRELOAD={library}"));
    let words = "p2p.latency --sizes 8 --max-time 20ms -o".split_whitespace();
    let done = job.args(words).arg(files.path("ab.jsonl")).run().expect(0);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let slower = json["cases"][0]["time_change"]["estimate"].as_f64().unwrap();
    assert!(slower > 1.0 && json["new"]["label"] == "slow", "{done}");
    // Debug builds and unbound ranks carry marks on which no verdict rests.
    for side in ["a", "b"] {
        let path = files.path(&format!("ab-{side}.jsonl"));
        let mut text = Vec::new();
        for record in file::Records::of(std::fs::read(&path).unwrap().as_slice()) {
            let mut record = record.unwrap();
            if let file::Record::Launch(row) = &mut record {
                row.trust.clear();
            }
            file::write(&mut text, &record).unwrap();
        }
        std::fs::write(path, text).unwrap();
    }
    let compared = Job::ombx("compare --fail-on 5%");
    let compared = compared.arg(files.path("ab-a.jsonl")).arg(files.path("ab-b.jsonl")).run().expect(3);
    assert!(compared.stdout.ends_with("1 worse, 0 same within 5%, 0 undecided\n"), "{compared}");
    done.leaves_nothing();
}

#[test]
fn an_interrupted_ab_compares_the_turns_that_are_complete() {
    let files = Files::default();
    let job =
        Job::ombx("ab --launches 1000 --quiet --env-b OMBX_TEST=1 p2p.latency --sizes 8 --max-time 20ms -o");
    let mut running = job.arg(files.path("ab.jsonl")).start();
    let ended = |side: &str| {
        let text = std::fs::read_to_string(files.path(&format!("ab-{side}.jsonl"))).unwrap_or_default();
        text.matches("\"kind\":\"end\"").count()
    };
    running.until("two turns", |_| ended("a") >= 2 && ended("b") >= 2);
    running.signal(Signal::INT);
    let done = running.wait().expect(130);
    assert!(
        done.stdout.contains("OMBX_TEST=1 this ombx · ") && done.stdout.contains("1 undecided"),
        "{done}"
    );
    done.leaves_nothing();
}

#[test]
fn a_command_that_does_not_run_ombx_is_an_error() {
    let with = |command: &str, code| {
        let job = Job::ombx("ab --launches 1 --quiet p2p.latency --sizes 8 --iterations 10 --b");
        job.arg(command).run().expect(code)
    };
    with("/nonexistent/x", 2).complains(&["/nonexistent/x is not a command that runs ombx"]);
    with("false", 6).complains(&["false ended early, with exit code 1"]);
    let done = with("echo -n x", 6);
    done.complains(&["prints something other than results"]);
    done.leaves_nothing();
    Job::ombx("ab p2p.latency").run().expect(2).complains(&["nothing differs"]);
}

#[test]
fn any_command_line_can_be_a_side() {
    let build = mpi::ombx();
    let command = format!("env OMBX_TEST=1 {}", build.display());
    let job = Job::ombx("ab --launches 1 --quiet p2p.latency --sizes 8 --iterations 10 --b").arg(&command);
    let done = job.run().expect(0);
    assert!(
        done.stdout.contains(&command) && done.stdout.contains("1 undecided: 6 launches a side"),
        "{done}"
    );
}
