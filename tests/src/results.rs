//! Readers of result files and of JSON Lines.

use std::{borrow::Cow, fs, io::BufReader, path::Path};

use ombx_links::verdict::LinkSweep;
use ombx_record::{
    event::Event,
    file::{self, RunWithRows},
};
use serde_json::{Value, json};

/// Result file of a single launch.
pub const GOLDEN: &str = include_str!("../../crates/record/tests/golden/one_launch.jsonl");

/// Parses the lines of a result file or of JSON Lines on standard output.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?} is no JSON: {e}")))
        .collect()
}

/// Parses the lines of a file.
pub fn lines_of(path: &Path) -> Vec<Value> {
    lines(&fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// Returns the lines that are rows.
pub fn rows(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["kind"] == "case").collect()
}

/// Returns the only run of a file, read by the reader of ombx.
pub fn run_of(path: &Path) -> RunWithRows {
    let mut runs = runs_of(path);
    assert_eq!(runs.len(), 1, "runs in {}", path.display());
    runs.remove(0)
}

/// Returns the runs of a file that is not cut off, read by the reader of ombx.
pub fn runs_of(path: &Path) -> Vec<RunWithRows> {
    let file = fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = file::read(BufReader::new(file)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(!file.cut_off, "{} is cut off", path.display());
    file.runs
}

/// Returns a result file of `ombx links` with its verdict: four hosts with one rank each. The link between ranks 1 and 3 takes twice as long as others.
pub fn links() -> String {
    let mut run = lines(GOLDEN).swap_remove(0);
    let place = |rank: u32| json!({"host": format!("n{rank}"), "cpus": "0", "online": 2});
    run["ranks"] = (0..4).map(place).collect();
    let mut lines = vec![run];
    for (from, to) in (0u32..4).flat_map(|a| (0u32..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let ns = if from.min(to) == 1 && from.max(to) == 3 { 2e6 } else { 1e6 };
        lines.push(json!({
            "kind": "case", "bench": "links", "key": format!("links/from={from},to={to},bytes=1000000"),
            "metric": "bandwidth", "bytes": 1_000_000, "ranks": 2, "pairs": 1,
            "axes": {"pattern": "semidirectional", "from": from.to_string(), "to": to.to_string()},
            "work": {"bytes": 2_000_000, "ops": 2, "legs": 2}, "across": "origin", "outcome": "ok", "check": "passed",
            "samples": [{"rank": 0, "batch": 1, "elapsed_ns": vec![2 * ns as u64; 10]}],
            "summary": {"n": 10, "median_ns": ns, "ci95_ns": [ns, ns], "min_ns": ns, "mean_ns": ns, "max_ns": ns,
                        "mad_ns": 0.0, "tail_n": 10, "lag1": 0.0},
            "trust": [],
        }));
    }
    lines.push(
        json!({"kind": "end", "outcome": "complete", "cases": 12, "skipped": 0, "failed": 0, "corrupt": 0}),
    );
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let run = file::read(text.as_bytes()).expect("the file can be read").runs.remove(0);
    let mut sweep = LinkSweep::of_run(&run.run);
    run.rows.iter().for_each(|row| sweep.add(row));
    let mut out = text.into_bytes();
    file::write(&mut out, &Event::Verdict(Cow::Owned(sweep.verdict()))).expect("memory can be written");
    String::from_utf8(out).expect("lines are text")
}

/// Returns the number of complete rows and rounds of links in a file that is being written.
pub fn rows_so_far(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| ["case", "round"].iter().any(|kind| line.contains(&format!("\"kind\":\"{kind}\""))))
        .filter(|line| line.ends_with('\n'))
        .count()
}

/// Returns a launch with the figures of [`GOLDEN`] and another name, whose samples are in another order: the same order would be a copy.
pub fn another_launch(number: usize) -> String {
    reordered(GOLDEN, number)
}

/// Returns the launches of a file with other names, and with their samples in another order.
pub fn reordered(file: &str, number: usize) -> String {
    let mut lines = lines(file);
    for line in &mut lines {
        if let Some(run) = line.get("run").and_then(Value::as_str).map(|run| format!("{number}-{run}")) {
            line["run"] = run.into();
        }
        for samples in line.get_mut("samples").and_then(Value::as_array_mut).into_iter().flatten() {
            let times = samples["elapsed_ns"].as_array_mut().expect("samples have times");
            let by = number % times.len();
            times.rotate_left(by);
        }
        line.as_object_mut().expect("a line is an object").remove("checksum");
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns lines of results without their checksums, so that a test can change them.
pub fn without_checksums(text: &str) -> String {
    let line = |line: &str| match line.rsplit_once(",\"checksum\":") {
        Some((content, _)) => format!("{content}}}\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}
