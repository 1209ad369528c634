//! Tests of buffers in the memory of accelerators, over a stand-in driver. `tests/gpu` runs on a device.

use ombx_core::{
    benchmark::payload::Check,
    result::{Measurement, Outcome},
};
use ombx_tests::{Done, Job, kept::Kept, mpi, stand_in};

const DIRECTORY: &str = env!("CARGO_TARGET_TMPDIR");
const COUNTS: &str = "--iterations 3 --warmup 1 -n 2";

fn job(kept: &Kept, words: &str, wrong: &str) -> Job {
    let words = format!("run {words} {COUNTS} -o {}", kept.out().display());
    stand_in::job(DIRECTORY, &words, wrong)
}

/// Runs benchmarks whose rows are all verified, and returns the rows.
fn verified(words: &str, wrong: &str) -> Vec<Measurement> {
    let kept = Kept::new();
    let done = job(&kept, words, wrong).run().expect(0);
    let rows = kept.run().rows;
    for row in &rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
        assert!(row.key.contains("memory="), "{}", row.key);
    }
    rows
}

/// Runs a benchmark that has one row, and returns it.
fn one_row(words: &str, wrong: &str, code: i32) -> (Measurement, Done) {
    let kept = Kept::new();
    let done = job(&kept, words, wrong).run().expect(code);
    let mut rows = kept.run().rows;
    assert_eq!(rows.len(), 1, "{done}");
    (rows.remove(0), done)
}

#[test]
fn two_sided_benchmarks_use_the_memory_of_devices() {
    let memories = "cuda,cuda-managed,cuda:host,host:cuda,rocm,rocm-managed:rocm";
    let words = format!(
        "p2p.latency p2p.bw p2p.bibw p2p.mbw_mr p2p.link --window 4 --memory {memories} --sizes 8,64K"
    );
    assert_eq!(verified(&words, "").len(), 5 * 6 * 2);
    let more = "p2p.latency_persistent p2p.bw_persistent p2p.halo p2p.sendrecv p2p.exchange p2p.unirandom p2p.fan_in";
    verified(&format!("{more} --window 4 --memory cuda --sizes 8,64K"), "");
    verified("p2p.latency p2p.bw --window 4 --memory cuda --datatype vector,struct --sizes 4K", "");
}

#[test]
fn collective_operations_use_the_memory_of_devices() {
    let operations = "allgather allgatherv allreduce alltoall bcast gather reduce reduce_scatter scan scatter iallgather ibcast";
    let names: Vec<String> = operations.split(' ').map(|name| format!("collective.{name}")).collect();
    verified(&format!("{} --memory cuda,rocm-managed --sizes 8,4K", names.join(" ")), "");
    verified("collective.allreduce --memory cuda --in-place --sizes 4K", "");
}

#[test]
fn one_sided_benchmarks_use_the_memory_of_devices() {
    verified(
        "rma.put_latency rma.get_latency --memory cuda,cuda:host,host:cuda --win create,dynamic --sync flush,fence --sizes 8,4K",
        "",
    );
    verified(
        "rma.put_bw rma.get_bw rma.put_bibw --window 4 --memory cuda --win create --sync fence --sizes 8,4K",
        "",
    );
    if !mpi::is_open_mpi() {
        verified(
            "rma.acc_latency rma.get_acc_latency --memory cuda --win create --sync flush --sizes 8,4K",
            "",
        );
    }
    let (row, done) = one_row("rma.put_latency --memory cuda --sizes 8", "", 4);
    assert!(matches!(&row.outcome, Outcome::Skipped(why) if why.contains("--win create")), "{done}");
}

#[test]
fn messages_are_copied_through_the_host_if_mpi_takes_no_device_memory() {
    let words = "p2p.latency p2p.bw p2p.bibw collective.allreduce collective.gather collective.bcast";
    let rows = verified(&format!("{words} --window 4 --memory cuda --staged --sizes 8,64K"), "unable");
    assert!(rows.iter().all(|row| row.key.contains("staged=on")));
    verified("collective.allreduce --memory rocm --staged --in-place --sizes 4K", "unable");
    let (row, done) = one_row("p2p.latency --memory cuda --sizes 8", "unable", 4);
    assert!(
        matches!(&row.outcome, Outcome::Skipped(why) if why.contains("takes no memory of CUDA devices")),
        "{done}"
    );
}

#[test]
fn wrong_data_of_a_device_is_found() {
    let cases = [
        ("p2p.latency", "wrong"),
        ("p2p.bw", "spoilt"),
        ("p2p.latency --staged", "wrong"),
        ("collective.bcast", "wrong"),
        ("collective.allreduce", "spoilt"),
        ("rma.put_latency --win create", "wrong"),
    ];
    for (words, wrong) in cases {
        let (row, done) = one_row(&format!("{words} --memory cuda --sizes 1K"), wrong, 5);
        assert!(matches!(row.check, Check::Failed(_)), "{words}: {done}");
    }
}

#[test]
fn a_device_that_fails_ends_the_job_in_words() {
    let failures = [
        ("p2p.latency --memory cuda", "copy", 6, "copying to the device: error 700"),
        ("p2p.latency --memory cuda", "lost", 6, "the device is lost"),
        ("p2p.latency --memory cuda --staged", "lost", 6, "error 719"),
        ("p2p.latency --memory cuda --device 2", "", 2, "this host has devices 0 to 1"),
        ("p2p.latency --memory rocm", "no_device", 2, "finds no device"),
        ("p2p.latency --device 1", "", 2, "add --memory cuda"),
        ("p2p.latency --staged", "", 2, "add --memory cuda"),
        ("p2p.halo --memory cuda:host", "", 2, "choose one memory"),
    ];
    for (words, wrong, code, expected) in failures {
        let done = job(&Kept::new(), &format!("{words} --sizes 64"), wrong).run().expect(code);
        assert!(done.stderr.contains(expected), "{words}: {done}");
    }
    let (row, done) = one_row("p2p.latency --memory cuda --sizes 4M", "full", 4);
    assert!(matches!(&row.outcome, Outcome::Skipped(why) if why.contains("of 1 MiB free")), "{done}");
}

/// The stand-in is worth something only if it notices accesses outside of MPI and of its copies.
#[test]
fn memory_of_the_stand_in_cannot_be_touched() {
    let done = job(&Kept::new(), "p2p.latency --memory cuda --sizes 64", "touch").run();
    assert_ne!(done.code, Some(0), "{done}");
}

#[test]
fn provenance_names_the_device_of_each_rank() {
    let kept = Kept::new();
    job(&kept, "p2p.latency --memory cuda --sizes 8", "").run().expect(0);
    let text = std::fs::read_to_string(kept.out()).unwrap();
    for expected in ["Stand-in 0", "0: ffff:ff:ff.0", "1: ffff:ff:ff.1", "yes (MPIX_"] {
        assert!(text.contains(expected), "{expected}");
    }
}

#[test]
fn a_machine_without_a_driver_says_so() {
    let done = Job::ombx("run p2p.latency --memory rocm --sizes 8 --quick").run().expect(2);
    assert!(done.stderr.contains("needs ROCm, but libamdhip64.so cannot be loaded"), "{done}");
    assert_eq!(done.stdout, "", "{done}");
}

#[test]
fn osu_programs_take_the_options_of_omb() {
    let programs = [
        (
            "osu_latency -d cuda -m 8:8 -i 20 -x 2 D H",
            "# OSU MPI-CUDA Latency Test v7.4",
            "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)",
        ),
        (
            "osu_bw -d rocm -m 8:8 -i 20 -x 2 MD MD",
            "# OSU MPI-ROCM Bandwidth Test v7.4",
            "# Send Buffer on MANAGED (MD) and Receive Buffer on MANAGED (MD)",
        ),
        (
            "osu_put_latency -d cuda -m 8:8 -i 20 -x 2 D D",
            "# Window creation: MPI_Win_create",
            "# Rank 0 Memory on DEVICE (D) and Rank 1 Memory on DEVICE (D)",
        ),
        (
            "osu_bcast -d managed -m 8:8 -i 20 -x 2",
            "# OSU MPI-MANAGED Broadcast Latency Test v7.4",
            "# Datatype: MPI_CHAR.",
        ),
    ];
    for (words, title, memory) in programs {
        let done = stand_in::job(DIRECTORY, &format!("osu {words} -n 2"), "").run().expect(0);
        assert!(done.stdout.contains(title) && done.stdout.contains(memory), "{done}");
    }
    let refused = [
        ("osu_latency -d openacc D D", "supports cuda, rocm and managed"),
        ("osu_latency_mt -d cuda D D", "host memory only"),
        ("osu_latency -d managed D D", "MD for each rank"),
        ("osu_latency -d cuda MH D", "give MD"),
    ];
    for (words, expected) in refused {
        let done = Job::ombx(&format!("osu {words}")).run().expect(2);
        assert!(done.stderr.contains(expected), "{done}");
    }
}

#[test]
fn links_between_devices_are_measured() {
    let done = stand_in::job(DIRECTORY, "links --memory cuda --sizes 8,64K -n 2 --fail-on nothing", "")
        .run()
        .expect(0);
    assert!(done.stdout.contains("semidirectional, memory cuda: "), "{done}");
    let done = Job::ombx("links --fabric tcp --memory cuda").run().expect(2);
    assert!(done.stderr.contains("needs --fabric mpi"), "{done}");
}
