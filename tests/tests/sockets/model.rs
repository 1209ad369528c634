//! Tests of `ombx model`: a model of measured rows over sockets, the model of known times, and its mistakes.

use std::fs;

use ombx_tests::{Done, Files, Job, results};
use serde_json::{Value, json};

/// Options of a short measurement of several sizes.
const SHORT: &str = "--sizes 0,1,64,1K,4K,16K,64K --launches 2 --iterations 6 --window 8";

fn parsed(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}\n{done}"))
}

/// Returns a parameter by its symbol.
fn parameter<'v>(model: &'v Value, symbol: &str) -> &'v Value {
    let all = model["parameters"].as_array().expect("parameters");
    all.iter().find(|parameter| parameter["symbol"] == symbol).unwrap_or_else(|| panic!("{symbol}: {model}"))
}

/// Leaves the distances of cores out: launches in different states of the machine would not count together.
fn forget_distances(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.remove("core_to_core_ns");
        members.values_mut().for_each(forget_distances);
    }
}

/// Returns the launches of a result file with known times: a message of b bytes arrives after 10 us + 2 b ns, and a window of 8
/// takes 24 us + 8 b ns.
fn with_known_times(text: &str) -> String {
    let line = |mut line: Value| {
        forget_distances(&mut line);
        if line["kind"] == "launch" && line["outcome"] == "ok" {
            let bytes = line["bytes"].as_u64().expect("a size");
            let leg =
                if line["bench"] == "sockets.latency" { 10_000 + 2 * bytes } else { 24_000 + 8 * bytes };
            let counts = [&line["work"]["legs"], &line["samples"][0]["batch"]];
            let sample = counts.iter().fold(leg, |ns, count| ns * count.as_u64().expect("a count"));
            line["samples"][0]["elapsed_ns"] = json!(vec![sample; 20]);
            line["summary"] = json!({
                "n": 20, "median_ns": leg, "ci95_ns": [leg, leg], "min_ns": leg, "mean_ns": leg, "max_ns": leg,
                "mad_ns": 0.0, "lag1": 0.0
            });
        }
        // Each launch becomes a run of its own.
        if line["kind"] == "launch" {
            line["kind"] = json!("case");
        }
        format!("{line}\n")
    };
    let lines = results::lines(&results::without_checksums(text));
    lines.into_iter().filter(|line| line["kind"] != "case").map(line).collect()
}

#[test]
fn a_model_of_sockets_has_parameters_with_units_and_reasons() {
    let files = Files::default();
    let out = files.path("rows.jsonl");
    let own = Job::ombx("model --fabric sockets --format json -o").arg(&out).arg("--").args(SHORT.split(' '));
    let measured = parsed(&own.run().expect(0));
    // The same rows from the file.
    assert_eq!(measured, parsed(&Job::ombx("model --format json").arg(&out).run().expect(0)));
    let known = files.write("known.jsonl", with_known_times(&fs::read_to_string(&out).expect("results")));
    let model = parsed(&Job::ombx("model --format json").arg(&known).run().expect(0));
    let model = &model["models"][0];
    // A window takes two latencies and the gaps between its 8 messages.
    for (symbol, unit, expected) in [
        ("L + o_s + o_r", "us", 10.002),
        ("G", "ns/byte", 6.0 / 7.0),
        ("g", "us", (24.008 - 2.0 * 10.002) / 7.0),
    ] {
        let found = parameter(model, symbol);
        let value = found["value"].as_f64().unwrap_or_else(|| panic!("{symbol}: {found}"));
        assert!((value / expected - 1.0).abs() < 1e-9, "{symbol}: {value}, not {expected}");
        assert!(found["unit"] == unit && found["ci95"].is_array(), "{found}");
    }
    for symbol in ["L", "o_s", "o_r"] {
        let bounds = parameter(model, symbol);
        assert!(bounds["value"].is_null() && bounds["bounds"].is_array(), "{bounds}");
        assert!(bounds["note"].as_str().is_some_and(|note| note.starts_with("bounds")), "{bounds}");
    }
    // A message without bytes has no place in the model.
    assert_eq!(model["one_way"]["points"].as_array().map(Vec::len), Some(6));
    let table = Job::ombx("model").arg(&known).run().expect(0).stdout;
    for part in ["LogGP of sockets.latency", "and sockets.bw", "2 launches", "us at 1 byte", "fit to publish"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = Job::ombx("model --format csv").arg(&known).run().expect(0).stdout;
    assert!(csv.starts_with("latency,stream,library,kind,name,") && csv.contains(",parameter,G,"), "{csv}");
    let figure = files.path("model.svg");
    Job::ombx("plot --kind model").arg(&known).arg("-o").arg(&figure).run().expect(0);
    assert!(fs::read_to_string(&figure).expect("a figure").starts_with("<svg"), "{}", figure.display());
}

#[test]
fn a_model_without_a_stream_says_which_run_it_needs() {
    let files = Files::default();
    let out = files.path("rows.jsonl");
    let line = "run sockets.latency --sizes 1,64,1K,4K --quick --iterations 30 -q -o";
    Job::ombx(line).arg(&out).run().expect(0);
    let done = Job::ombx("model --format json").arg(&out).run().expect(0);
    let parsed = parsed(&done);
    let gap = parameter(&parsed["models"][0], "g");
    assert!(gap["value"].is_null(), "{gap}");
    assert_eq!(gap["note"], "needs sockets.bw of the same sizes and setup");
    let table = Job::ombx("model").arg(&out).run().expect(0).stdout;
    assert!(table.contains("1 launch: no value has an interval"), "{table}");
}

#[test]
fn mistakes_in_a_model_are_one_sentence() {
    let files = Files::default();
    let out = files.path("rows.jsonl");
    Job::ombx("run sockets.bw --sizes 1,64 --quick --iterations 10 -q -o").arg(&out).run().expect(0);
    Job::ombx("model").arg(&out).run().expect(2).complains(&["p2p.latency or sockets.latency"]);
    Job::ombx("model")
        .arg(&out)
        .args(["--", "--sizes", "8"])
        .run()
        .expect(2)
        .complains(&["leave out the result files"]);
    Job::ombx("model --fabric sockets -- --sizes many").run().expect(2).complains(&["many"]);
    Job::ombx("model --fabric sockets -o").arg(&out).run().expect(2).complains(&["rows.jsonl exists"]);
    Job::ombx("plot --kind model").arg(&out).arg("-o").arg(files.path("f.svg")).run().expect(2).sentence();
}
