//! Tests of launches and of `ombx ab`.

use std::{collections::BTreeSet, fs, path::Path};

use ombx_record::{file, result::RunOutcome};
use ombx_tests::{Files, Job, interpose, mpi, results};
use rustix::process::Signal;

const SMALL: &str = "p2p.latency p2p.bw --sizes 8,64 --iterations 20 --warmup 2";

#[test]
fn each_launch_is_a_run_in_the_file_with_its_own_case_order() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    let words = format!("run {SMALL} --launches 2 --seed 3 -o");
    let done = Job::ombx(&words).arg(&out).run().expect(0);
    assert!(done.stderr.is_empty(), "{done}");
    for part in ["2 launches in ", " s, cases in random order", "min launch"] {
        assert!(done.stdout.contains(part), "{part}\n{done}");
    }
    done.shows_in_one_state("(50%)");
    let file = file::open(&out).unwrap();
    assert_eq!(file.runs.len(), 2);
    let mut orders = BTreeSet::new();
    for (number, run) in (1..).zip(&file.runs) {
        let plan = &run.run.plan;
        assert_eq!((plan["launch"].clone(), plan["launches"].as_str()), (number.to_string(), "2"));
        assert_eq!(plan["order"], (3 + number).to_string());
        assert_eq!((run.rows.len(), run.end.unwrap().0), (4, RunOutcome::Complete));
        assert_eq!(run.run.argv[1], "run", "{:?}", run.run.argv);
        orders.insert(run.rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>());
    }
    assert!(orders.len() > 1, "{orders:?}");
    let shown = Job::ombx("show").arg(&out).run().expect(0);
    assert_eq!(shown.stdout, done.stdout);
    done.leaves_nothing();
}

const ONE_LAUNCH: &str = "1 launch: variation between launches unknown; without --quick";

#[test]
fn a_single_launch_says_so_once_and_files_of_single_launches_combine() {
    let files = Files::default();
    let [a, b] = ["a.jsonl", "b.jsonl"].map(|name| files.path(name));
    let quick = |out: &Path| {
        let done = Job::ombx(&format!("run {SMALL} --quick -o")).arg(out).run().expect(0);
        assert_eq!(done.stdout.matches(ONE_LAUNCH).count(), 1, "{done}");
        assert!(done.stdout.contains("95% within this launch"), "{done}");
        let run = results::run_of(out);
        assert!(run.rows.iter().all(|row| !row.samples.is_empty()), "a case of one launch keeps its samples");
    };
    quick(&a);
    quick(&b);
    let done = Job::ombx("show").args([&a, &b]).run().expect(0);
    assert!(done.stdout.contains("2 launches of 2 runs, cases in random order"), "{done}");
    done.shows_in_one_state("(50%)");
    assert!(!done.stdout.contains(ONE_LAUNCH), "{done}");
}

/// A launcher of the user cannot repeat its ranks: the user repeats its command.
#[test]
fn launches_of_a_launcher_are_appended_to_a_file() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    for _ in 0..2 {
        let done = Job::mpiexec(2, &format!("run {SMALL} --append -o")).arg(&out).run().expect(0);
        assert_eq!(done.stdout.matches(ONE_LAUNCH).count(), 1, "{done}");
    }
    assert_eq!(results::runs_of(&out).len(), 2);
    let done = Job::ombx("show").arg(&out).run().expect(0);
    assert!(done.stdout.contains("\n2 launches of 2 runs") && !done.stdout.contains(ONE_LAUNCH), "{done}");
    let done = Job::mpiexec(2, "run p2p.latency --sizes 8 --launches 2").run();
    assert_ne!(done.code, Some(0), "{done}");
    done.complains(&["--launches cannot repeat ranks that a launcher has started"]);
}

#[test]
fn an_interrupt_leaves_a_result_of_the_launches_that_are_done() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    let words = "run p2p.latency --sizes 8,64 --iterations 20 --launches 500 -o";
    let mut job = Job::ombx(words).arg(&out).start();
    job.until("two launches are done", |_| {
        fs::read_to_string(&out).unwrap_or_default().matches("\"kind\":\"end\"").count() >= 2
    });
    job.signal(Signal::INT);
    let done = job.wait().expect(130);
    let file = file::open(&out).unwrap();
    let complete = |run: &&file::RunWithRows| run.end.is_some_and(|end| end.0 == RunOutcome::Complete);
    assert!(file.runs.iter().filter(complete).count() >= 2 && !file.cut_off, "{done}");
    let records = results::lines_of(&out);
    let cases = results::rows(&records);
    assert_eq!(cases.len(), 2, "{done}");
    assert!(
        cases.iter().all(|case| case["launches"]["medians_ns"].as_array().unwrap().len() >= 2),
        "{cases:?}"
    );
    assert!(done.stdout.contains("min launch") && done.stderr.contains("interrupted"), "{done}");
    done.leaves_nothing();
}

#[test]
fn each_side_has_a_file_of_its_own() {
    let files = Files::default();
    let out = files.path("ab.jsonl");
    let build = mpi::ombx();
    let job = Job::ombx("ab --launches 2 --format json --quiet --fail-on 5% --allow-equal --a")
        .arg(build)
        .arg("--b")
        .arg(build);
    let done = job.args("p2p.latency --sizes 8,64 --max-time 20ms -o".split_whitespace()).arg(&out).run();
    assert!(matches!(done.code, Some(0 | 8)), "{done}");
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json["cases"].as_array().unwrap().len(), 2, "{done}");
    assert_eq!((&json["base"]["label"], &json["new"]["label"]), (&"A".into(), &"B".into()));
    for side in ["a", "b"] {
        let path = files.path(&format!("ab-{side}.jsonl"));
        let file = file::open(&path).unwrap();
        assert_eq!(file.runs.len(), 2);
        let row_time = |run: &file::RunWithRows| run.run.plan["row_time_s"].parse::<f64>().unwrap();
        assert!(file.runs.iter().all(|run| run.rows.len() == 2 && row_time(run) <= 0.02));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("\"kind\":\"case\"").count(), 2, "one estimate for each row");
    }
    done.leaves_nothing();
}

#[test]
fn a_command_that_does_not_run_ombx_is_an_error() {
    let with = |command: &str, code| {
        let job = Job::ombx("ab --launches 1 --quiet p2p.latency --sizes 8 --iterations 10 --b");
        job.arg(command).run().expect(code)
    };
    let absent = Files::default().path("x").display().to_string();
    with(&absent, 2).complains(&[&format!("{absent} is not a command that runs ombx")]);
    with("false", 6).complains(&["false ended early, with exit code 1"]);
    with("sh -c 'echo \"ombx: no such option\" >&2; exit 2'", 2)
        .complains(&["lacks one of them; give builds"]);
    let done = with("echo -n x", 6);
    done.complains(&["prints something other than results"]);
    done.leaves_nothing();
    Job::ombx("ab p2p.latency").run().expect(2).complains(&["nothing differs"]);
}

/// A search path without a library, and a preload that is not there, leave both sides as they are.
#[test]
fn sides_that_load_the_same_files_are_refused() {
    let files = Files::default();
    let empty = files.path("").display().to_string();
    let absent = files.path("absent.so").display().to_string();
    let copy = files.path("ombx").display().to_string();
    fs::copy(mpi::ombx(), &copy).unwrap();
    for [option, value] in [
        ["--env-b", &format!("LD_LIBRARY_PATH={empty}")],
        ["--env-b", &format!("LD_PRELOAD={absent}")],
        ["--b", &copy],
    ] {
        let side =
            ["ab", "p2p.latency", "--sizes", "8", "--iterations", "10", "--launches", "2", option, value];
        let refused = Job::ombx("").args(side).run().expect(2);
        refused.complains(&["nothing differs: both sides loaded the same files", "--allow-equal"]);
        let done = Job::ombx("").args(side).args(["--allow-equal"]).run().expect(0);
        assert!(done.stdout.contains("2 launches"), "{done}");
    }
    // This library is loaded.
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR")).display();
    let out = files.path("ab.jsonl");
    let side = format!(
        "ab p2p.latency --sizes 8 --iterations 10 --launches 1 --quiet --env-b LD_PRELOAD={library} -o"
    );
    Job::ombx(&side).arg(&out).run().expect(0);
    let loaded = ["a", "b"].map(|side| {
        let file = file::open(files.path(&format!("ab-{side}.jsonl"))).unwrap();
        file.runs[0].run.loaded.clone().unwrap()
    });
    assert!(loaded[0].preloads.is_empty() && loaded[1].preloads.len() == 1, "{loaded:?}");
    assert!(!loaded[0].libraries.is_empty() && loaded[0].libraries == loaded[1].libraries, "{loaded:?}");
    assert_eq!(loaded[0].program, loaded[1].program);
}

#[test]
fn any_command_line_can_be_a_side() {
    let build = mpi::ombx();
    let command = format!("env OMBX_TEST=1 {}", build.display());
    let job = Job::ombx("ab --launches 1 --quiet p2p.latency --sizes 8 --iterations 10 --b").arg(&command);
    let done = job.run().expect(0);
    assert!(
        done.stdout.contains(&command)
            && done.stdout.contains("undecided in the only case: about 6 turns could decide it"),
        "{done}"
    );
}

/// The library makes each message of one side at least 200 us longer.
#[test]
fn a_variable_is_set_for_its_side() {
    let files = Files::default();
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR")).display();
    let job =
        Job::ombx("ab --launches 1 --format json --quiet --names plain,slow --env-b OMBX_INTERPOSE=delay");
    let job = job.arg(format!("--env-a=LD_PRELOAD={library}")).arg(format!("--env-b=LD_PRELOAD={library}"));
    let words = "p2p.latency --sizes 8 --iterations 20 -o".split_whitespace();
    let done = job.args(words).arg(files.path("ab.jsonl")).run().expect(0);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&json["base"]["label"], &json["new"]["label"]), (&"plain".into(), &"slow".into()), "{done}");
    let slow = file::open(files.path("ab-b.jsonl")).unwrap();
    let least = slow.runs[0].rows[0].summary.as_ref().unwrap().min;
    assert!(least >= 200e3, "{least} ns\n{done}");
}
