//! `cargo xtask install`: release builds of ombx for one or several MPIs, in a directory of their own.

mod links;
pub(crate) mod parts;
pub(crate) mod prefix;
pub(crate) mod shipped;

use std::{
    path::{Path, PathBuf, absolute},
    process::ExitCode,
};

use ombx_toolchain::{Failure, Result, Which, Workspace, installed};

use self::{
    parts::Parts,
    prefix::{Contents, Prefix},
    shipped::Sources,
};

/// Install ombx with its manual pages, completions, suites and module file
///
/// Builds a stripped release binary for each MPI. `PREFIX/bin/ombx` starts the one whose MPI is loaded. Everything is below
/// PREFIX: to remove ombx, delete this directory.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask install --prefix /opt/ombx --mpi mpich,openmpi\n         \
                  module use /opt/ombx/share/modulefiles && module load ombx")]
pub(crate) struct Options {
    /// Directory for ombx alone
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
    /// MPIs to build with [default: every installed one]
    #[arg(long, value_enum, value_delimiter = ',')]
    mpi: Vec<Which>,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let directory = absolute(&options.prefix).map_err(Failure::file(&options.prefix))?;
    let prefix = Prefix::claim(&directory)?;
    let mpis = installed(options.mpi.iter().copied())?;
    let workspace = Workspace::read()?;
    let sources = Sources::new(&workspace.root, &workspace.target.join("install"));
    let parts = Parts::read(&sources)?;
    let builds = sources.build_all(&mpis)?;
    prefix.fill(&Contents { root: &workspace.root, builds: &builds, parts: &parts, modulefile: true })?;
    println!("\n{}", directory.display());
    for mpi in &mpis {
        println!("  libexec/ombx/{:<9} {}", mpi.flavour.key(), mpi.name());
    }
    println!("\nTo use it:     {}", usage(&directory));
    println!(
        "or:            module use {} && module load ombx",
        directory.join("share/modulefiles").display()
    );
    println!("To remove it:  rm -r {}", directory.display());
    Ok(ExitCode::SUCCESS)
}

fn usage(prefix: &Path) -> String {
    format!("export PATH={}:$PATH", prefix.join("bin").display())
}
