//! Tests of MPI-IO: every call is verified on every rank.

use ombx_record::result::{Check, Measurement, Outcome};
use ombx_tests::{Files, kept::Kept, mpi};

const COUNTS: &str = "--iterations 5 --warmup 1";

/// Runs a job with files in an empty directory, which must be empty afterwards. Returns its rows, all of which are verified.
fn verified(words: &str, ranks: u32) -> Vec<Measurement> {
    let (kept, files) = (Kept::new(), Files::default());
    let job = kept.job(&format!("{words} {COUNTS} -n {ranks}")).arg("--directory").arg(files.root());
    let done = job.run().expect(0);
    assert_eq!(files.names(), Vec::<String>::new(), "{done}");
    let rows = kept.run().rows;
    for row in &rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
        assert_eq!((row.ranks, row.samples.len()), (ranks, ranks as usize), "{}: all are timed", row.key);
        assert!(row.summary.as_ref().unwrap().min > 0.0, "{}", row.key);
    }
    rows
}

/// Returns the numbers of ranks of a test. Three ranks of MPICH spin on two cores: files with them would take minutes.
fn numbers_of_ranks() -> &'static [u32] {
    if mpi::is_open_mpi() { &[1, 2, 3] } else { &[1, 2] }
}

/// One file with two kinds of access at three kinds of pointers, and a file of each rank with one at two.
const CALLS: usize = 3 * 2 + 2;

#[test]
fn every_write_is_verified() {
    for &ranks in numbers_of_ranks() {
        let all = "--pointer all --access all --files all --file-sync all";
        let rows = verified(&format!("io.write {all} --window 3 --sizes 0,1,1000,64K"), ranks);
        assert_eq!(rows.len(), CALLS * 3 * 4);
        for row in &rows {
            // Writes that share a synchronisation are one iteration.
            let blocks = if row.axes["file-sync"] == "end" { 3 } else { 1 };
            let work = row.work.unwrap();
            assert_eq!(row.depth, (blocks == 3).then_some(3), "{}", row.key);
            assert_eq!(work.ops, blocks * u64::from(ranks), "{}", row.key);
            assert_eq!(work.bytes, work.ops * row.bytes.unwrap(), "{}", row.key);
        }
    }
}

#[test]
fn every_read_is_verified() {
    for &ranks in numbers_of_ranks() {
        let rows =
            verified("io.read --pointer all --access all --files all --sizes 0,1,1000,64K --pace all", ranks);
        assert_eq!(rows.len(), CALLS * 4 * 3);
    }
}

#[test]
fn every_access_that_is_started_is_verified() {
    for &ranks in numbers_of_ranks() {
        // One file: two kinds of access with a request, and split collectives, but no request of all ranks at a shared pointer.
        let calls = (3 * 3 - 1) + 2;
        let all = "--pointer all --access all --files all --sizes 0,1,64K";
        for (bench, syncs) in [("io.iwrite --file-sync each,never", 2), ("io.iread", 1)] {
            let rows = verified(&format!("{bench} {all} --overlap all"), ranks);
            assert_eq!(rows.len(), calls * syncs * 3 * 2, "{bench}");
            for row in &rows {
                let is_alone = row.axes.get("overlap").is_some_and(|value| value == "none");
                assert_eq!(row.figures.contains_key("pure_us"), !is_alone, "{}", row.key);
                assert_eq!(row.figures.contains_key("overlap_percent"), !is_alone, "{}", row.key);
            }
        }
        let rows = verified("io.iread --access all --tests 10 --sizes 1000", ranks);
        assert_eq!(rows.len(), 2, "split collectives have no tests");
    }
}

#[test]
fn every_opened_file_is_verified() {
    for &ranks in numbers_of_ranks() {
        let rows = verified("io.open --files all --sizes 0,1,1000", ranks);
        assert_eq!(rows.len(), 2 * 3);
        let rows = verified("io.open", ranks);
        assert_eq!(rows.iter().map(|row| row.bytes).collect::<Vec<_>>(), [Some(1)]);
    }
}
