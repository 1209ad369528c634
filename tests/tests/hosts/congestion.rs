//! Two flows that share an emulated link of known rate: each gets half of it.

use ombx_tests::{print_note, results};

use crate::testbed::{Bed, eventually};

/// Smallest, default and largest buffer of TCP on every host, in bytes. Flows with the same window share a queue equally.
const BUFFERS: &str = "4096 65536 65536";
/// Largest relative error of the impact factor.
const TOLERANCE: f64 = 0.1;
/// Rate of the link in MB/s.
const RATE: f64 = 100.0 / 8.0;

#[test]
fn a_flow_beside_another_one_takes_twice_as_long() {
    let Some(bed) = Bed::up("--hosts 2 --delay 1ms --rate 100Mbit") else { return };
    let settings =
        bed.files.write("sysctl.conf", format!("net.ipv4.tcp_wmem={BUFFERS}\nnet.ipv4.tcp_rmem={BUFFERS}\n"));
    for host in ["h1", "h2"] {
        bed.on(host, &format!("sysctl -q -p {}", settings.display()));
    }
    let options = "run p2p.bw --under nothing,p2p.bw:64K,nothing --sizes 64K --window 32 -n 4 --max-time \
                   1s --launches 4";
    eventually(3, || {
        let done = bed.ombx_of_sleeping_ranks("h1:2,h2:2", options).run().expect(0);
        let lines = results::lines_of(&bed.out());
        let loaded =
            |line: &&serde_json::Value| line["kind"] == "case" && line["axes"]["under"] == "p2p.bw:64K";
        // The last one is the estimate over launches.
        let row = lines.iter().rfind(loaded).unwrap_or_else(|| panic!("no row under load: {done}"));
        let figure = |name: &str| row["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}: {row}"));
        let ms = row["summary"]["median_ns"].as_f64().expect("a median") / 1e6;
        let [factor, low, high, congestor] =
            ["impact_times", "impact_low_times", "impact_high_times", "congestors_mb_per_s"].map(figure);
        let victim = 32.0 * 65536.0 / 1e3 / ms;
        let message = format!(
            "factor {factor:.3} ({low:.3} to {high:.3}), {victim:.2} MB/s beside {congestor:.2} on a link \
             of {RATE} MB/s"
        );
        print_note(&message);
        assert!(low <= factor && factor <= high, "{message}");
        let error = (factor / 2.0 - 1.0).abs();
        if error < TOLERANCE && victim + congestor < 1.03 * RATE { Ok(()) } else { Err(message) }
    });
}
