//! Arguments that choose the ranks, their hosts and their launcher.

use std::{path::PathBuf, time::Duration};

use clap::{Args, builder::NonEmptyStringValueParser};
use ombx_host::{host_name::is_here, search_path};
use ombx_launch::launch::start::{Bind, Launcher, Server, Start};
use ombx_record::unit;

use crate::arguments::{
    output::some_of,
    values::{self, HostList},
};

/// Which ranks to start, where and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct StartArgs {
    /// Number of ranks [default: as many as the benchmarks need]
    #[arg(short = 'n', long, value_parser = values::number::<u32>(1..=1 << 20), help_heading = "Ranks")]
    pub(crate) ranks: Option<u32>,
    /// Hosts of the ranks, such as n01,n02 or 'n[01-16],!n07'
    ///
    /// [default: this host, or the allocation of the batch system]
    #[arg(long, value_parser = values::hosts, conflicts_with = "hostfile", help_heading = "Ranks")]
    hosts: Option<HostList>,
    /// File with one host or range of hosts per line, in the launcher's format
    #[arg(long, value_name = "FILE", help_heading = "Ranks")]
    hostfile: Option<PathBuf>,
    /// Launcher that starts the ranks: auto (srun inside a Slurm allocation, else mpiexec), mpiexec (of the MPI library), srun, none
    /// (this process is a rank), or a command such as 'flux run -n {ranks}'
    #[arg(
        long,
        value_name = "LAUNCHER",
        value_parser = launcher,
        default_value = "auto",
        hide_default_value = true,
        help_heading = "Ranks"
    )]
    launcher: Launcher,
    /// Program that starts processes on other hosts; takes the arguments of ssh [default: ssh]
    #[arg(long, value_name = "PROGRAM", value_parser = values::program, help_heading = "Ranks")]
    ssh: Option<String>,
    /// Network interface for the launcher's own connections, and for Open MPI over TCP, such as eth0
    #[arg(long, value_name = "NAME", value_parser = values::interface, help_heading = "Ranks")]
    interface: Option<String>,
    /// Binding of ranks to cores
    #[arg(long, default_value = "auto", value_parser = some_of(&BINDS), help_heading = "Ranks")]
    pub(crate) bind: Bind,
    /// Additional argument for the launcher; may be repeated, for example: --launcher-arg=-v
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new(), help_heading = "Ranks")]
    launcher_arg: Vec<String>,
    /// End the command at the first case whose ranks crash, exit or hang
    #[arg(long, help_heading = "Ranks")]
    fail_fast: bool,
    /// New file on a shared file system, through which ranks of an external launcher connect by sockets
    #[arg(long, value_name = "FILE", help_heading = "Ranks")]
    rendezvous: Option<PathBuf>,
    /// End the job as failed after this time [default: from the number of rows and --max-time]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration, help_heading = "Ranks")]
    timeout: Option<Duration>,
}

impl StartArgs {
    /// Returns whether no option names another host.
    pub(crate) fn are_here(&self) -> bool {
        self.hostfile.is_none()
            && self.hosts.iter().flat_map(|HostList(hosts)| hosts).all(|host| is_here(host))
    }
}

impl From<StartArgs> for Start {
    fn from(args: StartArgs) -> Start {
        Start {
            ranks: args.ranks,
            hosts: args.hosts.map_or(Vec::new(), |HostList(hosts)| hosts),
            hostfile: args.hostfile,
            left_out: Vec::new(),
            launcher: args.launcher,
            ssh: args.ssh,
            interface: args.interface,
            bind: args.bind,
            launcher_arg: args.launcher_arg,
            fail_fast: args.fail_fast,
            rendezvous: args.rendezvous,
            timeout: args.timeout,
            server: None,
            token_file: None,
        }
    }
}

/// Values of `--bind`.
const BINDS: [(&str, &str, Bind); 3] = [
    ("auto", "One core per rank if there are enough cores", Bind::Auto),
    ("core", "One core per rank", Bind::Core),
    ("none", "The launcher's own default", Bind::None),
];

/// Reads `--launcher`. The program must be one of this host.
fn launcher(text: &str) -> Result<Launcher, String> {
    let launcher = text.parse()?;
    match &launcher {
        Launcher::Command(command) if !search_path::has(command.program()) => Err(format!(
            "{:?} is not in the search path: give auto, mpiexec, srun, none, or the command of another launcher",
            command.program()
        )),
        _ => Ok(launcher),
    }
}

/// The server, and where its token is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConnectArgs {
    /// Host on which `ombx sockets serve` runs rank 1 of benchmarks over sockets, such as n02 or n02:5444
    #[arg(long, value_name = "HOST[:PORT]", value_parser = Server::parse, help_heading = "Ranks",
          conflicts_with_all = ["hosts", "hostfile", "rendezvous", "launcher_arg", "ssh", "interface"])]
    pub(crate) connect: Option<Server>,
    /// File with the token of that server; - for standard input [default: the variable OMBX_TOKEN]
    #[arg(long, value_name = "FILE", requires = "connect", help_heading = "Ranks")]
    pub(crate) token_file: Option<PathBuf>,
}
