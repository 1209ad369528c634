//! Tests of starting ranks: by ombx, by an explicit mpiexec, too few or too many ranks, and launchers of another MPI.

use std::{env, ffi::OsStr};

use ombx_results::file;
use ombx_tests::{Files, Job, mpi, results, skipped};

use crate::{Kept, assert_good, measured};

#[test]
fn an_explicit_mpiexec_prints_every_format() {
    let run = "run p2p.latency rma.put_bw --sync lock --sizes 8,4K --max-time 20ms --format";
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
    let job = Job::mpiexec(2, "run rma.put_bw rma.get_latency --sizes 8 --max-time 20ms -o").arg(kept.out());
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
fn idle_ranks_are_counted_in_a_notice() {
    for ranks in [3, 4] {
        let run = measured(&format!("p2p.latency rma.put_latency --sizes 8 --iterations 200 -n {ranks}"));
        assert_eq!(run.run.places.len(), ranks);
        for row in &run.rows {
            assert_eq!(row.ranks, 2, "{}", row.key);
            let notice = row.trust.iter().find(|n| n.code == "idle_ranks").expect("a notice");
            assert_eq!(notice.short, format!("{} idle", ranks - 2));
        }
    }
}

#[test]
fn more_ranks_than_cores_give_a_notice() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let run = measured(&format!("p2p.latency --sizes 8 --iterations 20 -n {}", cores + 1));
    assert!(run.rows[0].trust.iter().any(|n| n.code == "oversubscribed"), "{:?}", run.rows[0].trust);
}

#[test]
fn rows_that_need_two_ranks_are_skipped_on_one() {
    for (options, code) in [("", 4), ("--allow-skips", 0)] {
        let kept = Kept::new();
        let benches = "collective.allreduce p2p.latency rma.put_bw --sizes 8 --max-time 10ms";
        let done = kept.job(&format!("{benches} -n 1 {options}")).run().expect(code);
        assert!(done.stdout.contains("needs 2 ranks, has 1"), "{done}");
        let tally = kept.run().end.unwrap().1;
        assert_eq!((tally.cases, tally.skipped), (3, 2), "{done}");
    }
}

#[test]
fn each_rank_is_bound_to_its_own_core() {
    if mpi::cores() < 2 {
        return skipped("one core");
    }
    let run = measured("p2p.latency --sizes 8 --iterations 20");
    let places = &run.run.places;
    assert_ne!(places[0].cpus, places[1].cpus);
    assert!(places.iter().all(|p| p.cpu_numbers().len() < p.online as usize), "{places:?}");
}

#[test]
fn only_a_search_path_is_needed() {
    let path = env::var_os("PATH").unwrap_or_default();
    let arguments = "run rma.put_bw --sizes 8 --iterations 100";
    let job = Job::of(mpi::ombx()).only_env(&[("PATH", &path)]).args(arguments.split_whitespace());
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
    Job::of("sh").args(["-c", &script]).env("OMBX_MPIEXEC", mpi::mpiexec()).run().expect(0);
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
    let mut job = Job::of(&other).args(words).arg(mpi::ombx()).args(arguments.split_whitespace());
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        job = job.env(name, "1");
    }
    let done = job.env("OMPI_MCA_plm_rsh_agent", "sh").run();
    assert_eq!(done.code, Some(6), "{done}");
    let messages: Vec<&str> = done.stderr.lines().filter(|line| line.contains("ombx: ")).collect();
    assert!(messages.len() == 1 && messages[0].contains("started 2 processes"), "{done}");
    assert!(done.stdout.is_empty(), "nothing is measured\n{done}");
    done.leaves_nothing();
}

#[test]
fn ombx_rejects_the_launcher_of_another_mpi() {
    let Some(other) = mpi::other_mpiexec() else { return skipped("no other MPI is installed") };
    let job = Job::ombx("run p2p.latency --sizes 8").env("OMBX_MPIEXEC", &other);
    let done = job.run().expect(6);
    assert!(done.sentence().contains("belongs to another MPI"), "{done}");
    let missing = Job::ombx("run p2p.latency --sizes 8").env("OMBX_MPIEXEC", "/nonexistent/mpiexec");
    missing.run().expect(6).sentence();
}

/// Every family measures in a session, and rows and file say so. A library without sessions is an error before anything starts.
#[test]
fn mpi_starts_as_a_session() {
    let names = "p2p.latency p2p.latency_mt rma.put_bw collective.allreduce collective.init";
    let words = format!("{names} --init session --sizes 8 --iterations 20 --warmup 2 -n 2");
    let kept = Kept::new();
    let done = kept.job(&words).run();
    if let Err(why) = ombx_mpi::sessions_exist() {
        assert_eq!(done.code, Some(2), "{done}");
        assert!(done.stderr.contains(&why) && done.stdout.is_empty(), "{done}");
        let osu = Job::ombx("osu osu_latency -I").run().expect(2);
        assert!(osu.stderr.contains(&why), "{osu}");
        return;
    }
    assert_eq!(done.code, Some(0), "{done}");
    let runs = results::runs_of(&kept.out());
    let rows: Vec<_> = runs.iter().flat_map(|run| &run.rows).collect();
    assert_eq!(rows.len(), 5, "{done}");
    for row in rows {
        assert!(row.key.contains("/init=session,") && row.axes["init"] == "session", "{}", row.key);
        assert!(row.summary.is_some(), "{}", row.key);
    }
    assert!(runs.iter().all(|run| run.run.plan["init"] == "session"));
    let world = measured("p2p.latency --sizes 8 --iterations 20");
    assert_eq!((&*world.run.plan["init"], world.rows[0].axes.get("init")), ("world", None));
    let osu = Job::ombx("osu osu_latency -I -m 8:8 -i 20 -x 2").run().expect(0);
    assert!(osu.stdout.contains("# OSU MPI Latency Test"), "{osu}");
}

/// A rank that fails in a session ends the others, although `MPI_COMM_WORLD` does not exist.
#[test]
fn a_failure_in_a_session_ends_every_rank() {
    if ombx_mpi::sessions_exist().is_err() {
        return;
    }
    let full = "/dev/full";
    let job = Job::mpiexec(
        2,
        &format!("run p2p.latency --init session --sizes 8 --iterations 20 --force -o {full}"),
    );
    let done = job.run();
    assert!(done.code.is_some_and(|code| code != 0) && done.stderr.contains(full), "{done}");
}
