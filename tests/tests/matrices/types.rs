//! Tests of element types of messages, and of the options of OMB and IMB that choose them.

use ombx_core::benchmark::{ElementType, ParameterValue};
use ombx_record::result::{Check, Outcome};
use ombx_tests::{
    Files, Job,
    kept::{Kept, verified},
    mpi, results,
};

const COUNTS: &str = "--iterations 2 --warmup 1 --launches 1";

/// Every kind of call that moves messages, with each type.
#[test]
fn messages_of_every_type_arrive() {
    for (benches, of_type) in [
        ("p2p.latency p2p.bw p2p.latency_persistent p2p.bw_persistent p2p.sendrecv p2p.halo", 6),
        ("p2p.latency --send synchronous,buffered,ready", 3),
        (
            "p2p.latency_mp p2p.unirandom p2p.birandom p2p.random_ring p2p.fan_in p2p.fan_out p2p.sendrecv_replace",
            7,
        ),
        (
            "rma.put_latency rma.get_bw rma.rput_latency rma.put_many_latency rma.get_many_bw \
             rma.put_incast rma.put_passive",
            7,
        ),
        (
            "collective.bcast collective.alltoall collective.gatherv collective.ialltoallw \
             collective.neighbor_allgather",
            5,
        ),
    ] {
        let run = verified(&format!("{benches} --type all --sizes 48 {COUNTS}"));
        assert_eq!(run.rows.len(), of_type * ElementType::ALL.len(), "{benches}");
    }
}

/// Fans, random partners, threads and partitions. Open MPI 4 has no partitioned messages.
#[test]
fn other_messages_have_types() {
    let options = "--type int16,double --datatype all --block-length 16 --stride 24";
    let run = verified(&format!("p2p.fan_in p2p.corandom {options} --sizes 64 {COUNTS}"));
    // Structures have no such cases: their members have types of their own.
    assert_eq!(run.rows.len(), 12);
    let benches = "p2p.latency_mt p2p.pingpong_mt p2p.bw_mt p2p.bibw_mt p2p.pingping_mt p2p.sendrecv_mt \
                   p2p.exchange_mt collective.bcast_mt";
    let threads = verified(&format!("{benches} --type char,float-complex --sizes 48 --threads 2 {COUNTS}"));
    assert_eq!(threads.rows.len(), 16);
    let kept = Kept::new();
    let partitions = "p2p.*_partitioned --type char,double --sizes 48 --window 4 --allow-skips";
    let done = kept.job(&format!("{partitions} {COUNTS}")).run().expect(0);
    for row in kept.run().rows {
        let is_right = match row.outcome {
            Outcome::Skipped(_) => mpi::is_open_mpi(),
            _ => row.check == Check::Passed,
        };
        assert!(is_right, "{}\n{done}", row.key);
    }
}

/// Blocks of a derived datatype and unequal blocks are of whole elements. Sizes that are none are left out, as in a list of types.
#[test]
fn blocks_are_of_whole_elements() {
    for (options, rows) in [
        (
            "p2p.latency collective.bcast rma.put_latency --datatype vector,indexed --block-length 16 \
             --stride 24 --sizes 64 --type double",
            6,
        ),
        (
            "collective.allgatherv collective.alltoallv --imbalance 70% --sizes 64,1K --type float,double-complex",
            8,
        ),
        ("p2p.latency --sizes 1,2,4,8 --type char,float", 6),
        ("p2p.latency --sizes 4,8 --type double,float", 3),
    ] {
        let run = verified(&format!("{options} {COUNTS}"));
        assert_eq!(run.rows.len(), rows, "{options}");
        assert!(run.rows.iter().all(|row| row.check == Check::Passed), "{options}");
    }
}

/// A chosen size that is a multiple of no selected type is skipped with the reason, also where parts of unequal blocks would be whole.
#[test]
fn sizes_of_no_type_are_skipped() {
    for (options, skipped) in [
        ("p2p.latency --sizes 2 --type float,double", 2),
        ("collective.gatherv --imbalance 50% --sizes 100 --type double", 1),
        ("collective.alltoallv --imbalance 50% --sizes 100 --type double", 1),
    ] {
        let kept = Kept::new();
        let done = kept.job(&format!("{options} {COUNTS}")).run().expect(4);
        assert_eq!(kept.run().end.unwrap().1.skipped, skipped, "{done}");
        assert!(done.stdout.contains("is not a whole number of double elements"), "{done}");
    }
}

/// Tables of all types follow one title, and each begins with one element, as in OMB.
#[test]
fn osu_prints_a_table_for_each_type() {
    for name in ["osu_latency", "osu_bcast", "osu_allreduce"] {
        let words = format!("osu {name} -T all -m 1:8 -i 20 -x 2");
        let done = Job::ombx(&words).run().expect(0);
        let lines: Vec<&str> =
            done.stdout.lines().skip_while(|line| !line.starts_with("# Datatype")).collect();
        let sizes: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
        let [char, int, float] =
            ["MPI_CHAR", "MPI_INT", "MPI_FLOAT"].map(|name| format!("# Datatype: {name}."));
        assert_eq!([lines[0], lines[6], lines[10]], [&char, &int, &float].map(String::as_str), "{done}");
        assert!(
            [lines[1], lines[7], lines[11]].iter().all(|title| *title == "# Size       Avg Latency(us)"),
            "{done}"
        );
        assert_eq!(sizes[2..6], ["1", "2", "4", "8"], "{done}");
        assert_eq!([&sizes[8..10], &sizes[12..14]], [["4", "8"], ["4", "8"]], "{done}");
        assert_eq!(done.stdout.matches("# OSU MPI").count(), 1, "{done}");
    }
    let swaps = Job::ombx("osu osu_fop_latency -T mpi_int,mpi_float -i 20").run().expect(0);
    assert_eq!(swaps.stdout.lines().filter(|line| line.starts_with("4 ")).count(), 2, "{swaps}");
}

/// -data_type and -contig_type of IMB: types of messages, and gaps of as many bytes between elements.
#[test]
fn imb_moves_elements_of_its_types() {
    let files = Files::default();
    for (options, blocks) in [
        ("-data_type double", None),
        ("-data_type double -contig_type base_vec", Some("8/8")),
        ("-data_type double -contig_type resize", Some("8/16")),
    ] {
        let out = files.path("r.jsonl");
        let words = format!("imb IMB-MPI1 PingPong Bcast Allreduce {options} -iter 4 -msglog 2:5 --force -o");
        let done = Job::ombx(&words).arg(&out).run().expect(0);
        assert!(done.stdout.contains("# MPI_Datatype                   :   MPI_DOUBLE"), "{done}");
        let rows = results::run_of(&out).rows;
        // 0, 8, 16 and 32 bytes of two benchmarks, and from 4 bytes on of Allreduce.
        assert_eq!(rows.len(), 13, "{done}");
        for row in rows {
            let (of_type, expected) = match row.bench.as_str() {
                "collective.allreduce" => ("float", None),
                _ => ("double", blocks),
            };
            assert_eq!(row.axes.get("type").map(String::as_str), Some(of_type), "{}", row.key);
            assert_eq!(row.axes.get("blocks").map(String::as_str), expected, "{}", row.key);
            assert_eq!(row.check, Check::Passed, "{}", row.key);
        }
    }
}
