//! Arguments that choose the ranks, their hosts and their launcher.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};
use ombx_core::unit;

use super::{connect::ConnectArgs, values};

/// Which ranks to start, where and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct StartArgs {
    /// Number of ranks [default: as many as the benchmarks need]
    #[arg(short = 'n', long, value_parser = values::number::<u32>(1..=1 << 20), help_heading = "Ranks")]
    pub(crate) ranks: Option<u32>,
    /// Hosts of the ranks, such as n01,n02 or 'n[01-16,20]'
    ///
    /// [default: this host, or the allocation of the batch system]
    #[arg(long, value_parser = values::hosts, conflicts_with = "hostfile", help_heading = "Ranks")]
    hosts: Option<HostList>,
    /// File with one host or range of hosts per line, in the launcher's format
    #[arg(long, value_name = "FILE", help_heading = "Ranks")]
    pub(crate) hostfile: Option<PathBuf>,
    /// Launcher that starts the ranks
    #[arg(long, value_enum, default_value_t = Launcher::Auto, help_heading = "Ranks")]
    pub(crate) launcher: Launcher,
    /// Program that starts processes on other hosts; takes the arguments of ssh [default: ssh]
    #[arg(long, value_name = "PROGRAM", value_parser = values::program, help_heading = "Ranks")]
    pub(crate) ssh: Option<String>,
    /// Network interface for the launcher's own connections, and for Open MPI over TCP, such as eth0
    #[arg(long, value_name = "NAME", value_parser = values::interface, help_heading = "Ranks")]
    pub(crate) interface: Option<String>,
    /// Binding of ranks to cores
    #[arg(long, value_enum, default_value_t = Bind::Auto, help_heading = "Ranks")]
    pub(crate) bind: Bind,
    /// Additional argument for the launcher; may be repeated, for example: --launcher-arg=-v
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new(), help_heading = "Ranks")]
    pub(crate) launcher_arg: Vec<String>,
    /// End the command at the first case whose ranks crash, exit or hang, instead of measuring the rest with new ranks
    #[arg(long, help_heading = "Ranks")]
    pub(crate) fail_fast: bool,
    /// New file on a shared file system, through which ranks of an external launcher connect by sockets
    #[arg(long, value_name = "FILE", help_heading = "Ranks")]
    pub(crate) rendezvous: Option<PathBuf>,
    /// Time limit of the whole job, for example: 10m [default: computed from the plan]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration, help_heading = "Ranks")]
    pub(crate) timeout: Option<Duration>,
    /// Server that runs rank 1; only `ombx run` sets it
    #[arg(skip)]
    pub(crate) connect: ConnectArgs,
}

/// Hosts of a list, each as often as it is named.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostList(pub(crate) Vec<String>);

impl StartArgs {
    /// Returns the hosts of `--hosts`, each with its number of ranks if one is given: `n01:4`.
    pub(crate) fn hosts(&self) -> &[String] {
        self.hosts.as_ref().map_or(&[], |hosts| &hosts.0)
    }

    /// Places rank 0 on this host and rank 1 on that of a server.
    pub(crate) fn place_by(&mut self, connect: ConnectArgs) {
        if let Some(server) = &connect.connect {
            self.hosts = Some(HostList(vec!["localhost".into(), server.host.clone()]));
        }
        self.connect = connect;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Launcher {
    /// srun inside a Slurm allocation, else the mpiexec of this build's MPI
    Auto,
    /// The mpiexec of this build's MPI
    Mpiexec,
    /// Slurm's srun
    Srun,
    /// No launcher: this process is a rank
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bind {
    /// One core per rank if there are enough cores
    Auto,
    /// One core per rank
    Core,
    /// The launcher's own default
    None,
}
