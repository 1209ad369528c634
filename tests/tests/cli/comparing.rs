//! Tests of `ombx compare`: input files, the gate, JSON and JUnit output. They start no ranks.

use std::path::PathBuf;

use ombx_core::{
    result::{Measurement, Run, Tally},
    stats::Summary,
};
use ombx_results::file::{self, Record, RunOutcome};
use ombx_tests::{Done, Files, Job, skipped};
use serde_json::Value;

const GOLDEN: &str = include_str!("../../../crates/results/tests/golden/v1.jsonl");
const OF_LAUNCHES: &str = include_str!("../../../crates/results/tests/golden/v2.jsonl");
/// Number of rows, and of samples per row, in the file of the memory test.
const LARGE: (u64, u64) = (10_000, 200);
/// Maximum memory of a process that compares or shows that file.
const MOST_KIB: u64 = 200 * 1024;

/// Returns a result file with `count` launches. Times scatter by less than 1 % around 20 us times `level`.
fn launches(count: u32, cases: u64, samples: u64, level: f64) -> Vec<u8> {
    let mut golden = file::read(GOLDEN.as_bytes()).unwrap().runs.remove(0);
    let template = golden.rows.remove(0);
    let mut state = u64::from(count) + (level * 1e6) as u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64 - 0.5
    };
    let mut out = Vec::new();
    for launch in 0..count {
        let id = format!("{level}-{launch}");
        let started = format!("2026-01-02T03:{launch:02}:00Z");
        let mut plan = golden.run.plan.clone();
        plan.extend(
            [("launch", launch + 1), ("launches", count)].map(|(k, v)| (k.to_owned(), v.to_string())),
        );
        let run = Run { id, started, plan, ..golden.run.clone() };
        file::write(&mut out, &Record::Run(Box::new(run))).unwrap();
        let own = 1.0 + 0.005 * noise();
        for case in 0..cases {
            let mut row: Measurement = template.clone();
            row.trust.clear();
            row.bytes = Some(case + 1);
            row.key = format!("p2p.latency/bytes={}", case + 1);
            let at = 20_000.0 * level * own;
            row.samples[0].elapsed_ns = (0..samples).map(|_| (at * (1.0 + 0.01 * noise())) as u64).collect();
            row.summary = Summary::of(&Measurement::combine(&row.samples, 2));
            file::write(&mut out, &Record::Launch(Box::new(row))).unwrap();
        }
        let tally = Tally { cases, ..Tally::default() };
        file::write(&mut out, &Record::End(RunOutcome::Complete, tally)).unwrap();
    }
    out
}

fn compare(words: &[&PathBuf], options: &str) -> Done {
    Job::ombx("compare").args(words).args(options.split_whitespace()).run()
}

#[test]
fn a_regression_is_printed_and_fails_the_gate() {
    let files = Files::default();
    let base = files.write("base.jsonl", launches(6, 3, 60, 1.0));
    let slow = files.write("slow.jsonl", launches(6, 3, 60, 1.1));
    let junit = files.path("junit.xml");
    let gate = format!("--fail-on 5% --junit {}", junit.display());
    let done = compare(&[&base, &slow], &gate).expect(3);
    assert!(done.stdout.contains("3 cases: 3 worse, 0 better, 0 unresolved"), "{done}");
    assert_eq!(done.sentence(), "of 3 cases 3 worse by more than 5%");
    let report = std::fs::read_to_string(junit).unwrap();
    assert!(report.contains("failures=\"3\"") && report.contains("p2p.latency/bytes=2"), "{report}");
    compare(&[&base, &slow], "--fail-on 50%").expect(0);
    compare(&[&base, &slow], "").expect(0);
    let better = compare(&[&slow, &base], "--fail-on 0").expect(0);
    assert!(better.stdout.contains("0 worse, 3 better"), "{better}");
    let json: Value = serde_json::from_str(&compare(&[&base, &slow], "--json").expect(0).stdout).unwrap();
    let case = &json["cases"][0];
    assert!((case["change"]["median"].as_f64().unwrap() - 0.1).abs() < 0.02, "{case}");
    assert_eq!((&case["verdict"], &case["method"]), (&"worse".into(), &"launches".into()));
    assert_eq!(case["base"]["launches"].as_array().unwrap().len(), 6);
    let same = compare(&[&base, &base], "--fail-on 0").expect(0);
    assert!(same.stdout.contains("3 unresolved"), "{same}");
}

#[test]
fn one_launch_per_side_needs_a_larger_difference() {
    let files = Files::default();
    let base = files.write("base.jsonl", launches(1, 8, 60, 1.0));
    let slow = files.write("slow.jsonl", launches(1, 8, 60, 1.1));
    let done = compare(&[&base, &slow], "--fail-on 5%").expect(3);
    assert!(done.stdout.contains("one launch per side does not show"), "{done}");
    let near = files.write("near.jsonl", launches(1, 8, 60, 1.03));
    let done = compare(&[&base, &near], "--fail-on 0").expect(0);
    assert!(done.stdout.contains("launches may differ by 5%"), "{done}");
}

#[test]
fn sides_are_files_lists_globs_and_directories() {
    let files = Files::default();
    std::fs::create_dir(files.path("old")).unwrap();
    let paths: Vec<PathBuf> = (0..6)
        .map(|i| files.write(&format!("old/{i}.jsonl"), launches(1, 2, 60, 1.0 + f64::from(i) / 1e4)))
        .collect();
    let new = files.write("new.jsonl", launches(6, 2, 60, 1.1));
    let old = files.path("old").display().to_string();
    let list = paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(",");
    let compared = |base: String| {
        let done = Job::ombx("compare --json").arg(base).arg(&new).run().expect(0);
        let mut json: Value = serde_json::from_str(&done.stdout).unwrap();
        json["base"]["name"] = Value::Null;
        json
    };
    let by_directory = compared(old.clone());
    assert_eq!(by_directory["base"]["runs"].as_array().unwrap().len(), 6);
    assert_eq!(by_directory["cases"][0]["method"], "launches");
    assert_eq!(compared(list), by_directory);
    assert_eq!(compared(format!("{old}/*.jsonl")), by_directory);
    let words = Job::ombx("compare --json --base").args(&paths).arg("--new").arg(&new).run().expect(0);
    assert!(words.stdout.contains("\"method\":\"launches\""), "{words}");
}

#[test]
fn cases_missing_on_one_side_are_listed() {
    let files = Files::default();
    let base = files.write("base.jsonl", launches(1, 3, 60, 1.0));
    let new = files.write("new.jsonl", launches(1, 2, 60, 1.0));
    let done = compare(&[&base, &new], "").expect(0);
    assert!(done.stdout.contains("only in base: p2p.latency/bytes=3 (new: not there)"), "{done}");
    let other = String::from_utf8(launches(1, 1, 60, 1.0))
        .unwrap()
        .replace("p2p.latency/bytes=1", "p2p.other/bytes=1");
    let done = compare(&[&base, &files.write("other.jsonl", other)], "").expect(2);
    assert!(done.sentence().contains("no case in common"), "{done}");
}

#[test]
fn mistakes_and_broken_files_give_one_error_line() {
    let files = Files::default();
    let good = files.write("good.jsonl", launches(1, 1, 60, 1.0));
    let cut = files.write("cut.jsonl", &launches(1, 3, 60, 1.0)[..2500]);
    let broken = files.write("broken.jsonl", GOLDEN.replacen("\"kind\":\"case\"", "\"kind\":7", 1));
    let future = files.write("future.jsonl", GOLDEN.replace("\"major\":1", "\"major\":9"));
    for (path, part) in [
        (&broken, "line 2"),
        (&future, "version 9"),
        (&files.path("missing.jsonl"), "No such file"),
        (&files.path("*.none"), "no file matches"),
    ] {
        let done = compare(&[path, &good], "").expect(7);
        assert!(done.sentence().contains(part) && done.stdout.is_empty(), "{part}: {done}");
    }
    let done = compare(&[&cut, &good], "").expect(0);
    assert!(done.stderr.contains("was cut off"), "{done}");
    Job::ombx("compare").arg(&good).run().expect(2);
    Job::ombx("compare").run().expect(2);
    compare(&[&good, &good], "--fail-on much").expect(2);
    compare(&[&good, &good], "--junit /nonexistent/x.xml").expect(7);
}

/// Runs a job and returns its peak memory in KiB. It polls the high-water mark that the kernel keeps.
fn most_memory(job: Job) -> (u64, Done) {
    let running = job.start();
    let status = format!("/proc/{}/status", running.pid());
    let watcher = std::thread::spawn(move || {
        let mut most = 0;
        while let Ok(text) = std::fs::read_to_string(&status) {
            let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
            // A process that has ended has no such line.
            let Some(mark) = mark.and_then(|kib| kib.parse::<u64>().ok()) else { break };
            most = most.max(mark);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        most
    });
    let done = running.wait();
    (watcher.join().unwrap(), done)
}

#[test]
fn ten_thousand_rows_need_less_than_200_mib() {
    let files = Files::default();
    let [base, new] = [("base.jsonl", 1.0), ("new.jsonl", 1.1)]
        .map(|(name, level)| files.write(name, launches(1, LARGE.0, LARGE.1, level)));
    let compared = most_memory(Job::ombx("compare").arg(&base).arg(&new));
    let shown = most_memory(Job::ombx("show --format csv").arg(&base));
    for (most, done) in [compared, shown] {
        let done = done.expect(0);
        assert!(done.stdout.lines().count() as u64 >= LARGE.0, "{} lines", done.stdout.lines().count());
        assert!((1..MOST_KIB).contains(&most), "{most} KiB");
        ombx_tests::print_note(&format!(
            "{} rows of {} samples: {} MiB, {:?}",
            LARGE.0,
            LARGE.1,
            most / 1024,
            done.elapsed
        ));
    }
}

/// Returns the first Python example of a document.
fn shown_python(document: &str) -> String {
    let code = document.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    code.to_owned()
}

#[test]
fn five_lines_of_python_load_results() {
    let (readme, format) =
        (shown_python(include_str!("../../../README.md")), shown_python(include_str!("../../../FORMAT.md")));
    assert_eq!(readme, format);
    assert_eq!(readme.lines().count(), 5, "{readme}");
    let files = Files::default();
    files.write("results.jsonl", [GOLDEN, OF_LAUNCHES].concat());
    let python = |code: &str| {
        let words = ["-c", "cd \"$0\" && exec python3 -c \"$1\""];
        Job::of("sh").args(words).arg(files.root()).arg(code).run()
    };
    if python("import json").code != Some(0) {
        return skipped("there is no python3");
    }
    // The standard library alone reads the format too.
    let plain = "import json\nrows = [json.loads(line) for line in open('results.jsonl')]\nprint(sum(r['kind'] == 'case' for r in rows))";
    assert_eq!(python(plain).expect(0).stdout, "6\n", "4 rows, and 2 over launches");
    if python("import pandas").code != Some(0) {
        return skipped("python3 has no pandas");
    }
    let done = python(&readme).expect(0);
    assert!(done.stdout.contains("median_ns") && done.stdout.contains("357.6875"), "{done}");
}
