//! The ombx that measures: built here, or named by the user.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Options, inventory::Inventory};
use crate::{
    failure::{Failure, Result},
    mpi::{Flavour, Mpi, Places, Which},
    release, setup,
    workspace::Workspace,
};

/// The ombx that measures: one that is named, or one that is built for an MPI of this machine.
pub(super) fn binary(
    options: &Options,
    inventory: &Inventory,
    workspace: &Workspace,
) -> Result<(Option<Flavour>, PathBuf)> {
    let wanted = match (options.mpi, inventory.mpi.as_deref()) {
        (Some(Which::Mpich), _) | (None, Some("mpich")) => Some(Flavour::Mpich),
        (Some(Which::Openmpi), _) | (None, Some("openmpi")) => Some(Flavour::OpenMpi),
        _ => None,
    };
    if let Some(path) = &options.bin {
        let path = path.canonicalize().map_err(Failure::file(path))?;
        return Ok((wanted, path));
    }
    let places = Places::here();
    let there = |flavour: &Flavour| Mpi::find(*flavour, &places).is_ok();
    let flavour = wanted.or_else(|| Flavour::ALL.into_iter().find(there)).unwrap_or(Flavour::Mpich);
    if options.dry_run {
        return Ok((Some(flavour), workspace.target.join(flavour.key()).join("release/ombx")));
    }
    let facts = setup::ensure(&[flavour], options.yes)?;
    let mpi = facts.mpis().remove(0);
    Ok((Some(flavour), release::built(&mpi, workspace, &workspace.target)?))
}

/// Whether this ombx has a subcommand.
pub(super) fn knows(binary: &Path, subcommand: &str) -> bool {
    let mut command = Command::new(binary);
    command.args([subcommand, "--help"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
