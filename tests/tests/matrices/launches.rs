//! Tests of many launches.

use std::collections::BTreeSet;

use ombx_record::file;
use ombx_tests::{Files, Job, mpi, results};
use rustix::process::Signal;

const SMALL: &str = "p2p.latency p2p.bw --sizes 8,64 --max-time 20ms";

#[test]
fn a_suite_says_why_all_benchmarks_have_one_launch() {
    let files = Files::default();
    let run = |entries: &str| {
        let suite = files.write("s.toml", format!("[defaults]\nsizes = '8'\nmax-time = '5ms'\n{entries}"));
        // Without --quick, as users type it.
        Job::new(mpi::ombx()).env("OMBX_MPIEXEC", mpi::mpiexec()).arg("run").arg(suite).run().expect(0)
    };
    let aligned = "[[entry]]\nrun = 'p2p.latency'\nalignment = '3'\n";
    let other = "[[entry]]\nrun = 'p2p.bw'\n";
    let both = run(&format!("{aligned}{other}"));
    let note = "ombx: the ranks start once, also for benchmarks without --alignment, because --alignment of p2p.latency ";
    assert!(both.stderr.contains(note) && both.stdout.contains("\n1 launch"), "{both}");
    let alone = run(aligned);
    assert!(!alone.stderr.contains("the ranks start once") && alone.stdout.contains("\n1 launch"), "{alone}");
}

#[test]
fn a_budget_bounds_a_fixed_number_of_launches() {
    let run = |options: &str| Job::ombx(&format!("run p2p.latency --sizes 8 --max-time 5ms {options}")).run();
    let few = run("--launches 4 --budget 1ms").expect(0);
    assert!(few.stderr.contains("ombx: 1 instead of 4 launches, because each takes "), "{few}");
    let all = run("--launches 2 --budget 10m").expect(0);
    assert!(all.stdout.contains("2 launches in ") && !all.stderr.contains("instead of"), "{all}");
}

#[test]
fn a_run_has_at_least_six_launches_and_each_format_one_row_per_case() {
    let files = Files::default();
    let out = files.path("r.jsonl");
    // The shortest budget: six launches all the same.
    let done = Job::ombx(&format!("run {SMALL} --budget 10ms -o")).arg(&out).run().expect(0);
    assert!(done.stdout.contains("6 launches in "), "{done}");
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
    // The coverage is that of the launches in one state of the machine, which no test knows.
    assert!(csv.lines().skip(1).all(|line| line.contains(",6,0.")), "{csv}");
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
    done.shows_in_one_state("(75%)");
    assert!(!done.stdout.contains("1 launch:"), "{done}");
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
