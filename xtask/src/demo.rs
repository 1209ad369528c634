//! `cargo xtask demo`: builds ombx and runs a first benchmark.

use std::process::ExitCode;

use ombx_toolchain::{Flavour, Places, Result, Which, Workspace, cannot_run, release, shown};

use crate::setup;

/// Build ombx for one MPI and measure the bandwidth of MPI_Put
///
/// Uses MPICH, or Open MPI if that is the only installed MPI. Asks before it installs anything. Exits with the code of ombx.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask demo --mpi openmpi")]
pub(crate) struct Options {
    /// MPI to use [default: mpich, unless only openmpi is installed]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Install missing packages without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let flavour = match options.mpi {
        Some(Which::Mpich) => Flavour::Mpich,
        Some(Which::Openmpi) => Flavour::OpenMpi,
        Some(Which::All) | None => Flavour::preferred(&Places::here()),
    };
    let workspace = Workspace::read()?;
    let mut early = None;
    let facts = setup::ensure_beside(&[flavour], options.yes, || {
        early = release::demo_begun(flavour, &workspace, &workspace.target);
    });
    // It fails for lack of the MPI, and the next build starts from what it has compiled.
    if let Some(mut build) = early {
        if facts.is_err() {
            let _ = build.kill();
        }
        let _ = build.wait();
    }
    let facts = facts?;
    let mpi = facts.mpis().remove(0);
    let binary = release::demo(&mpi, &workspace, &workspace.target)?;
    let mut ombx = std::process::Command::new(&binary);
    ombx.args(["run", "rma.put_bw", "--quick"]);
    mpi.launch_with(&mut ombx);
    println!("\n$ {}", shown(&ombx));
    let status = ombx.status().map_err(|source| cannot_run(&ombx, source))?;

    println!("\nThat was {}. Next:", mpi.flavour);
    let binary = binary.display();
    println!("  {binary} list                 # every benchmark");
    println!("  {binary} run rma.put_bw       # in several launches, whose differences make its interval");
    println!("  {binary} run --help           # sizes, ranks, hosts, formats");
    println!("  {binary} run 'p2p.*' -o p2p.jsonl   # a family, results in a file");
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
