//! `sockets.pipeline`: blocks pass through the phases of several nodes, and each step transposes nodes and blocks.

mod coordinator;
mod ends;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod member;
mod memory;
mod message;
mod node;
mod phase;
mod report;
mod role;
mod run;
mod shape;
mod shared_memory;
mod storage;
mod worker;
mod worker_cpus;

use std::{
    fs::File,
    io,
    net::{IpAddr, SocketAddr},
    os::unix::fs::MetadataExt,
    time::Duration,
};

use ombx_core::{
    benchmark::{Benchmark, Case, Method, Metric, Parameter, ParameterValue},
    error::{Error, Result},
    measure::{plan::Plan as Choices, session::Session},
    unit::{Bytes, digits, parse_duration},
};
use ombx_host::{host_name::check_host, remote_shell::RemoteShell};
use serde::{Deserialize, Serialize};

use self::{
    coordinator::Pipeline,
    ends::EndWork,
    memory::WaitMode,
    message::Plan,
    role::run_role,
    shape::{MAX_BUFFERS, MAX_NODES, MAX_PHASES, PipelineShape},
    storage::Storage,
    worker_cpus::WorkerCpus,
};
use crate::{
    control::{Channel, Execution, MAX_PIPELINE_MESSAGE, process::MemberEnd},
    options::{CONGESTION, SOCKET_BUFFER, socket_options},
    socket::{address_towards, is_here, loopback},
};

#[cfg(any(test, fuzzing))]
pub use self::fuzz::pipeline as fuzz;
pub use self::member::SUBCOMMAND;

/// Maximum number of blocks in a section of a source's file: one message carries their checksums.
const MAX_CHECKSUMS: u64 = MAX_PIPELINE_MESSAGE as u64 / 10 - 8;

static NODES: Parameter =
    Parameter::free("nodes", "N", "Number of nodes, each a process with its phases", |text| {
        number(text, 1, MAX_NODES, "nodes").map(drop)
    })
    .usually("3");

static PHASES: Parameter = Parameter::free(
    "phases",
    "F",
    "Number of phases of each node; between two phases every node sends to every node",
    |text| number(text, 2, MAX_PHASES, "phases").map(drop),
)
.usually("3");

static BUFFERS: Parameter = Parameter::free(
    "buffer-count",
    "B",
    "Buffers that pass through each node in a run, each with a block for every node; set by a source file",
    |text| number(text, 1, MAX_BUFFERS, "buffers").map(drop),
)
.usually("64");

static BLOCK: Parameter = Parameter::free("block", "BYTES", "Size of a block, or a list of sizes", |text| {
    if ombx_core::unit::parse_sizes(text)?.contains(&Bytes(0)) {
        return Err(Error::usage("a block has at least 1 byte"));
    }
    Ok(())
})
.usually("256K");

static SOURCE: Parameter = Parameter::free(
    "source",
    "memory|file:PATH",
    "Source of the blocks; a path with {node} names a file of each node, which a node makes if it does not exist",
    |text| Storage::parse(text).map(drop),
)
.usually("memory");

static SINK: Parameter = Parameter::free(
    "sink",
    "memory|file:PATH",
    "Destination of the blocks; a path with {node} names a file of each node; files are overwritten",
    |text| Storage::parse(text).map(drop),
)
.usually("memory");

static HOSTS: Parameter =
    Parameter::free("hosts", "HOST,..", "Hosts on which nodes are placed in turn", |text| {
        Hosts::parse(text).map(drop)
    });

static WORKER_CPUS: Parameter = Parameter::free(
    "worker-cpus",
    "any|all|LIST",
    "CPUs to which the senders and receivers of a host are bound in turn, for example: --worker-cpus 0-3",
    |text| WorkerCpus::parse(text).map(drop),
)
.usually("any");

static REMOTE_SHELL: Parameter = Parameter::free(
    "remote-shell",
    "COMMAND",
    "Program with arguments that starts nodes on other hosts; it is called as rsh is, with a host and a command, for \
            example: --remote-shell 'rsh -l me' [default: ssh with its options]",
    |text| RemoteShell::parse(text).map(drop),
);

static STATUS: Parameter = Parameter::free(
    "status",
    "off|TIME",
    "Interval at which each node reports while it runs, for example: --status 1s; each node also has a row \
     with the times of its buffers",
    |text| status(text).map(drop),
)
.usually("off");

const PARAMETERS: &[&Parameter] = &[
    &NODES,
    &PHASES,
    &BUFFERS,
    &BLOCK,
    &SOURCE,
    &SINK,
    &HOSTS,
    &REMOTE_SHELL,
    &WORKER_CPUS,
    &STATUS,
    &SOCKET_BUFFER,
    &CONGESTION,
];

ombx_core::parameter! {
    /// How phases, senders and receivers run
    enum Workers: "workers", IfChosen, default Processes {
        /// As processes
        Processes = "processes",
        /// As threads of the process of their node
        Threads = "threads",
    }
}

ombx_core::parameter! {
    /// Whether waiting processes poll instead of sleeping
    enum Spin: "spin", IfChosen, default Off {
        /// They sleep
        Off = "off",
        /// They poll
        On = "on",
    }
}

const METHOD: Method = Method {
    timed: "one run of all buffers through all phases: from the first signal to a first phase until the \
            last phase of every node is done; the first phases fill every buffer and the last ones read \
            it, unless --ends is idle",
    untimed: "starting and connecting processes; reading a sink file back; with --ends idle, filling and comparing too",
    like: "the phase pipeline of the SP2: N (1 + F + 2 N (F - 1)) processes, two buffers in each phase, \
           Unix-domain sockets inside a node and TCP between nodes",
};

ombx_core::inventory::submit!(
    Benchmark::custom(
        "sockets.pipeline",
        "blocks through the phases of several nodes, all to all",
        Metric::Bandwidth,
        METHOD,
        run
    )
    .iterates(&["send", "recv", "poll", "futex"], "N N B S / t; N: nodes, B: buffers, S: bytes of a block")
    .by_itself()
    .sizes("256K")
    .sized_by(&BLOCK)
    .with(PARAMETERS)
    .with(&[EndWork::PARAMETER, Workers::PARAMETER, Spin::PARAMETER])
);

/// Runs this process as one of a pipeline, until its parent ends it; returns the exit code.
pub fn serve() -> u8 {
    // The kernel ends this process with its parent.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let channel = Channel::to_parent(MAX_PIPELINE_MESSAGE);
    match channel.and_then(|channel| run_role(channel, Execution::Process)) {
        Ok(()) => REPORTED,
        // The parent has ended.
        Err(_) => 1,
    }
}

/// Measures every case of a session.
fn run(session: &mut Session<'_>) -> Result<()> {
    let cases = session.cases()?;
    let source = Storage::parse(session.plan.text(&SOURCE).unwrap_or_default())?;
    if source.is_of_node() && cases.iter().any(|case| case.bytes != cases[0].bytes) {
        return Err(Error::usage(
            "sources with {node} are made for one block size: give one size by --block, or one run for each size",
        ));
    }
    for case in cases {
        let (plan, hosts) = plan(session.plan, &case)?;
        if !session.is_left(&report::empty_row(session, &case, &plan, None).key) {
            continue;
        }
        let start = |plan: &_, hosts: &_| Pipeline::start(plan, hosts, Execution::Process);
        report::measure(session, &case, (&plan, &hosts), start)?;
    }
    Ok(())
}

/// Reads the user's choices and checks them against this host.
fn plan(choices: &Choices, case: &Case) -> Result<(Plan, Hosts)> {
    let given = |parameter: &Parameter| choices.text(parameter).unwrap_or_default();
    let nodes = number(given(&NODES), 1, MAX_NODES, "nodes")?;
    let phases = number(given(&PHASES), 2, MAX_PHASES, "phases")?;
    let buffers = number(given(&BUFFERS), 1, MAX_BUFFERS, "buffers")?;
    let (source, sink) = (Storage::parse(given(&SOURCE))?, Storage::parse(given(&SINK))?);
    let mut shape = PipelineShape { nodes, phases, buffers, block: case.bytes.0 };
    if shape.block == 0 {
        return Err(Error::usage("--block and --sizes must be at least 1 byte"));
    }
    if choices.batch.is_some_and(|batch| batch > 1) {
        return Err(Error::usage("sockets.pipeline has no option --batch: a sample is one run"));
    }
    let workers = match case.get() {
        Workers::Threads => Execution::Thread,
        Workers::Processes => Execution::Process,
    };
    let wait_mode = match case.get() {
        Spin::On => WaitMode::Spin,
        Spin::Off => WaitMode::Sleep,
    };
    let mut hosts = Hosts::parse(given(&HOSTS))?;
    if let Some(shell) = choices.text(&REMOTE_SHELL) {
        hosts.shell = RemoteShell::parse(shell)?;
    }
    shape.check(hosts.local(nodes), workers)?;
    let cpus = WorkerCpus::parse(given(&WORKER_CPUS))?;
    if hosts.local(nodes) > 0 {
        cpus.check()?;
    }
    let socket = socket_options(choices)?;
    shape.buffers = files(&shape, &source, &sink, choices.chosen.number(&BUFFERS))?;
    (0..nodes)
        .filter(|node| hosts.host(*node).is_none())
        .try_for_each(|node| source.check_size(&shape, node))?;
    let checksums = u64::from(nodes) * u64::from(shape.buffers);
    if !source.is_memory() && checksums > MAX_CHECKSUMS {
        return Err(Error::usage(format!(
            "a node of this source has {checksums} blocks; the limit is {MAX_CHECKSUMS}; choose larger blocks"
        )));
    }
    let status = status(given(&STATUS))?;
    let plan = Plan { shape, workers, wait_mode, source, sink, socket, cpus, earlier_workers: 0, status };
    Ok((plan, hosts))
}

/// Checks the files that all nodes share and returns the number of buffers, which such a source determines.
fn files(shape: &PipelineShape, source: &Storage, sink: &Storage, chosen: Option<u64>) -> Result<u32> {
    let Some(path) = source.shared() else { return Ok(shape.buffers) };
    let shown = path.display();
    let facts = File::open(path).and_then(|file| file.metadata());
    let facts = facts.map_err(|e| Error::storage(format!("source file {shown}: {e}")))?;
    if !facts.is_file() {
        return Err(Error::usage(format!(
            "source {shown} is no regular file; its size cannot set the number of buffers"
        )));
    }
    let same = |path| std::fs::metadata(path).is_ok_and(|s| (s.dev(), s.ino()) == (facts.dev(), facts.ino()));
    if sink.shared().is_some_and(same) {
        return Err(Error::usage(format!("source and sink are one file, {shown}; choose two")));
    }
    let PipelineShape { nodes, block, .. } = *shape;
    let round = shape.buffer().saturating_mul(u64::from(nodes));
    let (buffers, rest) = (facts.len() / round, facts.len() % round);
    let described = format!("{nodes} nodes x {nodes} blocks of {} = {round} bytes", Bytes(block));
    if rest != 0 || buffers == 0 {
        return Err(Error::usage(format!(
            "source file {shown} has {} bytes, which is no multiple of {described}; choose another \
             --block, or pad it to {}",
            facts.len(),
            (buffers + 1) * round
        )));
    }
    match u32::try_from(buffers).ok().filter(|buffers| *buffers <= MAX_BUFFERS) {
        Some(found) if chosen.is_some() && found != shape.buffers => Err(Error::usage(format!(
            "source file {shown} has {found} buffers of {described}, but --buffer-count is {}; omit --buffer-count",
            shape.buffers
        ))),
        Some(found) => Ok(found),
        None => Err(Error::usage(format!(
            "source file {shown} has {buffers} buffers; the limit is {MAX_BUFFERS}; choose larger blocks"
        ))),
    }
}

/// Reads the interval of reports.
fn status(text: &str) -> Result<Option<Duration>> {
    if text == "off" { Ok(None) } else { parse_duration(text).map(Some) }
}

fn number(text: &str, min: u32, max: u32, what: &str) -> Result<u32> {
    let number = digits(text).filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| Error::usage(format!("{text:?} is no number of {what} from {min} to {max}")))
}

/// Exit code of a process that has reported its failure.
const REPORTED: u8 = 77;

/// An error, and whether it may be the consequence of another.
#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    cause: Cause,
    error: Error,
}

/// Position of a failure in a chain; the larger one explains the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Cause {
    /// The end of another process may have caused it: its connections break.
    Consequence,
    /// Original failure, which no other failure caused.
    Root,
}

impl Failure {
    /// Returns the failure of a broken connection.
    fn broken(name: &str, what: &str, why: &io::Error) -> Failure {
        Failure { cause: Cause::Consequence, error: Error::fabric(format!("{name}: {what}: {why}")) }
    }

    /// Returns the failure of a member that ended. It is the root unless the member has reported another; threads always do.
    fn exited(exit: &MemberEnd) -> Failure {
        let code = exit.status.and_then(|status| status.code());
        let reported = exit.pid.is_none() || code == Some(REPORTED.into());
        let cause = if reported { Cause::Consequence } else { Cause::Root };
        Failure { cause, error: Error::fabric(exit.to_string()) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { cause: Cause::Root, error }
    }
}

/// The hosts of a pipeline. Node n is on host n modulo their number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hosts {
    names: Vec<String>,
    /// Starts nodes on other hosts.
    shell: RemoteShell,
}

impl Hosts {
    /// Reads a list with commas; an empty one means this host. Other hosts are reached by ssh.
    fn parse(text: &str) -> Result<Hosts> {
        let names = text.split(',').filter(|name| !name.is_empty());
        let names = names.map(|name| check_host(name).map(str::to_owned)).collect::<Result<_>>()?;
        Ok(Hosts { names, shell: RemoteShell::ssh(None, &[]) })
    }

    /// Returns the host of a node; `None` for this host.
    fn host(&self, node: u32) -> Option<&str> {
        let names = self.names.len().max(1);
        self.names.get(node as usize % names).map(String::as_str).filter(|name| !is_here(name))
    }

    /// Returns how many nodes with smaller numbers are on the host of a node.
    fn earlier(&self, node: u32) -> u32 {
        (0..node).filter(|other| self.host(*other) == self.host(node)).count() as u32
    }

    /// Returns how many of the nodes are on this host.
    fn local(&self, nodes: u32) -> u32 {
        (0..nodes).filter(|node| self.host(*node).is_none()).count() as u32
    }

    /// Returns whether all nodes are on this host, so that they share a clock.
    fn are_here(&self) -> bool {
        self.names.iter().all(|name| is_here(name))
    }

    /// Returns the address on which nodes listen; `None` for every address.
    fn listen_address(&self) -> Option<IpAddr> {
        self.are_here().then(loopback)
    }

    /// Returns the address and port at which other nodes reach a node.
    fn address(&self, node: u32, port: u16) -> Result<String> {
        let address = |ip: IpAddr| SocketAddr::new(ip, port).to_string();
        match (self.host(node), self.listen_address()) {
            (None, Some(here)) => Ok(address(here)),
            (None, None) => self.own_address().map(address),
            (Some(host), _) => {
                let host = host.split_once('@').map_or(host, |(_, host)| host);
                Ok(match host.parse::<IpAddr>() {
                    Ok(IpAddr::V6(_)) => format!("[{host}]:{port}"),
                    _ => format!("{host}:{port}"),
                })
            }
        }
    }

    /// Returns the address of this host towards the first of the others.
    fn own_address(&self) -> Result<IpAddr> {
        let other = self.names.iter().find(|name| !is_here(name)).map_or("", String::as_str);
        address_towards(other).map_err(|e| Error::fabric(format!("no route to {other}: {e}")))
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod failure_tests {
    use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

    use ombx_core::{codec, error::Kind};

    use super::*;

    #[test]
    fn a_failure_is_decoded_as_encoded() {
        let sent = Failure::from(Error::new(Kind::Storage, "disk full"));
        let received: Failure = codec::decode(&codec::encode(&sent)).unwrap();
        assert_eq!((received.cause, received.error.kind()), (Cause::Root, Kind::Storage));
        assert_eq!(received.error.to_string(), "disk full");
        let broken = Failure::broken("sender 1", "node 2", &io::ErrorKind::BrokenPipe.into());
        assert!(broken.cause < Cause::Root);
    }

    #[test]
    fn an_exit_is_the_cause_unless_the_process_reported_another() {
        let cause = |pid, code: i32| {
            let status = Some(ExitStatus::from_raw(code << 8));
            Failure::exited(&MemberEnd { name: "node 1".into(), pid, status }).cause
        };
        assert_eq!(cause(Some(7), 1), Cause::Root);
        assert_eq!(cause(Some(7), REPORTED.into()), Cause::Consequence);
        assert_eq!(cause(None, 1), Cause::Consequence);
    }
}

#[cfg(test)]
mod hosts_tests {
    use super::*;

    #[test]
    fn nodes_are_placed_on_hosts_in_turn() {
        let hosts = Hosts::parse("localhost,n02,me@n03").unwrap();
        let places: Vec<Option<&str>> = (0..4).map(|node| hosts.host(node)).collect();
        assert_eq!(places, [None, Some("n02"), Some("me@n03"), None]);
        assert_eq!((hosts.local(4), hosts.are_here(), hosts.listen_address()), (2, false, None));
        assert_eq!([0, 1, 2, 3, 4, 6].map(|node| hosts.earlier(node)), [0, 0, 0, 1, 1, 2]);
        assert_eq!(hosts.address(2, 70).unwrap(), "n03:70");
        assert_eq!(Hosts::parse("fe80::1").unwrap().address(0, 70).unwrap(), "[fe80::1]:70");
        assert!(Hosts::parse("a,-oProxyCommand=x").is_err());
    }

    #[test]
    fn without_hosts_every_node_is_on_this_host() {
        for text in ["", "localhost"] {
            let hosts = Hosts::parse(text).unwrap();
            assert_eq!((hosts.host(5), hosts.local(3), hosts.are_here()), (None, 3, true));
            assert_eq!(hosts.address(0, 70).unwrap(), "127.0.0.1:70");
        }
    }
}
