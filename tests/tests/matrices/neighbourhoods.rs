//! Tests of neighbourhoods that the user describes.

use std::fs;

use ombx_record::result::Outcome;
use ombx_tests::{Files, Job, kept::Kept, mpi};

use crate::collectives::{Mode, run};

const NAMES: [&str; 5] = [
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
];

/// In lists of edges, ranks may have any number of sources and destinations.
#[test]
fn edges_and_grids_are_verified_in_every_mode() {
    let ranks = if mpi::is_open_mpi() { 4 } else { 3 };
    let options = [
        ("--topology edges --neighbours 0:1,1:0,0:2,2:1", "neighbours", "4:"),
        ("--topology torus --torus 2:1", "torus", "2:1"),
    ];
    for mode in [Mode::Blocking, Mode::Nonblocking, Mode::Persistent] {
        let benches: Vec<String> = NAMES.iter().map(|name| mode.bench(name)).collect();
        for (words, name, value) in options {
            let (done, run) =
                run(&benches, &format!("{words} --sizes 8,16K --iterations 2 --warmup 1"), ranks);
            assert_eq!(run.rows.len(), 2 * benches.len(), "{done}");
            for row in run.rows.iter().filter(|row| row.outcome == Outcome::Ok) {
                assert!(
                    row.axes[name].starts_with(value) && row.key.contains(&format!("{name}={value}")),
                    "{}",
                    row.key
                );
            }
        }
    }
}

#[test]
fn edges_of_missing_ranks_are_skipped() {
    let kept = Kept::new();
    let words = "collective.neighbor_alltoall --topology edges --neighbours 0:1,1:7 -n 2 --iterations 2 \
                 --sizes 8 --allow-skips";
    let done = kept.job(words).run().expect(0);
    assert!(done.stdout.contains("--neighbours 1:7: there are ranks 0 to 1 only"), "{done}");
}

/// As `-N` of OMB: a list of edges in a file, or a periodic grid.
#[test]
fn neighbourhoods_of_omb() {
    let files = Files::default();
    let graph = files.path("graph.csv");
    fs::write(&graph, "# source, destination\n0,1\n1,0\n").unwrap();
    for option in [format!("graph:{}", graph.display()), "cart:1:1".into(), "cart:2:1".into()] {
        let words =
            ["osu", "osu_neighbor_alltoall", "-N", &option, "-m", "8:16", "-i", "20", "-x", "2", "-n", "2"];
        let done = Job::ombx("").args(words).run().expect(0);
        assert_eq!(done.stdout.lines().filter(|line| line.starts_with(['8', '1'])).count(), 2, "{done}");
    }
}
