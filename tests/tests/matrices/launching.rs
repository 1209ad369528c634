//! Tests of starting MPI as a session, and of more ranks than cores.

use std::{fs, os::unix::fs::PermissionsExt as _};

use ombx_tests::{
    Files, Job,
    kept::{Kept, measured},
    results,
};

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

#[test]
fn more_ranks_than_cores_give_a_notice() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let run = measured(&format!("p2p.latency --sizes 8 --iterations 20 -n {}", cores + 1));
    assert!(run.rows[0].trust.iter().any(|n| n.code.name() == "oversubscribed"), "{:?}", run.rows[0].trust);
}

#[test]
fn idle_ranks_are_counted_in_a_notice() {
    for ranks in [3, 4] {
        let run = measured(&format!("p2p.latency rma.put_latency --sizes 8 --iterations 200 -n {ranks}"));
        assert_eq!(run.run.places.len(), ranks);
        for row in &run.rows {
            assert_eq!(row.ranks, 2, "{}", row.key);
            let notice = row.trust.iter().find(|n| n.code.name() == "idle_ranks").expect("a notice");
            assert_eq!(notice.short, format!("{} idle", ranks - 2));
        }
    }
}

/// The time in which hosts must answer is 30 s.
#[test]
fn a_host_that_starts_no_rank_is_named_with_the_words_of_the_remote_shell() {
    let files = Files::default();
    let script = "#!/bin/sh\ncase \"$*\" in *kernel/hostname*) echo other; exit;; esac\necho this host is frozen >&2\nexec sleep 300\n";
    let path = files.write("ssh", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    let job = Job::ombx("run p2p.latency -n 2 --hosts localhost,n07 --timeout 80s --ssh").arg(path);
    let done = job.run().expect(6);
    // What the launcher waits for is said before.
    let last = done.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(last.starts_with("ombx: no rank on n07 after 30 s: this host is frozen"), "{done}");
    done.leaves_nothing();
}
