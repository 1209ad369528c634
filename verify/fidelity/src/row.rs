//! Table of comparisons: each benchmark of ombx with the C loop that makes the same MPI calls.

/// Kind of communication. Each has a C program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    TwoSided,
    /// Two-sided under `MPI_THREAD_MULTIPLE`, in a separate launch because that slows other rows.
    Threads,
    OneSided,
    Collective,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::TwoSided, Kind::Threads, Kind::OneSided, Kind::Collective];

    /// Returns the name of the program and of its source.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Kind::TwoSided | Kind::Threads => "two_sided",
            Kind::OneSided => "one_sided",
            Kind::Collective => "collective",
        }
    }
}

/// Way of taking samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Batches, back to back.
    Chained,
    /// One iteration per sample, after a barrier.
    Paced,
    /// Back-to-back broadcasts; each rank is root four times in a batch.
    Rounds,
    /// Batches that alternate with batches of round trips.
    Turns,
}

impl Shape {
    /// Returns the timed loop of ombx.
    pub(crate) fn timed(self) -> &'static str {
        match self {
            Shape::Chained | Shape::Rounds => "ombx_core::measure::timed_loop::timed",
            Shape::Paced => "ombx_core::measure::timed_loop::paced",
            Shape::Turns => "ombx_core::measure::timed_loop::in_turn",
        }
    }
}

/// Comparison of one benchmark.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Name of the loop in the C program.
    pub(crate) reference: String,
    pub(crate) benchmark: String,
    /// Other options of `ombx run`, as keys of a suite.
    pub(crate) options: Vec<(&'static str, &'static str)>,
    pub(crate) bytes: u32,
    /// Messages in flight, if the benchmark has several.
    pub(crate) depth: Option<u32>,
    pub(crate) shape: Shape,
    /// Largest accepted ratio of times, in both directions.
    pub(crate) goal: f64,
    /// Whether the row is also measured with default settings.
    pub(crate) default: bool,
    /// Whether the pure time of a nonblocking operation is compared instead of the time of the row.
    pub(crate) pure: bool,
}

/// Goal of 8-byte latency and put.
const LATENCY: f64 = 1.01;
/// Goal of message rates and bandwidths.
const RATE: f64 = 1.02;
/// Goal of everything else.
const OTHER: f64 = 1.03;

/// Messages in flight, the default of ombx.
const WINDOW: u32 = 64;
/// Size of a large message, in bytes.
const LARGE: u32 = 1 << 16;

impl Row {
    fn of(kind: Kind, benchmark: &str, reference: &str, shape: Shape, goal: f64) -> Row {
        Row {
            name: benchmark.to_owned(),
            kind,
            reference: reference.to_owned(),
            benchmark: benchmark.to_owned(),
            options: Vec::new(),
            bytes: 8,
            depth: None,
            shape,
            goal,
            default: false,
            pure: false,
        }
    }

    fn latency(benchmark: &str, reference: &str) -> Row {
        Row::of(Kind::TwoSided, benchmark, reference, Shape::Chained, LATENCY)
    }

    fn rate(benchmark: &str, reference: &str, bytes: u32) -> Row {
        let row = Row { bytes, ..Row::of(Kind::TwoSided, benchmark, reference, Shape::Chained, RATE) };
        row.window()
    }

    fn window(self) -> Row {
        let size = if self.bytes == LARGE { "64 KiB" } else { "8 B" };
        Row { name: format!("{} {WINDOW} x {size}", self.name), depth: Some(WINDOW), ..self }
    }

    fn with(mut self, key: &'static str, value: &'static str) -> Row {
        self.name = format!("{} {value}", self.name);
        self.options.push((key, value));
        self
    }

    fn by_default(self) -> Row {
        Row { default: true, ..self }
    }
}

fn two_sided() -> Vec<Row> {
    let link = |pattern, reference| Row::latency("p2p.link", reference).with("pattern", pattern);
    vec![
        Row::latency("p2p.latency", "ping").by_default(),
        Row::latency("p2p.multi_latency", "ping"),
        Row::latency("p2p.latency_mp", "ping_forked"),
        Row::latency("p2p.latency_persistent", "ping_persistent"),
        Row::latency("p2p.latency_partitioned", "ping_partitioned"),
        Row { kind: Kind::Threads, ..Row::latency("p2p.latency_mt", "ping_threads") }.with("threads", "1:1"),
        link("semidirectional", "ping"),
        Row { depth: Some(1), ..link("bidirectional", "two_pings") },
        Row { goal: RATE, ..link("unidirectional", "one_way").window() },
        Row::rate("p2p.bw", "stream", 8).by_default(),
        Row::rate("p2p.bw", "stream", LARGE).by_default(),
        Row::rate("p2p.bibw", "both", 8),
        Row::rate("p2p.bibw", "both", LARGE),
        Row::rate("p2p.mbw_mr", "stream", 8),
        Row::rate("p2p.bw_persistent", "stream_persistent", 8),
        Row::rate("p2p.bibw_persistent", "both_persistent", 8),
        Row::rate("p2p.bw_partitioned", "stream_partitioned", 8),
        Row::rate("p2p.fan_in", "fan_in", 8),
        Row::rate("p2p.fan_out", "stream", 8),
    ]
}

const ACTIVE: [&str; 2] = ["pscw", "fence"];
const PASSIVE: [&str; 5] = ["lock", "lock_exclusive", "lock_all", "flush", "flush_local"];

fn one_sided() -> Vec<Row> {
    let row = |operation: &str, mode: &str, loops: &str, sync: &'static str, goal| {
        let (benchmark, reference) =
            (format!("rma.{operation}_{mode}"), format!("{operation}{loops}_{sync}"));
        Row::of(Kind::OneSided, &benchmark, &reference, Shape::Chained, goal).with("sync", sync)
    };
    let mut rows = Vec::new();
    for operation in ["put", "get", "acc", "get_acc", "fop", "cas", "rput", "rget"] {
        let has_request = ["rput", "rget"].contains(&operation);
        let goal = if operation == "put" { LATENCY } else { OTHER };
        for sync in ACTIVE.into_iter().filter(|_| !has_request).chain(PASSIVE) {
            let default = operation == "put" && ["pscw", "lock", "flush"].contains(&sync);
            rows.push(Row { default, ..row(operation, "latency", "", sync, goal) });
        }
        if ["fop", "cas"].contains(&operation) {
            continue;
        }
        for sync in ACTIVE.into_iter().filter(|_| !has_request).chain(PASSIVE) {
            rows.push(row(operation, "bw", "_many", sync, RATE).window());
        }
        if ["put", "get"].contains(&operation) {
            let large =
                |mode, loops, sync| Row { bytes: LARGE, ..row(operation, mode, loops, sync, RATE) }.window();
            rows.extend(ACTIVE.map(|sync| row(operation, "bibw", "_both", sync, RATE).window()));
            rows.extend(["pscw", "lock"].map(|sync| large("bw", "_many", sync)));
        }
    }
    rows
}

/// Operations with blocking, nonblocking and persistent forms.
const OPERATIONS: [&str; 22] = [
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "gatherv",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
    "scatterv",
];

fn collective() -> Vec<Row> {
    let row = |benchmark: String, reference: String, shape| {
        Row::of(Kind::Collective, &format!("collective.{benchmark}"), &reference, shape, OTHER)
    };
    let paced = |benchmark: String, reference: String| row(benchmark, reference, Shape::Paced);
    let mut rows = Vec::new();
    for operation in OPERATIONS {
        let default = ["allreduce", "barrier", "bcast"].contains(&operation);
        rows.push(Row { default, ..paced(operation.into(), operation.into()) });
        rows.push(Row { pure: true, ..paced(format!("i{operation}"), format!("{operation}_nonblocking")) });
        rows.push(paced(format!("{operation}_persistent"), format!("{operation}_persistent")));
    }
    rows.push(paced("allreduce".into(), "allreduce_disseminated".into()).with("pace", "dissemination"));
    rows.push(paced("bcast_window".into(), "bcast".into()).with("pace", "barrier"));
    rows.push(row("bcast_round".into(), "bcast_round".into(), Shape::Rounds));
    for name in ["bcast_ack", "bcast_acked"] {
        let acked = row(name.into(), "bcast_acked".into(), Shape::Turns);
        rows.push(acked.with("ack-correction", "none"));
    }
    let tree = row("bcast_acked".into(), "tree_acked".into(), Shape::Turns);
    rows.push(tree.with("ack-correction", "none").with("by", "tree"));
    rows
}

/// Returns every comparison. A new row is an entry here, and a loop in the C program of its kind unless that exists.
pub(crate) fn all() -> Vec<Row> {
    [two_sided(), one_sided(), collective()].concat()
}

/// Returns the rows whose name contains `pattern`.
pub(crate) fn matching(pattern: &str) -> Vec<Row> {
    all().into_iter().filter(|row| row.name.contains(pattern)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_rows_are_unique() {
        let rows = all();
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), rows.len());
        assert!(rows.iter().all(|row| row.goal > 1.0 && row.goal < 1.05));
    }

    /// Checks the rows against `docs/BENCHMARKS.md`, which is generated from the registry.
    #[test]
    fn every_benchmark_over_mpi_has_a_row() {
        let catalogue = include_str!("../../../docs/BENCHMARKS.md");
        let known = catalogue.lines().filter_map(|line| line.strip_prefix("## "));
        let rows = all();
        let over_mpi = known.filter(|name| !name.starts_with("sockets."));
        let missing: Vec<&str> =
            over_mpi.filter(|name| !rows.iter().any(|row| row.benchmark == *name)).collect();
        let advice =
            "give each a row in verify/fidelity/src/row.rs and its loop in verify/fidelity/src/reference";
        assert!(missing.is_empty(), "no C loop is compared with {missing:?}: {advice}");
    }

    #[test]
    fn rows_are_chosen_by_a_part_of_their_name() {
        assert_eq!(matching("").len(), all().len());
        assert_eq!(matching("put_latency").len(), 12);
        assert!(matching("nothing").is_empty());
    }
}
