//! Checks of hosts, ranks and programs before anything is started.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    path::Path,
    thread,
};

use ombx_core::{
    benchmark::Medium,
    error::{Error, Result},
    system::{environment::hostname, host_name::is_here},
};

use super::{
    hosts::{Host, Notation, hosts},
    mpiexec, reachability,
};
use crate::{arguments::start::StartArgs, job::Job, search_path};

/// Maximum number of ranks per core. With more of them a measurement is meaningless and the start can exhaust a machine.
const MOST_PER_CORE: usize = 64;
/// Maximum number of ranks on a host with few cores.
const MOST_PER_HOST: usize = 1024;
/// Variables of batch systems. Inside their allocations the launcher knows the hosts, and may reach them without a remote shell.
const ALLOCATIONS: [&str; 5] =
    ["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "COBALT_NODEFILE"];

/// Finds mistakes in where and how this many ranks are started over a medium.
pub(crate) fn check(start: &StartArgs, ranks: u32, medium: Medium) -> Result<()> {
    let hosts = hosts(start, notation(start, medium))?;
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
    let names = reach_all(start, remote_shell(job, medium), medium)?;
    // The user's own arguments of the launcher may place ranks in another way.
    if medium != Medium::Mpi || !start.launcher_arg.is_empty() {
        return Ok(Vec::new());
    }
    let own_name =
        |typed: String| names.get(&typed).map(|name| RankHost { name: name.clone(), typed: typed.clone() });
    Ok(used(hosts(start, notation(start, medium))?, job.extent.ranks)
        .into_iter()
        .filter_map(own_name)
        .collect())
}

/// Reaches all hosts that a user has named through a remote shell. Returns the name that each gives itself.
pub(crate) fn reach_all(
    start: &StartArgs,
    shell: Option<Vec<OsString>>,
    medium: Medium,
) -> Result<BTreeMap<String, String>> {
    let Some(shell) = shell.filter(|_| medium != Medium::Mpi || !in_allocation()) else {
        return Ok(BTreeMap::new());
    };
    let names = hosts(start, notation(start, medium))?.into_iter().map(|host| host.name);
    let (here, remote): (BTreeSet<String>, BTreeSet<String>) = names.partition(|name| is_here(name));
    let mut names = reachability::reach(&shell, &Vec::from_iter(remote))?;
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

/// Returns the hosts that get ranks if ranks fill one host after the other.
fn used(hosts: Vec<Host>, ranks: u32) -> Vec<String> {
    let count = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
    let each = if hosts.iter().any(|host| host.slots.is_some()) { 1 } else { ranks.div_ceil(count) };
    let mut left = ranks;
    let mut names = Vec::new();
    for Host { name, slots } in hosts {
        if left > 0 && !names.contains(&name) {
            names.push(name);
        }
        left = left.saturating_sub(slots.unwrap_or(each));
    }
    names
}

fn notation(start: &StartArgs, medium: Medium) -> Notation {
    match medium {
        Medium::Mpi => mpiexec::notation(start),
        Medium::Sockets | Medium::Own => Notation::Sockets,
    }
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
            Some(reachability::ssh(start).into_iter().chain(options).chain(["--".into()]).collect())
        }
        Medium::Own => match job.setting("remote-shell") {
            Some(shell) => Some(shell.split_whitespace().map(OsString::from).collect()),
            None => Some(reachability::ssh(start).into_iter().chain(["--".into()]).collect()),
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
