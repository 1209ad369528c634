//! Tests of derived datatypes in collective and one-sided operations.

use ombx_collective::operations::OPERATIONS;
use ombx_core::{benchmark::payload::Check, result::Outcome};
use ombx_mpi::collective::ReductionScope;
use ombx_tests::mpi;

use crate::{
    collectives::{MODES, Mode, run},
    measured,
};

const COUNTS: &str = "--iterations 2 --warmup 1 --topology all";

/// Verification covers payload and gaps. Rows name the blocks.
#[test]
fn blocks_of_derived_datatypes_are_verified_in_every_mode() {
    let moving = OPERATIONS
        .iter()
        .filter(|o| o.flow.has_messages() && o.flow.reduces == ReductionScope::Nothing)
        .map(|o| o.name);
    let moving: Vec<&str> = moving.collect();
    assert_eq!(moving.len(), 15);
    for mode in MODES {
        let benches: Vec<String> = moving.iter().map(|name| mode.of(name)).collect();
        // MPICH's ranks spin while they wait for ranks that have no core.
        let more = if mpi::is_open_mpi() { 4 } else { 3 };
        let jobs = [("--block-length 16 --stride 40 --sizes 48,16K", 2), ("--sizes 192", more)];
        for (options, ranks) in jobs.into_iter().take(if mode == Mode::Blocking { 2 } else { 1 }) {
            let (done, run) =
                run(&benches, &format!("{COUNTS} --datatype vector,indexed,struct {options}"), ranks);
            assert!(run.rows.len() > 3 * benches.len(), "{done}");
            for row in run.rows.iter().filter(|row| row.outcome == Outcome::Ok) {
                assert!(row.axes.contains_key("blocks"), "{}", row.key);
            }
        }
    }
}

/// The work is that of contiguous blocks.
#[test]
fn blocks_of_derived_datatypes_have_the_bytes_of_their_payload() {
    for (name, options) in
        [("scatterv", "--root rotate"), ("bcast", "--root 1"), ("alltoall", "--cache cold --cache-size 8K")]
    {
        let (done, run) = run(
            &[Mode::Blocking.of(name)],
            &format!("--iterations 2 --warmup 1 --datatype all --sizes 640 {options}"),
            3,
        );
        assert_eq!(run.rows.len(), 4, "{done}");
        assert!(run.rows.iter().all(|row| row.work == run.rows[0].work), "{done}");
    }
}

/// Puts and gets of derived datatypes, with every synchronisation and every kind of window.
#[test]
fn puts_and_gets_have_derived_datatypes() {
    let types = "--datatype vector,indexed,struct --iterations 2 --warmup 1 --window 4";
    for (options, rows) in [
        ("rma.put_latency rma.get_bw --sync all --sizes 64,16K", 2 * 7 * 2 * 3),
        ("rma.put_bw rma.get_latency --sync flush --win all --sizes 192", 2 * 5 * 3),
        ("rma.put_bibw rma.get_bibw --block-length 16 --stride 40 --sizes 48", 2 * 3),
        ("rma.rput_latency rma.rget_bw rma.rput_bw --sizes 4K --cache all --cache-size 64K", 3 * 2 * 3),
    ] {
        let run = measured(&format!("{options} {types}"));
        assert_eq!(run.rows.len(), rows, "{options}");
        for row in &run.rows {
            assert!(row.axes.contains_key("blocks") && row.check == Check::Passed, "{}", row.key);
        }
    }
}
