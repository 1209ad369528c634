//! Tests of the thread support with which `ombx imb` starts MPI.

use ombx_tests::{Job, interpose, mpi};

/// MPI is asked for the level of -thread_level, also where no benchmark has threads.
#[test]
fn mpi_starts_with_the_level() {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    for (option, level) in [
        ("", "MPI_Init"),
        ("-thread_level nompinit", "MPI_Init"),
        ("-thread_level funneled", "funneled"),
        ("-thread_level SERIALIZED", "serialized"),
        ("-thread_level multiple", "multiple"),
    ] {
        let words = format!("imb IMB-MPI1 PingPong {option} -iter 4 -msglog 2:3");
        let job = Job::on_ranks(2, mpi::ombx()).args(words.split_whitespace());
        let done = job.env("LD_PRELOAD", library).env("OMBX_INTERPOSE", "level").run().expect(0);
        let asked = done.stderr.lines().filter_map(|line| line.trim().strip_prefix("thread support: "));
        assert_eq!(asked.collect::<Vec<_>>(), [level; 2], "{done}");
    }
}
