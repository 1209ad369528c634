//! Builds the C reference loops and checks that they run the same rows with the same counts as ombx.

use std::time::Duration;

use ombx_tests::{Job, mpi, skipped};

#[test]
fn every_fidelity_row_has_the_same_counts_in_both_programs() {
    let Ok(xtask) = std::env::var("OMBX_XTASK") else {
        return skipped("no xtask binary to compare with (OMBX_XTASK, which cargo xtask test sets)");
    };
    if mpi::cores() < 2 {
        return skipped("two ranks that poll need two cores");
    }
    let flavour = if mpi::is_open_mpi() { "openmpi" } else { "mpich" };
    let words = ["fidelity", "--quick", "--no-build", "--mpi", flavour];
    let done = Job::of(xtask).args(words).limit(Duration::from_secs(300)).run().expect(0);
    let last = done.stdout.lines().last().unwrap_or_default();
    let rows: usize = last.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    assert!(rows > 140 && last.ends_with("rows run alike"), "{done}");
}
