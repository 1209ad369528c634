//! The accelerators whose memory a job uses: checked before anything starts, and opened in ranks.

use std::collections::BTreeSet;

use ombx_accelerator::{count, device, select};
use ombx_core::{
    benchmark::{
        ParameterValue,
        memory::{Api, BufferMemory, DEVICE},
    },
    measure::plan::Plan,
    team::Team,
};
use ombx_record::error::{Error, Result};

use crate::job::Work;

/// Returns the interfaces of the drivers that plans need.
fn interfaces<'p>(plans: impl IntoIterator<Item = &'p Plan>) -> BTreeSet<Api> {
    let chosen = plans.into_iter().flat_map(|plan| plan.chosen.texts(BufferMemory::PARAMETER));
    chosen.filter_map(|name| BufferMemory::parse(name).ok()?.api()).collect()
}

/// Returns the interfaces of the drivers that a job needs, which ranks of a launcher must agree on.
pub(crate) fn needed(work: &Work) -> Vec<String> {
    interfaces(work.plans()).into_iter().map(|api| format!("{api:?}")).collect()
}

/// Returns the device that the user chose.
fn chosen(plan: &Plan) -> Option<u32> {
    plan.chosen.text(&DEVICE)?.parse().ok()
}

/// Checks the option `--device` of a plan, and if ranks are on this host, that it has a driver and the devices.
///
/// # Errors
/// Usage error with what is missing.
pub fn check(plan: &Plan, is_here: bool) -> Result<()> {
    let needed = interfaces([plan]);
    let number = chosen(plan);
    if number.is_some() && needed.is_empty() {
        return Err(Error::usage(
            "--device chooses an accelerator: add --memory cuda or --memory rocm, or leave it out",
        ));
    }
    for api in needed.into_iter().filter(|_| is_here) {
        let devices = count(api)?;
        if let Some(number) = number.filter(|number| *number >= devices) {
            return Err(Error::usage(format!(
                "--device {number}: this host has devices 0 to {}",
                devices - 1
            )));
        }
    }
    Ok(())
}

/// Chooses the device of this rank before MPI starts, because some libraries look for it then. Errors are those of [`open`], later.
pub(crate) fn enter(work: &Work) {
    if let Some(number) = work.plans().into_iter().find_map(chosen) {
        select(number);
    }
    for api in interfaces(work.plans()) {
        let _ = device(api);
    }
}

/// Opens the device of every rank. Collective.
///
/// # Errors
/// Usage error of the lowest rank that has no driver or no device.
pub(crate) fn open(work: &Work, team: &dyn Team) -> Result<()> {
    interfaces(work.plans()).into_iter().try_for_each(|api| ombx_mpi::open_devices(team, api))
}
