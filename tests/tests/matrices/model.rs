//! Test of `ombx model` that measures over the MPI under test.

use ombx_tests::{Files, Job};
use serde_json::Value;

#[test]
fn a_model_of_mpi_bounds_the_overheads_by_the_gap() {
    let files = Files::default();
    let options = "--sizes 1,8,64,512,4K,32K,256K --launches 2 --iterations 40 --window 8";
    let job = Job::ombx("model --format json -o").arg(files.path("rows.jsonl")).arg("--");
    let done = job.args(options.split(' ')).run().expect(0);
    let parsed: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}\n{done}"));
    let model = &parsed["models"][0];
    assert_eq!((&model["latency"], &model["launches"]), (&"p2p.latency".into(), &2.into()), "{done}");
    let parameter = |symbol: &str| {
        let all = model["parameters"].as_array().unwrap();
        all.iter().find(|one| one["symbol"] == symbol).unwrap_or_else(|| panic!("{symbol}: {done}"))
    };
    let high = |symbol: &str| {
        let one = parameter(symbol);
        one.get("ci95")
            .or(one.get("bounds"))
            .and_then(|ends| ends[1].as_f64())
            .unwrap_or_else(|| panic!("{one}"))
    };
    assert!(parameter("L + o_s + o_r")["value"].as_f64().unwrap() > 0.0, "{done}");
    assert!(high("o_s") <= high("g").max(0.0) && high("o_r") <= high("L + o_s + o_r"), "{done}");
    assert!(high("L") <= high("L + o_s + o_r"), "{done}");
}
