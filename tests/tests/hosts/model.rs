//! Compares the model of `ombx model` with the delay and the rate of the emulated network.

use ombx_tests::{Job, print_note};
use serde_json::Value;

use crate::testbed::{Bed, eventually};

/// Delay of the link in microseconds.
const DELAY: f64 = 2000.0;
/// Time per byte of payload in nanoseconds: 100 Mbit/s, of which 66 of 1514 bytes of a frame are headers.
const PER_BYTE: f64 = 80.0 * 1514.0 / 1448.0;

fn value(model: &Value, symbol: &str) -> f64 {
    let all = model["parameters"].as_array().expect("parameters");
    let found = all.iter().find(|parameter| parameter["symbol"] == symbol);
    found.and_then(|parameter| parameter["value"].as_f64()).unwrap_or_else(|| panic!("{symbol}: {model:#}"))
}

#[test]
fn a_model_has_the_delay_and_rate_of_the_network() {
    let Some(bed) = Bed::up("--hosts 2 --delay 2ms --rate 100Mbit") else { return };
    let line = "run sockets.latency sockets.bw --sizes 1,64,1K,4K,16K,32K,64K,128K,256K --window 16 \
                --launches 2 --iterations 3 --warmup 1";
    eventually(3, || {
        bed.ombx("h1,h2", line).run().expect(0);
        let done = Job::ombx("model --format json").arg(bed.out()).run().expect(0);
        let parsed: Value = serde_json::from_str(&done.stdout).expect("JSON");
        let model = &parsed["models"][0];
        // The overheads are some microseconds of the sum.
        let (latency, per_byte) = (value(model, "L + o_s + o_r"), value(model, "G"));
        let message = format!("L {latency:.0} of {DELAY} us, G {per_byte:.2} of {PER_BYTE:.2} ns/byte");
        print_note(&message);
        let is_near = |found: f64, known: f64| (found / known - 1.0).abs() < 0.05;
        if is_near(latency, DELAY) && is_near(per_byte, PER_BYTE) { Ok(()) } else { Err(message) }
    });
}
