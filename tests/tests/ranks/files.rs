//! Tests of the files of MPI-IO: none stays behind.

use std::fs;

use ombx_tests::{Files, Job, Running, kept::Kept};
use rustix::process::Signal;

/// The files have no name while they are measured, so that a killed rank leaves nothing.
#[test]
fn nothing_stays_behind_when_a_job_is_killed() {
    let signals = [(Signal::INT, "shared"), (Signal::KILL, "individual")];
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
        assert_eq!(files.names(), Vec::<String>::new(), "{done}");
    }
}

/// A file that ranks open by its name is removed by the process that starts the ranks.
#[test]
fn named_files_are_removed_when_a_job_is_killed() {
    let (kept, files) = (Kept::new(), Files::default());
    let words = "io.open --files one --sizes 8 --max-time 60s --precision 0.0001% --quick";
    let job = kept.job(&format!("{words} -n 2 -v")).arg("--directory").arg(files.root());
    let mut job = job.start();
    job.until("the file exists", |_| !files.names().is_empty());
    kill(&mut job, Signal::KILL);
    let done = job.wait();
    done.leaves_nothing();
    assert_ne!(done.code, Some(0), "{done}");
    assert_eq!(files.names(), Vec::<String>::new(), "{done}");
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
        Job::mpiexec(
            2,
            &format!("run io.write --sizes 64K --iterations 5 --warmup 1 --directory {directory}"),
        )
        .run()
    };
    let done = run(&files.root().display().to_string()).expect(0);
    assert!(done.stdout.contains("verified"), "{done}");
    assert_eq!(files.names(), Vec::<String>::new());
    let absent = files.path("absent").display().to_string();
    let done = run(&absent).expect(2);
    assert!(done.stderr.contains(&format!("{absent}: No such file or directory")), "{done}");
}
