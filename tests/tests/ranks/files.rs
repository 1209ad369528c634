//! Tests of MPI-IO: every call is verified on every rank, wrong bytes in the file are found, and no file stays behind.

use std::{fs, time::Duration};

use ombx_core::{
    benchmark::payload::{Check, Mismatch},
    result::{Measurement, Outcome},
};
use ombx_tests::{Files, Job, Running, interpose, mpi};
use rustix::process::Signal;

use crate::Kept;

const COUNTS: &str = "--iterations 5 --warmup 1";

/// Runs a job with files in an empty directory, which must be empty afterwards. Returns its rows, all of which are verified.
fn verified(words: &str, ranks: u32) -> Vec<Measurement> {
    let (kept, files) = (Kept::new(), Files::default());
    let job = kept.job(&format!("{words} {COUNTS} -n {ranks}")).arg("--directory").arg(files.root());
    let done = job.limit(Duration::from_secs(300)).run().expect(0);
    assert_eq!(names(&files), Vec::<String>::new(), "{done}");
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

/// Returns the names of what is in a directory.
fn names(files: &Files) -> Vec<String> {
    let entries = fs::read_dir(files.root()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
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

/// The library changes a byte of what rank 1 writes, which rank 0 reads back, or of what rank 1 reads.
#[test]
fn a_flipped_bit_fails_the_row() {
    let shared = "--pointer shared";
    let cases = [
        ("io.write", "", "file_write", 0),
        ("io.read", "", "file_read", 1),
        ("io.write", shared, "file_write_shared", 0),
        ("io.read", shared, "file_read_shared", 1),
    ];
    for (bench, options, what, hit) in cases {
        let (kept, files) = (Kept::new(), Files::default());
        let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
        let job = kept.job(&format!("{bench} {options} --sizes 8,1000 --launches 1 {COUNTS} -n 2"));
        let job = job.arg("--directory").arg(files.root());
        let done = job.args(interpose::arguments(library, what)).run().expect(5);
        let run = kept.run();
        let [small, large] = &run.rows[..] else { panic!("{done}") };
        assert_eq!(small.check, Check::Passed, "{done}");
        let Check::Failed(Mismatch { rank, slot, byte, expected, actual }) = large.check else {
            panic!("{done}")
        };
        assert_eq!((rank.0, slot, byte, expected ^ actual), (hit, 0, 42, 0x10), "{done}");
        assert_eq!(names(&files), Vec::<String>::new(), "{done}");
    }
}

/// The files have no name while they are measured, so that a killed rank leaves nothing.
#[test]
fn nothing_stays_behind_when_a_job_is_killed() {
    let signals = [(Signal::INT, "individual"), (Signal::KILL, "individual"), (Signal::KILL, "shared")];
    for (signal, pointer) in signals {
        let (kept, files) = (Kept::new(), Files::default());
        let words =
            format!("io.write --sizes 4K --pointer {pointer} --max-time 60s --precision 0.0001% --quick");
        let job = kept.job(&format!("{words} -n 2 -v")).arg("--directory").arg(files.root());
        let mut job = job.start();
        // Once a rank has an open file without a name, its case is being measured.
        job.until("the file is open", |job| {
            let deleted = |link: fs::DirEntry| {
                fs::read_link(link.path()).is_ok_and(|path| {
                    path.starts_with(files.root()) && path.to_string_lossy().ends_with("(deleted)")
                })
            };
            job.ranks().iter().any(|rank| {
                fs::read_dir(format!("/proc/{}/fd", rank.pid.as_raw_nonzero()))
                    .is_ok_and(|mut links| links.any(|link| link.is_ok_and(deleted)))
            })
        });
        kill(&mut job, signal);
        let done = job.wait();
        done.leaves_nothing();
        assert_ne!(done.code, Some(0), "{done}");
        assert_eq!(names(&files), Vec::<String>::new(), "{done}");
    }
}

/// A file that ranks open by its name is removed by the process that starts the ranks.
#[test]
fn named_files_are_removed_when_a_job_is_killed() {
    let (kept, files) = (Kept::new(), Files::default());
    let words = "io.open --files all --sizes 8 --max-time 60s --precision 0.0001% --quick";
    let job = kept.job(&format!("{words} -n 2 -v")).arg("--directory").arg(files.root());
    let mut job = job.start();
    job.until("the file exists", |_| !names(&files).is_empty());
    kill(&mut job, Signal::KILL);
    let done = job.wait();
    done.leaves_nothing();
    assert_ne!(done.code, Some(0), "{done}");
    assert_eq!(names(&files), Vec::<String>::new(), "{done}");
}

/// Sends a signal to a job, or kills its ranks.
fn kill(job: &mut Running, signal: Signal) {
    match signal {
        Signal::KILL => job.ranks().iter().for_each(|rank| rank.signal(Signal::KILL)),
        _ => job.signal(signal),
    }
}

/// A launcher of the user starts the ranks, which check the directory themselves.
#[test]
fn ranks_of_a_launcher_write_files_too() {
    let files = Files::default();
    let run = |directory: &str| {
        Job::mpiexec(2, &format!("run io.write --sizes 64K {COUNTS} --directory {directory}")).run()
    };
    let done = run(&files.root().display().to_string()).expect(0);
    assert!(done.stdout.contains("verified"), "{done}");
    assert_eq!(names(&files), Vec::<String>::new());
    let done = run("/nonexistent").expect(2);
    assert!(done.stderr.contains("/nonexistent: No such file or directory"), "{done}");
}
