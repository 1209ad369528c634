//! Whether a launcher has started this process, which one, and whether it fits the MPI of this build.

use std::env;

#[cfg(feature = "mpi")]
use ombx_core::error::{Error, Result};

/// What the environment says of a launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Started {
    /// Who.
    pub(crate) by: &'static str,
    /// As which rank.
    pub(crate) rank: u64,
    /// Of how many, where it says.
    pub(crate) of: Option<u64>,
}

/// What the launchers are called that start ranks of one family of MPI alone.
pub(crate) const OPEN_MPI: &str = "Open MPI's mpiexec";
pub(crate) const HYDRA: &str = "a Hydra mpiexec (MPICH and its kin)";

/// Variables that launchers set for each rank: whose, rank, size. Open MPI's come before the PMIx that it also speaks.
const MARKS: [(&str, &str, &str); 4] = [
    (OPEN_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    (HYDRA, "PMI_RANK", "PMI_SIZE"),
    ("a PMIx launcher", "PMIX_RANK", "PMIX_SIZE"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// The launcher that started this process as one of its ranks, if any.
pub(crate) fn launcher() -> Option<Started> {
    started(&|name| env::var(name).ok())
}

fn started(get: &dyn Fn(&str) -> Option<String>) -> Option<Started> {
    let number = |name: &str| get(name).and_then(|v| v.parse::<u64>().ok());
    MARKS.iter().find_map(|(by, rank, size)| {
        let (rank_value, of) = (number(rank)?, number(size));
        // A job script and an interactive shell of Slurm look like a rank of one; they are where ranks are started from.
        let shell = *rank == "SLURM_PROCID" && (get("SLURM_STEP_ID").is_none() || of.is_none_or(|n| n < 2));
        (!shell).then_some(Started { by, rank: rank_value, of })
    })
}

/// Ranks of the same launcher on this host, where it says.
pub(crate) fn ranks_here() -> Option<u64> {
    let names = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"];
    names.iter().find_map(|name| env::var(name).ok()?.parse().ok())
}

/// Whether this process is the one of its launcher's that talks.
pub(crate) fn speaks() -> bool {
    launcher().is_none_or(|s| s.rank == 0)
}

/// Whether srun can start ranks here.
pub(crate) fn in_slurm_allocation() -> bool {
    env::var_os("SLURM_JOB_ID").is_some() && launcher().is_none() && super::mpiexec::in_path("srun").is_some()
}

/// A launcher of another MPI starts N processes that each believe to be rank 0 of 1: say so before measuring nonsense.
#[cfg(feature = "mpi")]
pub(crate) fn refuse_singletons(size: u32) -> Result<()> {
    match launcher() {
        Some(Started { by, of: Some(n), .. }) if size == 1 && n > 1 => {
            let family = ombx_mpi::family();
            Err(Error::fabric(format!(
                "{n} processes were started by {by}, but each is rank 0 of 1: this ombx was built with {} ({}); start it with that MPI's mpiexec, or let ombx run start its ranks itself",
                family.name(),
                ombx_mpi::library_version(),
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Option<Started> {
        started(&|name| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn each_launcher_is_known_by_its_marks() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]).unwrap().rank, 1);
        let open_mpi =
            with(&[("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "4")]);
        assert_eq!(open_mpi.unwrap().of, Some(4));
    }

    #[test]
    fn a_job_script_is_no_rank() {
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
