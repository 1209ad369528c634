//! Cluster: everything that is settled before the first job starts.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ombx_record::unit::parse_duration;

use crate::{
    inventory::{Inventory, LaunchSite},
    plan::{self, Job},
    preflight::PreflightFacts,
    record::RunDirectory,
    remote::{Machine, output_of},
};

/// Time between the limit of ombx and that of its launch.
const MARGIN: Duration = Duration::from_secs(15);

/// What starts the ranks of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Launcher {
    Mpiexec,
    Slurm,
    /// Another scheduler, by a job script.
    Script {
        template: String,
    },
}

/// Inputs of all jobs.
pub(crate) struct Cluster {
    pub(crate) inventory: Inventory,
    pub(crate) options: Options,
    pub(crate) launcher: Launcher,
    /// Path of ombx on this machine.
    pub(crate) binary: PathBuf,
    /// Path of ombx on the hosts.
    pub(crate) remote_binary: PathBuf,
    pub(crate) record: RunDirectory,
    /// Facts about each host; empty before preflight.
    pub(crate) facts: Vec<PreflightFacts>,
    /// Names of hosts that are left out because ssh cannot reach them.
    pub(crate) left_out: Vec<String>,
}

impl Launcher {
    /// Returns the name in `plan.json`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Launcher::Mpiexec => "mpiexec",
            Launcher::Slurm => "slurm",
            Launcher::Script { .. } => "script",
        }
    }
}

impl Cluster {
    /// Returns whether the cluster is this machine alone.
    pub(crate) fn is_local(&self) -> bool {
        self.options.inventory.is_none()
    }

    /// Returns whether launchers run on the first host of each job.
    pub(crate) fn launches_on_hosts(&self) -> bool {
        !self.is_local() && self.inventory.launch == LaunchSite::Host
    }

    /// Returns where scripts for a host run.
    pub(crate) fn machine(&self, host: usize) -> Machine<'_> {
        if self.is_local() {
            Machine::Here
        } else {
            Machine::Host { name: self.host_name(host), ssh_config: self.inventory.ssh_config.as_deref() }
        }
    }

    pub(crate) fn host_name(&self, host: usize) -> &str {
        &self.inventory.hosts[host].name
    }

    /// Returns the names of the hosts of a job.
    pub(crate) fn host_names(&self, job: &Job) -> Vec<&str> {
        job.hosts.iter().map(|&host| self.host_name(host)).collect()
    }

    /// Returns a fact about a host.
    pub(crate) fn fact(&self, host: usize, name: &str) -> Option<&str> {
        self.facts.get(host)?.first(name)
    }

    /// Returns the path of the program that launchers start instead of ssh.
    pub(crate) fn ssh_wrapper(&self) -> PathBuf {
        if self.launches_on_hosts() && !self.inventory.shared {
            self.remote_binary.with_file_name("ssh")
        } else {
            self.record.directory.join("ssh")
        }
    }

    /// Returns the maximum number of jobs at the same time.
    pub(crate) fn at_once(&self) -> usize {
        self.inventory.at_once.unwrap_or(usize::MAX)
    }

    /// Returns the time limit that ombx gets for a job.
    pub(crate) fn limit(&self, job: &Job) -> Duration {
        let pairs = u64::from(job.ranks()).pow(2).max(1);
        self.options.timeout.unwrap_or(Duration::from_secs(300 + 20 * pairs))
    }

    /// Returns the time limit of the launch of a job, which leaves ombx time to end the job itself.
    pub(crate) fn launch_limit(&self, job: &Job) -> Duration {
        self.limit(job) + MARGIN
    }

    /// Returns the value of `OMBX_JOB` in all processes of a job.
    pub(crate) fn mark(&self, job: &Job) -> String {
        format!("{}-{}", self.record.id, job.name)
    }
}

/// Returns the SHA-256 checksum of a file; empty if it cannot be read.
pub(crate) fn checksum(file: &Path) -> String {
    output_of(Command::new("sha256sum").arg(file)).split(' ').next().unwrap_or_default().to_owned()
}

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
    /// Use only these hosts of the inventory, for example: --hosts 'n[01-16,20]', or all but one: --hosts '!n07'
    #[arg(long, allow_hyphen_values = true)]
    pub hosts: Vec<String>,
    /// Leave out hosts that ssh cannot reach, with a sentence about each
    #[arg(long)]
    pub skip_unreachable: bool,
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
