//! Detection of the launcher that started this process.

use std::{env, fs};

use ombx_record::error::{Error, Result};
use rustix::process::Pid;

use crate::launch::orphans;

/// A launcher, and this process as one of its ranks, from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedBy {
    /// Name of the launcher, for messages.
    pub launcher: &'static str,
    /// Rank of this process.
    pub rank: u64,
    /// Number of ranks, if the launcher publishes it.
    pub ranks: Option<u64>,
}

/// Names of launchers that start ranks of one family of MPI only.
pub(crate) const OPEN_MPI: &str = "Open MPI's mpiexec";
pub(crate) const HYDRA: &str = "a Hydra mpiexec (MPICH and derivatives)";
/// Launchers of HPE and Cray, which may not publish their number of ranks.
const PALS: &str = "PALS";
const APRUN: &str = "aprun";
const WITHOUT_NUMBER: [&str; 2] = [PALS, APRUN];

/// Variables that each launcher sets: its name, rank, number of ranks. Those of launchers that also set the variables
/// of PMI or PMIx come before these.
const VARIABLES: [(&str, &str, &str); 10] = [
    ("jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("mpirun_rsh of MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    (OPEN_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    (PALS, "PALS_RANKID", "PMI_SIZE"),
    (APRUN, "ALPS_APP_PE", "PMI_SIZE"),
    (HYDRA, "PMI_RANK", "PMI_SIZE"),
    ("a PMIx launcher", "PMIX_RANK", "PMIX_SIZE"),
    ("mpirun of Platform MPI", "MPI_RANKID", "MPI_NRANKS"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// Variables of programs that start several processes and are no launchers of MPI: a name, the number of this
/// process, the number of all. The last is empty if none is published.
const STARTERS_OF_PROCESSES: [(&str, &str, &str); 9] = [
    ("torchrun or a program like it", "RANK", "WORLD_SIZE"),
    ("a script that runs on each of several nodes", "NODE_RANK", "NNODES"),
    ("blaunch of LSF", "LSF_PM_TASKID", ""),
    ("SkyPilot", "SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES"),
    ("a task of Cloud Run", "CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT"),
    ("Horovod", "HOROVOD_RANK", "HOROVOD_SIZE"),
    ("an indexed job of Kubernetes", "JOB_COMPLETION_INDEX", ""),
    ("a job of AWS Batch on several nodes", "AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES"),
    ("a task of Google Batch", "BATCH_TASK_INDEX", "BATCH_TASK_COUNT"),
];
/// The smallest numbers that Slurm gives to steps of its own, such as the shell of a job script.
const STEPS_OF_SLURM: u64 = 0xffff_fff0;

/// Starts of the names of launchers, and of their processes that start ranks on a host. The kernel keeps 15 characters of a name.
const STARTERS: [&str; 7] = ["hydra_pmi_proxy", "prted", "orted", "mpiexec", "mpirun", "orterun", "prterun"];
/// The process of Slurm that starts a step, and words in its command line for those steps that are no ranks.
const SLURM_STEP: &str = "slurmstepd";
const NO_RANKS: [&str; 3] = ["batch", "extern", "interactive"];

/// Returns whether this is the name of a launcher of MPI.
pub(super) fn is_starter(name: &str) -> bool {
    STARTERS.iter().any(|start| name.starts_with(start))
}

/// Returns the name of a process above this one that starts ranks.
pub(crate) fn starter() -> Option<String> {
    orphans::ancestors().into_iter().find_map(|pid| {
        let of_process =
            |file: &str| fs::read_to_string(format!("/proc/{}/{file}", Pid::as_raw_nonzero(pid))).ok();
        let name = of_process("comm")?.trim().to_owned();
        let of_step =
            || of_process("cmdline").is_some_and(|line| !NO_RANKS.iter().any(|word| line.contains(word)));
        let starts = is_starter(&name) || name == SLURM_STEP && of_step();
        starts.then_some(name)
    })
}

/// Fails if a launcher has started this process and its variables were taken away, so that each of its processes would be a job of its own.
pub(crate) fn refuse_emptied() -> Result<()> {
    let is_in_batch = env::var_os("SLURM_JOB_ID").is_some();
    match starter().filter(|name| !(is_in_batch && name == SLURM_STEP)) {
        Some(name) if launcher().is_none() => Err(Error::fabric(format!(
            "{name} has started this process, but its variables are missing in the environment, so that it would measure alone: pass the \
             environment of the launcher on to ombx, or start ombx without a launcher"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a process that is one of several, of which none knows the others: each would measure on its own host alone.
///
/// # Errors
/// Usage error: names the variables.
pub(super) fn refuse_one_of_several() -> Result<()> {
    one_of_several(&|name| env::var(name).ok()).map_or(Ok(()), |(seen, variable)| {
        Err(Error::usage(format!(
            "{seen}: each of several processes would measure on its own host alone, because none is a rank \
             of MPI. Start ombx once, with --hosts, or start ranks by a launcher of MPI; env -u {variable} measures here"
        )))
    })
}

/// Returns what shows that this process is one of several, and the variable that says so.
fn one_of_several(variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, &'static str)> {
    if launcher_in(variable).is_some() {
        return None;
    }
    let number = |name: &str| variable(name).and_then(|v| v.parse::<u64>().ok());
    STARTERS_OF_PROCESSES.iter().find_map(|(starter, own, all)| {
        let index = number(own)?;
        let seen = match number(all) {
            Some(count) if count > 1 && index < count => format!("{own}={index} and {all}={count} are"),
            None if all.is_empty() => format!("{own}={index} is"),
            _ => return None,
        };
        Some((format!("{seen} set, as by {starter}"), *own))
    })
}

/// Returns the launcher that started this process as one of its ranks, if any.
pub fn launcher() -> Option<StartedBy> {
    launcher_in(&|name| env::var(name).ok())
}

fn launcher_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<StartedBy> {
    let number = |name: &str| variable(name).and_then(|v| v.parse::<u64>().ok());
    VARIABLES.iter().find_map(|(launcher, rank, size)| {
        let is_of_slurm = *rank == "SLURM_PROCID";
        let rank_value = number(rank)?;
        let ranks = number(size).or_else(|| is_of_slurm.then(|| number("SLURM_NTASKS"))?);
        // Job scripts and interactive shells of Slurm have the variables of a single rank, but no launcher started them.
        let is_step = || number("SLURM_STEP_ID").is_some_and(|step| step < STEPS_OF_SLURM);
        let shell = is_of_slurm && (rank_value == 0 && !is_step() || ranks.is_none_or(|n| n < 2));
        (!shell).then_some(StartedBy { launcher, rank: rank_value, ranks })
    })
}

/// Refuses a launcher before a command that starts its own ranks. `instead` says what to do beside leaving it out.
pub fn refuse_launcher(command: &str, instead: &str) -> Result<()> {
    launcher().map_or(Ok(()), |StartedBy { launcher, .. }| {
        let why = format!("{command} starts its own ranks: start it without {launcher}, once, {instead}");
        Err(Error::usage(why))
    })
}

/// Returns whether Open MPI's launcher started this process.
pub(crate) fn is_under_open_mpi() -> bool {
    launcher().is_some_and(|started| started.launcher == OPEN_MPI)
}

/// Returns the number of ranks of the same launcher on this host, if the launcher publishes it.
pub fn ranks_here() -> Option<u64> {
    let names = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"];
    names.iter().find_map(|name| env::var(name).ok()?.parse().ok())
}

/// Returns whether this process is the first of its launcher on this host. A launcher that does not publish it has one process per host.
#[cfg(feature = "mpi")]
pub(crate) fn is_first_on_host() -> bool {
    ombx_accelerator::LOCAL_RANKS.iter().find_map(|name| env::var(name).ok()).is_none_or(|rank| rank == "0")
}

/// Returns whether this process prints messages for all processes of its launcher: it is the first, or there is no launcher.
pub fn is_first_process() -> bool {
    launcher().is_none_or(|started| started.rank == 0)
}

/// Who has chosen the launcher of a rank.
#[cfg(feature = "mpi")]
#[derive(Clone, Copy)]
pub(crate) enum ChosenBy {
    /// The user has started ombx under a launcher.
    User,
    /// ombx has started the launcher.
    Ombx,
}

/// Fails if a launcher has started N processes that are each rank 0 of 1.
#[cfg(feature = "mpi")]
pub(crate) fn refuse_singletons(size: u32, chosen: ChosenBy) -> Result<()> {
    if size > 1 {
        return Ok(());
    }
    let started = others_in(&|name| env::var(name).ok()).or_else(|| {
        let name = if launcher().is_none() { starter() } else { None };
        name.map(|name| format!("{name} started this process"))
    });
    started.map_or(Ok(()), |started| {
        let advice = match chosen {
            ChosenBy::User => {
                "start it with the mpiexec of that MPI, in the environment that this gives its ranks, or let \
                 ombx run start its ranks"
            }
            ChosenBy::Ombx => "start the ranks by the launcher of that MPI, see --launcher and OMBX_MPIEXEC",
        };
        Err(Error::fabric(format!(
            "{started}, but each process is rank 0 of 1. ombx was built with {} ({}): {advice}",
            ombx_mpi::family().name(),
            ombx_mpi::library_version(),
        )))
    })
}

/// Returns a sentence about a process that [`refuse_singletons`] refuses, unless it is the first one of its launcher, which prints the error.
/// There may be no first one: a script of one rank passes its environment on.
#[cfg(feature = "mpi")]
pub(crate) fn further_singleton() -> Option<String> {
    let StartedBy { launcher, rank, .. } = launcher().filter(|started| started.rank > 0)?;
    Some(format!("{launcher} started this process as rank {rank}, but for MPI it is rank 0 of 1"))
}

/// Returns a clause that says which launcher has started more than one process, or a process other than the first.
fn others_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let number = |name: &str| variable(name).and_then(|v| v.parse::<u64>().ok());
    let started = launcher_in(variable);
    let of_slurm = number("SLURM_STEP_NUM_TASKS").filter(|_| variable("SLURM_STEP_ID").is_some());
    let name = started.as_ref().map_or("srun", |started| started.launcher);
    if let Some(count) = started.as_ref().and_then(|started| started.ranks).or(of_slurm) {
        return (count > 1).then(|| format!("{name} started {count} processes"));
    }
    // Without a size, any rank is reason enough: a launcher of ranks that MPI does not know has started it. Rank 0 of
    // some launchers may be the only one; further ranks refuse themselves.
    let started = started.filter(|started| !WITHOUT_NUMBER.contains(&started.launcher) || started.rank > 0);
    started.map(|started| format!("{name} started this process as rank {}", started.rank))
}

#[cfg(test)]
mod tests {
    use crate::launch::detection::*;

    fn with(pairs: &[(&str, &str)]) -> Option<StartedBy> {
        launcher_in(&|name| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]).unwrap().rank, 1);
        let open_mpi =
            with(&[("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "4")]);
        assert_eq!(open_mpi.unwrap().ranks, Some(4));
        for (rank, size) in [
            ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
            ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
            ("MPI_RANKID", "MPI_NRANKS"),
            ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
            ("SLURM_PROCID", "SLURM_NTASKS"),
        ] {
            assert_eq!(with(&[(rank, "1"), (size, "2")]).unwrap().ranks, Some(2), "{rank}");
        }
        assert_eq!(with(&[("ALPS_APP_PE", "1")]).unwrap().ranks, None);
    }

    #[test]
    fn processes_that_are_alone_for_mpi_alone_are_refused() {
        let with = |pairs: &[(&str, &str)]| {
            others_in(&|name| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
        };
        for alone in [
            &[][..],
            &[("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "7"), ("SLURM_STEP_NUM_TASKS", "4")],
            &[("PMI_RANK", "0"), ("PMI_SIZE", "1")],
            &[("PALS_RANKID", "0"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")],
            &[("PALS_RANKID", "0"), ("PMIX_RANK", "0")],
            &[("PMIX_RANK", "0"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "1")],
        ] {
            assert_eq!(with(alone), None, "{alone:?}");
        }
        for (pairs, words) in [
            (&[("PMI_RANK", "0"), ("PMI_SIZE", "4")][..], "started 4 processes"),
            (&[("PMIX_RANK", "0")], "as rank 0"),
            (&[("PALS_RANKID", "1"), ("PMIX_RANK", "1")], "PALS started this process as rank 1"),
            (&[("PALS_RANKID", "0"), ("PMI_RANK", "0"), ("PMI_SIZE", "8")], "PALS started 8 processes"),
            (
                &[("PMIX_RANK", "0"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "2")],
                "started 2 processes",
            ),
            (&[("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "2")], "srun started 2 processes"),
        ] {
            assert!(with(pairs).is_some_and(|clause| clause.ends_with(words)), "{pairs:?}");
        }
    }

    #[test]
    fn one_of_several_processes_is_seen_with_its_variables() {
        let seen = |pairs: &[(&str, &str)]| {
            one_of_several(&|name| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
        };
        for (pairs, words) in [
            (&[("RANK", "1"), ("WORLD_SIZE", "4")][..], "RANK=1 and WORLD_SIZE=4 are set, as by torchrun"),
            (&[("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "n01")], "WORLD_SIZE=2 are set"),
            (&[("HOROVOD_RANK", "0"), ("HOROVOD_SIZE", "2")], "Horovod"),
            (&[("JOB_COMPLETION_INDEX", "0")], "Kubernetes"),
            (&[("AWS_BATCH_JOB_NODE_INDEX", "1"), ("AWS_BATCH_JOB_NUM_NODES", "2")], "AWS"),
            (&[("NODE_RANK", "0"), ("NNODES", "2"), ("MASTER_ADDR", "n01")], "on each of several nodes"),
            (&[("LSF_PM_TASKID", "2"), ("LSB_DJOB_NUMPROC", "2")], "LSF_PM_TASKID=2 is set, as by blaunch"),
            (&[("SKYPILOT_NODE_RANK", "1"), ("SKYPILOT_NUM_NODES", "2")], "SkyPilot"),
            (&[("CLOUD_RUN_TASK_INDEX", "0"), ("CLOUD_RUN_TASK_COUNT", "3")], "Cloud Run"),
        ] {
            assert!(seen(pairs).is_some_and(|(clause, _)| clause.contains(words)), "{pairs:?}");
        }
        for alone in [
            &[][..],
            &[("RANK", "0")],
            &[("RANK", "sergeant"), ("WORLD_SIZE", "4")],
            &[("RANK", "0"), ("WORLD_SIZE", "1")],
            &[("RANK", "4"), ("WORLD_SIZE", "4")],
            &[("NODE_RANK", "0"), ("NNODES", "1")],
            &[("LSF_PM_TASKID", "1"), ("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")],
            &[("RANK", "1"), ("WORLD_SIZE", "4"), ("PMI_RANK", "1"), ("PMI_SIZE", "4")],
            &[("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_JOB_ID", "7")],
        ] {
            assert_eq!(seen(alone), None, "{alone:?}");
        }
    }

    #[test]
    fn a_slurm_job_script_is_not_a_rank() {
        let step = |step: &str, rank: &str| {
            with(&[("SLURM_PROCID", rank), ("SLURM_STEP_ID", step), ("SLURM_NTASKS", "4")]).is_some()
        };
        assert!(!step("4294967291", "0"), "the step of a job script");
        assert!(step("0", "0") && step("4294967291", "1"));
        assert_eq!(with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), None);
        let in_shell = [
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_STEP_NUM_TASKS", "1"),
            ("SLURM_NTASKS", "4"),
        ];
        assert_eq!(with(&in_shell), None);
        assert_eq!(with(&[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "4")]).unwrap().ranks, Some(4));
        assert_eq!(with(&[("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "7")]), None);
        assert_eq!(
            with(&[("SLURM_PROCID", "0"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "1")]),
            None
        );
        assert!(
            with(&[("SLURM_PROCID", "1"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "2")]).is_some()
        );
    }
}
