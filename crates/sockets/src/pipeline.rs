//! `sockets.pipeline`: blocks pass through the phases of several nodes, transposed from phase to phase.

mod connect;
mod coordinator;
mod ends;
mod failure;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod hosts;
mod memory;
mod node;
mod note;
mod phase;
mod process;
mod report;
mod shape;
mod task;
mod worker;

use std::{fs::File, os::unix::fs::MetadataExt};

use ombx_core::{
    benchmark::{
        axis::AxisValue,
        case::Case,
        entry::Benchmark,
        setting::Setting,
        work::{Method, Metric},
    },
    error::{Error, Result},
    measure::{
        plan::{self, Plan as Choices},
        session::Session,
    },
    unit::Bytes,
};

#[cfg(any(test, fuzzing))]
pub use self::fuzz::pipeline as fuzz;
pub use self::process::SUBCOMMAND;
use self::{
    ends::End,
    hosts::Hosts,
    memory::Waiting,
    process::{Crew, Line, Orphan, TOLD},
    shape::{MOST_BUFFERS, MOST_NODES, MOST_PHASES, Shape},
    task::Plan,
};

/// How many nodes.
pub static NODES: Setting = Setting {
    name: "nodes",
    value: "N",
    about: "nodes of the pipeline, each a process with its phases",
    default: Some("3"),
    check: |text| number(text, 1, MOST_NODES, "nodes").map(drop),
};

/// How many phases.
pub static PHASES: Setting = Setting {
    name: "phases",
    value: "F",
    about: "phases of each node; between two of them every node sends to every node",
    default: Some("3"),
    check: |text| number(text, 2, MOST_PHASES, "phases").map(drop),
};

/// How many buffers.
pub static BUFFERS: Setting = Setting {
    name: "buffers",
    value: "B",
    about: "buffers that pass through each node in a run, of one block for each node; of a source file: as many as it has",
    default: Some("64"),
    check: |text| number(text, 1, MOST_BUFFERS, "buffers").map(drop),
};

/// How large a block is.
pub static BLOCK: Setting = Setting {
    name: "block",
    value: "BYTES",
    about: "size of a block, or a list of sizes",
    default: Some("256K"),
    check: |text| match plan::parse_sizes(text)?.contains(&Bytes(0)) {
        true => Err(Error::usage("a block has at least 1 byte")),
        false => Ok(()),
    },
};

/// Where blocks come from.
pub static SOURCE: Setting = Setting {
    name: "source",
    value: "memory|file:PATH",
    about: "where blocks come from",
    default: Some("memory"),
    check: |text| End::parse(text).map(drop),
};

/// Where blocks go to.
pub static SINK: Setting = Setting {
    name: "sink",
    value: "memory|file:PATH",
    about: "where blocks go to; a file is overwritten",
    default: Some("memory"),
    check: |text| End::parse(text).map(drop),
};

/// Where nodes are.
pub static HOSTS: Setting = Setting {
    name: "hosts",
    value: "HOST,..",
    about: "hosts to which nodes are dealt in turn",
    default: None,
    check: |text| Hosts::parse(text).map(drop),
};

ombx_core::axis! {
    /// What phases, senders and receivers are
    pub enum Workers: "workers", IfChosen, default Processes {
        /// Processes
        Processes = "processes",
        /// Threads of the process of their node
        Threads = "threads",
    }
}

ombx_core::axis! {
    /// Whether waiting processes poll instead of sleeping
    pub enum Spin: "spin", IfChosen, default Off {
        /// They sleep
        Off = "off",
        /// They poll
        On = "on",
    }
}

const METHOD: Method = Method {
    timed: "one run of all buffers through all phases: from the first signal to a first phase until the last phase of every node has said that it is done",
    untimed: "starting processes, connecting them, filling a source in memory, comparing what arrived (in a further run with fresh data, every byte)",
    like: "the phase pipeline of the SP2: N (1 + F + 2 N (F - 1)) processes, two buffers in each phase, Unix-domain sockets inside a node and TCP between nodes",
};

ombx_core::inventory::submit! {
    Benchmark::custom("sockets.pipeline", "blocks through the phases of several nodes, all to all", Metric::Bandwidth, METHOD, run)
        .by_itself().sizes("256K").sized_by(&BLOCK)
        .settings(&[&NODES, &PHASES, &BUFFERS, &BLOCK, &SOURCE, &SINK, &HOSTS]).axes(&[Workers::AXIS, Spin::AXIS])
}

/// Is a process of a pipeline, until whoever started it ends it; returns its exit code.
pub fn serve() -> u8 {
    // Whatever ends the one who started this process, ends this one too.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    match Line::of_this_process().and_then(|line| task::serve(line, Orphan::Ends)) {
        Ok(()) => TOLD,
        // Nobody is there any more.
        Err(_) => 1,
    }
}

/// Measures every case of a session.
fn run(session: &mut Session<'_>) -> Result<()> {
    for case in session.cases()? {
        let (plan, hosts) = plan(session.plan, &case)?;
        report::measure(session, &case, (&plan, &hosts), Crew::Processes)?;
    }
    Ok(())
}

/// What the user chose, made sense of and checked against this host.
fn plan(choices: &Choices, case: &Case) -> Result<(Plan, Hosts)> {
    let given = |setting| choices.setting(setting).unwrap_or_default();
    let nodes = number(given(&NODES), 1, MOST_NODES, "nodes")?;
    let phases = number(given(&PHASES), 2, MOST_PHASES, "phases")?;
    let buffers = number(given(&BUFFERS), 1, MOST_BUFFERS, "buffers")?;
    let (source, sink) = (End::parse(given(&SOURCE))?, End::parse(given(&SINK))?);
    let mut shape = Shape { nodes, phases, buffers, block: case.bytes.0 };
    if shape.block == 0 {
        return Err(Error::usage("a block has at least 1 byte, --block or --sizes says 0"));
    }
    if choices.batch.is_some_and(|batch| batch > 1) {
        return Err(Error::usage("--batch means nothing to sockets.pipeline: a sample is one run"));
    }
    let crew = match case.choice() {
        Workers::Threads => Crew::Threads,
        Workers::Processes => Crew::Processes,
    };
    let waiting = match case.choice() {
        Spin::On => Waiting::Spinning,
        Spin::Off => Waiting::Asleep,
    };
    let hosts = Hosts::parse(given(&HOSTS))?;
    shape.check(hosts.local(nodes), crew == Crew::Threads)?;
    shape.buffers = files(&shape, &source, &sink, choices.settings.contains_key(BUFFERS.name))?;
    Ok((Plan { shape, crew, waiting, source, sink }, hosts))
}

/// Checks the files of both ends and returns how many buffers there are: of a source file, as many as it has.
fn files(shape: &Shape, source: &End, sink: &End, chosen: bool) -> Result<u32> {
    let Some(path) = source.path() else { return Ok(shape.buffers) };
    let shown = path.display();
    let facts = File::open(path).and_then(|file| file.metadata());
    let facts = facts.map_err(|e| Error::storage(format!("source file {shown}: {e}")))?;
    if !facts.is_file() {
        return Err(Error::usage(format!(
            "source {shown} is no regular file, so that its size says nothing"
        )));
    }
    let same = |path| std::fs::metadata(path).is_ok_and(|s| (s.dev(), s.ino()) == (facts.dev(), facts.ino()));
    if sink.path().is_some_and(same) {
        return Err(Error::usage(format!("source and sink are one file, {shown}")));
    }
    let Shape { nodes, block, .. } = *shape;
    let round = shape.buffer().saturating_mul(u64::from(nodes));
    let (buffers, rest) = (facts.len() / round, facts.len() % round);
    let described = format!("{nodes} nodes x {nodes} blocks of {} = {round} bytes", Bytes(block));
    if rest != 0 || buffers == 0 {
        return Err(Error::usage(format!(
            "source file {shown} has {} bytes, which is no multiple of {described}: choose another --block, or pad it to {}",
            facts.len(),
            (buffers + 1) * round
        )));
    }
    match u32::try_from(buffers).ok().filter(|buffers| *buffers <= MOST_BUFFERS) {
        Some(found) if chosen && found != shape.buffers => Err(Error::usage(format!(
            "source file {shown} has {found} buffers of {described}, --buffers says {}: leave --buffers out",
            shape.buffers
        ))),
        Some(found) => Ok(found),
        None => Err(Error::usage(format!(
            "source file {shown} has {buffers} buffers, more than {MOST_BUFFERS}: take larger blocks"
        ))),
    }
}

fn number(text: &str, least: u32, most: u32, what: &str) -> Result<u32> {
    let number = text.parse::<u32>().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| Error::usage(format!("{text:?} is no number of {what} from {least} to {most}")))
}

#[cfg(test)]
mod tests;
