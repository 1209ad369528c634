//! Tests of derived datatypes in collective and one-sided operations.

use ombx_collective::operations::OPERATIONS;
use ombx_mpi::collective::ReductionScope;
use ombx_record::result::{Check, Outcome};
use ombx_tests::{
    Files, Job,
    kept::{measured, verified},
    mpi,
};

use crate::collectives::{MODES, Mode, run};

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
        let benches: Vec<String> = moving.iter().map(|name| mode.bench(name)).collect();
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
            &[Mode::Blocking.bench(name)],
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

/// Accumulates of derived datatypes combine the elements of the blocks, in vectors and in irregular blocks.
#[test]
fn accumulates_have_derived_datatypes() {
    // MPI_Get_accumulate of the component osc/rdma of Open MPI 4.1 delivers wrong data, also in C. These windows have another component.
    let windows =
        if mpi::is_open_mpi() { "allocate,shared" } else { "allocate,create,alloc_mem,dynamic,shared" };
    let many = format!(
        "rma.acc_bw rma.get_acc_bw --sync flush --win {windows} --sizes 192 --window 4 --iterations 2"
    );
    let types = "--datatype vector,indexed --warmup 1";
    for (options, rows) in [
        ("rma.acc_latency rma.get_acc_latency --sync all --sizes 64,16K --iterations 3", 2 * 7 * 2 * 2),
        (&many[..], 2 * windows.split(',').count() * 2),
        (
            "rma.acc_latency --block-length 4 --stride 12 --op sum,prod,replace --type int32,uint32 \
             --sizes 48 --iterations 1",
            3 * 2 * 2,
        ),
        (
            "rma.get_acc_latency --block-length 16 --stride 40 --op sum,replace,no_op --type double,uint64 \
             --sizes 48 --iterations 1",
            3 * 2 * 2,
        ),
        (
            "rma.acc_bw rma.get_acc_bw --sizes 4K --window 4 --cache all --cache-size 64K --iterations 2",
            2 * 2 * 2,
        ),
    ] {
        let run = measured(&format!("{options} {types}"));
        assert_eq!(run.rows.len(), rows, "{options}");
        for row in &run.rows {
            assert!(row.axes.contains_key("blocks") && row.check == Check::Passed, "{}", row.key);
        }
    }
}

/// Blocks may be listed, on the command line or in a file. A message repeats them.
#[test]
fn blocks_may_be_listed() {
    let files = Files::default();
    let list = files.path("blocks.csv");
    std::fs::write(&list, "# displacement, length\n24,4\n0,8\n").unwrap();
    let lists = ["24:4,0:8".to_owned(), format!("@{}", list.display())];
    for blocks in lists {
        let run = measured(&format!(
            "p2p.latency p2p.bw rma.put_latency rma.acc_latency --datatype indexed --blocks {blocks} \
             --sizes 12,120,12000 --window 4 --iterations 4 --warmup 1"
        ));
        assert_eq!(run.rows.len(), 4 * 3);
        assert!(run.rows.iter().all(|row| row.axes["blocks"].starts_with("2:12/28:")));
        let run = verified(&format!(
            "p2p.exchange collective.alltoall --datatype indexed --blocks {blocks} --sizes 12,120,12000 \
             --iterations 4 --warmup 1 -n 2"
        ));
        assert_eq!(run.rows.len(), 2 * 3);
    }
}

/// As `-D` of OMB, where sizes include gaps: the payload has a column of its own.
#[test]
fn datatypes_of_omb() {
    let files = Files::default();
    let list = files.path("blocks.csv");
    std::fs::write(&list, "0,8\n24,8\n").unwrap();
    let rows = |done: &ombx_tests::Done| -> Vec<[String; 2]> {
        let fields = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let rows = done.stdout.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(fields);
        rows.map(|row| [row[0].clone(), row[row.len() - 1].clone()]).collect()
    };
    let of = |program: &str, option: &str| {
        let words = ["osu", program, "-D", option, "-m", "8:64", "-i", "20", "-x", "2", "-n", "2"];
        let done = Job::ombx("").args(words).run().expect(0);
        assert!(done.stdout.contains("Transmit Size"), "{done}");
        rows(&done)
    };
    let pairs = |pairs: &[[u64; 2]]| -> Vec<[String; 2]> {
        pairs.iter().map(|pair| pair.map(|n| n.to_string())).collect()
    };
    for program in ["osu_latency", "osu_bw", "osu_bw_persistent", "osu_allgather", "osu_ialltoall"] {
        assert_eq!(of(program, "vect:16:4"), pairs(&[[16, 4], [32, 8], [64, 16]]), "{program}");
        assert_eq!(of(program, &format!("indx:{}", list.display())), pairs(&[[32, 16]]), "{program}");
        assert_eq!(of(program, "cont"), pairs(&[[8, 8], [16, 16], [32, 32], [64, 64]]), "{program}");
    }
}
