//! Persistent collectives of libraries that deliver nothing: a row fails where a plain C program finds wrong data too.

use std::{env, fs};

use ombx_tests::{Files, Job, missing, mpi, skipped};

/// Starts of a persistent allgather, and comparison of what has arrived.
const PROGRAM: &str = include_str!("persistent.c");

#[test]
fn a_persistent_allgather_fails_where_a_c_program_finds_wrong_data() {
    let Ok(compiler) = env::var("MPICC") else { return skipped("MPICC names no compiler") };
    if !missing(&[&compiler]).is_empty() && fs::metadata(&compiler).is_err() {
        return skipped("the compiler of this MPI is not installed");
    }
    let files = Files::default();
    let program = files.path("persistent");
    let built = Job::new(&compiler).arg(files.write("persistent.c", PROGRAM)).arg("-o").arg(&program).run();
    if built.code != Some(0) {
        return skipped("this MPI has no MPI_Allgather_init");
    }
    for (ranks, bytes) in [(2, "8"), (2, "131072"), (3, "64")] {
        let c = Job::on_ranks(ranks, &program).arg(bytes).run().expect(0);
        let size = format!("{bytes}:{bytes}");
        let words = ["osu", "osu_allgather_persistent", "-i", "20", "-x", "0", "-m", &size];
        let done = Job::on_ranks(ranks, mpi::ombx()).args(words).run();
        if c.stdout.starts_with("0 of 20 starts") {
            assert_eq!(done.code, Some(0), "{c}\n{done}");
        } else {
            assert_eq!(done.code, Some(5), "{c}\n{done}");
            let failed = format!("# FAILED at size {bytes}: data arrived wrong");
            assert!(done.stdout.contains(&failed), "{done}");
        }
    }
}
