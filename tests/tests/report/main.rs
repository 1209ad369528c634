//! `ombx report` and `--plot`: pages, charts, and the page in a browser.

mod browser;
mod files;
mod plots;

use serde_json::{Value, json};

/// Result file of format version 1.
const GOLDEN: &str = include_str!("../../../crates/results/tests/golden/v1.jsonl");

/// Result file of `ombx links`: four hosts with one rank each. The link between ranks 1 and 3 takes twice as long as
/// others.
fn links() -> String {
    let mut lines: Vec<Value> =
        GOLDEN.lines().take(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let place = |rank: u32| json!({"rank": rank, "host": format!("n{rank}"), "cpus": "0", "online": 2});
    lines[0]["ranks"] = (0..4).map(place).collect();
    for (from, to) in (0u32..4).flat_map(|a| (0u32..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let ns = if from.min(to) == 1 && from.max(to) == 3 { 2e6 } else { 1e6 };
        lines.push(json!({
            "kind": "case", "bench": "links", "key": format!("links/from={from},to={to},bytes=1000000"),
            "metric": "bandwidth", "bytes": 1_000_000, "ranks": 2, "pairs": 1,
            "axes": {"pattern": "semidirectional", "from": from.to_string(), "to": to.to_string()},
            "work": {"bytes": 2_000_000, "ops": 2, "legs": 2}, "across": "origin", "outcome": "ok", "check": "passed",
            "samples": [{"rank": 0, "batch": 1, "elapsed_ns": vec![2 * ns as u64; 10]}],
            "summary": {"n": 10, "median_ns": ns, "ci95_ns": [ns, ns], "min_ns": ns, "mean_ns": ns, "max_ns": ns,
                        "mad_ns": 0.0, "lag1": 0.0},
            "trust": [],
        }));
    }
    lines.push(
        json!({"kind": "end", "outcome": "complete", "cases": 12, "skipped": 0, "failed": 0, "corrupt": 0}),
    );
    lines.iter().map(|line| format!("{line}\n")).collect()
}
