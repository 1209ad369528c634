//! Tests of `ombx model`: a model of measured rows over sockets, and its mistakes.

use std::fs;

use ombx_tests::{Done, Files, Job};
use serde_json::Value;

/// Options of a short measurement of several sizes.
const SHORT: &str = "--sizes 0,1,64,1K,4K,16K,64K --launches 2 --iterations 30 --window 8";

fn parsed(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}\n{done}"))
}

/// Returns a parameter by its symbol.
fn parameter<'v>(model: &'v Value, symbol: &str) -> &'v Value {
    let all = model["parameters"].as_array().unwrap();
    all.iter().find(|parameter| parameter["symbol"] == symbol).unwrap_or_else(|| panic!("{symbol}: {model}"))
}

#[test]
fn a_model_of_sockets_has_parameters_with_units_and_reasons() {
    let files = Files::default();
    let out = files.path("rows.jsonl");
    let own = Job::ombx("model --fabric sockets --format json -o").arg(&out).arg("--").args(SHORT.split(' '));
    let measured = parsed(&own.run().expect(0));
    // The same rows from the file.
    let read = parsed(&Job::ombx("model --format json").arg(&out).run().expect(0));
    assert_eq!(measured, read);
    let model = &read["models"][0];
    let sum = parameter(model, "L + o_s + o_r");
    assert!(sum["value"].as_f64().unwrap() > 0.0 && sum["unit"] == "us" && sum["ci95"].is_array(), "{sum}");
    let per_byte = parameter(model, "G");
    assert!(per_byte["value"].as_f64().unwrap() > 0.0 && per_byte["unit"] == "ns/byte", "{per_byte}");
    for symbol in ["L", "o_s", "o_r"] {
        let bounds = parameter(model, symbol);
        assert!(bounds["value"].is_null() && bounds["bounds"].is_array(), "{bounds}");
        assert!(bounds["note"].as_str().unwrap().starts_with("bounds"), "{bounds}");
    }
    // A message without bytes has no place in the model.
    assert_eq!(model["one_way"]["points"].as_array().unwrap().len(), 6);
    let table = Job::ombx("model").arg(&out).run().expect(0).stdout;
    for part in
        ["LogGP of sockets.latency", "and sockets.bw", "2 launches", "us at 1 byte", "rows can be published"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = Job::ombx("model --format csv").arg(&out).run().expect(0).stdout;
    assert!(csv.starts_with("latency,stream,library,kind,name,") && csv.contains(",parameter,G,"), "{csv}");
    let figure = files.path("model.svg");
    Job::ombx("plot --kind model").arg(&out).arg("-o").arg(&figure).run().expect(0);
    assert!(fs::read_to_string(&figure).unwrap().starts_with("<svg"), "{}", figure.display());
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
