//! Tests of the thread support with which `ombx imb` starts MPI.

use ombx_tests::{Job, interpose, mpi};

/// -thread_level multiple asks MPI for it, also where no benchmark has threads.
#[test]
fn mpi_starts_with_the_level() {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    let of_one_thread = ["", "-thread_level funneled", "-thread_level SERIALIZED", "-thread_level nompinit"];
    let levels = of_one_thread.map(|option| (option, "less")).into_iter();
    for (option, level) in levels.chain([("-thread_level multiple", "multiple")]) {
        let words = format!("imb IMB-MPI1 PingPong {option} -iter 4 -msglog 2:3");
        let job = Job::on_ranks(2, mpi::ombx()).args(words.split_whitespace());
        let done = job.env("LD_PRELOAD", library).env("OMBX_INTERPOSE", "level").run().expect(0);
        let asked = done.stderr.lines().filter_map(|line| line.trim().strip_prefix("thread support: "));
        assert_eq!(asked.collect::<Vec<_>>(), [level; 2], "{done}");
        let has_note = done.stderr.contains("MPI starts with MPI_THREAD_FUNNELED");
        assert_eq!(has_note, option.contains("SERIAL") || option.contains("nompinit"), "{done}");
    }
}
