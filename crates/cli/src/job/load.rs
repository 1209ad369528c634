//! Checks of the loads that run beside what is measured.

use ombx_core::{
    benchmark::{Choice, Medium, Registry, Threading},
    error::{Error, Result},
    measure::plan::{Under, check_loads},
};

use super::lookup;

/// Checks the loads of a run. All mistakes in them are found here.
pub(crate) fn check(loads: &[Under], choices: &[Choice]) -> Result<()> {
    if loads.is_empty() {
        return Ok(());
    }
    check_loads(loads)?;
    if let Some(choice) = choices.iter().find(|choice| choice.bench.ranks.medium != Medium::Mpi) {
        let name = choice.bench.name;
        return Err(Error::usage(format!("--under needs ranks over MPI, which {name} does not use")));
    }
    if let Some(choice) = choices.iter().find(|choice| !choice.bench.ranks.repeats) {
        let name = choice.bench.name;
        return Err(Error::usage(format!(
            "{name} cannot be measured under load: it is over before a load begins"
        )));
    }
    let registry = Registry::load()?;
    for load in loads {
        let Under::Congestor(congestor) = load else { continue };
        let name = &congestor.bench;
        let found = lookup::find(&registry, name)?;
        let Some(choice) = found.iter().find(|choice| choice.bench.name == name) else {
            let known = found.iter().map(|choice| choice.bench.name).collect::<Vec<_>>().join(", ");
            return Err(Error::usage(format!(
                "--under takes the name of a benchmark; {name} selects {known}"
            )));
        };
        let reason = match (choice.bench.ranks.medium, choice.bench.ranks.threading) {
            (Medium::Sockets | Medium::Own, _) => "it needs ranks over MPI",
            (_, Threading::Multiple) => {
                "it has several threads per rank, which the ranks that are measured have not"
            }
            (Medium::Mpi, _) if !choice.bench.ranks.repeats => "it happens once in a launch",
            (Medium::Mpi, _) => continue,
        };
        return Err(Error::usage(format!("{name} cannot be a load: {reason}")));
    }
    Ok(())
}
