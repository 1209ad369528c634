//! Table of comparisons: each registered benchmark with the C loop that makes the same calls.

mod one_sided;

use std::{collections::BTreeMap, env, path::Path};

use ombx_collective::operations::OPERATIONS;
use ombx_core::{
    benchmark::{
        Benchmark, Choice, Chosen, Depth, Medium, ParameterValue, Registry, Streams, Threading, Threads,
        payload::{BLOCK_LENGTH, Datatype},
    },
    measure::{
        plan::{Plan, Verify},
        session::check_combinations,
    },
};
use ombx_io::options::DIRECTORY;
use ombx_record::{
    error::{Error, Result},
    unit::{Bytes, parse_sizes},
};

use crate::slowed::FAMILY;

/// Way of taking samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Batches, back to back.
    Chained,
    /// One iteration per sample, after a barrier.
    Paced,
    /// All iterations in one sample, after a barrier.
    Together,
    /// Back-to-back broadcasts, in rounds in which each of two ranks is root equally often.
    Rounds,
    /// Batches that alternate with batches of round trips.
    Turns,
}

/// Broadcasts of a round: each rank is root four times.
const ROUND: u64 = 8;

impl Shape {
    /// Returns iterations per sample and samples of a block with at least this many iterations.
    pub(crate) fn divide(self, iterations: u64) -> (u64, u64) {
        match self {
            Shape::Chained | Shape::Together | Shape::Turns => (iterations, 1),
            Shape::Paced => (1, iterations),
            Shape::Rounds => (iterations.next_multiple_of(ROUND), 1),
        }
    }

    /// Returns the ticks of each sample from the readings of the clock.
    pub(crate) fn ticks(self, stamps: &[u64]) -> Vec<u64> {
        match self {
            Shape::Chained | Shape::Rounds => stamps.windows(2).map(|w| w[1] - w[0]).collect(),
            Shape::Paced | Shape::Together => {
                stamps.as_chunks().0.iter().map(|[start, end]| end - start).collect()
            }
            Shape::Turns => stamps.as_chunks().0.iter().map(|[start, end, _, _]| end - start).collect(),
        }
    }
}

/// Comparison of one case.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Benchmark, options and messages in flight.
    pub(crate) name: String,
    pub(crate) bench: &'static Benchmark,
    /// Name of the loop in C.
    pub(crate) reference: String,
    /// Kind of window in this launch.
    pub(crate) window: Option<&'static str>,
    /// Values on axes.
    pub(crate) options: BTreeMap<&'static str, &'static str>,
    /// Bytes of payload of a block, if messages are of a derived datatype.
    pub(crate) block: Option<u64>,
    pub(crate) bytes: u64,
    /// Messages in flight.
    pub(crate) depth: u32,
    pub(crate) shape: Shape,
    /// Largest accepted ratio of times.
    pub(crate) goal: f64,
}

/// Goal of 8-byte latency and put.
const LATENCY: f64 = 1.01;
/// Goal of message rates and bandwidths.
const RATE: f64 = 1.02;
/// Goal of everything else.
const OTHER: f64 = 1.03;

/// Message sizes, and the messages in flight of each.
const SIZES: [(u64, u32); 3] = [(8, 64), (4096, 16), (1 << 20, 4)];
/// Size of messages of derived datatypes, whose loops are the same for all sizes.
const DERIVED_BYTES: u64 = 4096;
/// Requests begin at the times of a schedule, so that the time of an iteration says nothing about the loop.
const SCHEDULED: &str = "p2p.request";

/// Directory in memory, so that a device does not hide the cost of calls.
const MEMORY: &str = "/dev/shm";

/// Returns the setting with the directory of files.
fn directory() -> String {
    let directory = if Path::new(MEMORY).is_dir() { MEMORY.into() } else { env::temp_dir() };
    directory.display().to_string()
}

impl Row {
    fn new(bench: &'static Benchmark, reference: impl Into<String>, shape: Shape, goal: f64) -> Row {
        Row {
            name: bench.name.to_owned(),
            bench,
            reference: reference.into(),
            window: None,
            options: BTreeMap::new(),
            block: None,
            bytes: 8,
            depth: 1,
            shape,
            goal,
        }
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Row {
        self.name = format!("{} {value}", self.name);
        self.options.insert(name, value);
        self
    }

    /// Returns the row for each size that its benchmark has.
    fn sizes(self) -> Result<Vec<Row>> {
        let own = parse_sizes(self.bench.messages.sizes)?;
        if let ([Bytes(bytes)], _) | ([Bytes(bytes), ..], false) = (&own[..], self.bench.messages.sized) {
            return Ok(vec![Row { bytes: *bytes, ..self }]);
        }
        let streams = match self.bench.own.streams {
            Streams::Never => false,
            Streams::Always => true,
            Streams::Only(parameter, value) => {
                self.options.get(parameter.name).is_none_or(|chosen| *chosen == value)
            }
        };
        let rows = SIZES.map(|(bytes, depth)| Row {
            bytes,
            depth: if streams { depth } else { 1 },
            // The strictest goal is for 8 bytes.
            goal: if bytes > 8 && self.goal == LATENCY { RATE } else { self.goal },
            ..self.clone()
        });
        let fits = |row: &Row| row.block.is_none() || row.bytes == DERIVED_BYTES;
        Ok(rows.into_iter().filter(fits).collect())
    }

    /// Returns what the engine of ombx needs to open the case.
    pub(crate) fn plan(&self) -> Plan {
        let mut chosen = Chosen::default().with(Depth(self.depth)).with(Threads::Each(1));
        self.options.iter().for_each(|(name, value)| chosen.set(name, [*value]));
        chosen.set("win", self.window);
        chosen.set(DIRECTORY.name, [directory()]);
        chosen.set(BLOCK_LENGTH.name, self.block.map(|block| block.to_string()));
        Plan { sizes: Some(vec![Bytes(self.bytes)]), chosen, verify: Verify::Off, ..Plan::default() }
    }

    /// Returns name and size.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.name, self.bytes)
    }

    pub(crate) fn needs_threads(&self) -> bool {
        self.bench.ranks.threading == Threading::Multiple
    }
}

fn two_sided(bench: &'static Benchmark, name: &str) -> Vec<Row> {
    let goal = if bench.own.streams.exists() { RATE } else { LATENCY };
    let row = |reference: &str, goal| Row::new(bench, reference, Shape::Chained, goal);
    match name {
        "latency" => with_modes(row("ping", goal)),
        "latency_mp" => vec![row("ping", goal)],
        "multi_latency" => with_modes(row("ping", goal)),
        "latency_persistent" => with_datatypes(row("ping_persistent", goal), ""),
        "latency_partitioned" => vec![row("ping_partitioned", goal)],
        "latency_mt" => vec![row("ping_threads", goal)],
        "bw" => with_modes(row("stream", goal)),
        "mbw_mr" => with_modes(row("stream", goal)),
        "bibw" => with_modes(row("both", goal)),
        "bw_persistent" => with_datatypes(row("stream_persistent", goal), ""),
        "bibw_persistent" => with_datatypes(row("both_persistent", goal), ""),
        "bw_partitioned" => vec![row("stream_partitioned", goal)],
        "halo" => ["2", "3"]
            .map(|dimensions| with_datatypes(row("halo", goal).with("dims", dimensions), DERIVED))
            .concat(),
        "fan_in" | "fan_out" => with_datatypes(row("fan", goal), DERIVED),
        "link" => vec![
            row("ping", LATENCY).with("pattern", "semidirectional"),
            row("two_pings", LATENCY).with("pattern", "bidirectional"),
            row("one_way", RATE).with("pattern", "unidirectional"),
        ],
        name if name.ends_with("_mt") => vec![Row::new(bench, name, Shape::Together, OTHER)],
        // A new benchmark has a loop with its name.
        other if has_datatypes(bench) => with_datatypes(row(other, goal), DERIVED),
        other => vec![row(other, goal)],
    }
}

fn has_datatypes(bench: &Benchmark) -> bool {
    bench.has(Datatype::PARAMETER)
}

/// Returns the row, and those with another source of receives, other modes of sends and other datatypes.
fn with_modes(row: Row) -> Vec<Row> {
    // Ready sends in both directions do not exist.
    let exists = |mode: &&str| *mode != "ready" || row.reference != "both";
    let modes = ["synchronous", "buffered", "ready"].into_iter().filter(exists).map(|mode| {
        let reference = format!("{}_{mode}", row.reference);
        Row { reference, ..row.clone().with("send", mode) }
    });
    let any = row.clone().with("receive-from", "any");
    modes.chain([any]).chain(with_datatypes(row.clone(), DERIVED)).collect()
}

/// End of the names of loops with derived datatypes.
const DERIVED: &str = "_derived";

/// Returns the row, and those of derived datatypes, with the smallest blocks. `suffix` ends the name of their loop.
fn with_datatypes(row: Row, suffix: &str) -> Vec<Row> {
    let reference = format!("{}{suffix}", row.reference);
    let of = |(datatype, block)| Row {
        reference: reference.clone(),
        block: Some(block),
        ..row.clone().with("datatype", datatype)
    };
    let derived = [("vector", 8), ("indexed", 8), ("struct", 16)].map(of);
    [row].into_iter().chain(derived).collect()
}

fn collective(bench: &'static Benchmark, name: &str) -> Vec<Row> {
    let row = |reference: &str, shape| Row::new(bench, reference, shape, OTHER);
    let operation = OPERATIONS.iter().find_map(|operation| {
        let at = operation.benchmarks().iter().position(|entry| entry.name == bench.name)?;
        Some((operation.name, at))
    });
    if let Some((operation, mode)) = operation {
        return match mode {
            0 if name == "allreduce" => vec![
                row(operation, Shape::Paced),
                row("allreduce_disseminated", Shape::Paced).with("pace", "dissemination"),
            ],
            0 => with_vector(bench, row(operation, Shape::Paced)),
            1 => vec![row(&format!("{operation}_nonblocking"), Shape::Paced)],
            _ => vec![row("persistent", Shape::Paced)],
        };
    }
    let acked = || row("bcast_acked", Shape::Turns).with("ack-correction", "none");
    match name {
        "bcast_window" => vec![row("bcast", Shape::Paced).with("pace", "barrier")],
        "bcast_round" => vec![row("bcast_round", Shape::Rounds)],
        "reduce_local" => vec![row("reduce_local", Shape::Chained)],
        "bcast_ack" => vec![acked()],
        "bcast_acked" => {
            vec![acked(), Row { reference: "tree_acked".into(), ..acked() }.with("by", "binomial")]
        }
        // Each thread runs the loop of the operation. The threads of ombx meet once more after the barrier, which delays ranks unequally.
        // The time of a single iteration would contain this delay, so all iterations follow one barrier.
        other => match other.strip_suffix("_mt") {
            Some(operation) => vec![row(operation, Shape::Together)],
            None => vec![row(other, Shape::Paced)],
        },
    }
}

/// Returns the row, and that of blocks which are vectors. Displacements of MPI_Alltoallw are bytes, which the loop does not have.
fn with_vector(bench: &Benchmark, row: Row) -> Vec<Row> {
    if has_datatypes(bench) && row.reference != "alltoallw" {
        vec![row.clone(), Row { block: Some(8), ..row.with("datatype", "vector") }]
    } else {
        vec![row]
    }
}

/// Returns each call of MPI-IO that exists, and for writes each place of `MPI_File_sync`.
fn files(bench: &'static Benchmark, name: &str) -> Vec<Row> {
    let axis = |name: &str| bench.parameter(name).map_or(&[][..], |parameter| parameter.names());
    if axis("pointer").is_empty() {
        return vec![Row::new(bench, name, Shape::Paced, OTHER)];
    }
    let call = |pointer: &'static str, access: &'static str| {
        let reference = format!("{name}_{pointer}_{access}");
        Row::new(bench, reference, Shape::Paced, OTHER).with("pointer", pointer).with("access", access)
    };
    let calls =
        axis("pointer").iter().flat_map(|pointer| axis("access").iter().map(|access| call(pointer, access)));
    let exists = |row: &Row| check_combinations(Choice { bench, preset: &[] }, &row.plan()).is_ok();
    calls.flat_map(|row| with_syncs(row, axis("file-sync"))).filter(exists).collect()
}

/// Returns the row for each of these places of `MPI_File_sync`, or the row itself if there are none.
fn with_syncs(row: Row, syncs: &[&'static str]) -> Vec<Row> {
    if syncs.is_empty() {
        return vec![row];
    }
    let with_sync = |sync: &&'static str| {
        let suffix = if *sync == "never" { "" } else { "_synced" };
        Row { reference: format!("{}{suffix}", row.reference), ..row.clone().with("file-sync", sync) }
    };
    syncs.iter().map(with_sync).collect()
}

/// Returns the comparisons of slowed kernels.
fn slowed(bench: &'static Benchmark, name: &str) -> Vec<Row> {
    match name {
        "latency" => vec![Row::new(bench, "ping", Shape::Chained, LATENCY)],
        _ => vec![Row::new(bench, "put_many_flush", Shape::Chained, RATE).with("sync", "flush")],
    }
}

/// Returns every comparison of the registered benchmarks over MPI in the launch with this number.
///
/// # Errors
/// The registry is inconsistent.
pub(crate) fn all(registry: &Registry, launch: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let has_loop = |bench: &&Benchmark| {
        bench.ranks.medium == Medium::Mpi && bench.ranks.repeats && bench.name != SCHEDULED
    };
    for bench in registry.all().iter().copied().filter(has_loop) {
        let found = match bench.name.split_once('.') {
            Some(("p2p", name)) => two_sided(bench, name),
            Some(("rma", name)) => one_sided::rows(bench, name, launch),
            Some(("collective", name)) => collective(bench, name),
            Some(("io", name)) => files(bench, name),
            Some((FAMILY, name)) => slowed(bench, name),
            _ => Vec::new(),
        };
        if found.is_empty() {
            return Err(Error::usage(format!(
                "{} is compared with no C loop: add it in verify/paired/src/row.rs",
                bench.name
            )));
        }
        for row in found {
            rows.extend(row.sizes()?);
        }
    }
    Ok(rows)
}
