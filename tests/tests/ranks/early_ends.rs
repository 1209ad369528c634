//! Tests of benchmarks that end their ranks: each costs one row, and new ranks measure the rest.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use ombx_record::result::{Outcome, RunOutcome};
use ombx_tests::{Done, Files, Job, interpose, kept::Kept, mpi, results};
use rustix::process::Signal;

const COUNTS: &str = "--iterations 4 --warmup 1 -n 2";

/// Runs with a library that spoils MPI in the ranks.
fn spoilt(kept: &Kept, what: &str, options: &str, code: i32) -> Done {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    let job = kept.job(&format!("{options} {COUNTS}")).args(interpose::arguments(library, what));
    let done = job.run().expect(code);
    done.leaves_nothing();
    done
}

/// Returns the number of measured rows of each benchmark and size, and the reasons of the other rows.
fn rows(kept: &Kept) -> (BTreeMap<String, usize>, BTreeMap<String, String>) {
    let (mut measured, mut others) = (BTreeMap::new(), BTreeMap::new());
    for row in results::runs_of(&kept.out()).into_iter().flat_map(|run| run.rows) {
        let name = format!("{} {}", row.bench, row.bytes.map_or(String::new(), |bytes| bytes.to_string()));
        match row.outcome {
            Outcome::Ok => *measured.entry(name).or_default() += 1,
            Outcome::Failed(why) | Outcome::Skipped(why) => drop(others.insert(name, why)),
        }
    }
    (measured, others)
}

#[test]
fn a_crash_costs_one_row_in_all_launches() {
    let kept = Kept::new();
    let names = "collective.exscan collective.scan collective.allreduce p2p.latency";
    let done = spoilt(&kept, "scan", &format!("{names} --sizes 8,64 --launches 3"), 6);
    let (measured, failed) = rows(&kept);
    let others = ["collective.exscan", "collective.allreduce", "p2p.latency"];
    let keys = others.iter().flat_map(|bench| ["8", "64"].map(|bytes| format!("{bench} {bytes}")));
    assert_eq!(measured, keys.map(|key| (key, 3)).collect(), "{done}");
    assert_eq!(failed.keys().collect::<Vec<_>>(), ["collective.scan 64", "collective.scan 8"], "{done}");
    for why in failed.values() {
        assert!(
            why.starts_with("rank 1 on ") && why.contains("died of SIGSEGV in MPI_Scan"),
            "{why}\n{done}"
        );
    }
    done.complains(&["new ranks measure what is left", "ranks ended early 2 times; 18 measured rows are in"]);
    assert!(done.stdout.contains("FAILED") && !done.stdout.contains("not complete"), "{done}");
    let shown = Job::ombx("show --format csv").arg(kept.out()).run().expect(0);
    assert_eq!(shown.stdout.lines().count(), 1 + 8, "{shown}");
}

#[test]
fn a_launch_goes_on_in_another_run_of_the_file() {
    let kept = Kept::new();
    let done =
        spoilt(&kept, "iscan", "collective.iscan collective.ibarrier --sizes 8,16,32,64,128 --quick", 6);
    let runs = results::runs_of(&kept.out());
    let ends: Vec<RunOutcome> = runs.iter().map(|run| run.end.unwrap().0).collect();
    assert_eq!(
        ends,
        [RunOutcome::Broken, RunOutcome::Broken, RunOutcome::Broken, RunOutcome::Complete],
        "{done}"
    );
    assert!(runs[1..].iter().all(|run| run.run.plan["continues"] == runs[0].run.id), "{done}");
    let (measured, others) = rows(&kept);
    assert_eq!(measured.len(), 1, "{measured:?}\n{done}");
    // Three cases have failed, and no further one of the benchmark is tried.
    assert!(others.len() == 4 && others["collective.iscan "].starts_with("left out"), "{others:?}\n{done}");
    assert_eq!(done.stdout.matches("collective.iscan ").count(), 1, "one table\n{done}");
}

#[test]
fn two_ends_one_after_the_other_repeat_no_row() {
    let kept = Kept::new();
    let done = spoilt(&kept, "scan_some", "collective.scan --sizes 8,64,512,4K --quick", 6);
    let (measured, failed) = rows(&kept);
    let names = |rows: Vec<&String>| rows.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(measured.keys().collect()), ["collective.scan 4096", "collective.scan 8"], "{done}");
    assert_eq!(names(failed.keys().collect()), ["collective.scan 512", "collective.scan 64"], "{done}");
    assert!(measured.values().all(|times| *times == 1), "{measured:?}\n{done}");
    // The file can be read and continued.
    Job::ombx("show --format csv").arg(kept.out()).run().expect(0);
}

#[test]
fn the_first_end_is_the_last_one_if_the_user_says_so() {
    let kept = Kept::new();
    let done = spoilt(&kept, "scan", "collective.scan p2p.latency --sizes 8,64 --quick --fail-fast", 6);
    let (measured, failed) = rows(&kept);
    assert_eq!((measured.len(), failed.len()), (0, 1), "{done}");
    done.complains(&["ombx: ", "collective.scan, 8 bytes", "0 measured rows are in"]);
}

#[test]
fn a_crash_at_the_end_is_said() {
    let kept = Kept::new();
    let done = spoilt(&kept, "finalize", "p2p.latency --sizes 8 --quick", 6);
    assert_eq!(kept.run().end.unwrap().0, RunOutcome::Complete, "{done}");
    done.complains(&["died of SIGSEGV in MPI_Finalize", "all rows had arrived"]);
}

#[test]
fn a_library_that_makes_no_sense_is_named() {
    for (what, says) in [
        ("version", ": give every host the same MPI library"),
        ("nonsense", "which makes no sense"),
        ("threads", "a level of thread support that does not exist"),
    ] {
        let kept = Kept::new();
        let done = spoilt(&kept, what, "p2p.latency --sizes 8 --quick", 6);
        done.complains(&[says]);
        assert!(!done.stderr.contains("panicked"), "{done}");
    }
}

#[test]
fn an_old_file_stays_until_a_row_replaces_it() {
    let kept = Kept::new();
    fs::write(kept.out(), results::GOLDEN).unwrap();
    let replace = |options: &str, code| {
        kept.job(&format!("p2p.latency --sizes 8 --quick {COUNTS} --force {options}")).run().expect(code)
    };
    let done = replace("--launcher-arg=--no-such-argument", 6);
    assert_eq!(fs::read_to_string(kept.out()).unwrap(), results::GOLDEN, "{done}");
    replace("", 0);
    assert_eq!(kept.run().rows.len(), 1);
    assert_eq!(kept.files.names(), ["results.jsonl"]);
}

#[test]
fn a_parent_that_ignores_its_children_changes_nothing() {
    let words = ["-c", "trap '' CHLD; exec \"$0\" \"$@\""];
    let job = Job::new("/bin/sh").args(words).arg(mpi::ombx()).env("OMBX_MPIEXEC", mpi::mpiexec());
    job.args(format!("run p2p.latency --sizes 8 --quick {COUNTS}").split(' ')).run().expect(0);
}

#[test]
fn a_launcher_that_cannot_start_is_shown() {
    let kept = Kept::new();
    let path =
        kept.files.write("mpiexec", "#!/bin/sh\necho 'mpiexec: symbol lookup error: PMI_x' >&2\nexit 127\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let done = kept.job("p2p.latency --sizes 8").env("OMBX_MPIEXEC", &path).run().expect(6);
    done.complains(&["is no mpiexec that works", "symbol lookup error: PMI_x"]);
}

#[test]
fn ranks_of_the_users_launcher_say_what_is_not_measured() {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    let preload = format!("LD_PRELOAD={}", library.display());
    let job = Job::on_ranks(2, std::path::Path::new("/usr/bin/env"))
        .args([&preload, "OMBX_INTERPOSE=scan"])
        .arg(mpi::ombx());
    let words = "run collective.scan p2p.latency p2p.bw --sizes 8 --iterations 4";
    let done = job.args(words.split(' ')).run();
    assert_ne!(done.code, Some(0), "{done}");
    done.complains(&[
        "died of SIGSEGV in MPI_Scan",
        "not measured: the rest of collective.scan; p2p.latency, and 1 more",
        "the same command with --from 2",
    ]);
    done.leaves_nothing();
    let done =
        Job::on_ranks(2, mpi::ombx()).args(words.split(' ')).args(["--from", "2", "--format", "csv"]).run();
    let names: Vec<&str> = done.stdout.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!((names, done.code), (vec!["p2p.latency", "p2p.bw"], Some(0)), "{done}");
}

#[test]
fn processes_without_the_environment_of_their_launcher_are_refused() {
    let files = Files::default();
    let script = files.write("alone", "#!/bin/sh\nexec env -i \"$@\"\n");
    let job = Job::on_ranks(2, std::path::Path::new("/bin/sh")).arg(&script).arg(mpi::ombx());
    let done = job.args(["run", "p2p.latency", "--sizes", "8", "--quick"]).run();
    assert_ne!(done.code, Some(0), "{done}");
    done.complains(&["its variables are missing in the environment"]);
    done.leaves_nothing();
}

#[test]
fn a_killed_rank_costs_one_row() {
    let kept = Kept::new();
    let mut job = kept.job("p2p.latency --sizes 8,64,1K --duration 1s --quick -n 2").start();
    let out = kept.out();
    job.until("a row is in the file", |_| results::rows_so_far(&out) >= 1);
    let ranks = job.ranks();
    ranks.iter().find(|process| process.rank() == Some(1)).expect("rank 1").signal(Signal::KILL);
    let done = job.wait().expect(6);
    done.leaves_nothing();
    let (measured, failed) = rows(&kept);
    assert_eq!((measured.len(), failed.len()), (2, 1), "{done}");
}
