//! Checks of hosts, ranks and programs before anything is started.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    path::Path,
    thread,
    time::Duration,
};

use ombx_core::{
    benchmark::Medium,
    error::{Error, Result},
    system::{environment::hostname, host_name::is_here},
};

use super::{
    hosts::{Host, hosts, ranks_by_host},
    mpiexec,
};
use crate::{
    arguments::start::StartArgs,
    job::Job,
    launch::hosts::{self, LIMIT_AFTER_JOB, REACH_LIMIT},
    search_path,
};

/// Maximum number of ranks per core. With more of them a measurement is meaningless and the start can exhaust a machine.
const MOST_PER_CORE: usize = 64;
/// Maximum number of ranks on a host with few cores.
const MOST_PER_HOST: usize = 1024;
/// Variables of batch systems. Inside their allocations the launcher knows the hosts, and may reach them without a remote shell.
const ALLOCATIONS: [&str; 5] =
    ["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "COBALT_NODEFILE"];

/// Finds mistakes in where and how this many ranks are started over a medium.
pub(crate) fn check(start: &StartArgs, ranks: u32, medium: Medium) -> Result<()> {
    let hosts = hosts(start)?;
    ranks_by_host(&hosts, ranks)?;
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
    let names = reach_all(start, remote_shell(job, medium), medium, REACH_LIMIT)?;
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
    let asked = reach_all(&job.start, remote_shell(job, medium), medium, LIMIT_AFTER_JOB);
    asked.err().map(|error| error.to_string())
}

/// Reaches all hosts that a user has named through a remote shell, within a limit for each. Returns the name that each gives itself.
pub(crate) fn reach_all(
    start: &StartArgs,
    shell: Option<Vec<OsString>>,
    medium: Medium,
    limit: Duration,
) -> Result<BTreeMap<String, String>> {
    let Some(shell) = shell.filter(|_| medium != Medium::Mpi || !in_allocation()) else {
        return Ok(BTreeMap::new());
    };
    let names = hosts(start)?.into_iter().map(|host| host.name);
    let (here, remote): (BTreeSet<String>, BTreeSet<String>) = names.partition(|name| is_here(name));
    let mut names = hosts::reach(&shell, &Vec::from_iter(remote), limit)?;
    names.extend(here.into_iter().map(|name| (name, hostname())));
    Ok(names)
}

/// A host that will have ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankHost {
    /// Name that the user gave.
    pub(crate) typed: String,
    /// Name that the host gives itself.
    pub(crate) name: String,
}

/// Returns the hosts that get ranks.
fn used(hosts: Vec<Host>, ranks: u32) -> Result<Vec<String>> {
    let counts = ranks_by_host(&hosts, ranks)?;
    let mut names: Vec<String> = Vec::new();
    for (Host { name, .. }, _) in hosts.into_iter().zip(counts).filter(|(_, count)| *count > 0) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns the program that starts processes on other hosts, with its arguments before the host; `None` if there is none, or if it is
/// not known.
fn remote_shell(job: &Job, medium: Medium) -> Option<Vec<OsString>> {
    let start = &job.start;
    match medium {
        // The server of the job is reached without a remote shell.
        _ if start.connect.connect.is_some() => None,
        Medium::Mpi => mpiexec::remote_shell(start),
        Medium::Sockets => {
            let options = start.launcher_arg.iter().map(OsString::from);
            Some(hosts::ssh(start).into_iter().chain(options).chain(["--".into()]).collect())
        }
        Medium::Own => match job.chosen("remote-shell") {
            Some(shell) => Some(shell.split_whitespace().map(OsString::from).collect()),
            None => Some(hosts::ssh(start).into_iter().chain(["--".into()]).collect()),
        },
    }
}

/// Returns whether all ranks of a job are on this host.
pub(crate) fn all_here(start: &StartArgs) -> bool {
    start.hosts().is_empty() && start.hostfile.is_none() && !in_allocation()
}

/// Returns whether a batch system has given hosts to this process.
fn in_allocation() -> bool {
    ALLOCATIONS.iter().any(|name| env::var_os(name).is_some())
}

/// Rejects more ranks than the hosts can run. All hosts are assumed to be like this one.
fn check_number(ranks: u32, hosts: usize) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let most = MOST_PER_HOST.max(cores * MOST_PER_CORE);
    match (ranks as usize).div_ceil(hosts) > most {
        true => Err(Error::usage(format!(
            "{ranks} ranks are too many for {hosts} host{}: use at most {most} per host, which has {cores} cores",
            if hosts == 1 { "" } else { "s" }
        ))),
        false => Ok(()),
    }
}
