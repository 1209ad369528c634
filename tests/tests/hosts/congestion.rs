//! Compares impact factors with what the rates of the emulated network imply.

use ombx_core::{benchmark::Figure, result::Measurement};
use ombx_tests::{missing, print_note, results, skipped};

use crate::testbed::{Bed, eventually};

fn value(row: &Measurement, name: &str) -> f64 {
    match row.figures.get(name) {
        Some(Figure::Value(value)) => *value,
        other => panic!("{}: {name}: {other:?}", row.key),
    }
}

/// Two hosts with two ranks each: the victims stream from one host to the other, and so do the congestors. Both share the link, so each
/// flow has half of its rate.
#[test]
fn two_flows_on_one_link_have_the_factor_of_the_rates() {
    if !missing(&["cc"]).is_empty() {
        skipped("the ranks of this test need a C compiler, because they sleep while they wait");
        return;
    }
    let Some(bed) = Bed::up("--hosts 2 --delay 1ms --rate 100Mbit") else { return };
    let line =
        "run p2p.bw --sizes 1M --window 8 --under nothing,p2p.bw:1M,nothing -n 4 --iterations 12 --warmup 2";
    eventually(4, || {
        bed.ombx_of_sleeping_ranks("h1,h2", line).run().expect(0);
        let rows = results::run_of(&bed.out()).rows;
        let [before, under, after] = &*rows else { panic!("{rows:?}") };
        let rate = |row: &Measurement| row.mb_per_s().expect("a rate").median;
        let alone = (rate(before) * rate(after)).sqrt();
        // What the load took of the link is what the victims lack.
        let (factor, load) = (value(under, "impact_times"), value(under, "congestors_mb_per_s"));
        let implied = alone / (alone - load);
        let message = format!(
            "alone {alone:.2} MB/s, under load {:.2}, load {load:.2}: factor {factor:.3}, equal shares 2, the load's rate implies \
             {implied:.3}",
            rate(under)
        );
        print_note(&message);
        // A flow that has the link alone again would say that the load did not run.
        assert!(factor > 1.3, "{message}");
        match [2.0, implied].iter().all(|expected| (factor / expected - 1.0).abs() < 0.1) {
            true => Ok(()),
            false => Err(message),
        }
    });
}
