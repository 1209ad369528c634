//! Tests of pairs, fans, threads and forked children with even and odd numbers of ranks.

use ombx_tests::{
    Job,
    kept::{Kept, assert_measured, measured, verified},
    mpi,
};

const QUICK: &str = "--iterations 20 --warmup 2 --sizes 1,4K";

/// Runs to success and returns the rows, all of them verified. Several ranks may be timed.
fn rows_of(options: &str) -> Vec<ombx_record::result::Measurement> {
    let kept = Kept::new();
    let done = kept.job(options).run().expect(0);
    let run = kept.run();
    run.rows.iter().for_each(|row| assert_measured(row, &done));
    run.rows
}

/// Each rank of a chain has one message to verify for each message that a neighbour sends.
#[test]
fn neighbours_of_a_chain_exchange_messages() {
    for ranks in 2..5 {
        let rows = rows_of(&format!("p2p.sendrecv p2p.exchange -n {ranks} {QUICK}"));
        assert_eq!(rows.len(), 4);
        for row in &rows {
            let sides = if row.bench == "p2p.exchange" { 2 } else { 1 };
            let (work, ops) = (row.work.unwrap(), sides * u64::from(ranks));
            assert_eq!((row.ranks, work.ops, work.legs), (ranks, ops, 1), "{}", row.key);
            assert_eq!(work.bytes, ops * row.bytes.unwrap(), "{}", row.key);
            assert_eq!(row.samples.len(), ranks as usize, "{}: every rank is timed", row.key);
        }
    }
    for (options, pairs) in [("", 1), ("-n 4 --pairs 2", 2)] {
        for row in rows_of(&format!("p2p.pingping {options} {QUICK}")) {
            let work = row.work.unwrap();
            assert_eq!((work.ops, work.bytes), (2 * pairs, 2 * pairs * row.bytes.unwrap()), "{}", row.key);
        }
    }
}

/// Partners that are drawn anew for each iteration.
#[test]
fn random_partners_exchange_messages() {
    for ranks in [2_u64, 3] {
        let rows =
            rows_of(&format!("p2p.unirandom p2p.birandom p2p.corandom p2p.random_ring -n {ranks} {QUICK}"));
        let expected = [("unirandom", 1), ("birandom", 2), ("corandom", 1), ("random_ring", 2)];
        for (name, each) in expected {
            let found: Vec<_> = rows.iter().filter(|row| row.bench == format!("p2p.{name}")).collect();
            assert!(!found.is_empty(), "{name}");
            for row in found {
                assert_eq!(
                    (row.work.unwrap().ops, row.samples.len() as u64),
                    (each * ranks, ranks),
                    "{}",
                    row.key
                );
            }
        }
    }
}

/// Dimensions of one rank have no neighbours; in those of two ranks both neighbours are the same rank.
#[test]
fn halos_of_grids_are_exchanged() {
    for (ranks, sides) in [(2_u32, [2, 2]), (3, [2, 2]), (4, [4, 4]), (6, [4, 4])] {
        let rows = rows_of(&format!("p2p.halo --dims all -n {ranks} {QUICK}"));
        assert_eq!(rows.len(), 4);
        for row in &rows {
            let sides = sides[usize::from(row.axes["dims"] == "3")];
            let (work, ops) = (row.work.unwrap(), sides * u64::from(ranks));
            assert_eq!((work.ops, work.bytes), (ops, ops * row.bytes.unwrap()), "{}", row.key);
            assert_eq!(row.samples.len(), ranks as usize, "{}: every rank is timed", row.key);
        }
    }
    let rows = rows_of("p2p.halo --dims 3 -n 8 --iterations 5 --warmup 1 --sizes 8");
    assert_eq!(rows[0].work.unwrap().ops, 6 * 8, "{}", rows[0].key);
}

#[test]
fn every_benchmark_on_even_and_odd_ranks() {
    for ranks in 2..6 {
        let run = measured(&format!("p2p.latency_mp -n {ranks} {QUICK}"));
        assert_eq!((run.rows.len(), &*run.run.plan["placement"]), (2, "one host"));
        // On one host every rank counts as a node.
        let rows = rows_of(&format!("p2p.fan_in p2p.fan_out -n {ranks} --window 8 {QUICK}"));
        assert_eq!(rows.len(), 4);
        for row in &rows {
            let (work, pairs) = (row.work.unwrap(), ranks - 1);
            let (ops, bytes) = (8 * u64::from(pairs), row.bytes.unwrap());
            assert_eq!((row.ranks, row.pairs, work.ops), (ranks, pairs, ops), "{}", row.key);
            assert_eq!((work.bytes, work.legs), (ops * bytes, 1), "{}", row.key);
            let timed: Vec<u32> = row.samples.iter().map(|samples| samples.rank).collect();
            let senders = if row.bench == "p2p.fan_in" { 1..ranks } else { 0..1 };
            assert_eq!(timed, senders.collect::<Vec<_>>(), "{}", row.key);
        }
    }
}

#[test]
fn pairing_is_block_or_adjacent() {
    for ranks in 2..6 {
        let rows = rows_of(&format!(
            "p2p.mbw_mr p2p.multi_latency -n {ranks} --pairing block,adjacent --window 8 {QUICK}"
        ));
        assert_eq!(rows.len(), 8);
        let pairs = ranks / 2;
        for row in &rows {
            let timed: Vec<u32> = row.samples.iter().map(|s| s.rank).collect();
            let step = if row.axes.contains_key("pairing") { 2 } else { 1 };
            assert_eq!(timed, (0..pairs).map(|pair| pair * step).collect::<Vec<_>>(), "{}", row.key);
        }
        assert_eq!(rows.iter().filter(|row| row.axes.contains_key("pairing")).count(), 4);
    }
}

/// Messages of several pairs are in flight at the same time, and each receive gets that of its own peer.
#[test]
fn receives_name_one_source_or_any() {
    let benches = "p2p.mbw_mr p2p.multi_latency p2p.sendrecv";
    let rows = rows_of(&format!("{benches} -n 4 --receive-from all --window 8 {QUICK}"));
    assert_eq!(rows.len(), 12);
    assert_eq!(
        rows.iter().filter(|row| row.axes.get("receive-from").is_some_and(|from| from == "any")).count(),
        6
    );
}

#[test]
fn every_thread_has_its_own_samples() {
    for (threads, senders) in [("1:1", 1), ("1:2", 1), ("2:2", 2), ("4:4", 4), ("3:1", 3)] {
        let rows = rows_of(&format!("p2p.latency_mt --threads {threads} --batch 1 {QUICK}"));
        assert_eq!(rows.len(), 2);
        for row in &rows {
            assert_eq!(row.axes["threads"], threads);
            let work = row.work.unwrap();
            assert_eq!((work.legs, work.ops, work.bytes), (2, 2, 2 * row.bytes.unwrap()), "{}", row.key);
            let of: Vec<(u32, u32, usize)> =
                row.samples.iter().map(|s| (s.rank, s.thread, s.elapsed_ns.len())).collect();
            assert_eq!(of, (0..senders).map(|thread| (0, thread, 20)).collect::<Vec<_>>(), "{}", row.key);
            assert_eq!(row.summary.as_ref().unwrap().n, 20 * senders as usize, "{}", row.key);
        }
        let different = |row: &ombx_record::result::Measurement| {
            row.samples.windows(2).all(|pair| pair[0].elapsed_ns != pair[1].elapsed_ns)
        };
        assert!(rows.iter().all(different), "{threads}");
    }
}

/// A launch with two starts is one launch.
#[test]
fn starts_of_one_launch_count_as_one() {
    let kept = Kept::new();
    let line = format!("run p2p.latency_mt p2p.latency --threads 1:2 --launches 2 {QUICK} -o");
    let done = Job::ombx(&line).arg(kept.out()).run().expect(0);
    assert!(done.stdout.contains("\n2 launches in "), "{done}");
    let shown = Job::ombx("show").arg(kept.out()).run().expect(0);
    assert_eq!(shown.stdout, done.stdout);
}

#[test]
fn wrong_thread_counts_are_errors_before_any_start() {
    for options in [
        "p2p.latency_mt --threads 0:2",
        "p2p.latency_mt --threads x",
        "p2p.latency_mt --threads 1:2:3",
        "p2p.latency_mt --threads 65:1",
        "p2p.latency --threads 1:2",
        "p2p.multi_latency --pairing sideways",
        "p2p.latency --pairing adjacent",
    ] {
        let done = Job::ombx("run").args(options.split_whitespace()).run().expect(2);
        assert!(done.stdout.is_empty() && done.stderr.lines().count() == 1, "{options}: {done}");
    }
}

#[test]
fn partitioned_messages_are_verified_or_skipped() {
    let line = format!("p2p.latency_partitioned p2p.bw_partitioned --window 8 {QUICK},1001");
    if mpi::is_open_mpi() {
        let done = Job::ombx("run").args(line.split_whitespace()).run().expect(4);
        assert_eq!(done.stdout.matches("needs partitioned messages of MPI 4").count(), 2, "{done}");
        return;
    }
    for ranks in 2..6 {
        let run = measured(&format!("{line} -n {ranks}"));
        assert_eq!(run.rows.len(), 6);
        let ops: Vec<u64> = run.rows.iter().map(|row| row.work.unwrap().ops).collect();
        assert_eq!(ops, [2, 2, 2, 8, 8, 8]);
    }
}

/// Such messages of bytes need large-count calls, without which their rows are skipped; those of wider elements do not.
#[test]
fn messages_larger_than_an_int() {
    let two = "p2p.latency p2p.latency_persistent --sizes 2G --iterations 1 --warmup 0";
    if mpi::is_open_mpi() {
        let done = Job::ombx("run").args(two.split_whitespace()).run().expect(4);
        assert_eq!(done.stdout.matches("need the large-count calls of MPI 4").count(), 2, "{done}");
    }
    if ombx_host::limits::FreeMemory::here().is_none_or(|free| free.bytes < 12 << 30) {
        return ombx_tests::skipped("two ranks with two buffers of 2 GiB need 12 GiB of free memory");
    }
    let of_bytes = "p2p.latency --sizes 2G";
    let of_doubles = "rma.put_latency collective.bcast --type double --sizes 2G";
    let all = [of_doubles, of_bytes];
    for options in &all[..if mpi::is_open_mpi() { 1 } else { 2 }] {
        let run = verified(&format!("{options} --iterations 1 --warmup 0 --launches 1 --timeout 240s"));
        assert!(run.rows.iter().all(|row| row.bytes == Some(1 << 31)), "{options}");
    }
}
