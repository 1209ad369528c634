//! Copies of files on hosts that do not share files with this machine.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use ombx_core::error::{Error, Result};

use super::LIMIT;
use crate::{
    cluster::{Cluster, checksum},
    remote::{Ended, ScriptFiles, at},
    script,
};

/// Copies a file of this machine to a host.
pub(super) fn copy(
    cluster: &Cluster,
    host: usize,
    [from, to]: [&Path; 2],
    checksum: &str,
) -> std::result::Result<(), String> {
    let name = format!("{}.copy", cluster.host_name(host));
    let files = ScriptFiles::named(&cluster.record.directory.join("preflight"), &name);
    let input = File::open(from).map_err(|e| format!("{}: {e}", from.display()))?;
    // Copies take longer than checks.
    let ended = cluster.place(host).feed(&script::receive(to, checksum), input, &files, 10 * LIMIT);
    match ended.map_err(|e| e.to_string())? {
        Ended::Code(0) => Ok(()),
        other => Err(format!(
            "{} could not be copied to {} ({other}): {}. Check its free space, or set `work_dir` in the inventory.",
            from.display(),
            to.display(),
            files.error()
        )),
    }
}

/// Writes the program that launchers start instead of ssh, and copies it where launchers run.
pub(super) fn install_ssh_wrapper(cluster: &Cluster) -> Result<()> {
    let config = cluster.inventory.ssh_config.as_deref().filter(|_| !cluster.launches_on_hosts());
    let path = cluster.record.directory.join("ssh");
    fs::write(&path, script::ssh_wrapper(config)).map_err(at(&path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(at(&path))?;
    if cluster.launches_on_hosts() && !cluster.inventory.shared {
        let sum = checksum(&path);
        for host in 0..cluster.inventory.hosts.len() {
            copy(cluster, host, [&path, &cluster.ssh_wrapper()], &sum)
                .map_err(|reason| Error::fabric(format!("host {}: {reason}", cluster.host_name(host))))?;
        }
    }
    Ok(())
}
