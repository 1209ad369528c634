//! Limits of the system under which a job cannot start. They are read and named before anything starts.

use ombx_core::{
    benchmark::Medium,
    error::{Error, Result},
    system::{host, limits::Limits},
    unit::Bytes,
};
#[cfg(feature = "mpi")]
use ombx_mpi::Family;

#[cfg(feature = "mpi")]
use super::mpiexec;
use super::preflight;
use crate::arguments::start::StartArgs;

/// Stack that this program needs, with the libraries of a rank.
const STACK: u64 = 512 << 10;
/// Address space and shared memory without which MPI does not start.
#[cfg(feature = "mpi")]
const ADDRESS_SPACE: u64 = 128 << 20;
#[cfg(feature = "mpi")]
const SHARED_MEMORY: u64 = 4 << 20;
/// Limits below these may be why MPI has not started.
const ENOUGH: Limits = Limits {
    stack: Some(2 << 20),
    files: Some(256),
    processes: Some(256),
    address_space: Some(2 << 30),
    file_size: Some(1 << 30),
    locked_memory: None,
};
/// Locked memory below which RDMA may not work.
const LOCKED: u64 = 64 << 20;
/// File system through which ranks of one host communicate.
const SHARED: &str = "/dev/shm";

/// Fails if this process cannot use enough stack for its own work.
pub(crate) fn check_stack() -> Result<()> {
    let limits = Limits { stack: Limits::stack(), ..Limits::default() };
    refuse(&limits.below(&Limits { stack: Some(STACK), ..Limits::default() }))
}

/// Fails if a limit of this host prevents the start of a job.
pub(super) fn check(start: &StartArgs, ranks: u32, medium: Medium) -> Result<()> {
    let limits = Limits::here();
    if medium == Medium::Mpi && host::has_rdma() {
        for low in limits.below(&Limits { locked_memory: Some(LOCKED), ..Limits::default() }) {
            stderr_line!("ombx: {low} for RDMA: it may fail, or MPI may use another transport");
        }
    }
    refuse(&limits.below(&needs(start, ranks, medium)))
}

/// Returns a phrase about each limit of this host that prevents the start of MPI ranks.
pub(crate) fn of_mpi_ranks(start: &StartArgs, ranks: u32) -> Vec<String> {
    Limits::here().below(&needs(start, ranks, Medium::Mpi))
}

/// Fails if a limit of this process, which may be on another host than the launching process, prevents MPI.
#[cfg(feature = "mpi")]
pub(crate) fn check_rank() -> Result<()> {
    refuse(&Limits::here().below(&Limits { processes: None, ..of_mpi(1) }))
}

/// Returns what may be why ranks did not start on this host: limits that are low, little shared memory, a launcher of another MPI.
/// `ombx doctor` finds the same. Starts with a full stop, or is empty.
pub(super) fn suspected_at_start() -> String {
    let mut causes = Limits::here().below(&ENOUGH);
    causes.extend(little_shared_memory());
    #[cfg(feature = "mpi")]
    causes.extend(
        mpiexec::of_another_mpi_in_path()
            .map(|path| format!("{path}, the first in the search path, belongs to another MPI")),
    );
    reasons(&causes)
}

/// Returns what may be why a rank died. Starts with a full stop, or is empty.
pub(super) fn suspected_later() -> String {
    reasons(&Vec::from_iter(little_shared_memory()))
}

fn little_shared_memory() -> Option<String> {
    let free = rustix::fs::statvfs(SHARED).ok().map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))?;
    (free < host::MIN_SHARED).then(|| {
        let free = Bytes(free >> 20 << 20);
        format!(
            "{free} bytes free in {SHARED}, through which ranks of one host communicate: enlarge it (docker run --shm-size=1g)"
        )
    })
}

fn reasons(causes: &[String]) -> String {
    if causes.is_empty() { String::new() } else { format!(". The reason may be: {}", causes.join("; ")) }
}

fn refuse(low: &[String]) -> Result<()> {
    match low {
        [] => Ok(()),
        low => {
            Err(Error::fabric(format!("limits of the system are too low: {}. Raise them", low.join("; "))))
        }
    }
}

/// Returns what the processes of a job on this host need.
fn needs(start: &StartArgs, ranks: u32, medium: Medium) -> Limits {
    // Ranks on other hosts need little here.
    let here = if preflight::all_here(start) { u64::from(ranks) } else { 1 };
    match medium {
        #[cfg(feature = "mpi")]
        Medium::Mpi => of_mpi(here),
        #[cfg(not(feature = "mpi"))]
        Medium::Mpi => Limits::default(),
        // Each rank has three threads, and the coordinator two for it.
        Medium::Sockets => {
            Limits { files: Some(6 + 2 * here), processes: Some(6 + 5 * here), ..Limits::default() }
        }
        // A pipeline counts its processes itself.
        Medium::Own => Limits { files: Some(8), processes: Some(6), ..Limits::default() },
    }
}

/// Returns what this many MPI ranks, their launcher and this process need: the least with which short jobs of MPICH 4.0 and Open MPI
/// 4.1 have run, or less.
#[cfg(feature = "mpi")]
fn of_mpi(ranks: u64) -> Limits {
    let (files, processes) = match ombx_mpi::family() {
        Family::OpenMpi => (27 + 4 * ranks, 8 + 4 * ranks),
        Family::Mpich | Family::Other => (27 + 2 * ranks, 6 + 3 * ranks),
    };
    Limits {
        stack: Some(STACK),
        files: Some(files),
        processes: Some(processes),
        address_space: Some(ADDRESS_SPACE),
        // Ranks of one host share memory, whose size is limited like that of a file.
        file_size: (ranks > 1).then_some(SHARED_MEMORY),
        ..Limits::default()
    }
}
