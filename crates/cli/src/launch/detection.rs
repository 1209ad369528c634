//! Detection of the launcher that started this process.

use std::env;

#[cfg(feature = "mpi")]
use ombx_core::error::{Error, Result};

/// A launcher, and this process as one of its ranks, from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartedBy {
    /// Name of the launcher, for messages.
    pub(crate) launcher: &'static str,
    pub(crate) rank: u64,
    /// Number of ranks, if the launcher publishes it.
    pub(crate) ranks: Option<u64>,
}

/// Names of launchers that start ranks of one family of MPI only.
pub(crate) const OPEN_MPI: &str = "Open MPI's mpiexec";
pub(crate) const HYDRA: &str = "a Hydra mpiexec (MPICH and derivatives)";

/// Variables that each launcher sets: its name, rank, number of ranks. Open MPI's come before those of PMIx, which it sets too, and those
/// of Flux before those of PMI.
const VARIABLES: [(&str, &str, &str); 5] = [
    (OPEN_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    (HYDRA, "PMI_RANK", "PMI_SIZE"),
    ("a PMIx launcher", "PMIX_RANK", "PMIX_SIZE"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// Returns the launcher that started this process as one of its ranks, if any.
pub(crate) fn launcher() -> Option<StartedBy> {
    launcher_in(&|name| env::var(name).ok())
}

fn launcher_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<StartedBy> {
    let number = |name: &str| variable(name).and_then(|v| v.parse::<u64>().ok());
    VARIABLES.iter().find_map(|(launcher, rank, size)| {
        let (rank_value, ranks) = (number(rank)?, number(size));
        // Job scripts and interactive shells of Slurm have the variables of a single rank, but no launcher started them.
        let shell =
            *rank == "SLURM_PROCID" && (variable("SLURM_STEP_ID").is_none() || ranks.is_none_or(|n| n < 2));
        (!shell).then_some(StartedBy { launcher, rank: rank_value, ranks })
    })
}

/// Returns whether Open MPI's launcher started this process.
pub(crate) fn is_under_open_mpi() -> bool {
    launcher().is_some_and(|started| started.launcher == OPEN_MPI)
}

/// Returns the number of ranks of the same launcher on this host, if the launcher publishes it.
pub(crate) fn ranks_here() -> Option<u64> {
    let names = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"];
    names.iter().find_map(|name| env::var(name).ok()?.parse().ok())
}

/// Returns whether this process is the first of its launcher on this host. A launcher that does not publish it has one process per host.
#[cfg(feature = "mpi")]
pub(crate) fn is_first_on_host() -> bool {
    ombx_accelerator::LOCAL_RANKS.iter().find_map(|name| env::var(name).ok()).is_none_or(|rank| rank == "0")
}

/// Returns whether this process prints messages for all processes of its launcher: it is the first, or there is no launcher.
pub(crate) fn is_first_process() -> bool {
    launcher().is_none_or(|started| started.rank == 0)
}

/// Fails if the launcher belongs to another MPI: it then started N processes that are each rank 0 of 1.
#[cfg(feature = "mpi")]
pub(crate) fn refuse_singletons(size: u32) -> Result<()> {
    match launcher() {
        Some(StartedBy { launcher, ranks: Some(n), .. }) if size == 1 && n > 1 => {
            Err(Error::fabric(format!(
                "{launcher} started {n} processes, but each is rank 0 of 1, because ombx was built with {} ({}): start it with \
                 the mpiexec of that MPI, or let ombx run start its ranks",
                ombx_mpi::family().name(),
                ombx_mpi::library_version(),
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn a_slurm_job_script_is_not_a_rank() {
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
