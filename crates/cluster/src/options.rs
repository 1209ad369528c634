//! Command-line options of a run.

use std::{path::PathBuf, time::Duration};

use ombx_core::unit::parse_duration;

use crate::plan;

/// Measure every link of a cluster, or of this machine
///
/// Measures disjoint pairs of hosts at the same time. Then measures all hosts together, first with one rank per host, then
/// with several. More than one host needs an inventory: docs/GUIDE.md. Keeps all results in runs/ID.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Hosts, how to reach them, and their MPI [default: this machine alone]
    #[arg(long, value_name = "FILE")]
    pub inventory: Option<PathBuf>,
    /// What to measure: links, or a suite of `ombx run suite:NAME`
    #[arg(long, default_value = "links", value_parser = plan::suite)]
    pub suite: String,
    /// What starts the ranks
    #[arg(long, value_enum, default_value_t = LauncherChoice::Auto)]
    pub launcher: LauncherChoice,
    /// Use only these hosts of the inventory, for example: --hosts n01,n02 or --hosts 'n[01-16,20]'
    #[arg(long, allow_hyphen_values = true)]
    pub hosts: Vec<String>,
    /// Pairs of hosts: all, ring, or a list such as n01-n02,n01-n03
    #[arg(long, default_value = "all")]
    pub pairs: String,
    /// What ends the command with a code other than 0: slow (9: something is slow; 10: no verdict) or nothing
    #[arg(long, value_enum, default_value_t = FailOn::Slow)]
    pub fail_on: FailOn,
    /// Time limit per job, for example: --timeout 60s [default: grows with the number of ranks]
    #[arg(long, value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Seed for the order of the pairs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the plan and every script, and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Continue the last run with the same plan; complete jobs are kept
    #[arg(long)]
    pub resume: bool,
    /// Job script template for --launcher script; must contain {{command}}. Also: {{name}}, {{hosts}}, {{nodes}}, {{ranks}},
    /// {{ranks_per_host}}, {{minutes}}, {{directory}}
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// Remove the copy of ombx from each host at the end. It is kept for later runs otherwise, below /tmp or `work_dir` of the inventory
    #[arg(long)]
    pub remove_copies: bool,
    /// Directory that holds the runs [default: runs]
    #[arg(long, value_name = "DIRECTORY")]
    pub runs: Option<PathBuf>,
    /// More options for ombx, after --
    #[arg(last = true)]
    pub more: Vec<String>,
}

/// Value of `--launcher`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LauncherChoice {
    /// Slurm inside an allocation, else mpiexec
    Auto,
    /// The mpiexec of the MPI, over ssh
    Mpiexec,
    /// srun inside an allocation, else sbatch
    Slurm,
    /// Another scheduler, with --template
    Script,
}

/// Value of `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Something slow, or no verdict
    Slow,
    /// No verdict at all
    Nothing,
}
