//! Checks of hosts, ranks and programs before anything is started.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    thread,
    time::Duration,
};

use ombx_core::{benchmark::Medium, trust};
use ombx_host::{
    control_group::cpu_quota, environment::hostname, host, host_name::is_here, limits::Limits,
    remote_shell::RemoteShell, search_path,
};
use ombx_record::{
    error::{Error, Result},
    order::each_once,
    unit::{Bytes, counted},
};

#[cfg(feature = "mpi")]
use ombx_mpi::Family;

use crate::{
    job::{Job, Work},
    launch::{
        hosts::{self, Host, LIMIT_AFTER_JOB, REACH_LIMIT, hosts, ranks_by_host},
        mpiexec,
        start::{self, Start, in_allocation},
    },
    stderr::printable,
};

/// Maximum number of ranks per core. With more of them a measurement is meaningless and the start can exhaust a machine.
const MOST_PER_CORE: usize = 64;
/// Maximum number of ranks on a host with few cores.
const MOST_PER_HOST: usize = 1024;

/// Finds mistakes in where and how this many ranks are started over a medium.
pub fn check(start: &Start, ranks: u32, medium: Medium) -> Result<()> {
    let hosts = hosts(start)?;
    ranks_by_host(&hosts, ranks)?;
    let knows_numbers = medium == Medium::Mpi && in_allocation() && mpiexec::knows_numbers_of_hosts(start);
    if let Some(host) = hosts.iter().find(|host| host.is_relative() && !knows_numbers) {
        return Err(Error::usage(format!(
            "{} is the number of a host in an allocation, which Open MPI's mpiexec alone knows: name the hosts",
            host.name
        )));
    }
    if medium == Medium::Own && hosts.iter().any(|host| host.slots.is_some()) {
        return Err(Error::usage(
            "nodes of a pipeline are placed on hosts in turn: name each host without a number of ranks",
        ));
    }
    let hosts = hosts.len();
    let hosts = Some(hosts).filter(|hosts| *hosts > 0);
    if let Some(ssh) = start.ssh.as_deref().filter(|ssh| !search_path::has(ssh)) {
        return Err(Error::usage(format!("--ssh {ssh}: this host has no such program")));
    }
    if hosts.is_some() || in_allocation() {
        return hosts.map_or(Ok(()), |hosts| check_number(ranks, hosts));
    }
    if let Some(interface) = &start.interface {
        let known = Path::new("/sys/class/net");
        if known.is_dir() && !known.join(interface).exists() {
            return Err(Error::usage(format!("--interface {interface}: this host has no such interface")));
        }
    }
    check_number(ranks, 1)
}

/// Reaches the hosts of a job through the remote shell that will start its processes. Returns the hosts that will have ranks, under
/// the names that they give themselves; none if that is unknown, for instance because a batch system starts the ranks.
pub(crate) fn reach(job: &Job, medium: Medium) -> Result<Vec<RankHost>> {
    let start = &job.start;
    let proposal = match job.work {
        Work::Links(..) => Some(SKIP_UNREACHABLE),
        Work::Benchmarks(_) => None,
    };
    let names = reach_all(start, remote_shell(job, medium), medium, REACH_LIMIT, proposal)?;
    // The user's own arguments of the launcher may place ranks in another way.
    if medium != Medium::Mpi || !start.launcher_arg.is_empty() {
        return Ok(Vec::new());
    }
    let own_name =
        |typed: String| names.get(&typed).map(|name| RankHost { name: name.clone(), typed: typed.clone() });
    Ok(used(hosts(start)?, job.extent.ranks)?.into_iter().filter_map(own_name).collect())
}

/// Asks the hosts of a job again after it has failed. Returns a sentence about those that do not answer; `None` if all do, or if they
/// cannot be asked.
pub(super) fn unreachable(job: &Job, medium: Medium) -> Option<String> {
    let asked = reach_all(&job.start, remote_shell(job, medium), medium, LIMIT_AFTER_JOB, None);
    asked.err().map(|error| error.to_string())
}

/// Reaches all hosts that a user has named through a remote shell, within a limit for each. Returns the name that each gives itself.
/// An error about hosts that cannot be reached proposes an option. Over MPI, a host with another build of ombx is an error too.
pub fn reach_all(
    start: &Start,
    shell: Option<RemoteShell>,
    medium: Medium,
    limit: Duration,
    proposal: Option<&str>,
) -> Result<BTreeMap<String, String>> {
    let Some(shell) = shell.filter(|_| medium != Medium::Mpi || !in_allocation()) else {
        return Ok(BTreeMap::new());
    };
    let names = hosts(start)?.into_iter().map(|host| host.name);
    let (here, remote): (BTreeSet<String>, BTreeSet<String>) = names.partition(|name| is_here(name));
    let remote = Vec::from_iter(remote);
    let reached = hosts::reach(&shell, &remote, limit).map_err(|error| match proposal {
        Some(option) => Error::fabric(format!("{error}, or add {option} to measure the other hosts")),
        None => error,
    })?;
    // Ranks over MPI need the same build and the same library.
    if medium == Medium::Mpi {
        hosts::same_builds(&reached.builds)?;
    }
    let mut names = reached.names;
    names.extend(here.into_iter().map(|name| (name, hostname())));
    Ok(names)
}

/// Option that leaves out hosts that cannot be reached.
pub const SKIP_UNREACHABLE: &str = "--skip-unreachable";

/// Reaches the hosts of a job over a medium. Returns the names of those that the remote shell cannot reach, after a sentence about each.
///
/// # Errors
/// The user names no hosts, nothing is known about the remote shell, or fewer than two hosts are left.
pub fn left_out(job: &Job, medium: Medium) -> Result<Vec<String>> {
    let start = &job.start;
    if start.hosts.is_empty() && start.hostfile.is_none() {
        return Err(Error::usage(format!(
            "{SKIP_UNREACHABLE} needs hosts by name: add --hosts or --hostfile, or leave it out"
        )));
    }
    let Some(shell) = remote_shell(job, medium).filter(|_| medium != Medium::Mpi || !in_allocation()) else {
        return Err(Error::usage(format!(
            "{SKIP_UNREACHABLE} needs a launcher that starts ranks by ssh, but this one has its own way: leave it out"
        )));
    };
    let names = each_once(hosts(start)?.into_iter().map(|host| host.name));
    let remote: Vec<String> = names.iter().filter(|name| !is_here(name)).cloned().collect();
    let failures = hosts::try_all(&shell, &remote, REACH_LIMIT, REACH_LIMIT).failures;
    if !failures.is_empty() && names.len() - failures.len() < 2 {
        let message = hosts::message(&shell, remote.len(), &failures);
        return Err(Error::fabric(format!("{message}. Fewer than two hosts are left to measure")));
    }
    for (host, words) in &failures {
        stderr_line!("ombx: {host} is left out, because it cannot be reached: {}", printable(words));
    }
    Ok(failures.into_iter().map(|(host, _)| host.to_owned()).collect())
}

/// A host that will have ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankHost {
    /// Name that the user gave.
    pub typed: String,
    /// Name that the host gives itself.
    pub name: String,
}

/// Returns the hosts that get ranks.
fn used(hosts: Vec<Host>, ranks: u32) -> Result<Vec<String>> {
    let counts = ranks_by_host(&hosts, ranks)?;
    let used = hosts.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    Ok(each_once(used.map(|(host, _)| host.name)))
}

/// Returns the program that starts processes on other hosts; `None` if there is none, or if it is not known.
fn remote_shell(job: &Job, medium: Medium) -> Option<RemoteShell> {
    let start = &job.start;
    match medium {
        // The server of the job is reached without a remote shell.
        _ if start.server.is_some() => None,
        Medium::Mpi => mpiexec::remote_shell(start),
        Medium::Sockets => Some(RemoteShell::ssh(start.ssh.as_deref(), &start.launcher_arg)),
        Medium::Own => match job.chosen("remote-shell") {
            Some(shell) => RemoteShell::parse(shell).ok(),
            None => Some(RemoteShell::ssh(start.ssh.as_deref(), &[])),
        },
    }
}

/// Rejects more ranks than the hosts can run. All hosts are assumed to be like this one.
fn check_number(ranks: u32, hosts: usize) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let most = MOST_PER_HOST.max(cores * MOST_PER_CORE);
    if (ranks as usize).div_ceil(hosts) > most {
        Err(Error::usage(format!(
            "{ranks} ranks are too many for {}: use at most {most} per host, where they may use {cores} CPUs",
            counted(hosts, "host")
        )))
    } else {
        Ok(())
    }
}

/// Stack that this program needs, with the libraries of a rank.
const STACK: u64 = 512 << 10;
/// Address space and shared memory without which MPI does not start.
const ADDRESS_SPACE: u64 = 128 << 20;
const SHARED_MEMORY: u64 = 4 << 20;
/// Limits below these can prevent the start of MPI.
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
pub fn check_stack() -> Result<()> {
    let limits = Limits { stack: Limits::stack(), ..Limits::default() };
    refuse(&limits.below(&Limits { stack: Some(STACK), ..Limits::default() }))
}

/// Fails if a limit of this host prevents the start of a job.
pub(super) fn check_limits(start: &Start, ranks: u32, medium: Medium) -> Result<()> {
    let limits = Limits::here();
    if medium == Medium::Mpi && host::has_rdma() {
        for low in limits.below(&Limits { locked_memory: Some(LOCKED), ..Limits::default() }) {
            note_line!("ombx: {low} for RDMA: it may fail, or MPI may use another transport");
        }
    }
    refuse(&limits.below(&needs(start, ranks, medium)))
}

/// Says that the control groups of this host's ranks allow fewer CPUs than the ranks keep busy.
pub(super) fn note_quota(start: &Start, ranks: u32) {
    let quota = cpu_quota().filter(|quota| quota.is_below(ranks) && start.are_all_here());
    if let Some(quota) = quota {
        note_line!("ombx: {}", trust::over_quota(&hostname(), ranks as usize, quota).advice);
    }
}

/// Returns a phrase about each limit of this host that prevents the start of MPI ranks.
pub fn of_mpi_ranks(start: &Start, ranks: u32) -> Vec<String> {
    Limits::here().below(&needs(start, ranks, Medium::Mpi))
}

/// Fails if a limit of this process, which may be on another host than the launching process, prevents MPI.
#[cfg(feature = "mpi")]
pub(crate) fn check_rank() -> Result<()> {
    refuse(&Limits::here().below(&Limits { processes: None, ..of_mpi(1) }))
}

/// Returns what this host has that can prevent a start by a launcher: limits that are low, little shared memory,
/// hosts of a batch system that cannot be read, and that the launcher belongs to another MPI. `ombx doctor` finds the
/// same. Starts with a full stop, or is empty.
pub(super) fn seen_at_start(launcher: &Path) -> String {
    let mut seen = Limits::here().below(&ENOUGH);
    seen.extend(little_shared_memory());
    seen.extend(start::unreadable_allocation());
    seen.extend(start::missing_starter());
    let is_other = mpiexec::belongs_to_another_mpi(launcher);
    seen.extend(is_other.then(|| format!("{} belongs to another MPI than this ombx", launcher.display())));
    listed(&seen)
}

/// Returns what this host has that can end a rank. Starts with a full stop, or is empty.
pub(super) fn seen_later() -> String {
    listed(&Vec::from_iter(little_shared_memory()))
}

/// Returns the free bytes of shared memory; `None` if this host has none.
pub fn free_shared_memory() -> Option<u64> {
    rustix::fs::statvfs(SHARED).ok().map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}

fn little_shared_memory() -> Option<String> {
    let free = free_shared_memory()?;
    (free < host::MIN_SHARED).then(|| {
        let free = Bytes(free >> 20 << 20);
        format!(
            "{free} bytes free in {SHARED}, through which ranks of one host communicate: enlarge it (docker run --shm-size=1g)"
        )
    })
}

fn listed(seen: &[String]) -> String {
    if seen.is_empty() {
        String::new()
    } else {
        format!(". Seen on this host, and a possible reason: {}", seen.join("; "))
    }
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
fn needs(start: &Start, ranks: u32, medium: Medium) -> Limits {
    // Ranks on other hosts need little here.
    let here = if start.are_all_here() { u64::from(ranks) } else { 1 };
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
