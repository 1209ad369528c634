//! Tests of collective operations with unequal blocks.

use ombx_collective::operations::OPERATIONS;
use ombx_record::result::Outcome;
use ombx_tests::mpi;

use crate::collectives::{MODES, Mode, run};

const COUNTS: &str = "--iterations 2 --warmup 1 --sizes 1000";

/// An imbalance of 100 % gives the first rank an empty block.
#[test]
fn unequal_blocks_are_verified_in_every_mode() {
    let vectors: Vec<&str> = OPERATIONS.iter().filter(|o| o.flow.vector).map(|o| o.name).collect();
    assert_eq!(vectors.len(), 9);
    for mode in MODES {
        let benches: Vec<String> = vectors.iter().map(|name| mode.bench(name)).collect();
        // MPICH's ranks spin while they wait for ranks that have no core.
        for (percent, ranks) in [(50, 2), (100, if mpi::is_open_mpi() { 4 } else { 3 })] {
            let options = format!("{COUNTS} --imbalance {percent} --topology all");
            let (done, run) = run(&benches, &options, ranks);
            assert!(run.rows.len() > benches.len(), "{done}");
            let end = format!(",imbalance={percent}%");
            for row in run.rows.iter().filter(|row| row.outcome == Outcome::Ok) {
                assert!(row.key.ends_with(&end) && row.axes.contains_key("imbalance"), "{}", row.key);
            }
        }
    }
}

#[test]
fn unequal_blocks_are_verified_in_place_and_with_every_root() {
    for (names, options) in [
        (&["allgatherv", "alltoallv", "reduce_scatter", "gatherv", "scatterv"][..], "--in-place"),
        (&["gatherv", "scatterv"], "--root rotate"),
        (&["alltoallw", "scatterv"], "--cache cold --cache-size 8K"),
    ] {
        let benches: Vec<String> = names.iter().map(|name| Mode::Blocking.bench(name)).collect();
        let (done, run) = run(&benches, &format!("{COUNTS} --imbalance 75% {options}"), 3);
        assert_eq!(run.rows.len(), names.len(), "{done}");
    }
}

/// Unequal blocks carry as many bytes as equal ones where every rank has all of them.
#[test]
fn the_work_is_what_arrives() {
    let of = |name: &str, imbalance: &str| {
        let (_, run) = run(&[Mode::Blocking.bench(name)], &format!("{COUNTS} {imbalance}"), 3);
        run.rows[0].work.unwrap().bytes
    };
    for name in ["allgatherv", "alltoallv", "gatherv", "scatterv", "reduce_scatter"] {
        assert_eq!(of(name, "--imbalance 60"), of(name, ""), "{name}");
    }
    // A row of three ranks: rank 1 receives from both others and sends to both.
    assert_eq!(of("neighbor_allgatherv", ""), 4000);
    assert_eq!(of("neighbor_allgatherv", "--imbalance 60"), 400 + 2 * 1000 + 1600);
    assert_eq!(of("neighbor_alltoallv", "--imbalance 60"), 2 * 1000 + 2 * 400);
}
