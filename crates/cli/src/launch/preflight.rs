//! Checks of hosts, ranks and programs before anything is started.

use std::{env, path::Path, thread};

use ombx_core::error::{Error, Result};

use super::hostfile::Hostfile;
use crate::{arguments::start::StartArgs, search_path};

/// Maximum number of ranks per core. With more of them a measurement is meaningless and the start can exhaust a machine.
const MOST_PER_CORE: usize = 64;
/// Maximum number of ranks on a host with few cores.
const MOST_PER_HOST: usize = 1024;
/// Variables of batch systems. Inside their allocations the launcher knows the hosts.
const ALLOCATIONS: [&str; 5] =
    ["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "COBALT_NODEFILE"];

/// Finds mistakes in where and how this many ranks are started.
pub(crate) fn check(start: &StartArgs, ranks: u32) -> Result<()> {
    let hosts = match &start.hostfile {
        Some(file) => Some(Hostfile::read(file)?.len()),
        None => Some(start.hosts.len()).filter(|hosts| *hosts > 0),
    };
    if let Some(ssh) = start.ssh.as_deref().filter(|ssh| !search_path::has(ssh)) {
        return Err(Error::usage(format!("--ssh {ssh}: this host has no such program")));
    }
    if hosts.is_some() || ALLOCATIONS.iter().any(|name| env::var_os(name).is_some()) {
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
