//! Tests of two-sided benchmarks, and of the options that every benchmark has.

use ombx_record::result::{Figure, Measurement, Outcome};
use ombx_tests::kept::{Kept, measured, verified};

fn iterations(row: &Measurement) -> u64 {
    row.samples[0].batch * row.samples[0].elapsed_ns.len() as u64
}

#[test]
fn latency_is_half_a_ping_pong() {
    let run = measured("p2p.latency --sizes 0,1,8,4K,1M --max-time 50ms");
    assert_eq!(run.rows.len(), 5);
    for row in &run.rows {
        let work = row.work.unwrap();
        assert_eq!((work.legs, work.ops, work.bytes), (2, 2, 2 * row.bytes.unwrap()), "{}", row.key);
    }
}

#[test]
fn bandwidth_is_a_window_of_messages() {
    let run = measured("p2p.bw --sizes 1,8,4K,1M --window 16 --max-time 50ms");
    assert_eq!(run.rows.len(), 4);
    for row in &run.rows {
        let work = row.work.unwrap();
        assert_eq!((work.legs, work.ops, work.bytes), (1, 16, 16 * row.bytes.unwrap()), "{}", row.key);
    }
}

/// Each mode has rows of its own, with the work of the standard mode.
#[test]
fn sends_have_modes() {
    let run = measured(
        "p2p.latency p2p.bw p2p.mbw_mr p2p.multi_latency p2p.bibw --send all --receive-from all --sizes \
         0,8,64K --window 4 -n 2 --iterations 20 --warmup 2",
    );
    // No ready sends in both directions.
    assert_eq!(run.rows.len(), (4 * 4 + 3) * 2 * 3);
    let of = |mode: &str| {
        run.rows.iter().filter(|row| row.axes.get("send").map_or("standard", String::as_str) == mode).count()
    };
    assert_eq!(["standard", "synchronous", "buffered", "ready"].map(of), [30, 30, 30, 24]);
    for row in &run.rows {
        let (messages, directions) = match row.bench.as_str() {
            "p2p.bw" | "p2p.mbw_mr" => (4, 1),
            "p2p.bibw" => (4, 2),
            _ => (1, 2),
        };
        assert_eq!(row.work.unwrap().ops, messages * directions, "{}", row.key);
    }
}

/// Messages of derived datatypes carry the bytes of the row, and their rows name the blocks. Verification covers payload and gaps.
#[test]
fn messages_have_derived_datatypes() {
    let benches = "p2p.latency p2p.bw p2p.bibw p2p.mbw_mr p2p.multi_latency p2p.latency_persistent p2p.bw_persistent \
                   p2p.bibw_persistent p2p.pingping p2p.sendrecv p2p.exchange p2p.halo";
    let run = verified(&format!(
        "{benches} --datatype all --block-length 16 --stride 40 --sizes 0,16,4K,256K --window 4 -n 2 \
         --iterations 20 --warmup 2"
    ));
    assert_eq!(run.rows.len(), 12 * 4 * 4);
    let of = |row: &Measurement| row.axes.get("datatype").cloned().unwrap_or_default();
    for row in &run.rows {
        let blocks = row.axes.get("blocks").map(String::as_str);
        assert_eq!(blocks, (!of(row).is_empty()).then_some("16/40"), "{}", row.key);
        let same = |other: &&Measurement| {
            (&other.bench, other.bytes) == (&row.bench, row.bytes) && of(other).is_empty()
        };
        assert_eq!(row.work, run.rows.iter().find(same).unwrap().work, "{}", row.key);
        assert!(row.summary.is_some(), "{}", row.key);
    }
}

/// Derived datatypes exist with every kind of send, receive and buffer. Default sizes are whole numbers of blocks.
#[test]
fn derived_datatypes_have_modes_sources_and_copies() {
    let quick = "--datatype vector,indexed,struct --iterations 10 --warmup 1";
    for (options, rows) in [
        ("p2p.latency p2p.bw --send all --receive-from any --sizes 512 --window 4", 2 * 4 * 3),
        ("p2p.latency p2p.bw --cache cold --cache-size 256K --sizes 512,64K --window 4", 2 * 2 * 3),
        ("p2p.bw --buffers single --sizes 64K --window 4", 3),
        ("p2p.latency --block-length 1M", 4 * 3),
    ] {
        let run = measured(&format!("{options} {quick}"));
        assert_eq!(run.rows.len(), rows, "{options}");
        assert!(run.rows.iter().all(|row| row.axes.contains_key("blocks")), "{options}");
    }
}

/// A size that is not a whole number of blocks has a row that says so.
#[test]
fn sizes_are_whole_numbers_of_blocks() {
    let kept = Kept::new();
    kept.job("p2p.latency --datatype vector --sizes 100,128 --iterations 10 --warmup 1").run().expect(4);
    let rows = kept.run().rows;
    assert_eq!(rows.len(), 2);
    let why = "100 bytes is not a whole number of blocks of 64 bytes: choose a multiple of 64";
    let says = |row: &&Measurement| matches!(&row.outcome, Outcome::Skipped(found) if found.contains(why));
    assert_eq!(rows.iter().filter(says).count(), 1, "{rows:?}");
}

/// The copies of a buffer are larger than twice the cache, messages beyond that have one, and warm rows of the same run have no copies.
#[test]
fn cold_buffers_exceed_the_cache() {
    let run = measured(
        "p2p.latency p2p.bw p2p.multi_latency p2p.pingping --cache all --cache-size 256K --sizes 0,8,4K,1M \
         --window 4 -n 2 --iterations 50 --warmup 2",
    );
    assert_eq!(run.rows.len(), 4 * 2 * 4);
    let is_cold = |row: &&Measurement| row.axes.get("cache").is_some_and(|cache| cache == "cold");
    let (cold, warm): (Vec<&Measurement>, Vec<&Measurement>) = run.rows.iter().partition(is_cold);
    assert_eq!((cold.len(), warm.len()), (16, 16));
    for row in cold {
        let Some(Figure::Value(bytes)) = row.figures.get("cold_bytes") else { panic!("{}", row.key) };
        assert!(*bytes >= f64::from(512 << 10), "{}: {bytes}", row.key);
        let messages = row.bytes.unwrap().max(1) * u64::from(row.depth.unwrap_or(1));
        assert!(
            *bytes <= (1.1 * f64::from(512 << 10)).max(2.0 * messages as f64) + 3e4,
            "{}: {bytes}",
            row.key
        );
        assert!(row.summary.is_some(), "{}", row.key);
    }
    assert!(warm.iter().all(|row| !row.figures.contains_key("cold_bytes")));
    assert_eq!(run.run.plan["cache_size"], (256 << 10).to_string());
}

/// The receive of a ready send is posted before its iteration begins.
#[test]
fn cold_buffers_are_not_for_ready_sends() {
    let kept = Kept::new();
    let job = kept.job(
        "p2p.latency --send all --cache cold --cache-size 64K --sizes 8 -n 2 --iterations 9 --warmup 1 --allow-skips",
    );
    let done = job.run().expect(0);
    assert!(done.stdout.contains("choose --send standard, synchronous or buffered"), "{done}");
    assert_eq!(kept.run().rows.iter().filter(|row| row.summary.is_some()).count(), 3, "{done}");
}

#[test]
fn cold_buffers_that_do_not_fit_are_skipped() {
    let kept = Kept::new();
    let words = "p2p.latency --cache cold --cache-size 64K --memory-limit 200K --sizes 8 -n 2 --iterations \
                 9 --allow-skips";
    let done = kept.job(words).run().expect(0);
    assert!(done.stdout.contains("the memory limit is 204800"), "{done}");
}

/// The attached buffer holds 8 windows, and its length is an int.
#[test]
fn buffered_windows_that_cannot_be_attached_are_skipped() {
    let kept = Kept::new();
    let job = kept
        .job("p2p.bw --send buffered --sizes 16M,8 --window 64 -n 2 --iterations 2 --warmup 1 --allow-skips");
    let done = job.run().expect(0);
    assert!(done.stdout.contains("choose a smaller --window or --sizes"), "{done}");
    let run = kept.run();
    assert_eq!(run.rows.iter().filter(|row| row.summary.is_some()).count(), 1, "{done}");
}

#[test]
fn each_window_has_its_rows() {
    let run =
        measured("p2p.bw p2p.latency rma.put_bw --sizes 8,4K --window 1..4,3 --iterations 20 --warmup 2");
    let depths = |bench: &str| -> Vec<Option<u32>> {
        run.rows
            .iter()
            .filter(|row| row.bench == bench && row.bytes == Some(8))
            .map(|row| row.depth)
            .collect()
    };
    for bench in ["p2p.bw", "rma.put_bw"] {
        assert_eq!(depths(bench), [1, 2, 4, 3].map(Some), "{bench}");
    }
    assert_eq!(depths("p2p.latency"), [None]);
    assert_eq!(run.run.plan["window"], "1,2,4,3");
    for row in &run.rows {
        let ops = u64::from(row.depth.unwrap_or(2));
        assert_eq!(row.work.unwrap().ops, ops, "{}", row.key);
    }
}

#[test]
fn fixed_counts_are_kept() {
    for (options, batch) in [("", None), ("--batch 10", Some(10)), ("--batch 1 --warmup 0", Some(1))] {
        let run = measured(&format!("p2p.latency rma.put_bw --sizes 8,4K --iterations 500 {options}"));
        for row in &run.rows {
            assert_eq!(iterations(row), 500, "{options}: {}", row.key);
            assert!(batch.is_none_or(|b| row.samples[0].batch == b), "{options}: {}", row.key);
        }
    }
    let run = measured("p2p.latency --sizes 8 --iterations 1");
    assert_eq!(iterations(&run.rows[0]), 1);
}

#[test]
fn a_message_that_does_not_fit_into_memory_is_skipped() {
    let kept = Kept::new();
    let done = kept.job("p2p.latency rma.put_latency --sizes 8,1T --iterations 10").run().expect(4);
    let run = kept.run();
    let tally = run.end.unwrap().1;
    assert_eq!((tally.cases, tally.skipped), (4, 2), "{done}");
    assert!(done.stdout.contains("MiB free") || done.stdout.contains("allocated"), "{done}");
    kept.job("p2p.latency --sizes 8,1T --iterations 10 --allow-skips --force").run().expect(0);
}
