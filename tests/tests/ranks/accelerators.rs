//! Tests of buffers in the memory of accelerators, over a stand-in driver. `tests/gpu` runs on a device.

use ombx_record::result::{Check, Measurement, Outcome};
use ombx_tests::{Done, Job, defects::may_be_wrong, kept::Kept, mpi, results, stand_in};

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

/// Runs benchmarks of which the library may refuse some in words. Nothing else keeps a row from being verified. Returns how many were.
fn measured(words: &str) -> usize {
    let kept = Kept::new();
    let done = job(&kept, &format!("{words} --allow-skips"), "").run();
    // MPICH 4.0 delivers nothing in some, wherever the buffers are.
    let is_defect = |row: &&Measurement| may_be_wrong(row) && !matches!(row.outcome, Outcome::Skipped(_));
    let all: Vec<_> = results::runs_of(&kept.out()).into_iter().flat_map(|run| run.rows).collect();
    let (defects, rows): (Vec<_>, Vec<_>) = all.iter().partition(is_defect);
    let failed = defects.iter().any(|row| row.outcome != Outcome::Ok);
    let done = done.expect(if failed { 5 } else { 0 });
    let (measured, refused): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.outcome == Outcome::Ok);
    let (on_devices, others): (Vec<_>, Vec<_>) =
        measured.into_iter().partition(|row| row.key.contains("memory="));
    for row in &on_devices {
        assert_eq!(row.check, Check::Passed, "{}\n{done}", row.key);
    }
    for row in others {
        let has_none_on_devices = ["barrier", "collective.init", "collective.bcast_", "rma.window"]
            .iter()
            .any(|part| row.key.contains(part));
        assert!(has_none_on_devices, "{}", row.key);
    }
    for row in refused {
        let expected = [
            "takes no memory of devices in",
            "persistent collectives of MPI 4",
            "ends the job when a persistent",
            "crashes in MPI_Compare_and_swap",
            "accesses in both directions",
            "one element of",
        ];
        let is_expected = |why: &str| expected.iter().any(|part| why.contains(part));
        assert!(
            matches!(&row.outcome, Outcome::Skipped(why) if is_expected(why)),
            "{}: {:?}",
            row.key,
            row.outcome
        );
    }
    on_devices.len()
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
    verified(
        "p2p.latency p2p.bw --window 4 --memory cuda-pinned,cuda:cuda-managed-host,rocm-pinned:rocm --sizes 4K",
        "",
    );
    verified(
        "p2p.sendrecv_replace p2p.birandom p2p.corandom p2p.pingping p2p.multi_latency p2p.bibw_persistent \
         p2p.fan_out --window 4 --memory cuda --sizes 8,4K",
        "",
    );
    verified("p2p.request --rate 1000 --memory cuda,cuda:host", "");
    if !mpi::is_open_mpi() {
        verified(
            "p2p.latency_partitioned p2p.bw_partitioned --window 4 --memory cuda,host:cuda --sizes 8,4K",
            "",
        );
    }
}

#[test]
fn threads_use_the_memory_of_devices() {
    verified("p2p.latency_mt p2p.*_mt --threads 2 --window 4 --memory cuda --sizes 4K", "");
    assert!(measured("collective.*_mt --threads 2 --memory cuda --sizes 4K") > 4);
}

#[test]
fn collective_operations_use_the_memory_of_devices() {
    assert!(measured("collective.* --memory cuda --sizes 4K") > 30);
    let some = "collective.bcast collective.allreduce collective.igather collective.alltoallv";
    assert_eq!(measured(&format!("{some} --memory cuda,rocm-managed --sizes 8")), 8);
    verified("collective.allreduce --memory cuda --in-place --sizes 4K", "");
}

#[test]
fn one_sided_benchmarks_use_the_memory_of_devices() {
    verified(
        "rma.put_latency rma.get_latency --memory cuda,cuda:host,host:cuda --win create,dynamic --sync \
         flush,fence --sizes 8,4K",
        "",
    );
    verified(
        "rma.put_bw rma.get_bw rma.put_bibw --window 4 --memory cuda --win create --sync fence --sizes 8,4K",
        "",
    );
    assert!(measured("rma.* --memory cuda --win create --sync flush --window 4 --sizes 8,4K") > 20);
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
        ("rma.get_many_latency", "spoilt"),
        ("collective.iallgather --overlap none", "spoilt"),
        ("p2p.bw_mt --threads 2", "spoilt"),
        ("p2p.request --rate 1000", "spoilt"),
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
        ("collective.allreduce --memory cuda", "lost", 6, "the device is lost"),
        ("rma.put_latency --win create --memory cuda", "copy", 6, "error 700"),
        ("p2p.latency --memory cuda,cuda:rocm", "", 2, "both of ROCm"),
        ("io.write --directory /tmp --memory cuda", "", 2, "--memory"),
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
    let refusals = [
        ("p2p.latency --memory cuda --sizes 4M", "full", "of 1 MiB free"),
        ("collective.alltoall --memory cuda-managed --sizes 4M", "full", "of 1 MiB free"),
        ("p2p.latency --memory cuda --sizes 8", "allocation", "could not be allocated: error 700"),
        ("rma.put_latency --win create --memory cuda --sizes 8", "allocation", "could not be allocated"),
        ("p2p.latency --memory cuda-pinned --sizes 8", "pin", "could not be pinned"),
    ];
    for (words, wrong, expected) in refusals {
        let (row, done) = one_row(words, wrong, 4);
        assert!(matches!(&row.outcome, Outcome::Skipped(why) if why.contains(expected)), "{words}: {done}");
    }
}

/// UCX without its parts for devices takes their memory for that of the host.
#[test]
fn a_ucx_that_does_not_know_devices_is_found() {
    if mpi::is_open_mpi() || !ombx_mpi::library_version().contains("MPICH") {
        return;
    }
    let job = |kept: &Kept| job(kept, "p2p.latency --memory cuda --sizes 8", "");
    let cases = [
        ("UCX_TLS", "self,posix", "UCX_TLS=self,posix excludes cuda_copy"),
        ("UCX_MODULE_DIR", "/nonexistent", "cannot load the module libuct_cuda.so"),
    ];
    for (name, value, expected) in cases {
        let kept = Kept::new();
        let done = job(&kept).env(name, value).run().expect(4);
        assert!(
            matches!(&kept.run().rows[0].outcome, Outcome::Skipped(why) if why.contains(expected)),
            "{done}"
        );
    }
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
    let expected = [
        "Stand-in 0",
        "0: ffff:ff:ff.0",
        "1: ffff:ff:ff.1",
        "yes (MPIX_",
        "\"accelerator_ecc\":\"on\"",
        "\"accelerator_link\":\"generation 4 x8\"",
        "\"accelerator_widest_link\":\"generation 5 x16\"",
        "processors 1980 MHz, memory 2619 MHz",
        "\"accelerator_driver\":\"1.2.3\"",
        "\"accelerator_mig\":\"off\"",
        "2 to 0000:ab:00.0",
        "to 1 of 1 other devices: 1",
        "device yes, dma-buf yes",
        "rank 1: accelerator = Stand-in 1",
    ];
    for expected in expected {
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
            "# OSU MPI_Put-CUDA Latency Test v7.4",
            "# Rank 0 Memory on DEVICE (D) and Rank 1 Memory on DEVICE (D)",
        ),
        (
            "osu_bcast -d managed -m 8:8 -i 20 -x 2",
            "# OSU MPI Broadcast Latency Test v7.4",
            "# Datatype: MPI_CHAR.",
        ),
        (
            "osu_ibcast -d managed -m 8:8 -i 20 -x 2",
            "# OSU MPI-MANAGED Non-Blocking Broadcast Latency Test v7.4",
            "# Datatype: MPI_CHAR.",
        ),
        (
            "osu_latency -d managed -m 8:8 -i 20 -x 2 MH MD",
            "# OSU MPI-CUDA Latency Test v7.4",
            "# Send Buffer on MANAGED (MH) and Receive Buffer on MANAGED (MD)",
        ),
        (
            "osu_bibw -m 8:8 -i 20 -x 2 H D",
            "# OSU MPI-CUDA Bi-Directional Bandwidth Test v7.4",
            "# Send Buffer on HOST (H) and Receive Buffer on DEVICE (D)",
        ),
        (
            "osu_latency -d cuda -m 8:8 -i 20 -x 2",
            "# OSU MPI-CUDA Latency Test v7.4",
            "# Send Buffer on HOST (H) and Receive Buffer on HOST (H)",
        ),
        (
            "osu_get_bw -d cuda -m 8:8 -i 20 -x 2 MD H",
            "# Synchronization: MPI_Win_flush",
            "# Rank 0 Memory on MANAGED (M) and Rank 1 Memory on HOST (H)",
        ),
        ("osu_barrier -d rocm -i 20 -x 2", "# OSU MPI-ROCM Barrier Latency Test v7.4", "# Avg Latency(us)"),
    ];
    for (words, title, memory) in programs {
        let done = stand_in::job(DIRECTORY, &format!("osu {words} -n 2"), "").run().expect(0);
        assert!(done.stdout.contains(title) && done.stdout.contains(memory), "{done}");
    }
    let refused = [
        ("osu_latency -d openacc D D", "supports cuda, rocm and managed"),
        ("osu_latency_mp -d cuda D D", "host memory only"),
        ("osu_latency -d cuda DD D", "no kind of memory (H, D, MD, MH)"),
    ];
    for (words, expected) in refused {
        let done = Job::ombx(&format!("osu {words}")).run().expect(2);
        assert!(done.stderr.contains(expected), "{done}");
    }
}

#[test]
fn programs_of_imb_take_the_memory_of_devices() {
    let quick = "-iter 20 -msglog 3:4 -zero_size off -n 2";
    let programs = [
        ("IMB-MPI1-GPU PingPong Allreduce Uniband", "", "MPI-1 part (GPU)"),
        ("IMB-MPI1-GPU PingPong", "-mem_alloc_type host", "# Benchmarking PingPong"),
        ("IMB-MPI1-GPU Bcast", "-mem_alloc_type SHARED", "# Benchmarking Bcast"),
        ("IMB-RMA-GPU Unidir_put All_get_all Truly_passive_put", "", "RMA part (GPU), Technical preview"),
        ("IMB-RMA-GPU Unidir_get", "-mem_alloc_type cpu", "# Benchmarking Unidir_get"),
    ];
    for (words, memory, expected) in programs {
        let words = format!("imb {words} {memory} {quick}");
        let done = stand_in::job(DIRECTORY, &words, "").run().expect(0);
        assert!(done.stdout.contains(expected), "{done}");
    }
    let words = "imb IMB-MPI1-GPU PingPong -iter 20 -msglog 10:10 -n 2";
    let done = stand_in::job(DIRECTORY, words, "wrong").run().expect(5);
    assert!(done.stdout.contains("PingPong"), "{done}");
    let refused = [
        ("IMB-MPI1 -mem_alloc_type device", "an option of IMB-MPI1-GPU"),
        ("IMB-RMA-GPU Fetch_and_op", "not a benchmark of IMB-RMA-GPU"),
        ("IMB-MPI1-GPU PingPong", "cannot be loaded"),
    ];
    for (words, expected) in refused {
        let done = Job::ombx(&format!("imb {words}")).run().expect(2);
        assert!(done.stderr.contains(expected), "{done}");
    }
}

#[test]
fn links_between_devices_are_measured() {
    let done = stand_in::job(DIRECTORY, "links --memory cuda --sizes 8,64K -n 2 --fail-on nothing", "")
        .run()
        .expect(0);
    assert!(done.stdout.contains("semidirectional, memory cuda: "), "{done}");
    let kept = Kept::new();
    let words = format!(
        "congestion p2p.latency --under collective.alltoall:4K --memory cuda --sizes 8 -n 4 --iterations 3 \
         --warmup 1 -o {}",
        kept.out().display()
    );
    let done = stand_in::job(DIRECTORY, &words, "").run();
    let rows: Vec<_> = results::runs_of(&kept.out()).into_iter().flat_map(|run| run.rows).collect();
    assert!(rows.iter().any(|row| row.key.contains("under=")), "{done}");
    assert!(rows.iter().all(|row| row.key.contains("memory=cuda") && row.check == Check::Passed), "{done}");
    let done = Job::ombx("links --fabric tcp --memory cuda").run().expect(2);
    assert!(done.stderr.contains("needs --fabric mpi"), "{done}");
}
