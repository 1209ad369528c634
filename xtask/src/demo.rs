//! `cargo xtask demo`: from a fresh clone to a first measured benchmark in one command.

use std::process::ExitCode;

use ombx_toolchain::{
    command::{cannot_run, shown},
    failure::Result,
    mpi::{Flavour, Mpi, Places, Which},
    release,
    workspace::Workspace,
};

use crate::setup;

/// Build ombx for one MPI and measure the bandwidth of MPI_Put
///
/// Takes MPICH, or Open MPI where that is the only one; asks before installing anything. Exits as ombx does.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask demo --mpi openmpi")]
pub(crate) struct Options {
    /// The MPI to use [default: mpich, unless only openmpi is there]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Install what is missing without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let flavour = match options.mpi {
        Some(Which::Mpich) => Flavour::Mpich,
        Some(Which::Openmpi) => Flavour::OpenMpi,
        Some(Which::All) | None => preferred(&Places::here()),
    };
    let facts = setup::ensure(&[flavour], options.yes)?;
    let workspace = Workspace::read()?;
    let mpi = facts.mpis().remove(0);
    let binary = release::built(&mpi, &workspace, &workspace.target)?;
    let mut ombx = std::process::Command::new(&binary);
    ombx.args(["run", "rma.put_bw"]);
    mpi.launch_with(&mut ombx);
    println!("\n$ {}", shown(&ombx));
    let status = ombx.status().map_err(|source| cannot_run(&ombx, source))?;

    println!("\nThis was {}. Next:", mpi.flavour);
    let binary = binary.display();
    println!("  {binary} list                 # every benchmark");
    println!("  {binary} run --help           # sizes, ranks, hosts, formats");
    println!("  {binary} run 'p2p.*' -o p2p.jsonl   # a family, kept in a file");
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// MPICH, unless only Open MPI is there.
fn preferred(places: &Places) -> Flavour {
    let there = |flavour| Mpi::find(flavour, places).is_ok();
    if !there(Flavour::Mpich) && there(Flavour::OpenMpi) { Flavour::OpenMpi } else { Flavour::Mpich }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpich_is_preferred_on_an_empty_machine() {
        assert_eq!(preferred(&Places { mpicc: None, directories: Vec::new() }), Flavour::Mpich);
    }
}
