//! `cargo xtask cluster-bench`: `ombx cluster` with a release build of ombx.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser as _;
use ombx_cluster::{Binary, Campaign};
use ombx_record::error::Error;
use ombx_toolchain::{
    Failure, Flavour, Mpi, Places, Result, Step, Which, Workspace, cargo, exit_code, release,
};

/// Measure every link of a cluster by `ombx cluster`, with a release build of ombx
#[derive(clap::Parser)]
#[command(
    bin_name = "cargo xtask cluster-bench",
    after_help = "Examples:\n  cargo xtask cluster-bench\n  cargo xtask cluster-bench --inventory \
                  cluster.toml --hosts n01,n02 --dry-run\n  cargo xtask cluster-bench --inventory \
                  cluster.toml --launcher slurm --resume\n  cargo xtask cluster-bench --inventory \
                  cluster.toml -- --sizes 8,64K,4M"
)]
struct Options {
    #[command(flatten)]
    cluster: ombx_cluster::Options,
    /// The MPI [default: the inventory's, else the first that is installed]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Use this ombx instead of building one with --release
    #[arg(long, value_name = "FILE")]
    bin: Option<PathBuf>,
    /// Install what is missing to build ombx without asking
    #[arg(long)]
    yes: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    let mut cluster = options.cluster.clone();
    cluster.runs.get_or_insert_with(|| workspace.root.join("runs"));
    let campaign = Campaign::prepare(cluster).map_err(failure)?;
    let wanted = match (options.mpi, campaign.mpi()) {
        (Some(Which::Mpich), _) | (None, Some("mpich")) => Some(Flavour::Mpich),
        (Some(Which::Openmpi), _) | (None, Some("openmpi")) => Some(Flavour::OpenMpi),
        _ => None,
    };
    let binary = binary(options, wanted, &workspace)?;
    campaign.run(binary).map(ExitCode::from).map_err(failure)
}

fn failure(error: Error) -> Failure {
    Failure::Ombx(error.to_string(), error.kind().exit_code())
}

/// Returns the ombx of `--bin`, or builds one for the wanted MPI, else for the first that is installed.
fn binary(options: &Options, wanted: Option<Flavour>, workspace: &Workspace) -> Result<Binary> {
    let of = |flavour: Option<Flavour>, path| Binary {
        path,
        mpi: flavour.map(|flavour| flavour.key().to_owned()),
    };
    if let Some(path) = &options.bin {
        return Ok(of(wanted, path.canonicalize().map_err(Failure::file(path))?));
    }
    let places = Places::here();
    let flavour = wanted.unwrap_or_else(|| Flavour::preferred(&places));
    if options.cluster.dry_run {
        return Ok(of(Some(flavour), workspace.target.join(flavour.key()).join("release/ombx")));
    }
    set_up(flavour, options.yes, &workspace.root)?;
    let mpi = Mpi::find(flavour, &places).map_err(Failure::Missing)?;
    Ok(of(Some(flavour), release::built(&mpi, workspace, &workspace.target)?))
}

/// Installs what a build with an MPI needs, after asking unless `yes` is set.
fn set_up(flavour: Flavour, yes: bool, root: &Path) -> Result<()> {
    let mut setup = cargo();
    setup
        .args(["xtask", "setup", "--mpi", flavour.key()])
        .current_dir(root)
        .stdin(std::process::Stdio::inherit());
    if yes {
        setup.arg("--yes");
    }
    Step::run("setup", &mut setup).built()
}
