//! Tests of starting ranks: by ombx, by an explicit mpiexec, too few or too many ranks, with threads, and launchers of another MPI.

use std::{collections::BTreeSet, env, ffi::OsStr, thread::available_parallelism};

use ombx_record::{
    file::{self, RunWithRows},
    result::Measurement,
};
use ombx_tests::{
    Files, Job,
    kept::{Kept, assert_good, assert_plausible, verified},
    mpi, results, skipped,
};

const QUICK: &str = "--iterations 20 --warmup 2 --sizes 8";

#[test]
fn an_explicit_mpiexec_prints_every_format() {
    let run = "run p2p.latency rma.put_bw --sync lock --sizes 8,4K --iterations 20 --warmup 2 --format";
    let table = Job::mpiexec(2, &format!("{run} table")).run().expect(0).stdout;
    assert!(
        table.contains("p2p.latency") && table.contains("rma.put_bw · ") && table.contains("sync=lock"),
        "{table}"
    );

    let osu = Job::mpiexec(2, &format!("{run} osu")).run().expect(0).stdout;
    let figures: Vec<(u64, f64)> = osu
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| {
            let (size, value) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
            let value = value.trim();
            assert_eq!(value.rsplit_once('.').map(|(_, decimals)| decimals.len()), Some(2), "{line:?}");
            (size.parse().unwrap(), value.parse().unwrap())
        })
        .collect();
    assert_eq!(figures.iter().map(|(size, _)| *size).collect::<Vec<_>>(), [8, 4096, 8, 4096], "{osu}");
    assert!(osu.contains("# OSU MPI Latency Test") && osu.contains("# OSU MPI_Put Bandwidth Test"), "{osu}");

    let csv = Job::mpiexec(2, &format!("{run} csv")).run().expect(0).stdout;
    let widths: Vec<usize> = csv.lines().map(|line| line.replace(",bytes", ";").split(',').count()).collect();
    assert!(widths.len() == 5 && csv.starts_with("run,bench,"), "{csv}");

    let jsonl = Job::mpiexec(2, &format!("{run} jsonl")).run().expect(0);
    let file = file::read(jsonl.stdout.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{jsonl}"));
    assert_good(&file.runs[0], &jsonl);
    assert_eq!(file.runs[0].rows.len(), 4, "{jsonl}");
}

#[test]
fn an_explicit_mpiexec_writes_the_file_and_the_exit_code() {
    let kept = Kept::new();
    let job = Job::mpiexec(2, "run rma.put_bw rma.get_latency --sizes 8 --iterations 20 --warmup 2 -o")
        .arg(kept.out());
    let done = job.run().expect(0);
    assert_good(&kept.run(), &done);
    let job = Job::mpiexec(2, "run p2p.latency --sizes 8 -o").arg(kept.out());
    let done = job.run();
    assert_ne!(done.code, Some(0), "the file exists\n{done}");
    done.complains(&["--force"]);
    assert_good(&kept.run(), &done);
    let job = Job::mpiexec(1, "run p2p.latency --sizes 8 --iterations 10 --force -o").arg(kept.out());
    let done = job.run();
    assert_ne!(done.code, Some(0), "a skipped row is not success\n{done}");
    assert_eq!(kept.run().end.unwrap().1.skipped, 1, "{done}");
}

#[test]
fn ranks_of_an_explicit_mpiexec_have_one_command_line() {
    let script = "exec \"$0\" run p2p.latency --sizes 8 --iterations 1${PMI_RANK:-$OMPI_COMM_WORLD_RANK}";
    let done = Job::on_ranks(2, "/bin/sh".as_ref()).args(["-c", script]).arg(mpi::ombx()).run().expect(6);
    done.complains(&["rank 1", "runs another command line than rank 0"]);
}

/// Two of the ranks measure, and the others wait.
#[test]
fn idle_and_crowded_ranks_have_notices() {
    let ranks = std::thread::available_parallelism().map_or(1, usize::from).max(2) + 1;
    let run = verified(&format!("p2p.latency --sizes 8 --iterations 3 --warmup 1 -n {ranks}"));
    let row = &run.rows[0];
    assert_eq!((run.run.places.len(), row.ranks), (ranks, 2), "{}", row.key);
    let idle = row.trust.iter().find(|mark| mark.code.name() == "idle_ranks").expect("a notice");
    assert_eq!(idle.short, format!("{} idle", ranks - 2));
    assert!(row.trust.iter().any(|mark| mark.code.name() == "oversubscribed"), "{:?}", row.trust);
}

#[test]
fn rows_that_need_two_ranks_are_skipped_on_one() {
    let kept = Kept::new();
    let benches = "collective.allreduce p2p.latency rma.put_bw --sizes 8 --iterations 10 --warmup 1";
    let done = kept.job(&format!("{benches} -n 1")).run().expect(4);
    assert!(done.stdout.contains("needs 2 ranks, has 1"), "{done}");
    let tally = kept.run().end.unwrap().1;
    assert_eq!((tally.cases, tally.skipped), (3, 2), "{done}");
}

#[test]
fn only_a_search_path_is_needed() {
    let path = env::var_os("PATH").unwrap_or_default();
    let arguments = "run rma.put_bw --sizes 8 --iterations 100 --quick";
    let job = Job::new(mpi::ombx()).only_env(&[("PATH", &path)]).args(arguments.split_whitespace());
    let done = job.run().expect(0);
    assert!(done.stderr.is_empty(), "{done}");
}

#[test]
fn a_relative_program_and_directory_work() {
    let files = Files::default();
    std::os::unix::fs::symlink(mpi::ombx(), files.path("ombx")).unwrap();
    let script = format!(
        "cd '{}' && ./ombx run p2p.latency --sizes 8 --iterations 10 --quick -o out.jsonl",
        files.root().display()
    );
    Job::new("sh").args(["-c", &script]).env("OMBX_MPIEXEC", mpi::mpiexec()).run().expect(0);
    assert_eq!(results::run_of(&files.path("out.jsonl")).rows.len(), 1);
}

#[test]
fn verbose_shows_how_ranks_are_started() {
    let done = Job::ombx("run p2p.latency --sizes 8 --iterations 10 -v").run().expect(0);
    done.complains(&["ombx: starting", mpi::mpiexec().to_str().unwrap()]);
}

/// Each process would be rank 0 of 1 and measure nonsense, so ombx must detect this.
#[test]
fn ranks_of_another_mpi_launcher_are_an_error() {
    let Some(other) = mpi::other_mpiexec() else { return skipped("no other MPI is installed") };
    let words = ["-n", "2"].map(OsStr::new);
    let arguments = "run p2p.latency --sizes 8 --iterations 10";
    let mut job = Job::new(&other).args(words).arg(mpi::ombx()).args(arguments.split_whitespace());
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        job = job.env(name, "1");
    }
    let done = job.env("OMPI_MCA_plm_rsh_agent", "sh").run();
    assert_eq!(done.code, Some(6), "{done}");
    let messages: Vec<&str> = done.stderr.lines().filter(|line| line.contains("ombx: ")).collect();
    let about = |what: &str| messages.iter().filter(|message| message.contains(what)).count();
    let [of_first, of_second] = [about("started 2 processes"), about("started this process as rank 1")];
    assert_eq!((messages.len(), of_first, of_second), (2, 1, 1), "{done}");
    assert!(done.stdout.is_empty(), "nothing is measured\n{done}");
    done.leaves_nothing();
}

#[test]
fn ombx_rejects_the_launcher_of_another_mpi() {
    let Some(other) = mpi::other_mpiexec() else { return skipped("no other MPI is installed") };
    let job = Job::ombx("run p2p.latency --sizes 8").env("OMBX_MPIEXEC", &other);
    let done = job.run().expect(6);
    assert!(done.sentence().contains("belongs to another MPI"), "{done}");
}

#[test]
fn a_launcher_that_is_missing_is_named() {
    let files = Files::default();
    let absent = files.path("mpiexec");
    let done = Job::ombx("run p2p.latency --sizes 8").env("OMBX_MPIEXEC", &absent).run().expect(6);
    assert!(done.sentence().contains(absent.to_str().unwrap()), "{done}");
}

#[test]
fn a_multithreaded_benchmark_has_ranks_of_its_own() {
    let kept = Kept::new();
    let line = format!("run p2p.latency_mt p2p.latency p2p.bw --threads 1:2 {QUICK}");
    let done = Job::ombx(&line).arg("-o").arg(kept.out()).run().expect(0);
    // One result: one title, one sum, and the benchmarks in the order of their starts.
    for once in ["ombx 0.", "fit to publish", "1 launch:"] {
        assert_eq!(done.stdout.matches(once).count(), 1, "{once}: {done}");
    }
    let at =
        |bench: &str| done.stdout.find(&format!("\n{bench}\n")).or(done.stdout.find(&format!("\n{bench} ")));
    assert!(at("p2p.latency_mt") < at("p2p.latency") && at("p2p.latency") < at("p2p.bw"), "{done}");
    let runs = results::runs_of(&kept.out());
    let benches = |run: &RunWithRows| run.rows.iter().map(|row| row.bench.clone()).collect::<BTreeSet<_>>();
    let each: Vec<_> = runs.iter().map(benches).collect();
    assert_eq!(
        each,
        [BTreeSet::from(["p2p.latency_mt".into()]), ["p2p.bw", "p2p.latency"].map(String::from).into()]
    );
    for row in runs.iter().flat_map(|run| &run.rows) {
        assert!(!has_mark(row, "thread_multiple"), "{}: {:?}", row.key, row.trust);
    }
    let bound = |run: &RunWithRows| run.run.places.iter().all(|place| place.cpu_numbers().len() == 1);
    let can_bind = available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    assert_eq!((bound(&runs[0]), bound(&runs[1])), (!can_bind, true));
    assert!(!done.stdout.contains("thread multiple"), "{done}");
}

/// Under a launcher of the user, MPI starts once, for all benchmarks.
#[test]
fn rows_beside_a_multithreaded_benchmark_have_a_notice() {
    let kept = Kept::new();
    let job = Job::mpiexec(2, &format!("run p2p.latency_mt p2p.latency --threads 1:2 {QUICK} -o"));
    job.arg(kept.out()).run().expect(0);
    let rows = kept.run().rows;
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(
            has_mark(row, "thread_multiple"),
            row.bench == "p2p.latency",
            "{}: {:?}",
            row.key,
            row.trust
        );
        assert_plausible(row);
    }
}

#[test]
fn no_forked_child_outlives_its_rank() {
    // An explicit launcher, because `ombx run` would kill children that are left.
    Job::mpiexec(2, &format!("run p2p.latency_mp {QUICK}")).run().expect(0).leaves_nothing();
}

fn has_mark(row: &Measurement, code: &str) -> bool {
    row.trust.iter().any(|mark| mark.code.name() == code)
}
