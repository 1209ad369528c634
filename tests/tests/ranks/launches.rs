//! Tests of launches and of `ombx ab`.

use std::{collections::BTreeSet, fs, path::Path};

use ombx_results::file;
use ombx_tests::{Files, Job, interpose, mpi, results};
use rustix::process::Signal;

const SMALL: &str = "p2p.latency p2p.bw --sizes 8,64 --max-time 20ms";

#[test]
fn each_launch_is_a_run_in_the_file_with_its_own_case_order() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    let words = format!("run {SMALL} --launches 4 --seed 3 -o");
    let done = Job::ombx(&words).arg(&out).run().expect(0);
    assert!(done.stderr.is_empty(), "{done}");
    for part in ["4 launches, cases in random order", "min launch", "(88%)"] {
        assert!(done.stdout.contains(part), "{part}\n{done}");
    }
    let file = file::open(&out).unwrap();
    assert_eq!(file.runs.len(), 4);
    let (mut orders, mut batches) = (BTreeSet::new(), BTreeSet::new());
    for (number, run) in (1..).zip(&file.runs) {
        let plan = &run.run.plan;
        assert_eq!((plan["launch"].clone(), plan["launches"].as_str()), (number.to_string(), "4"));
        assert_eq!(plan["order"], (3 + number).to_string());
        assert_eq!((run.rows.len(), run.end.unwrap().0), (4, file::RunOutcome::Complete));
        let internal = ["--launch=", "--row-time=", "--batches=", "--core-to-core-ps="];
        let is_internal = |word: &String| internal.iter().any(|option| word.starts_with(option));
        assert!(!run.run.argv.iter().any(is_internal), "{:?}", run.run.argv);
        orders.insert(run.rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>());
        batches.extend(run.rows.iter().map(|row| (row.key.clone(), row.batch())));
    }
    assert!(orders.len() > 1, "{orders:?}");
    assert_eq!(batches.len(), 4, "the batch of a row is the same in all launches: {batches:?}");
    let shown = Job::ombx("show").arg(&out).run().expect(0);
    assert_eq!(shown.stdout, done.stdout);
    done.leaves_nothing();
}

#[test]
fn a_run_has_at_least_six_launches_and_each_format_one_row_per_case() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    // The shortest budget: six launches all the same.
    let done = Job::ombx(&format!("run {SMALL} --budget 10ms -o")).arg(&out).run().expect(0);
    assert!(done.stdout.contains("6 launches, cases in random order"), "{done}");
    let keys: BTreeSet<String> =
        file::open(&out).unwrap().runs[0].rows.iter().map(|row| row.key.clone()).collect();
    assert_eq!(keys.len(), 4);
    let records = results::lines_of(&out);
    let cases = results::rows(&records);
    assert_eq!(
        cases.iter().map(|case| case["key"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>(),
        keys
    );
    for case in &cases {
        assert_eq!(case["launches"]["medians_ns"].as_array().unwrap().len(), 6, "{case}");
        assert_eq!(case["samples"].as_array().unwrap().len(), 0, "{case}");
    }
    let show = |format: &str| {
        let done = Job::ombx("show --format").arg(format).arg(&out).run().expect(0);
        done.stdout
    };
    let csv = show("csv");
    assert_eq!(csv.lines().count(), 1 + 4, "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",6,0.96875,")), "{csv}");
    assert_eq!(results::rows(&results::lines(&show("jsonl"))).len(), 4);
    let osu = show("osu");
    assert_eq!(osu.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count(), 4, "{osu}");
    let gauges = show("openmetrics");
    let launches: Vec<&str> = gauges.lines().filter(|line| line.starts_with("ombx_launches{")).collect();
    assert!(launches.len() == 4 && launches.iter().all(|line| line.ends_with(" 6")), "{gauges}");
    // The same from the run itself.
    let direct = Job::ombx(&format!("run {SMALL} --launches 2 --format csv")).run().expect(0);
    assert_eq!(direct.stdout.lines().count(), 1 + 4, "{direct}");
    let direct = Job::ombx(&format!("run {SMALL} --launches 2 --format jsonl")).run().expect(0);
    let records = results::lines(&direct.stdout);
    let count = |kind: &str| records.iter().filter(|record| record["kind"] == kind).count();
    assert_eq!(["run", "launch", "end", "case"].map(count), [2, 8, 2, 4], "{direct}");
    let plotted = Job::ombx(&format!("run {SMALL} --launches 2 --plot")).run().expect(0);
    assert_eq!(
        plotted.stdout.matches("by bytes").count(),
        3,
        "latency, bandwidth and message rate: {plotted}"
    );
}

#[test]
fn three_launches_have_their_range_with_its_coverage() {
    let done = Job::ombx("run p2p.latency --sizes 8 --iterations 20 --launches 3").run().expect(0);
    assert!(done.stdout.contains("(75%)") && !done.stdout.contains("1 launch:"), "{done}");
}

#[test]
fn a_seed_gives_the_same_orders_again() {
    let orders = || {
        let words =
            "run p2p.latency p2p.bw --sizes 1,8,64 --iterations 10 --launches 2 --seed 9 --format jsonl";
        let done = Job::ombx(words).run().expect(0);
        let launches = results::lines(&done.stdout).into_iter().filter(|record| record["kind"] == "launch");
        launches.map(|row| row["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = orders();
    assert_eq!((first.len(), &first), (12, &orders()));
    assert_ne!(first[..6], first[6..], "each launch has its own order");
}

const ONE_LAUNCH: &str = "1 launch: run-to-run variation unknown; start with ombx itself or combine files: ombx show a.jsonl b.jsonl";

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
    assert!(done.stdout.contains("2 launches, cases in random order"), "{done}");
    assert!(done.stdout.contains("(50%)") && !done.stdout.contains(ONE_LAUNCH), "{done}");
    let done = Job::mpiexec(2, &format!("run {SMALL}")).run().expect(0);
    assert_eq!(done.stdout.matches(ONE_LAUNCH).count(), 1, "{done}");
}

#[test]
fn an_interrupt_leaves_a_result_of_the_launches_that_are_done() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    let words = "run p2p.latency --sizes 8,64 --max-time 10ms --launches 500 -o";
    let mut job = Job::ombx(words).arg(&out).start();
    job.until("two launches are done", |_| {
        fs::read_to_string(&out).unwrap_or_default().matches("\"kind\":\"end\"").count() >= 2
    });
    job.signal(Signal::INT);
    let done = job.wait().expect(130);
    let file = file::open(&out).unwrap();
    let complete = |run: &&file::RunWithRows| run.end.is_some_and(|end| end.0 == file::RunOutcome::Complete);
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
        let path = files.path(&format!("ab-{side}.jsonl"));
        let file = file::open(&path).unwrap();
        assert_eq!(file.runs.len(), 4);
        let row_time = |run: &file::RunWithRows| run.run.plan["row_time_s"].parse::<f64>().unwrap();
        assert!(file.runs.iter().all(|run| run.rows.len() == 4 && row_time(run) <= 0.02));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("\"kind\":\"case\"").count(), 4, "one estimate for each row");
    }
    done.leaves_nothing();
}

#[test]
fn a_side_that_a_variable_slows_is_worse() {
    let files = Files::default();
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR")).display();
    let job = Job::ombx("ab --launches 9 --json --quiet --names plain,slow --env-b OMBX_INTERPOSE=delay");
    let job = job.arg(format!("--env-a=LD_PRELOAD={library}")).arg(format!("--env-b=LD_PRELOAD={library}"));
    let words = "p2p.latency --sizes 8 --max-time 20ms -o".split_whitespace();
    let done = job.args(words).arg(files.path("ab.jsonl")).run().expect(0);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let slower = json["cases"][0]["time_change"]["estimate"].as_f64().unwrap();
    assert!(slower > 1.0 && json["new"]["label"] == "slow", "{done}");
    // Debug builds and unbound ranks carry marks on which no verdict rests. The state of the machine changes a latency by less than a
    // microsecond, which is nothing beside the delay.
    for side in ["a", "b"] {
        let path = files.path(&format!("ab-{side}.jsonl"));
        let mut text = Vec::new();
        for record in file::Records::of(std::fs::read(&path).unwrap().as_slice()) {
            let mut record = record.unwrap();
            match &mut record {
                file::Record::Launch(row) => row.trust.clear(),
                file::Record::Run(run) => drop(run.plan.remove("core_to_core_ns")),
                _ => {}
            }
            file::write(&mut text, &record).unwrap();
        }
        std::fs::write(path, text).unwrap();
    }
    let compared = Job::ombx("compare --fail-on 5%");
    let compared = compared.arg(files.path("ab-a.jsonl")).arg(files.path("ab-b.jsonl")).run().expect(3);
    let answer = compared.stdout.lines().last().unwrap();
    assert!(answer.starts_with("new is ") && answer.contains(" times slower than base ("), "{compared}");
    assert!(answer.ends_with(" for 8 bytes"), "{compared}");
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
        done.stdout.contains("OMBX_TEST=1 this ombx · ")
            && done.stdout.contains("\nundecided in the only case"),
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
        done.stdout.contains(&command)
            && done.stdout.contains("undecided in the only case: 6 launches a side"),
        "{done}"
    );
}

#[test]
fn the_start_of_mpi_has_one_sample_per_rank_in_each_launch() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    Job::ombx("run collective.init -n 3 --launches 3 -o").arg(&out).run().expect(0);
    let launches = results::runs_of(&out);
    assert_eq!(launches.len(), 3);
    for launch in launches {
        let times: Vec<_> =
            launch.rows[0].samples.iter().map(|s| (s.rank, s.batch, s.elapsed_ns.len())).collect();
        assert_eq!(times, [(0, 1, 1), (1, 1, 1), (2, 1, 1)]);
        let slowest = launch.rows[0].samples.iter().map(|s| s.elapsed_ns[0]).max().unwrap();
        assert_eq!(launch.rows[0].summary.as_ref().unwrap().median, slowest as f64);
    }
}
