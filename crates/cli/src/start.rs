//! Where and by what ranks are to be started, looked at before anything is: what is not there is a mistake of the command line.

use std::{env, fs, path::Path, thread};

use ombx_core::error::{Error, Result};

use crate::{args::StartArgs, launch::mpiexec::in_path};

/// So many ranks on a core are no measurement any more, and the start of them all can take a machine down.
const MOST_ON_A_CORE: usize = 64;
/// As many are started on the smallest host.
const MOST_ON_A_HOST: usize = 1024;
/// Where a batch system has given hosts to this job, launchers start ranks there, and know how many.
const ALLOCATIONS: [&str; 5] =
    ["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "COBALT_NODEFILE"];

/// Finds mistakes in where and how so many ranks are to be started.
pub(crate) fn check(start: &StartArgs, ranks: u32) -> Result<()> {
    let hosts = match &start.hostfile {
        Some(file) => Some(lines_of(file)?),
        None => Some(start.hosts.len()).filter(|hosts| *hosts > 0),
    };
    if let Some(ssh) = start.ssh.as_deref().filter(|ssh| !is_program(ssh)) {
        return Err(Error::usage(format!("--ssh {ssh}: no such program is here")));
    }
    if hosts.is_some() || ALLOCATIONS.iter().any(|name| env::var_os(name).is_some()) {
        return fits(ranks, hosts);
    }
    if let Some(interface) = &start.interface {
        let known = Path::new("/sys/class/net");
        if known.is_dir() && !known.join(interface).exists() {
            return Err(Error::usage(format!("--interface {interface}: this host has no such interface")));
        }
    }
    fits(ranks, Some(1))
}

/// Whether hosts, where it is known how many, can be asked for so many ranks.
fn fits(ranks: u32, hosts: Option<usize>) -> Result<()> {
    let Some(hosts) = hosts else { return Ok(()) };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let most = MOST_ON_A_HOST.max(cores * MOST_ON_A_CORE);
    match (ranks as usize).div_ceil(hosts.max(1)) > most {
        true => Err(Error::usage(format!(
            "{ranks} ranks are too many for {hosts} host{}: at most {most} are started on each, and it has {cores} cores",
            if hosts == 1 { "" } else { "s" }
        ))),
        false => Ok(()),
    }
}

/// Lines of a host file that name something. Their form is the launcher's business.
fn lines_of(file: &Path) -> Result<usize> {
    let told =
        |why: &dyn std::fmt::Display| Err(Error::usage(format!("the host file {} {why}", file.display())));
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) => return told(&format!("cannot be read: {e}")),
    };
    if text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return told(&"is no text");
    }
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    match lines.filter(|line| !line.is_empty()).count() {
        0 => told(&"names no host"),
        lines => Ok(lines),
    }
}

/// Whether there is such a program, by its path or in the search path.
fn is_program(name: &str) -> bool {
    if name.contains('/') { Path::new(name).is_file() } else { in_path(name).is_some() }
}
