//! Tests of collective benchmarks: every operation in every mode is verified on every rank, or unavailable for a known reason.

use std::collections::BTreeSet;

use ombx_collective::operations::{OPERATIONS, Operation};
use ombx_record::{
    file::RunWithRows,
    result::{Check, Figure, Outcome},
};
use ombx_tests::{Done, Job, defects::may_be_wrong, kept::Kept, mpi, print_note};

/// Completion mode of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Blocking,
    Nonblocking,
    Persistent,
}

pub(crate) const MODES: [Mode; 3] = [Mode::Blocking, Mode::Nonblocking, Mode::Persistent];

impl Mode {
    /// Returns the name of an operation's benchmark.
    pub(crate) fn bench(self, operation: &str) -> String {
        match self {
            Mode::Blocking => format!("collective.{operation}"),
            Mode::Nonblocking => format!("collective.i{operation}"),
            Mode::Persistent => format!("collective.{operation}_persistent"),
        }
    }

    /// Returns the names of all operations' benchmarks.
    pub(crate) fn benches(self) -> Vec<String> {
        OPERATIONS.iter().map(|operation| self.bench(operation.name)).collect()
    }
}

/// Checks that every row is verified on every rank, or fails because of a known defect of this MPI.
fn verified(done: &Done, run: &RunWithRows, ranks: u32) {
    let mut known = BTreeSet::new();
    for row in &run.rows {
        match &row.outcome {
            Outcome::Ok => assert_eq!(row.check, Check::Passed, "{}\n{done}", row.key),
            Outcome::Failed(why) if may_be_wrong(row) => {
                assert!(why.contains("arrived wrong"), "{}: {why}", row.key);
                known.insert(format!("{}: FAILED", row.bench));
            }
            Outcome::Skipped(why) if may_be_wrong(row) && ranks > 1 => {
                assert!(
                    why.contains("ends the job") && why.contains("a persistent MPI_"),
                    "{}: {why}",
                    row.key
                );
                known.insert(format!("{}: {why}", row.bench));
            }
            Outcome::Skipped(why)
                if !mpi::is_open_mpi() && why.contains("returns from MPI_Neighbor_alltoallw") =>
            {
                known.insert(format!("{}: {why}", row.bench));
            }
            outcome => panic!("{}: {outcome:?}\n{done}", row.key),
        }
        if row.outcome == Outcome::Ok {
            assert_eq!((row.ranks, row.samples.len()), (ranks, ranks as usize), "{}: all are timed", row.key);
            // A broadcast on one rank may take less than a step of the clock.
            let least = row.summary.as_ref().unwrap().min;
            assert!(least > 0.0 || ranks == 1, "{}: {least}", row.key);
        }
    }
    for what in known {
        print_note(&format!("{} ({}), {ranks} ranks: {what}", mpi::name(), ombx_mpi::library_version()));
    }
}

pub(crate) fn run(benches: &[String], options: &str, ranks: u32) -> (Done, RunWithRows) {
    let kept = Kept::new();
    let job = kept.job(&benches.join(" ")).args(options.split_whitespace()).args(["-n", &ranks.to_string()]);
    let done = job.run();
    assert!([Some(0), Some(4), Some(5)].contains(&done.code), "{done}");
    let run = kept.run();
    verified(&done, &run, ranks);
    (done, run)
}

/// Checks that each benchmark has a row for each size and topology. A barrier has one row.
fn every_mode(ranks: u32, modes: &[Mode], sizes: &str, counts: &str) {
    for mode in modes {
        let options = format!("--sizes {sizes} {counts} --topology all");
        let (done, run) = run(&mode.benches(), &options, ranks);
        let bytes: Vec<u64> = sizes.split(',').map(|size| size.parse().unwrap()).collect();
        for bench in mode.benches() {
            let rows: Vec<u64> =
                run.rows.iter().filter(|row| row.bench == bench).map(|row| row.bytes.unwrap()).collect();
            let expected = match &bench {
                bench if bench.contains("barrier") => vec![0],
                bench if bench.contains("neighbor") => [&bytes[..]; 3].concat(),
                _ => bytes.clone(),
            };
            assert_eq!(rows, expected, "{bench}\n{done}");
        }
        print_note(&format!("{}: {mode:?} on {ranks} ranks: {} rows", mpi::name(), run.rows.len()));
    }
}

const COUNTS: &str = "--iterations 3 --warmup 1";

/// Every reduction that MPI defines, on each kind of data flow and in each mode.
#[test]
fn reductions_of_every_type_and_operation_are_verified() {
    let benches = ["allreduce", "ireduce", "scan_persistent", "reduce_scatter", "exscan"]
        .map(|name| format!("collective.{name}"));
    let options = "--type all --op all --sizes 4112 --iterations 2 --warmup 1";
    let (done, run) = run(&benches, options, if mpi::is_open_mpi() { 3 } else { 2 });
    // Sum and prod of 13 types, user of these and of bytes, min and max of 11, three logical operations of 9 types of integers, and three bitwise
    // ones of these and of bytes.
    assert_eq!(run.rows.len(), benches.len() * (2 * 13 + 14 + 2 * 11 + 3 * 9 + 3 * 10), "{done}");
}

#[test]
fn repeated_reductions_in_place_are_verified() {
    let benches = ["reduce", "allreduce"].map(|name| format!("collective.{name}"));
    let options = "--type uint32,float --op sum,prod,max --sizes 64 --in-place --iterations 6 --warmup 1";
    run(&benches, options, 2);
}

/// Every operation with messages visits every copy more than once, with separate buffers and in place.
#[test]
fn cold_buffers_are_verified() {
    let moves = |name: &&Operation| name.flow.has_messages();
    let benches =
        |mode: Mode| OPERATIONS.iter().filter(moves).map(move |operation| mode.bench(operation.name));
    let options = "--cache cold --cache-size 8K --sizes 8,4K --iterations 90 --warmup 3";
    let all: Vec<String> = benches(Mode::Blocking).chain(benches(Mode::Nonblocking)).collect();
    let (done, found) = run(&all, options, 2);
    assert_eq!(found.rows.len(), all.len() * 2, "{done}");
    assert!(found.rows.iter().all(|row| row.figures.contains_key("cold_bytes")), "{done}");
    let in_place: Vec<String> = ["allgather", "alltoall", "reduce", "gather", "scatter", "iallreduce"]
        .map(|name| format!("collective.{name}"))
        .into();
    let (done, found) = run(&in_place, &format!("{options} --in-place --type uint32"), 2);
    assert_eq!(found.rows.len(), in_place.len() * 2, "{done}");
}

#[test]
fn cold_roots_do_not_rotate() {
    let kept = Kept::new();
    let words = "collective.bcast --cache cold --cache-size 8K --root rotate --sizes 8 --iterations 3 -n 2 \
                 --allow-skips";
    let done = kept.job(words).run().expect(0);
    assert!(done.stdout.contains("not supported by roots that rotate: give --root a rank"), "{done}");
}

#[test]
fn sizes_of_reductions_are_whole_elements() {
    let kept = Kept::new();
    let few = "--iterations 1 --warmup 0 -n 2";
    kept.job("collective.allreduce --type double-complex").args(few.split_whitespace()).run().expect(0);
    let sizes: Vec<u64> = kept.run().rows.iter().filter_map(|row| row.bytes).collect();
    assert_eq!((sizes[0], sizes.last()), (16, Some(&(1 << 20))));
    let kept = Kept::new();
    kept.job("collective.allreduce --sizes 6,8").args(few.split_whitespace()).run().expect(4);
    let rows = kept.run().rows;
    let Outcome::Skipped(why) = &rows[0].outcome else { panic!("{:?}", rows[0].outcome) };
    assert!(why.contains("6 bytes is not a whole number of float elements of 4 bytes"), "{why}");
    assert_eq!(rows[1].axes.get("type").map(String::as_str), Some("float"));
    assert_eq!((rows[1].axes.get("op").map(String::as_str), &rows[1].check), (Some("sum"), &Check::Passed));
}

#[test]
fn every_operation_in_every_mode_on_one_rank() {
    every_mode(1, &MODES, "0,8,1000", COUNTS);
}

#[test]
fn every_operation_in_every_mode_on_two_ranks() {
    every_mode(2, &MODES, "0,1,6,8,1000,65536", &format!("{COUNTS} --type char"));
}

/// MPICH gets few rows and 3 ranks, because its ranks spin while they wait for ranks that have no core.
#[test]
fn every_operation_in_every_mode_on_more_ranks_than_cores() {
    if mpi::is_open_mpi() {
        every_mode(3, &MODES, "8,1000", COUNTS);
        every_mode(4, &MODES, "8,1000", COUNTS);
    } else {
        every_mode(3, &MODES, "1000", "--iterations 1 --warmup 1");
    }
}

#[test]
fn eight_ranks() {
    let some = ["allreduce", "alltoall", "bcast", "neighbor_alltoallw", "reduce_scatter", "scan", "scatterv"];
    if mpi::is_open_mpi() {
        every_mode(8, &MODES, "1000", "--iterations 1 --warmup 1");
    } else {
        let benches: Vec<String> = some.iter().map(|operation| Mode::Blocking.bench(operation)).collect();
        let (done, run) = run(&benches, "--sizes 1000 --iterations 1 --warmup 1", 8);
        assert_eq!(run.rows.len(), some.len(), "{done}");
    }
}

#[test]
fn in_place_and_every_root() {
    let of_operations = |has: fn(&Operation) -> bool| -> Vec<String> {
        let chosen = OPERATIONS.iter().filter(|operation| has(operation));
        chosen.flat_map(|operation| MODES.map(|mode| mode.bench(operation.name))).collect()
    };
    let in_place = of_operations(|operation| operation.flow.in_place().is_some());
    let rooted = of_operations(|operation| operation.flow.is_rooted());
    // The table says what the standard says of these.
    assert!(
        ["allreduce", "gatherv", "scan"].iter().all(|name| in_place.contains(&Mode::Blocking.bench(name)))
    );
    assert!(
        ["bcast", "gather", "reduce", "scatterv"]
            .iter()
            .all(|name| rooted.contains(&Mode::Blocking.bench(name)))
    );
    let counts = "--sizes 8,1000 --iterations 5 --warmup 2";
    for ranks in if mpi::is_open_mpi() { vec![2, 3] } else { vec![2] } {
        let (_, run) = self::run(&in_place, &format!("--in-place {counts}"), ranks);
        assert!(run.rows.iter().all(|row| row.axes["in-place"] == "on"));
        for root in ["1", "rotate"] {
            let (_, run) = self::run(&rooted, &format!("--root {root} {counts}"), ranks);
            assert_eq!(run.rows.len(), 2 * rooted.len());
            assert!(
                run.rows
                    .iter()
                    .all(|row| row.axes["root"] == root && row.key.contains(&format!("root={root}")))
            );
        }
    }
    let some = ["gather", "reduce", "scatter"].map(|operation| Mode::Blocking.bench(operation));
    let (_, run) = self::run(&some, &format!("--in-place=all --root rotate {counts}"), 2);
    assert_eq!(run.rows.len(), 12);
}

#[test]
fn overlap_rows_have_the_times_that_it_is_computed_from() {
    let benches = [Mode::Nonblocking.bench("allreduce"), Mode::Nonblocking.bench("alltoall")];
    let (_, run) = run(&benches, "--sizes 8,65536 --tests 0,10 --max-time 50ms", 2);
    assert_eq!(run.rows.len(), 8);
    for row in &run.rows {
        for name in ["compute_us", "pure_us"] {
            let Figure::Value(us) = row.figures[name] else { panic!("{}: {name}", row.key) };
            assert!(us > 0.0, "{}: {name} {us}", row.key);
        }
        match &row.figures["overlap_percent"] {
            Figure::Value(percent) => {
                let [low, high] =
                    ["overlap_low_percent", "overlap_high_percent"].map(|name| &row.figures[name]);
                let (Figure::Value(low), Figure::Value(high)) = (low, high) else { panic!("{}", row.key) };
                assert!(
                    0.0 <= *low && low <= percent && percent <= high,
                    "{}: {low} {percent} {high}",
                    row.key
                );
            }
            Figure::Unresolved(why) => assert!(!why.is_empty(), "{}", row.key),
        }
    }
}

#[test]
fn the_memory_limit_applies_to_the_buffers_of_a_rank() {
    let kept = Kept::new();
    let done = kept
        .job("collective.gather collective.alltoall collective.allreduce --sizes 1000 --memory-limit 2500 -n 2")
        .args(COUNTS.split_whitespace())
        .run()
        .expect(4);
    let outcomes: Vec<Outcome> = kept.run().rows.into_iter().map(|row| row.outcome).collect();
    // A root of gather has 3 blocks, a rank of alltoall has 4, a rank of allreduce has 2.
    let skipped = |bytes: u32| {
        Outcome::Skipped(format!("needs {bytes} bytes of buffers on rank 0, the memory limit is 2500"))
    };
    assert_eq!(outcomes, [skipped(3000), skipped(4000), Outcome::Ok], "{done}");
}

#[test]
fn a_root_that_does_not_exist_is_an_error() {
    Job::ombx("run collective.bcast --root 2 -n 2").run().expect(2).complains(&["--root 2", "-n 2"]);
    Job::ombx("run collective.allreduce --root 0").run().expect(2).complains(&["has no option --root"]);
    Job::ombx("run collective.bcast --root last").run().expect(2).complains(&["last"]);
    // Under a launcher, the number of ranks is known only after MPI has started.
    let done = Job::mpiexec(2, "run collective.bcast --sizes 8 --root 2").run().expect(4);
    assert!(done.stdout.contains("root 2 is none of the 2 ranks"), "{done}");
    // Without -n, ombx starts as many ranks as the root needs.
    let kept = Kept::new();
    kept.job("collective.bcast --sizes 8 --root 2").args(COUNTS.split_whitespace()).run().expect(0);
    assert_eq!(kept.run().rows[0].ranks, 3);
}

#[test]
fn every_operation_is_registered_in_every_mode() {
    let listed = Job::ombx("list --format json collective.*").run().expect(0).stdout;
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    let registered = listed.iter().map(|entry| entry["name"].as_str().unwrap());
    // `threads.rs` tests the others.
    let registered: BTreeSet<&str> = registered.filter(|name| !name.ends_with("_mt")).collect();
    let names: Vec<String> = MODES.iter().flat_map(|mode| mode.benches()).collect();
    let in_table = OPERATIONS.iter().flat_map(|operation| operation.benchmarks().map(|entry| entry.name));
    assert_eq!(in_table.collect::<BTreeSet<_>>(), names.iter().map(String::as_str).collect());
    // `accumulates.rs`, `broadcast.rs` and `launches.rs` test these.
    let others = ["bcast_round", "bcast_window", "bcast_ack", "bcast_acked", "init", "reduce_local"];
    let others = others.map(|name| format!("collective.{name}"));
    assert_eq!(registered, names.iter().chain(&others).map(String::as_str).collect());
}
