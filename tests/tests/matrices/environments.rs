//! Commands in the environments of batch systems, launchers and other programs: each measures or says why not, and
//! names no wrong reason.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use ombx_tests::{Done, Files, Job, mpi};

/// Variables of each environment, with values after `=`. `@here` is a file that names this host, `@absent` one that
/// does not exist.
const ENVIRONMENTS: [&str; 36] = [
    "",
    "SLURM_JOB_ID=7 SLURM_NNODES=1 SLURM_JOB_NODELIST=n01 SLURM_TASKS_PER_NODE=2",
    "SLURM_JOB_ID=7 SLURM_NNODES=2 SLURM_JOB_NODELIST=n[01-02] SLURM_NODELIST=n[01-02] SLURM_TASKS_PER_NODE=2(x2)",
    "SLURM_JOB_ID=7",
    "SLURM_JOB_ID=7 SLURM_NNODES=1 SLURM_PROCID=0 SLURM_NTASKS=4",
    "SLURM_JOB_ID=7 SLURM_NNODES=1 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1",
    "SLURM_JOB_ID=7 SLURM_NNODES=1 SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2",
    "SLURM_JOB_ID=7 SLURM_NNODES=1 SLURM_ARRAY_TASK_ID=3",
    "PBS_JOBID=7 PBS_ENVIRONMENT=PBS_BATCH PBS_NODEFILE=@here",
    "PBS_JOBID=7 PBS_ENVIRONMENT=PBS_BATCH PBS_NODEFILE=@absent",
    "PBS_JOBID=7 PBS_NODEFILE=@other",
    "SGE_ROOT=/x ARC=x JOB_ID=7 PE_HOSTFILE=@here",
    "SGE_ROOT=/x ARC=x JOB_ID=7 PE_HOSTFILE=@absent",
    "SGE_ROOT=/x JOB_ID=7 SGE_TASK_ID=3",
    "LSB_JOBID=7 LSB_DJOB_HOSTFILE=@here LSB_HOSTS=localhost",
    "LSB_JOBID=7 LSB_DJOB_HOSTFILE=@absent",
    "LSB_JOBID=7 LSB_MCPU_HOSTS=n01 LSF_BINDIR=/x",
    "FLUX_URI=local:///x FLUX_JOB_ID=7",
    "FLUX_URI=local:///x FLUX_TASK_RANK=0 FLUX_JOB_SIZE=2",
    "COBALT_JOBID=7 COBALT_NODEFILE=@here",
    "COBALT_JOBID=7 COBALT_NODEFILE=@absent",
    "RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 MASTER_ADDR=n01 MASTER_PORT=29500",
    "RANK=3 WORLD_SIZE=4",
    "RANK=0 WORLD_SIZE=1",
    "HOROVOD_RANK=0 HOROVOD_SIZE=2",
    "JOB_COMPLETION_INDEX=0 KUBERNETES_SERVICE_HOST=10.0.0.1",
    "KUBERNETES_SERVICE_HOST=10.0.0.1 KUBERNETES_PORT=tcp://10.0.0.1:443",
    "AWS_BATCH_JOB_NODE_INDEX=1 AWS_BATCH_JOB_NUM_NODES=2",
    "BATCH_TASK_INDEX=0 BATCH_TASK_COUNT=3",
    "PMI_RANK=0 PMI_SIZE=2",
    "PMI_RANK=0 PMI_SIZE=1",
    "PALS_RANKID=0 PMI_RANK=0 PMI_SIZE=2",
    "ALPS_APP_PE=0",
    "MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=2",
    "JSM_NAMESPACE_RANK=0 JSM_NAMESPACE_SIZE=2",
    "MPI_RANKID=0 MPI_NRANKS=2",
];
/// Programs of batch systems. They are absent, or fail.
const PROGRAMS: [&str; 6] = ["srun", "flux", "blaunch", "qrsh", "ssh", "torchrun"];
const COMMANDS: [&str; 3] =
    ["run p2p.latency --sizes 8 --quick", "run sockets.latency --sizes 8 --quick", "doctor"];
/// Reasons that nobody has observed in any of these environments.
const WRONG: [&str; 5] =
    ["another MPI", "hangs", "did not end within", "longer --timeout", "start the ranks itself"];

/// Checks how a command ended in an environment.
#[track_caller]
fn judge(done: &Done, what: &str) {
    assert!(matches!(done.code, Some(0 | 2 | 4 | 6)), "{what}\n{done}");
    let wrong = WRONG.iter().find(|words| done.stderr.contains(**words) || done.stdout.contains(**words));
    assert!(wrong.is_none(), "{what}: {wrong:?}\n{done}");
    assert!(!done.stdout.is_empty() || done.stderr.contains("ombx: "), "{what}: silent\n{done}");
    assert!(!matches!(done.code, Some(2 | 6)) || done.stderr.contains("ombx: "), "{what}: no reason\n{done}");
}

#[test]
fn every_environment_measures_or_says_why_not() {
    let files = Files::default();
    let here = files.write("here", "localhost\nlocalhost\n");
    let other = files.write("other", "host.invalid\n");
    let absent = files.path("absent");
    let (without, with) = (Files::default(), Files::default());
    for path in [&without, &with] {
        symlink("/bin/sh", path.path("sh")).expect("a shell");
    }
    for program in PROGRAMS {
        let file = with.write(program, format!("#!/bin/sh\necho '{program}: cannot start' >&2\nexit 1\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a program");
    }
    let mut count = 0;
    for environment in ENVIRONMENTS {
        let text = [("@here", &here), ("@other", &other), ("@absent", &absent)]
            .iter()
            .fold(environment.to_owned(), |text, (name, file)| text.replace(name, &file.to_string_lossy()));
        let pairs: Vec<(&str, &OsStr)> = text
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name, OsStr::new(value)))
            .collect();
        for (programs, path) in [("absent", &without), ("failing", &with)] {
            for command in COMMANDS {
                let fixed = [("PATH", path.root().as_os_str()), ("OMBX_MPIEXEC", mpi::mpiexec().as_os_str())];
                let variables = Vec::from_iter(fixed.into_iter().chain(pairs.iter().copied()));
                let job = Job::new(mpi::ombx()).args(command.split_whitespace()).only_env(&variables);
                judge(&job.run(), &format!("{environment}, programs {programs}: {command}"));
                count += 1;
            }
        }
    }
    assert!(count > 200, "{count}");
}
