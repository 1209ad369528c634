//! Tests of Slurm between the hosts of a test bed. They start its daemons.

use std::{fs, io::Read, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use ombx_tests::{Job, missing, mpi, print_note, results, skipped};

use crate::testbed::Bed;

const CONF: &str = "\
ClusterName=bed
SlurmctldHost=h1
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=bf_interval=1,sched_interval=1
KillWait=2
MpiDefault=none
SlurmdTimeout=10
NodeName=h[1-2] CPUs=2 State=UNKNOWN
PartitionName=all Nodes=h[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
";

/// Creates a test bed and starts the Slurm daemons on both hosts. They end with the test bed.
pub(crate) fn slurm() -> Option<Bed> {
    let programs = ["slurmctld", "slurmd", "sinfo", "squeue", "salloc", "srun", "sbatch"];
    let bed = Bed::with(&programs, "--hosts 2")?;
    let root = bed.files.root().display().to_string();
    fs::create_dir(bed.files.path("state")).unwrap();
    let dirs = format!(
        "StateSaveLocation={root}/state\nSlurmdSpoolDir={root}/spool-%n\nSlurmctldPidFile={root}/ctld.pid\nSlurmdPidFile={root}/%n.pid\nSlurmctldLogFile={root}/ctld.log\nSlurmdLogFile={root}/%n.log\n"
    );
    bed.files.write("cgroup.conf", "CgroupPlugin=cgroup/v1\n");
    let private = bed.files.path("pmix");
    fs::create_dir(&private).unwrap();
    bed.files.write("mpi.conf", format!("PMIxCliTmpDirBase={}\n", private.display()));
    for host in ["h1", "h2"] {
        bed.on(host, &format!("mount -t tmpfs tmpfs {}", private.display()));
    }
    let auth = if missing(&["munged"]).is_empty() {
        munge(&bed, &private)
    } else {
        print_note("munge is not installed: Slurm runs without authentication");
        "AuthType=auth/none\nCredType=cred/none\n".into()
    };
    let conf = bed.files.write("slurm.conf", format!("{CONF}{dirs}{auth}"));
    let conf = conf.display();
    bed.on("h1", &format!("env SLURM_CONF={conf} slurmctld -i -c -f {conf}"));
    for host in ["h1", "h2"] {
        bed.on(host, &format!("env SLURM_CONF={conf} slurmd -N {host} -f {conf} -c"));
    }
    for _ in 0..100 {
        if bed.on("h1", &format!("env SLURM_CONF={conf} sinfo -h -o %T")).trim() == "idle" {
            return Some(bed);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("Slurm's nodes are not idle: {}", bed.on("h1", &format!("cat {root}/ctld.log {root}/h1.log")));
}

/// Starts munge on both hosts with a new key. Returns the lines of `slurm.conf` that use it.
fn munge(bed: &Bed, private: &Path) -> String {
    let random = fs::File::open("/dev/urandom").expect("/dev/urandom");
    let mut key = Vec::new();
    random.take(1024).read_to_end(&mut key).expect("random bytes");
    let key = bed.files.write("munge.key", key);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).expect("a mode");
    let (key, private) = (key.display(), private.display());
    for host in ["h1", "h2"] {
        // `--force`: munge warns about the permissions of a temporary directory.
        let files = format!(
            "--pid-file {private}/munge.pid --log-file {private}/munge.log --seed-file {private}/munge.seed"
        );
        bed.on(host, &format!("munged --force --key-file {key} --socket {private}/munge {files}"));
    }
    format!("AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={private}/munge\n")
}

/// Returns a job of this command line on the first host, with the configuration of Slurm.
pub(crate) fn on_slurm(bed: &Bed, words: &[&str]) -> Job {
    let conf = format!("SLURM_CONF={}", bed.files.path("slurm.conf").display());
    let words: Vec<String> = [conf.as_str()].iter().chain(words).map(|word| (*word).to_owned()).collect();
    bed.job(&words)
}

#[test]
fn srun_starts_ranks_on_both_hosts() {
    let Some(bed) = slurm() else { return };
    let (ombx, out) = (mpi::ombx().display().to_string(), bed.out().display().to_string());
    // Inside an allocation of salloc.
    let run = [
        "salloc",
        "-N2",
        "-n2",
        &ombx,
        "run",
        smoke(),
        "--launcher",
        "srun",
        "--hosts",
        "h1,h2",
        "--max-time",
        "50ms",
        "--quick",
        "-o",
        &out,
    ];
    on_slurm(&bed, &run).run().expect(0);
    let run = results::run_of(&bed.out()).run;
    let hosts: Vec<&str> = run.places.iter().map(|place| place.host.as_str()).collect();
    assert_eq!(hosts, ["h1", "h2"]);
    assert!(run.env.contains_key("SLURM_JOB_ID"), "{:?}", run.env);
}

/// `--unfit` writes such lists.
#[test]
fn srun_excludes_the_hosts_of_a_list_with_comments() {
    let Some(bed) = slurm() else { return };
    for (unfit, expected) in [("h1", "h2"), ("h2", "h1")] {
        let list = bed.files.write(
            "unfit",
            format!("# 1 of 2 hosts, with a finding of ombx\n# {expected}-{unfit}: slow\n{unfit}\n"),
        );
        let exclude = format!("--exclude={}", list.display());
        let done =
            on_slurm(&bed, &["srun", &exclude, "-N1", "-n1", "--mpi=none", "hostname"]).run().expect(0);
        assert_eq!(done.stdout.trim(), expected, "{done}");
    }
}

#[test]
fn processes_that_srun_starts_without_mpi_are_refused() {
    let Some(bed) = slurm() else { return };
    let ombx = mpi::ombx().display().to_string();
    let words = ["salloc", "-N2", "-n2", "srun", "--mpi=none", &ombx, "run", "p2p.latency", "--quick"];
    // Open MPI refuses them in MPI_Init.
    let (code, words_of_error) =
        if mpi::is_open_mpi() { (1, "direct launched") } else { (6, "srun started 2 processes") };
    let done = on_slurm(&bed, &words).run().expect(code);
    assert!(done.stderr.contains(words_of_error), "{done}");
}

#[test]
fn sbatch_runs_jobs_of_cluster_bench() {
    let Some(bed) = slurm() else { return };
    let inventory: String = fs::read_to_string(bed.files.path("bed/cluster.toml")).unwrap();
    // Hosts of the bed reach each other without the ssh configuration of this machine.
    let inside = bed.files.write("inside.toml", inventory.replace("ssh_config = ", "# ssh_config = "));
    let xtask = std::env::var("OMBX_XTASK").ok().or_else(built_xtask);
    let Some(xtask) = xtask else { return skipped("no xtask binary to run on a host (OMBX_XTASK)") };
    let (ombx, runs) = (mpi::ombx().display().to_string(), bed.runs().display().to_string());
    let inside = inside.display().to_string();
    let words = [
        xtask.as_str(),
        "cluster-bench",
        "--inventory",
        &inside,
        "--bin",
        &ombx,
        "--runs",
        &runs,
        "--launcher",
        "slurm",
        "--timeout",
        "60s",
        "--fail-on",
        "nothing",
        "--",
        "--sizes",
        "8",
        "--max-time",
        "100ms",
    ];
    on_slurm(&bed, &words).run().expect(0);
    let matrix = bed.kept("links.csv");
    assert!(matrix.contains("pairs-h1-h2,pairs,h1,h2,0,1,8,"), "{matrix}");
    assert!(bed.kept("jobs/pairs-h1-h2/batch.sh").contains("#SBATCH --nodelist=h1,h2"));
    assert_eq!(bed.kept("jobs/pairs-h1-h2/exit").trim(), "0");
}

fn built_xtask() -> Option<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/debug/xtask");
    fs::canonicalize(path).ok().map(|path| path.display().to_string())
}

/// Returns the smoke suite if this build has all its benchmarks, otherwise one benchmark.
fn smoke() -> &'static str {
    let list = Job::ombx("list").run().expect(0).stdout;
    if ["rma.put_bw", "collective.barrier"].iter().all(|name| list.contains(name)) {
        "suite:smoke"
    } else {
        "p2p.latency"
    }
}
