//! Tests of the start of ranks in the environments of batch systems and other programs, and of launchers that start
//! none.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use ombx_tests::{Done, Files, Job, mpi, skipped};
use rustix::process::Signal;

/// Writes a launcher of the MPI under test that prints words and then does something else than starting ranks.
fn launcher(files: &Files, then: &str) -> PathBuf {
    let version = if mpi::is_open_mpi() { "mpirun (Open MPI) 4" } else { "HYDRA build details" };
    let script = format!(
        "#!/bin/sh\ncase $1 in --version) echo '{version}'; exit;; esac\necho 'no srun here' >&2\n{then}\n"
    );
    let path = files.write("mpiexec", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path
}

/// Returns a job in the environment of this search path and these variables alone.
fn only(words: &str, path: &OsStr, variables: &[(&str, &str)]) -> Job {
    let mut all = vec![("PATH", path), ("OMBX_MPIEXEC", mpi::mpiexec().as_os_str())];
    all.extend(variables.iter().map(|(name, value)| (*name, OsStr::new(*value))));
    Job::new(mpi::ombx()).args(words.split_whitespace()).only_env(&all)
}

/// Returns a search path with a shell and without the programs of batch systems.
fn without_programs() -> Files {
    let files = Files::default();
    symlink("/bin/sh", files.path("sh")).expect("a shell");
    files
}

#[test]
fn a_launcher_with_no_process_left_is_ended_with_its_words() {
    let files = Files::default();
    // The shell becomes a program that does not wait for its child.
    let launcher = launcher(&files, "/bin/true & exec sleep 600");
    let done = Job::ombx("run p2p.latency --sizes 8").env("OMBX_MPIEXEC", &launcher).run().expect(6);
    done.complains(&[
        "  no srun here\n",
        "the ranks have not connected after",
        "sleep (",
        "true (",
        "has ended",
    ]);
    assert!(!done.stderr.contains("--timeout") && done.stderr.matches("no srun here").count() == 1, "{done}");
    let done = Job::ombx("doctor --format json").env("OMBX_MPIEXEC", &launcher).run().expect(4);
    assert!(done.stdout.contains("it says: no srun here") && done.stdout.contains("true ("), "{done}");
}

#[test]
fn the_words_of_a_launcher_are_shown_as_they_come() {
    let files = Files::default();
    let launcher = launcher(&files, "sleep 600");
    for (options, code) in [("", 130), ("--timeout 20s", 6)] {
        let words = format!("run p2p.latency --sizes 8 {options}");
        let mut job = Job::ombx(&words).env("OMBX_MPIEXEC", &launcher).start();
        job.until("the launcher's words", |job| job.stderr().contains("no srun here"));
        job.until("an examination", |job| job.stderr().contains("sleep ("));
        if code == 130 {
            job.signal(Signal::INT);
        }
        let done = job.wait().expect(code);
        assert!(!done.stderr.contains("longer --timeout"), "{done}");
        assert!(code != 6 || done.stderr.contains("the ranks had not connected"), "{done}");
    }
}

/// The launcher that ombx has started belongs to its MPI, whatever comes first in the search path.
#[test]
fn another_launcher_in_the_search_path_is_no_reason() {
    let Some(other) = mpi::other_mpiexec() else { return skipped("no other MPI is installed") };
    let (files, path) = (Files::default(), Files::default());
    symlink(other, path.path("mpiexec")).expect("a link");
    let launcher = launcher(&files, "exit 1");
    let path = format!("{}:/usr/bin:/bin", path.root().display());
    let job = Job::ombx("run p2p.latency --sizes 8").env("PATH", path).env("OMBX_MPIEXEC", &launcher);
    let done = job.run().expect(6);
    done.complains(&["no srun here", "its launcher with exit code 1"]);
    assert!(!done.stderr.contains("belongs to"), "{done}");
}

/// A launcher of another MPI that the user has chosen is observed, and the advice is not what was done already.
#[test]
fn a_launcher_of_another_mpi_that_ombx_has_started_is_named() {
    let Some(other) = mpi::other_mpiexec() else { return skipped("no other MPI is installed") };
    let mut job = Job::ombx("run p2p.latency --sizes 8 -n 2 --launcher").arg(&other);
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        job = job.env(name, "1");
    }
    let done = job.env("OMPI_MCA_plm_rsh_agent", "sh").run().expect(6);
    assert!(!done.stderr.contains("let ombx run start"), "{done}");
    assert!(
        ["started 2 processes", "belongs to another MPI"].iter().any(|part| done.stderr.contains(part)),
        "{done}"
    );
}

/// A container inside a job has the variables of Slurm, but not its programs.
#[test]
fn ranks_start_in_a_slurm_job_without_srun() {
    let path = without_programs();
    let run = |words: &str, nodes: &str| -> Done {
        let variables = [("SLURM_JOB_ID", "7"), ("SLURM_NNODES", nodes), ("SLURM_JOB_NODELIST", "n[01-02]")];
        let words = format!("run p2p.latency --sizes 8 --quick -n 2 {words}");
        only(&words, path.root().as_os_str(), &variables).run()
    };
    run("", "1").expect(0);
    run("--hosts localhost", "2").expect(0);
    let done = run("", "2").expect(2);
    assert!(done.sentence().starts_with("SLURM_JOB_ID=7 belongs to a Slurm job on 2 nodes"), "{done}");
}

#[test]
fn hosts_of_a_batch_system_that_cannot_be_read_are_named() {
    let path = without_programs();
    let absent = path.path("absent").display().to_string();
    let words = "run p2p.latency --sizes 8 --quick -n 2";
    let variables = [("PBS_JOBID", "7"), ("PBS_ENVIRONMENT", "PBS_BATCH"), ("PBS_NODEFILE", &*absent)];
    let done = only(words, path.root().as_os_str(), &variables).run();
    // Open MPI without this batch system starts ranks here.
    assert!(done.code == Some(0) || done.stderr.contains(&format!("PBS_NODEFILE names {absent}")), "{done}");
}

#[test]
fn one_of_several_processes_measures_nothing_alone() {
    let path = without_programs();
    for variables in [
        &[("RANK", "1"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "0"), ("MASTER_ADDR", "n01")][..],
        &[("JOB_COMPLETION_INDEX", "1")],
        &[("AWS_BATCH_JOB_NODE_INDEX", "0"), ("AWS_BATCH_JOB_NUM_NODES", "2")],
        &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")],
        &[("JSM_NAMESPACE_RANK", "0"), ("JSM_NAMESPACE_SIZE", "2")],
        &[("SLURM_PROCID", "0"), ("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "2")],
    ] {
        let done =
            only("run sockets.bw --sizes 8 --quick", path.root().as_os_str(), variables).run().expect(2);
        assert!(done.sentence().contains("launcher") && done.stdout.is_empty(), "{done}");
    }
    for variables in [
        &[("RANK", "0"), ("WORLD_SIZE", "1")][..],
        &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7")],
        &[("SLURM_ARRAY_TASK_ID", "3")],
    ] {
        only("run sockets.bw --sizes 8 --quick", path.root().as_os_str(), variables).run().expect(0);
    }
    let words = "run sockets.bw --sizes 8 --quick --hosts localhost:2";
    only(words, path.root().as_os_str(), &[("JOB_COMPLETION_INDEX", "0")]).run().expect(0);
}
