//! Tests of collective operations in several groups of ranks at the same time.

use ombx_collective::operations::OPERATIONS;
use ombx_record::result::{Check, Outcome};
use ombx_tests::{Job, kept::Kept, mpi};

use crate::collectives::{MODES, Mode, run};

/// MPICH gets fewer rows, because its ranks spin while they wait for ranks that have no core.
#[test]
fn operations_in_every_mode_are_verified_in_two_groups() {
    let some = ["allreduce", "alltoallv", "barrier", "gather", "neighbor_alltoall", "reduce_scatter", "scan"];
    for mode in MODES {
        let names = OPERATIONS.iter().map(|operation| operation.name);
        let chosen = names.filter(|name| mpi::is_open_mpi() || some.contains(name));
        let benches: Vec<String> = chosen.map(|name| mode.bench(name)).collect();
        let counts = "--sizes 1000 --iterations 2 --warmup 1 --groups 2 --topology all";
        let (done, run) = run(&benches, counts, 4);
        assert!(run.rows.len() > benches.len(), "{done}");
        for row in run.rows.iter().filter(|row| row.outcome == Outcome::Ok) {
            assert_eq!((row.axes["groups"].as_str(), row.ranks), ("2", 4), "{done}");
            assert!(row.key.ends_with(",groups=2"), "{}", row.key);
        }
    }
}

#[test]
fn roots_are_ranks_of_a_group() {
    let benches = ["bcast", "gather", "scatterv", "reduce"].map(|name| Mode::Blocking.bench(name));
    for root in ["1", "rotate"] {
        let options = format!("--root {root} --groups 2 --sizes 8 --iterations 5 --warmup 1");
        let (done, run) = run(&benches, &options, 4);
        assert_eq!(run.rows.len(), 4, "{done}");
        let end = format!(",root={root},groups=2");
        assert!(run.rows.iter().all(|row| row.key.ends_with(&end)), "{done}");
    }
}

/// A group of two ranks has the traffic of two ranks; the work is that of all groups.
#[test]
fn bandwidths_are_those_of_a_group() {
    let benches = ["allreduce", "allgather"].map(|name| Mode::Blocking.bench(name));
    let counts = "--sizes 1000 --iterations 2 --warmup 1";
    let (_, all) = run(&benches, &format!("{counts} --groups 1"), 4);
    let (done, divided) = run(&benches, &format!("{counts} --groups 2"), 4);
    let traffic = |row: &ombx_record::result::Measurement| {
        let (bus, work) = (row.bus.unwrap(), row.work.unwrap());
        (bus.bytes, bus.factor, work.bytes, work.ops)
    };
    assert_eq!(
        all.rows.iter().map(traffic).collect::<Vec<_>>(),
        [(1000, 1.5, 4000, 1), (4000, 0.75, 16000, 1)]
    );
    assert_eq!(
        divided.rows.iter().map(traffic).collect::<Vec<_>>(),
        [(1000, 1.0, 4000, 2), (2000, 0.5, 8000, 2)],
        "{done}"
    );
    // One group is the default, which rows do not name.
    assert!(all.rows.iter().all(|row| !row.axes.contains_key("groups") && !row.key.contains("groups")));
}

#[test]
fn ranks_that_do_not_make_up_groups_are_an_error() {
    // Under a launcher, the number of ranks is known only after MPI has started.
    let done = Job::mpiexec(3, "run collective.bcast --sizes 8 --groups 2").run().expect(4);
    assert!(done.stdout.contains("2 groups need 4 ranks or a larger multiple of 2, has 3"), "{done}");
    // Without -n, ombx starts as many ranks as the groups need.
    let kept = Kept::new();
    kept.job("collective.barrier --groups 2 --launches 1 --iterations 2").run().expect(0);
    let row = &kept.run().rows[0];
    assert_eq!((row.ranks, &row.check), (4, &Check::Passed));
}
