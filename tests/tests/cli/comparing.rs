//! Tests of `ombx compare`: input files, the gate, JSON and JUnit output. They start no ranks.

use std::{borrow::Cow, path::PathBuf};

use ombx_record::{
    event::Event,
    file,
    result::{Measurement, Run, RunOutcome, Tally},
    stats::Summary,
};
use ombx_tests::{Done, Files, Job, mpi, print_note, results, skipped};
use serde_json::Value;

const GOLDEN: &str = include_str!("../../../crates/record/tests/golden/one_launch.jsonl");
const OF_LAUNCHES: &str = include_str!("../../../crates/record/tests/golden/three_launches.jsonl");
/// Number of rows, and of samples per row, in the file of the memory test.
const LARGE: (u64, u64) = (10_000, 200);
/// Maximum memory of a process that compares or shows that file, without the code of its libraries.
const MOST_KIB: u64 = 200 * 1024;

/// Result file to write.
#[derive(Clone, Copy)]
struct Content {
    launches: u32,
    cases: u64,
    samples: u64,
    /// Time of a message in units of 20 us.
    level: f64,
    /// Standard deviation of launches, as a logarithm. All rows of a launch share it. Without an order, each launch is a run.
    scatter: f64,
    seed: u64,
}

const CALM: Content = Content { launches: 6, cases: 3, samples: 6, level: 1.0, scatter: 0.002, seed: 1 };
/// Launches of `p2p.latency` on MPICH scatter like this.
const ROUGH: Content = Content { scatter: 0.17, ..CALM };

/// Returns a result file.
fn launches(content: Content) -> Vec<u8> {
    let Content { launches, cases, samples, level, scatter, seed } = content;
    let mut golden = file::read(GOLDEN.as_bytes()).unwrap().runs.remove(0);
    let template = golden.rows.remove(0);
    let mut state = seed + (level * 1e6) as u64;
    // Equally distributed, with standard deviation 1.
    let mut noise = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64 - 0.5) * 12_f64.sqrt()
    };
    let mut out = Vec::new();
    for launch in 0..launches {
        let id = format!("{level}-{seed}-{launch}");
        let started = format!("2026-01-02T03:{launch:02}:00Z");
        let mut plan = golden.run.plan.clone();
        plan.extend(
            [("launch", launch + 1), ("launches", launches)].map(|(k, v)| (k.to_owned(), v.to_string())),
        );
        let run = Run { id, started, plan, ..golden.run.clone() };
        file::write(&mut out, &Event::Run(Cow::Owned(run))).unwrap();
        let shared = (scatter * noise()).exp();
        for case in 0..cases {
            let mut row: Measurement = template.clone();
            row.trust.clear();
            row.bytes = Some(case + 1);
            row.key = format!("p2p.latency/bytes={}", case + 1);
            let at = 20_000.0 * level * shared;
            row.samples[0].elapsed_ns = (0..samples).map(|_| (at * (1.0 + 0.003 * noise())) as u64).collect();
            // A sample is a batch, so that percentiles of single iterations do not exist.
            let summary = Summary::new(&Measurement::combine(&row.samples, 2));
            row.summary = summary.map(|summary| Summary { p95: None, p99: None, p999: None, ..summary });
            file::write(&mut out, &Event::Row(Cow::Owned(row))).unwrap();
        }
        let tally = Tally { cases, ..Tally::default() };
        file::write(&mut out, &Event::End { outcome: RunOutcome::Complete, tally }).unwrap();
    }
    out
}

fn compare(words: &[&PathBuf], options: &str) -> Done {
    Job::ombx("compare").args(words).args(options.split_whitespace()).run()
}

/// Returns the CPU time of a comparison in seconds. Other programs do not make it longer.
fn cpu_time(base: &PathBuf, new: &PathBuf) -> f64 {
    let script = "\"$@\" >/dev/null && times";
    let job = Job::new("sh").args(["-c", script, "sh"]).arg(mpi::ombx()).arg("compare").args([base, new]);
    let done = job.run().expect(0);
    // The last line has the times in user and system mode of processes that have ended: 0m1.230s 0m0.040s.
    let times = done.stdout.lines().last().unwrap_or_default().split_whitespace();
    let seconds = times.map(|time| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("minutes");
        60.0 * minutes.parse::<f64>().expect("minutes") + seconds.parse::<f64>().expect("seconds")
    });
    seconds.sum()
}

/// A square of the number of cases anywhere, in the statistics or in the table, would make this 64 times instead of 8 times as long.
#[test]
fn eight_times_as_many_cases_take_eight_times_as_long() {
    let files = Files::default();
    let time = |cases: u64| {
        let content = Content { cases, ..ROUGH };
        let base = files.write("base.jsonl", launches(content));
        let again = files.write("again.jsonl", launches(Content { seed: 2, ..content }));
        cpu_time(&base, &again)
    };
    let (few, many) = (time(400), time(3200));
    print_note(&format!("CPU time of 400 cases: {few} s, of 3200: {many} s"));
    // Times are multiples of 10 ms.
    assert!(many < 24.0 * few.max(0.01), "400 cases take {few} s, 3200 take {many} s");
}

#[test]
fn a_regression_is_printed_and_fails_the_gate() {
    let files = Files::default();
    let base = files.write("base.jsonl", launches(CALM));
    let slow = files.write("slow.jsonl", launches(Content { level: 1.1, ..CALM }));
    let junit = files.path("junit.xml");
    let gate = format!("--fail-on 5% --names old,fresh --junit {}", junit.display());
    let done = compare(&[&base, &slow], &gate).expect(3);
    let answer = done.stdout.lines().last().unwrap();
    assert!(
        answer.starts_with("fresh is 1.")
            && answer.contains(" times slower than old in all 3 cases, most for "),
        "{done}"
    );
    assert!(done.stdout.contains("old us") && done.stdout.contains("fresh us"), "{done}");
    let table = || done.stdout.lines().filter(|line| *line != answer);
    assert!(table().all(|line| line.chars().count() <= 80), "{done}");
    assert_eq!(done.sentence(), "of 3 cases 3 worse by more than 5%");
    let report = std::fs::read_to_string(junit).unwrap();
    assert!(report.contains("failures=\"3\"") && report.contains("p2p.latency/bytes=2"), "{report}");
    let within = compare(&[&base, &slow], "--fail-on 50%").expect(0);
    assert!(within.stdout.ends_with("\nnew and base are the same within 50% in all 3 cases\n"), "{within}");
    compare(&[&base, &slow], "").expect(0);
    let better = compare(&[&slow, &base], "--fail-on 1%").expect(0);
    assert!(better.stdout.contains(" times faster than base in all 3 cases"), "{better}");
    let json: Value =
        serde_json::from_str(&compare(&[&base, &slow], "--format json").expect(0).stdout).unwrap();
    let case = &json["cases"][0];
    assert!((case["time_change"]["estimate"].as_f64().unwrap() - 0.1).abs() < 0.02, "{case}");
    assert!(case["detectable"].as_f64().unwrap() < 0.07 && case["units_to_decide"] == 4, "{case}");
    assert_eq!((&case["verdict"], &json["margin"]), (&"worse".into(), &0.05.into()));
    assert_eq!(case["base"]["values"].as_array().unwrap().len(), 6);
    let same = compare(&[&base, &base], "--fail-on 5%").expect(0);
    assert!(same.stdout.ends_with("\nnew and base are the same within 5% in all 3 cases\n"), "{same}");
}

#[test]
fn the_comparison_is_exported_as_markdown() {
    let files = Files::default();
    let base = files.write("base.jsonl", launches(CALM));
    let slow = files.write("slow.jsonl", launches(Content { level: 1.1, ..CALM }));
    let out = files.path("comparison.md");
    let done = compare(&[&base, &slow], &format!("--names old,fresh --markdown {}", out.display()));
    let answer = done.expect(0).stdout.lines().last().unwrap().to_owned();
    let text = std::fs::read_to_string(&out).unwrap();
    assert_eq!(text.lines().next(), Some(format!("**{answer}.**").as_str()));
    assert_eq!(text.matches("\n| p2p.latency | ").count(), 3, "{text}");
    assert!(text.contains("| case | bytes | old | fresh | unit |") && text.contains(" | worse |"), "{text}");
    compare(&[&base, &slow], &format!("--markdown {}", base.display())).expect(2);
}

#[test]
fn a_gate_is_open_only_if_every_case_is_shown_not_to_be_worse() {
    let files = Files::default();
    let base = files.write("base.jsonl", launches(ROUGH));
    let again = files.write("again.jsonl", launches(Content { seed: 2, ..ROUGH }));
    let junit = files.path("junit.xml");
    let done = compare(&[&base, &again], &format!("--fail-on 5% --junit {}", junit.display())).expect(8);
    assert!(
        done.stdout.contains("undecided in all 3 cases: ") && done.stdout.contains("runs a side"),
        "{done}"
    );
    assert_eq!(done.sentence(), "of 3 cases 3 not shown to be within 5%");
    let report = std::fs::read_to_string(junit).unwrap();
    assert!(report.contains("failures=\"0\"") && report.matches("<skipped").count() == 3, "{report}");
    compare(&[&base, &again], "--fail-on 5% --undecided pass").expect(0);
    compare(&[&base, &again], "--undecided pass").expect(2);
    compare(&[&base, &again], "--margin 5% --fail-on 5%").expect(2);
    compare(&[&base, &again], "--names same,same").expect(2);
    // A case that the new side has not measured is not shown to be as fast.
    let whole = files.write("whole.jsonl", launches(CALM));
    let part = files.write("part.jsonl", launches(Content { cases: 2, seed: 2, ..CALM }));
    let done = compare(&[&whole, &part], "--fail-on 5%").expect(8);
    assert_eq!(done.sentence(), "of 3 cases 1 not shown to be within 5%");
    compare(&[&part, &whole], "--fail-on 5%").expect(0);
    let quiet = |sides: &[&PathBuf]| compare(sides, "--fail-on 5% -q");
    assert!(quiet(&[&part, &whole]).expect(0).stdout.is_empty());
    assert!(quiet(&[&whole, &part]).expect(8).stdout.contains("only in base"), "what is not well is printed");
    compare(&[&part, &whole], "-q").expect(2);
}

#[test]
fn a_twofold_slowdown_fails_the_gate_although_launches_scatter() {
    let files = Files::default();
    for seed in 0..20 {
        let count = 6 + seed as u32 % 3;
        let base = Content { seed: 2 * seed, launches: count, ..ROUGH };
        let slow = Content { seed: 2 * seed + 1, level: 2.0, ..base };
        let [base, slow] =
            [("a", base), ("b", slow)].map(|(name, content)| files.write(name, launches(content)));
        compare(&[&base, &slow], "--fail-on 5%").expect(3);
    }
}

/// At most 5 of 100 comparisons are wrong. Of 40 that is 2, with a standard deviation of 1.4.
#[test]
fn equal_sides_seldom_fail_the_gate_as_worse() {
    let files = Files::default();
    let worse = |seed: u64| {
        let base = Content { seed: 100 + 2 * seed, ..ROUGH };
        let again = Content { seed: 101 + 2 * seed, ..base };
        let [base, again] =
            [("a", base), ("b", again)].map(|(name, content)| files.write(name, launches(content)));
        let done = compare(&[&base, &again], "--fail-on 5%");
        assert!(matches!(done.code, Some(0 | 3 | 8)), "{done}");
        done.code == Some(3)
    };
    let count = (0..40).filter(|seed| worse(*seed)).count();
    assert!(count <= 6, "{count} of 40");
}

#[test]
fn few_launches_per_side_give_ratios_and_ranges() {
    let files = Files::default();
    for (count, part) in [(1, "n/a"), (3, " .. ")] {
        let base = files.write("base.jsonl", launches(Content { launches: count, ..CALM }));
        let slow = files.write("slow.jsonl", launches(Content { launches: count, level: 3.0, ..CALM }));
        let done = compare(&[&base, &slow], "--fail-on 5%").expect(8);
        assert!(done.stdout.contains(part) && done.stdout.contains("base us"), "{done}");
        assert!(done.stdout.contains("\nundecided in all 3 cases: "), "{done}");
        let json: Value =
            serde_json::from_str(&compare(&[&base, &slow], "--format json").expect(0).stdout).unwrap();
        let case = &json["cases"][0];
        assert_eq!(case["reason"], "fewer than 4 runs on a side", "{json}");
        assert!((1.9..2.1).contains(&case["time_change"]["estimate"].as_f64().unwrap()), "{case}");
    }
}

#[test]
fn sides_are_files_lists_globs_and_directories() {
    let files = Files::default();
    std::fs::create_dir(files.path("old")).unwrap();
    let paths: Vec<PathBuf> = (0..6u64)
        .map(|i| files.write(&format!("old/{i}.jsonl"), launches(Content { launches: 1, seed: i, ..CALM })))
        .collect();
    let new = files.write("new.jsonl", launches(Content { level: 1.1, ..CALM }));
    let old = files.path("old").display().to_string();
    let list = paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(",");
    let compared = |base: String| {
        let done = Job::ombx("compare --format json").arg(base).arg(&new).run().expect(0);
        let mut json: Value = serde_json::from_str(&done.stdout).unwrap();
        json["base"]["name"] = Value::Null;
        json
    };
    let by_directory = compared(old.clone());
    assert_eq!(by_directory["base"]["launches"].as_array().unwrap().len(), 6);
    assert_eq!(by_directory["cases"][0]["verdict"], "worse");
    assert_eq!(compared(list), by_directory);
    assert_eq!(compared(format!("{old}/*.jsonl")), by_directory);
    let words = Job::ombx("compare --format json --base").args(&paths).arg("--new").arg(&new).run().expect(0);
    assert!(words.stdout.contains("\"worse\":3"), "{words}");
}

#[test]
fn cases_missing_on_one_side_are_listed() {
    let files = Files::default();
    let base = files.write("base.jsonl", launches(Content { launches: 1, cases: 3, ..CALM }));
    let new = files.write("new.jsonl", launches(Content { launches: 1, cases: 2, ..CALM }));
    let done = compare(&[&base, &new], "").expect(0);
    assert!(done.stdout.contains("only in base: p2p.latency/bytes=3 (new: not there)"), "{done}");
    let other = String::from_utf8(launches(Content { launches: 1, cases: 1, ..CALM })).unwrap();
    let changed = other.replace("p2p.latency/bytes=1", "p2p.other/bytes=1");
    let done = compare(&[&base, &files.write("changed.jsonl", changed)], "").expect(7);
    assert!(done.sentence().contains("changed or damaged after it was written"), "{done}");
    let other = results::without_checksums(&other).replace("p2p.latency/bytes=1", "p2p.other/bytes=1");
    let done = compare(&[&base, &files.write("other.jsonl", other)], "").expect(2);
    assert!(done.sentence().contains("no case in common"), "{done}");
}

#[test]
fn mistakes_and_broken_files_give_one_error_line() {
    let files = Files::default();
    let good = files.write("good.jsonl", launches(Content { launches: 1, cases: 1, ..CALM }));
    let whole = launches(Content { launches: 1, ..CALM });
    let cut = files.write("cut.jsonl", &whole[..whole.len() * 3 / 4]);
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
    let junit = files.path("absent/x.xml");
    compare(&[&good, &good], &format!("--junit {}", junit.display())).expect(7);
}

#[test]
fn ten_thousand_rows_need_less_than_200_mib() {
    let files = Files::default();
    let [base, new] = [("base.jsonl", 1.0), ("new.jsonl", 1.1)].map(|(name, level)| {
        files.write(name, launches(Content { launches: 1, cases: LARGE.0, samples: LARGE.1, level, ..CALM }))
    });
    let limited = |kib: u64, words: &[&str]| {
        let script = format!("ulimit -d {kib}; exec \"$@\"");
        Job::new("sh").args(["-c", &script, "sh"]).arg(mpi::ombx()).args(words).run()
    };
    let [base, new] = [&base, &new].map(|path| path.to_str().unwrap());
    for words in [["compare", base, new].as_slice(), &["show", "--format=csv", base]] {
        let done = limited(MOST_KIB, words).expect(0);
        assert!(done.stdout.lines().count() as u64 >= LARGE.0, "{} lines", done.stdout.lines().count());
        // The limit is one on this system.
        assert_ne!(limited(MOST_KIB / 20, words).code, Some(0));
    }
}

/// Returns the first Python example of a document.
fn shown_python(document: &str) -> String {
    let code = document.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    code.to_owned()
}

#[test]
fn five_lines_of_python_load_results() {
    let format = shown_python(include_str!("../../../FORMAT.md"));
    assert_eq!(format.lines().count(), 5, "{format}");
    let files = Files::default();
    files.write("results.jsonl", [GOLDEN, OF_LAUNCHES].concat());
    let python = |code: &str| {
        let words = ["-c", "cd \"$0\" && exec python3 -c \"$1\""];
        Job::new("sh").args(words).arg(files.root()).arg(code).run()
    };
    if python("import json").code != Some(0) {
        return skipped("there is no python3");
    }
    // The standard library alone reads the format too.
    let plain = "import json\nrows = [json.loads(line) for line in open('results.jsonl')]\n\
                 print(sum(r['kind'] == 'case' for r in rows))";
    assert_eq!(python(plain).expect(0).stdout, "6\n", "4 rows, and 2 over launches");
    if python("import pandas").code != Some(0) {
        return skipped("python3 has no pandas");
    }
    let done = python(&format).expect(0);
    assert!(done.stdout.contains("median_ns") && done.stdout.contains("357.6875"), "{done}");
}
