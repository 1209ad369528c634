//! Tests of `ombx history`: directories of dated results, made of one real run over sockets.

use std::{borrow::Cow, fs, path::Path};

use ombx_record::{
    event::Event,
    file::{self, RunWithRows},
    result::{Measurement, Run},
    stats::Summary,
};
use ombx_tests::{Done, Files, Job, results};
use serde_json::Value;

/// Returns a run of `sockets.latency`.
fn measured(files: &Files) -> RunWithRows {
    let out = files.path("measured.jsonl");
    Job::ombx("run sockets.latency --sizes 8,1K --iterations 20 -q -o").arg(&out).run().expect(0);
    results::run_of(&out)
}

#[test]
fn a_message_names_only_options_that_were_given() {
    let files = Files::default();
    let run = measured(&files);
    fs::remove_file(files.path("measured.jsonl")).unwrap();
    let history = |options: &str| {
        let done = Job::ombx("history").arg(files.root()).args(options.split_whitespace()).run().expect(2);
        done.sentence().to_owned()
    };
    files.write("future.jsonl", dated(&run, 252 * 60, 1.0));
    let sentence = history("");
    assert!(sentence.contains("starts in the future") && !sentence.contains("--"), "{sentence}");
    assert!(history("--bench p2p.*").contains("no row fits --bench; 1 result"));
    files.write("past.jsonl", dated(&run, 1, 1.0));
    assert!(history("--since 2026-07-01").contains("no row fits --since; 1 result"));
    assert!(history("--bench p2p.* --since 2026-01-01").contains("--bench and --since"));
}

/// Returns a factor between 0.97 and 1.03 (SplitMix64).
fn noise(day: u64) -> f64 {
    let state = (day + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    1.0 + 0.06 * ((mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64 - 0.5)
}

/// Returns a result of another day, whose times are multiplied, as a file.
fn dated(measured: &RunWithRows, day: usize, factor: f64) -> Vec<u8> {
    let mut out = Vec::new();
    let (month, date) = (3 + day / 28 % 9, 1 + day % 28);
    let started = format!("20{:02}-{month:02}-{date:02}T02:00:00Z", 26 + day / 252);
    let id = format!("{}-{day}", measured.run.id);
    let library = if factor > 1.5 { "TCP 2" } else { "TCP 1" }.to_owned();
    let run = Run { id, started, library, ..measured.run.clone() };
    file::write(&mut out, &Event::Run(Cow::Owned(run))).unwrap();
    let noise = noise(day as u64);
    for row in &measured.rows {
        let mut row: Measurement = row.clone();
        row.trust.clear();
        for samples in row.samples.iter_mut().chain(&mut row.tail) {
            let scaled = |ns: &mut u64| *ns = (*ns as f64 * factor * noise) as u64;
            samples.elapsed_ns.iter_mut().for_each(scaled);
        }
        row.summary = Summary::of_batches(&Measurement::combine(&row.samples, row.work.unwrap().legs));
        file::write(&mut out, &Event::Row(Cow::Owned(row))).unwrap();
    }
    let (outcome, tally) = measured.end.unwrap();
    file::write(&mut out, &Event::End { outcome, tally }).unwrap();
    out
}

/// Writes 30 results in two directories. Times double after the 18th.
fn store(files: &Files, measured: &RunWithRows) -> std::path::PathBuf {
    let root = files.path("results");
    fs::create_dir_all(root.join("later")).unwrap();
    for day in 0..30 {
        let factor = if day < 18 { 1.0 } else { 2.0 };
        let directory = if day % 2 == 0 { root.clone() } else { root.join("later") };
        // Names and dates of files say nothing about the dates of results.
        let name = format!("{:02}.jsonl", day * 7 % 30);
        fs::write(directory.join(name), dated(measured, day, factor)).unwrap();
    }
    root
}

fn history(root: &Path, options: &str) -> Done {
    Job::ombx("history").arg(root).args(options.split_whitespace()).run()
}

fn json(root: &Path, options: &str) -> Value {
    let done = history(root, &format!("--format json {options}")).expect(0);
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done}"))
}

#[test]
fn a_step_is_found_with_its_date_and_what_changed() {
    let files = Files::default();
    let measured = measured(&files);
    let root = store(&files, &measured);
    let done = history(&root, "").expect(0);
    for part in [
        " · 2 ranks on ",
        " times slower (",
        "since 2026-03-19 02:00 2 cases are slower, most sockets.latency/",
        "  the last run before: 2026-03-18 02:00\n",
        "  library: TCP 1 -> TCP 2\n",
        "\n2 of 2 cases changed\n",
    ] {
        assert!(done.stdout.contains(part), "{part:?} is missing: {done}");
    }
    assert!(done.stderr.is_empty(), "{done}");
    let found = json(&root, "--bench sockets.*/*bytes=8");
    assert_eq!(found["cases"].as_array().unwrap().len(), 1, "{found}");
    let change = &found["cases"][0]["changes"][0];
    assert_eq!(
        (&change["since"], &change["before"]),
        (&"2026-03-19T02:00:00Z".into(), &"2026-03-18T02:00:00Z".into())
    );
    let ratio = &change["time_ratio"];
    assert!((ratio["estimate"].as_f64().unwrap() - 2.0).abs() < 0.1, "{change}");
    assert!(ratio["ci90"][0].as_f64().unwrap() < ratio["ci90"][1].as_f64().unwrap(), "{change}");
    let csv = history(&root, "--format csv").expect(0).stdout;
    assert_eq!(csv.lines().filter(|line| line.contains("2026-03-19T02:00:00Z")).count(), 2, "{csv}");
    // The step is 12 runs old.
    history(&root, "--fail-on-last 11").expect(0);
    assert!(history(&root, "--fail-on-last 11 -q").expect(0).stdout.is_empty());
    assert!(!history(&root, "--fail-on-last 12 -q").expect(3).stdout.is_empty());
    let gate = history(&root, "--fail-on-last 12").expect(3);
    assert_eq!(gate.sentence(), "2 of 2 cases became slower within the last 12 runs");
    let since = history(&root, "--since 2026-03-19").expect(0);
    assert!(since.stdout.contains("no change found in 2 cases"), "{since}");
    let few = history(&root, "--since 2026-03-24").expect(0);
    assert!(few.stdout.contains("2 cases with fewer than 12 runs: too few"), "{few}");
}

#[test]
fn the_history_follows_the_files() {
    let files = Files::default();
    let measured = measured(&files);
    let root = store(&files, &measured);
    assert_eq!(json(&root, "")["cases"][0]["runs"].as_array().unwrap().len(), 30);
    // A file that is replaced is read again, and one that is removed does not count any more.
    for day in 18..30 {
        let directory = if day % 2 == 0 { root.clone() } else { root.join("later") };
        fs::write(directory.join(format!("{:02}.jsonl", day * 7 % 30)), dated(&measured, day, 1.0)).unwrap();
    }
    fs::remove_file(root.join("00.jsonl")).unwrap();
    let steady = json(&root, "");
    assert_eq!(steady["summary"], "no change found in 2 cases", "{steady}");
    assert_eq!(steady["cases"][0]["runs"].as_array().unwrap().len(), 29, "{steady}");
    // A copy of a result is no further run.
    fs::copy(root.join("14.jsonl"), root.join("copy.jsonl")).unwrap();
    let copied = json(&root, "");
    assert_eq!((&copied["copies"], &copied["cases"][0]["runs"]), (&1.into(), &steady["cases"][0]["runs"]));
}

#[test]
fn other_files_are_counted_and_skipped() {
    let files = Files::default();
    let measured = measured(&files);
    let root = store(&files, &measured);
    let whole = String::from_utf8(dated(&measured, 30, 1.0)).unwrap();
    fs::write(root.join("damaged.jsonl"), whole.replacen("\"elapsed_ns\":[", "\"elapsed_ns\":[1", 1))
        .unwrap();
    fs::write(root.join("poem.jsonl"), "roses are red\n").unwrap();
    fs::write(root.join("readme.txt"), "no result").unwrap();
    let done = history(&root, "").expect(0);
    let sentence = done.sentence();
    assert!(sentence.starts_with("2 files in "), "{done}");
    let first = " skipped; the first, damaged.jsonl: line 2";
    assert!(sentence.contains(first) && sentence.contains("checksum"), "{done}");
    assert!(done.stdout.contains("2 of 2 cases changed"), "{done}");
}

#[test]
fn a_directory_without_results_is_a_mistake() {
    let files = Files::default();
    let done = history(files.root(), "").expect(2);
    assert!(done.sentence().contains("has no result files with measured rows: give a directory"), "{done}");
    assert!(history(&files.path("missing"), "").expect(2).sentence().contains("missing"), "{done}");
    files.write("poem.jsonl", "roses are red\n");
    history(files.root(), "").expect(2).complains(&["poem.jsonl", "has no result files"]);
    for wrong in ["--since yesterday", "--since 2026-02-30", "--bench [", "--fail-on-last 0", "--format xml"]
    {
        history(files.root(), wrong).expect(2).sentence();
    }
}

/// A page of a directory is that of its newest results and of its history; `--html` writes the history alone.
#[test]
fn pages_show_changes_and_the_newest_results() {
    let files = Files::default();
    let measured = measured(&files);
    let root = store(&files, &measured);
    let page = files.path("page.html");
    let done = history(&root, &format!("--html {}", page.display())).expect(0);
    assert!(done.stdout.contains("2 of 2 cases changed"), "{done}");
    let html = fs::read_to_string(&page).unwrap();
    for part in
        ["Since 2026-03-19 02:00 2 cases are slower", "library: TCP 1 -&gt; TCP 2.", "<svg class=\"trend\""]
    {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("id=\"rows\""), "the history alone");
    assert_eq!(history(&root, "--html -").expect(0).stdout, html);
    let report = |words: &[&Path], code: i32| {
        Job::ombx("report --force").args(words).arg("-o").arg(&page).run().expect(code)
    };
    report(&[&root], 0);
    let both = fs::read_to_string(&page).unwrap();
    let started = "2026-04-02T02:00:00Z";
    for part in ["Since 2026-03-19 02:00 2 cases are slower", "id=\"rows\"", started] {
        assert!(both.contains(part), "{part}");
    }
    assert!(!both.contains("2026-04-01T02:00:00Z"), "rows are those of the newest result");
    let one = root.join("00.jsonl");
    let both = report(&[&root, &one], 2);
    let sentence = both.sentence();
    assert!(sentence.contains("is a directory") && sentence.contains("give it alone"), "{sentence}");
    let done = Job::ombx("report --unit ns").arg(&root).arg("-o").arg(&page).run().expect(2);
    assert!(done.sentence().contains("give result files"), "{done}");
    Job::ombx("report --unit us,MB/s --force").arg(&root).arg("-o").arg(&page).run().expect(0);
    let before = fs::read(&one).unwrap();
    let done = Job::ombx("report").arg(&root).arg("-o").arg(&one).run().expect(2);
    assert!(done.sentence().contains("a result file that is read"), "{done}");
    history(&root, &format!("--html {}", one.display())).expect(2).sentence();
    assert_eq!(fs::read(&one).unwrap(), before);
}
