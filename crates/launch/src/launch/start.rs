//! Where and how the ranks of a job start, as the user has chosen it.

use std::{
    collections::BTreeSet,
    env, fmt,
    fs::{self, File},
    net::Ipv6Addr,
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use ombx_estimate::text::plain;
use ombx_host::{host_name::check_host, limits::start_error, search_path};
use ombx_record::{error::Error, result::Place, unit::digits};
use serde::{Deserialize, Serialize};

use crate::launch::detection;

#[cfg(feature = "sockets")]
use std::net::SocketAddr;

/// Which ranks to start, where and how.
#[derive(Debug, Clone)]
pub struct Start {
    /// Number of ranks; `None` for as many as the benchmarks need.
    pub ranks: Option<u32>,
    /// Hosts of the ranks, each with its number of ranks if one is given: `n01:4`.
    pub hosts: Vec<String>,
    /// File with the hosts.
    pub hostfile: Option<PathBuf>,
    /// Names of those hosts that get no ranks, because they could not be reached.
    pub left_out: Vec<String>,
    /// What starts the ranks.
    pub launcher: Launcher,
    /// Program in place of ssh.
    pub ssh: Option<String>,
    /// Network interface for connections.
    pub interface: Option<String>,
    /// How ranks are bound to CPUs.
    pub bind: Bind,
    /// Further arguments of the launcher.
    pub launcher_arg: Vec<String>,
    /// Whether the job ends at the first case whose ranks crash, exit or hang.
    pub fail_fast: bool,
    /// File through which ranks of the user's launcher connect by sockets.
    pub rendezvous: Option<PathBuf>,
    /// Limit for the whole job.
    pub timeout: Option<Duration>,
    /// Server that runs rank 1.
    pub server: Option<Server>,
    /// File with the token of the server.
    pub token_file: Option<PathBuf>,
}

/// Name of the option of hosts, which is also a parameter of some benchmarks.
pub const HOSTS: &str = "hosts";

/// Variables of batch systems, of which all but the first name a file with hosts. Inside their allocations the
/// launcher knows the hosts, and may reach them without a remote shell.
const ALLOCATIONS: [&str; 5] =
    ["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "COBALT_NODEFILE"];

/// Returns whether a batch system has given hosts to this process.
pub(super) fn in_allocation() -> bool {
    ALLOCATIONS.iter().any(|name| env::var_os(name).is_some())
}

/// Returns a phrase about the file with the hosts of a batch system, if it cannot be read.
pub(super) fn unreadable_allocation() -> Option<String> {
    ALLOCATIONS.iter().skip(1).find_map(|name| {
        let file = env::var(name).ok()?;
        let error = File::open(&file).err()?;
        Some(format!("{name} names {}, which cannot be read: {}", plain(&file), start_error(&error)))
    })
}

/// Several hosts that a batch system has given to this process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AllocatedHosts {
    /// The variable that names their file.
    variable: &'static str,
    /// Distinct hosts in the order of the file.
    hosts: Vec<String>,
}

impl AllocatedHosts {
    /// Returns the hosts of an allocation, if it has several and the user has not said where ranks start.
    pub(crate) fn unnamed(start: &Start) -> Option<AllocatedHosts> {
        let is_named = start.is_of_rank() || !start.hosts.is_empty() || start.hostfile.is_some();
        let read = |name: &'static str| Some((name, fs::read_to_string(env::var(name).ok()?).ok()?));
        let (variable, text) =
            ALLOCATIONS.iter().skip(1).filter(|_| !is_named).find_map(|name| read(name))?;
        AllocatedHosts::parse(variable, &text)
    }

    /// The host is the first word of a line. `None` if there are fewer than two.
    fn parse(variable: &'static str, text: &str) -> Option<AllocatedHosts> {
        let names = text.lines().filter_map(|line| line.split_whitespace().next());
        let mut seen = BTreeSet::new();
        let hosts: Vec<String> = names.filter(|name| seen.insert(*name)).map(str::to_owned).collect();
        (hosts.len() > 1 && hosts.iter().all(|host| check_host(host).is_ok()))
            .then_some(AllocatedHosts { variable, hosts })
    }

    /// Returns a sentence if all ranks are on one host.
    pub(crate) fn note(&self, places: &[Place]) -> Option<String> {
        let [first, others @ ..] = places else { return None };
        let is_one = !others.is_empty() && others.iter().all(|place| place.host == first.host);
        let shown = self.hosts.iter().take(HOSTS_SHOWN).map(String::as_str).collect::<Vec<_>>().join(",");
        let (host, variable, count) = (&first.host, self.variable, self.hosts.len());
        is_one.then(|| {
            let instead = match count {
                ..=HOSTS_SHOWN => format!("--hosts {shown} measures between these"),
                _ => format!("--hosts with some of {shown}, .. measures between them"),
            };
            format!("all ranks are on {host}, but {variable} lists {count} hosts: {instead}")
        })
    }
}

/// Number of hosts of an allocation that a sentence names.
const HOSTS_SHOWN: usize = 3;

/// Variables of batch systems with the program that starts processes on their hosts.
const STARTERS: [(&str, &str); 3] =
    [("SLURM_JOB_ID", "srun"), ("FLUX_URI", "flux"), ("LSB_JOBID", "blaunch")];

/// Returns a phrase about the program that starts processes on the hosts of a batch system, if this host has none.
pub(super) fn missing_starter() -> Option<String> {
    let is_missing =
        |(name, program): &&(&str, &str)| env::var_os(name).is_some() && !search_path::has(program);
    let (name, program) = STARTERS.iter().find(is_missing)?;
    Some(format!("{name} is set, but the search path has no {program}"))
}

impl Start {
    /// Returns whether this process is a rank, and starts none.
    pub fn is_of_rank(&self) -> bool {
        match &self.launcher {
            Launcher::None => true,
            Launcher::Auto => detection::launcher().is_some(),
            Launcher::Mpiexec | Launcher::Srun | Launcher::Command(_) => false,
        }
    }

    /// Refuses a process that is one of several, of which none knows the others, unless the user says where ranks are.
    pub fn refuse_one_of_several(&self) -> Result<(), Error> {
        if self.launcher == Launcher::Auto && self.hosts.is_empty() && self.hostfile.is_none() {
            detection::refuse_one_of_several()
        } else {
            Ok(())
        }
    }

    /// Returns whether all ranks of the job are on this host.
    pub fn are_all_here(&self) -> bool {
        self.hosts.is_empty() && self.hostfile.is_none() && !in_allocation()
    }

    /// Places rank 0 on this host and rank 1 on that of a server.
    pub fn connect(&mut self, server: Server, token_file: Option<PathBuf>) {
        self.hosts = vec!["localhost".into(), server.host.clone()];
        (self.server, self.token_file) = (Some(server), token_file);
    }
}

/// What starts the ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launcher {
    /// srun inside a Slurm allocation, else the mpiexec of the MPI library.
    Auto,
    /// The mpiexec of the MPI library.
    Mpiexec,
    /// Slurm's srun.
    Srun,
    /// No launcher: this process is a rank.
    None,
    /// Another launcher.
    Command(LauncherCommand),
}

/// Words that start a job, with places for its extent: `flux run -n {ranks}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherCommand(Vec<String>);

impl LauncherCommand {
    const PLACES: [&str; 4] = ["{ranks}", "{hosts}", "{nodes}", "{per-host}"];

    /// Returns the program.
    pub fn program(&self) -> &str {
        &self.0[0]
    }

    /// Returns the words after the program for a job. `hosts` have ranks, each once, none if the launcher chooses them; `per_host` is the number
    /// of ranks of each, if it is the same.
    pub(crate) fn arguments(
        &self,
        ranks: u32,
        hosts: &[&str],
        per_host: Option<u32>,
    ) -> Result<Vec<String>, String> {
        let text = self.0.join(" ");
        let has = |place: &str| text.contains(place);
        if !hosts.is_empty() && !has("{hosts}") {
            return Err("--launcher says nothing about hosts: leave out --hosts, or write {hosts} where the launcher takes them".into());
        }
        if hosts.is_empty() && ["{hosts}", "{nodes}", "{per-host}"].into_iter().any(has) {
            return Err("--launcher has a place for hosts: give --hosts, or leave out the place".into());
        }
        let per_host = match per_host {
            None if has("{per-host}") => {
                return Err(
                    "--launcher has {per-host}, but hosts have different numbers of ranks: give every host the same, or leave it out"
                        .into(),
                );
            }
            count => count.unwrap_or(0).to_string(),
        };
        let values = [ranks.to_string(), hosts.join(","), hosts.len().to_string(), per_host];
        let mut words: Vec<String> = self.0.iter().skip(1).map(|word| Self::filled(word, &values)).collect();
        if !has("{ranks}") {
            words.extend(["-n".to_owned(), ranks.to_string()]);
        }
        Ok(words)
    }

    /// Returns a word with values instead of the places.
    fn filled(word: &str, values: &[String; 4]) -> String {
        let places = Self::PLACES.iter().zip(values);
        places.fold(word.to_owned(), |word, (place, value)| word.replace(place, value))
    }
}

impl FromStr for Launcher {
    type Err = String;

    fn from_str(text: &str) -> Result<Launcher, String> {
        let words = shell_words::split(text).map_err(|_| "a quote is not closed".to_owned())?;
        match text {
            "auto" => return Ok(Launcher::Auto),
            "mpiexec" => return Ok(Launcher::Mpiexec),
            "srun" => return Ok(Launcher::Srun),
            "none" => return Ok(Launcher::None),
            _ => {}
        }
        let place = |word: &str| {
            let (_, rest) = word.split_once('{')?;
            let place = format!("{{{}", rest.split_inclusive('}').next().unwrap_or_default());
            (!LauncherCommand::PLACES.contains(&place.as_str())).then_some(place)
        };
        match words.first() {
            Some(program) if !program.is_empty() && !program.starts_with('-') => {}
            _ => return Err("auto, mpiexec, srun, none, or the command of another launcher".into()),
        }
        if let Some(unknown) = words.iter().find_map(|word| place(word)) {
            return Err(format!("{unknown} is unknown: use {}", LauncherCommand::PLACES.join(", ")));
        }
        Ok(Launcher::Command(LauncherCommand(words)))
    }
}

/// Binding of ranks to cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bind {
    /// One core per rank if there are enough cores.
    Auto,
    /// One core per rank.
    Core,
    /// The launcher's own default.
    None,
}

/// Port of `ombx sockets serve`.
pub const PORT: u16 = 5444;

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Server {
    /// Reads `--connect`.
    pub fn parse(text: &str) -> Result<Server, String> {
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or("not HOST or HOST:PORT")?)),
            // An IPv6 address has more than one colon.
            None => match text.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        if check_host(host).is_err() || host.contains('@') {
            return Err("not the name or address of a host".into());
        }
        if host.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_unicast_link_local()) {
            return Err(format!("a link-local address needs its interface, as [{host}%eth0]"));
        }
        let port = port.map_or(Some(PORT), |port| digits(port).filter(|port| *port > 0));
        let port = port.ok_or("its port is not a number from 1 to 65535")?;
        Ok(Server { host: host.to_owned(), port })
    }

    /// Returns the addresses of the server.
    #[cfg(feature = "sockets")]
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        use std::net::ToSocketAddrs;
        let found = (self.host.as_str(), self.port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        match found {
            Ok(addresses) if !addresses.is_empty() => Ok(addresses),
            Ok(_) => Err(Error::fabric(format!("--connect {}: the host has no address", self.host))),
            Err(e) => Err(Error::fabric(format!("--connect {}: {e}", self.host))),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::launch::start::*;

    fn words(launcher: &str, hosts: &[&str], per_host: Option<u32>) -> Result<String, String> {
        let Launcher::Command(command) = launcher.parse()? else { return Err("no command".into()) };
        Ok(format!("{} {}", command.program(), command.arguments(4, hosts, per_host)?.join(" ")))
    }

    #[test]
    fn a_launcher_is_a_command_with_places() {
        assert_eq!(words("flux run", &[], None).unwrap(), "flux run -n 4");
        assert_eq!(words("aprun -n {ranks} -N 2", &[], None).unwrap(), "aprun -n 4 -N 2");
        let all = "x --on={hosts} -N {nodes} --each {per-host} -n{ranks}";
        assert_eq!(words(all, &["n1", "n2"], Some(2)).unwrap(), "x --on=n1,n2 -N 2 --each 2 -n4");
        for (launcher, hosts, per_host, expected) in [
            (all, &["n1", "n2"][..], None, "different numbers of ranks"),
            (all, &[][..], None, "give --hosts"),
            ("aprun", &["n1"][..], Some(4), "leave out --hosts"),
            ("aprun {rank}", &[][..], None, "{rank} is unknown"),
            ("aprun '", &[][..], None, "a quote is not closed"),
            ("", &[][..], None, "or the command of another launcher"),
            ("-n 4", &[][..], None, "or the command of another launcher"),
        ] {
            let why = words(launcher, hosts, per_host).unwrap_err();
            assert!(why.contains(expected), "{launcher}: {why}");
        }
    }

    #[test]
    fn ranks_on_one_host_of_an_allocation_are_noted() {
        let place = |host: &str| Place {
            host: host.into(),
            cpus: "0".into(),
            online: 2,
            governor: None,
            quota: None,
        };
        let (one, two) = ([place("n01"), place("n01")], [place("n01"), place("n02")]);
        let parse = |text| AllocatedHosts::parse("PBS_NODEFILE", text);
        let allocated = parse("n01 2 all.q UNDEFINED\nn01\n\nn02\n").unwrap();
        let note = allocated.note(&one).unwrap();
        assert_eq!(
            note,
            "all ranks are on n01, but PBS_NODEFILE lists 2 hosts: --hosts n01,n02 measures between these"
        );
        assert_eq!((allocated.note(&two), allocated.note(&one[..1])), (None, None));
        let note = parse("a\nb\nc\nd").unwrap().note(&one).unwrap();
        assert!(note.ends_with("4 hosts: --hosts with some of a,b,c, .. measures between them"), "{note}");
        for text in ["", "n01\nn01\n", "n01\n-x\n"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_server_is_a_host_with_or_without_a_port() {
        for (text, host, port) in [
            ("n02", "n02", PORT),
            ("n02:7", "n02", 7),
            ("10.0.0.2:65535", "10.0.0.2", 65535),
            ("fe80::1%eth0", "fe80::1%eth0", PORT),
            ("[::1]", "::1", PORT),
            ("[::1]:7", "::1", 7),
        ] {
            assert_eq!(Server::parse(text), Ok(Server { host: host.into(), port }), "{text}");
        }
        assert_eq!(Server::parse("[::1]:7").unwrap().to_string(), "[::1]:7");
        for text in [
            "",
            ":7",
            "n02:",
            "n02:0",
            "n02:65536",
            "n02:x",
            "n02:+7",
            "-n",
            "a b",
            "me@n02",
            "[::1]7",
            "[fe80::1]:7",
            "fe80::1",
            "[]:7",
        ] {
            assert!(Server::parse(text).is_err(), "{text}");
        }
    }
}
