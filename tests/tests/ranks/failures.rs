//! Tests of ranks and launchers that are killed, stopped, interrupted or too slow. The job ends, gives the reason and keeps its rows.

use std::{fs, os::unix::fs::PermissionsExt};

use ombx_record::result::RunOutcome;
use ombx_tests::{Done, Job, Running, kept::Kept, mpi, results};
use rustix::process::Signal;

/// Sizes of more rows than a job measures before a test acts on it. Each row is short on any machine.
const ROWS: u32 = 6000;

/// Options for one row that would take hours: the job ends for another reason.
const ENDLESS: &str = "p2p.latency --sizes 8 --iterations 4294967296 --batch 1000000";

/// Starts a job, and returns it with the number of its rows once there are two.
fn in_the_middle(kept: &Kept) -> (Running, usize) {
    let sizes: Vec<u32> = (1..=ROWS).collect();
    let suite = format!(
        "about = 'many rows'\n\n[[entry]]\nrun = 'p2p.latency'\nsizes = {sizes:?}\niterations = 10\nwarmup = 1\n"
    );
    let suite = kept.files.write("many.toml", suite);
    let mut job = kept.job("--format csv --fail-fast").arg(suite).start();
    let (out, mut rows) = (kept.out(), 0);
    job.until("two rows are in the file", |_| {
        rows = results::rows_so_far(&out);
        rows >= 2
    });
    (job, rows)
}

/// Acts on a job after two rows, and checks that it ends with this code and keeps its rows.
fn ended(act: impl FnOnce(&Running), code: i32, says: &str, outcome: RunOutcome) {
    let kept = Kept::new();
    let (job, before) = in_the_middle(&kept);
    act(&job);
    let done = job.wait().expect(code);
    done.complains(&["ombx: ", says, "measured row"]);
    assert!(!done.stderr.contains("--timeout"), "the reason is not the time limit\n{done}");
    done.leaves_nothing();
    let run = kept.run();
    assert!(run.rows.len() >= before, "rows are lost: there were {before}\n{done}");
    let (ended, tally) = run.end.unwrap_or_else(|| panic!("no end record\n{done}"));
    assert_eq!((ended, tally.cases as usize), (outcome, run.rows.len()), "{done}");
    let shown = Job::ombx("show --format csv").arg(kept.out()).run().expect(0);
    assert_eq!(shown.stdout.lines().count(), 1 + run.rows.len(), "{shown}");
}

#[test]
fn the_first_rank_is_killed() {
    ended(|job| rank(job, 0, Signal::KILL), 6, "", RunOutcome::Broken);
}

#[test]
fn another_rank_is_killed() {
    ended(|job| rank(job, 1, Signal::KILL), 6, "", RunOutcome::Broken);
}

/// Sends a signal to one of two ranks.
fn rank(job: &Running, rank: u32, signal: Signal) {
    let ranks = job.ranks();
    assert_eq!(ranks.len(), 2, "ranks that were found");
    ranks.iter().find(|p| p.rank() == Some(rank)).expect("the rank is there").signal(signal);
}

#[test]
fn the_launcher_is_killed() {
    let kill = |job: &Running| {
        let processes = job.processes();
        let launcher = processes.iter().find(|p| p.is_called(&["mpiexec", "mpirun", "orterun", "prterun"]));
        launcher.expect("a launcher is there").signal(Signal::KILL);
    };
    ended(kill, 6, "", RunOutcome::Broken);
}

#[test]
fn a_signal_interrupts_the_run() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        ended(|job| job.signal(signal), code, "ombx: interrupted", RunOutcome::Interrupted);
    }
}

/// A killed ombx cannot end its ranks. They notice that it is gone when they send it a row.
#[test]
fn ombx_itself_is_killed() {
    let kept = Kept::new();
    let (job, before) = in_the_middle(&kept);
    job.signal(Signal::KILL);
    let done = job.wait();
    assert_eq!(done.signal, Some(9), "{done}");
    done.leaves_nothing();
    let shown = Job::ombx("show --format csv").arg(kept.out()).run().expect(0);
    assert!(shown.stdout.lines().count() > before, "rows are lost: there were {before}\n{shown}");
}

#[test]
fn a_job_ends_at_its_time_limit() {
    let kept = Kept::new();
    let done = kept.job(ENDLESS).args(["--timeout", "2s"]).run().expect(6);
    done.complains(&["ombx: ", "2 s", "--timeout"]);
    done.leaves_nothing();
    // On a busy machine the time may end before the ranks have said what they measure.
    if fs::metadata(kept.out()).unwrap().len() > 0 {
        assert_eq!(kept.run().end.unwrap().0, RunOutcome::Broken);
    }
}

/// Returns a job with a launcher that reports its version and then runs a script.
fn launched_by(kept: &Kept, script: &str, options: &str) -> Job {
    let path = kept.files.path("mpiexec");
    let real = mpi::mpiexec();
    let text =
        format!("#!/bin/sh\n[ \"$1\" = --version ] && exec '{}' --version\n{script}\n", real.display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    kept.job(options).env("OMBX_MPIEXEC", path)
}

/// Whatever a launcher does to lines, the file stays readable and the exit code tells.
#[test]
fn a_launcher_that_spoils_lines_spoils_no_file() {
    let real = mpi::mpiexec().display();
    for (filter, words) in [
        ("{ print; print }", "the run begins twice"),
        ("{ print } /\"kind\":\"launch\"/ { print }", "lines are repeated"),
        ("{ print } /\"kind\":\"end\"/ { print }", "it follows the end record"),
        ("/\"kind\":\"launch\"/ && !n++ { next } { print }", "lines are missing"),
        ("/\"kind\":\"launch\"/ && !n++ { print substr($0, 1, 200); next } { print }", "lines are missing"),
        ("/\"kind\":\"run\"/ { next } { print }", "a run record must come first"),
        ("{ line[NR] = $0 } END { for (n = NR; n; n--) print line[n] }", "a run record must come first"),
    ] {
        let kept = Kept::new();
        fs::write(kept.out(), GOLDEN).unwrap();
        let script = format!("'{real}' \"$@\" | awk '{filter}'");
        let options = "p2p.latency --sizes 8,64 --iterations 20 --append";
        let done = launched_by(&kept, &script, options).run().expect(6);
        assert!(done.sentence().contains(words), "{filter}: {done}");
        Job::ombx("show").arg(kept.out()).run().expect(0);
    }
}

const GOLDEN: &str = include_str!("../../../crates/record/tests/golden/one_launch.jsonl");

/// A launcher that prints without end defeats neither the time limit nor signals, and does not fill the memory.
#[test]
fn a_noisy_launcher_ends() {
    let noise = "yes & exec yes >&2";
    let kept = Kept::new();
    let done = launched_by(&kept, noise, "p2p.latency --sizes 8 --timeout 1s").run().expect(6);
    done.complains(&["ombx: ", "1 s", "had not connected"]);
    done.leaves_nothing();
    let kept = Kept::new();
    let mut job = launched_by(&kept, noise, "p2p.latency --sizes 8").start();
    job.until("more has been read than a pipe holds", |job| {
        let printed = job.processes().into_iter().filter(|p| p.is_called(&["yes"])).filter(|process| {
            let io = fs::read_to_string(format!("/proc/{}/io", process.pid.as_raw_nonzero()));
            let written =
                io.ok().and_then(|io| io.lines().find_map(|l| l.strip_prefix("wchar: ")?.parse().ok()));
            written.is_some_and(|bytes: u64| bytes > 2 * PIPE)
        });
        printed.count() == 2
    });
    let status = fs::read_to_string(format!("/proc/{}/status", job.pid().as_raw_nonzero())).unwrap();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    assert!(kib.is_some_and(|kib: u64| kib < LIMIT_KIB), "{kib:?} KiB");
    job.signal(Signal::TERM);
    let done = job.wait().expect(143);
    done.leaves_nothing();
}

/// Bytes that a pipe holds.
const PIPE: u64 = 64 << 10;
/// Memory of a process that keeps none of the output.
const LIMIT_KIB: u64 = 100 << 10;

#[test]
fn a_launcher_that_does_not_tell_its_version_is_named() {
    let kept = Kept::new();
    let path = kept.files.write("mpiexec", "#!/bin/sh\nsleep 3600\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let job = kept.job("p2p.latency --sizes 8 --timeout 1s").env("OMBX_MPIEXEC", &path);
    let done = job.run().expect(6);
    done.complains(&["--version did not answer within 1 s", "OMBX_MPIEXEC"]);
    done.leaves_nothing();
}

#[test]
fn ranks_of_an_explicit_mpiexec_end_at_the_time_limit() {
    let done = Job::mpiexec(2, &format!("run {ENDLESS} --timeout 1s")).run();
    assert_ne!(done.code, Some(0), "{done}");
    // Ranks that show progress end at the limit too.
    let says = ["no progress for 1 s in ", "not ended after 1 s in p2p.latency, 8 bytes"];
    assert!(says.iter().any(|sentence| done.stderr.contains(sentence)), "{done}");
    done.leaves_nothing();
}

/// A stopped rank gives no sign, so only the time limit ends it and its waiting peers.
#[test]
fn a_stopped_rank_is_ended_with_the_others() {
    let kept = Kept::new();
    stopped(kept.job(ENDLESS), 0).expect(6).complains(&["ombx: "]);
}

#[test]
fn a_stopped_rank_of_an_explicit_mpiexec_is_ended_with_the_others() {
    let done = stopped(Job::mpiexec(2, &format!("run {ENDLESS}")), 1);
    assert_ne!(done.code, Some(0), "{done}");
}

fn stopped(job: Job, number: u32) -> Done {
    // Long beside the start of ranks on a busy machine.
    let mut job = job.args(["--timeout", "6s"]).start();
    job.until("both ranks are there", |job| job.ranks().len() == 2);
    rank(&job, number, Signal::STOP);
    let done = job.wait();
    done.leaves_nothing();
    done
}

/// The other ranks would wait for a rank that ends before it starts MPI.
#[test]
fn a_mistake_of_one_rank_is_said_and_ends_the_job() {
    let options = ["p2p.latency", "--sizes", "8", "--iterations", "10"];
    let done = Job::mpiexec(1, "run")
        .args(options)
        .args([":", "-n", "1"])
        .arg(mpi::ombx())
        .args(["run", "missing.toml"])
        .run();
    assert_eq!(done.stderr.matches("cannot read the suite missing.toml").count(), 1, "{done}");
    assert!(done.code == Some(2) && done.stderr.contains("rank 1: "), "{done}");
    done.leaves_nothing();
}
