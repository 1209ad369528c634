//! Table of comparisons: each registered benchmark with the C loop that makes the same MPI calls.

use ombx_toolchain::registry::{self, Bench, Collective, OneSided};

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
    pub(crate) options: Vec<(&'static str, String)>,
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
/// Synchronisations with an active target.
const ACTIVE: [&str; 2] = ["pscw", "fence"];

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

    fn with(mut self, key: &'static str, value: &str) -> Row {
        self.name = format!("{} {value}", self.name);
        self.options.push((key, value.to_owned()));
        self
    }

    fn by_default(self) -> Row {
        Row { default: true, ..self }
    }
}

/// Returns the rows of two-sided benchmarks: those with a loop of another name, and 8 bytes of every other benchmark.
fn two_sided(benches: &[Bench]) -> Vec<Row> {
    let link = |pattern, reference| Row::latency("p2p.link", reference).with("pattern", pattern);
    let mut rows = vec![
        Row::latency("p2p.latency", "ping").by_default(),
        Row::latency("p2p.multi_latency", "ping"),
        Row::latency("p2p.latency_mp", "ping_forked"),
        Row::latency("p2p.latency_persistent", "ping_persistent"),
        Row::latency("p2p.latency_partitioned", "ping_partitioned"),
        Row { kind: Kind::Threads, ..Row::latency("p2p.latency_mt", "ping_threads") }.with("threads", "1:1"),
        link("semidirectional", "ping"),
        link("bidirectional", "two_pings"),
        Row { goal: RATE, ..link("unidirectional", "one_way").window() },
        Row::rate("p2p.bw", "stream", 8).by_default(),
        Row::rate("p2p.bw", "stream", LARGE).by_default(),
        Row::rate("p2p.bibw", "both", 8),
        Row::rate("p2p.bibw", "both", LARGE),
        Row::rate("p2p.mbw_mr", "stream", 8),
        Row::rate("p2p.bw_persistent", "stream_persistent", 8),
        Row::rate("p2p.bibw_persistent", "both_persistent", 8),
        Row::rate("p2p.bw_partitioned", "stream_partitioned", 8),
        Row::rate("p2p.fan_out", "stream", 8),
    ];
    for bench in benches {
        let Some(reference) = bench.name.strip_prefix("p2p.") else { continue };
        if rows.iter().all(|row| row.benchmark != bench.name) {
            rows.push(match bench.streams {
                true => Row::rate(&bench.name, reference, 8),
                false => Row::latency(&bench.name, reference),
            });
        }
    }
    rows
}

/// Returns the rows of one-sided benchmarks: every synchronisation that they have.
fn one_sided(benches: &[Bench]) -> Vec<Row> {
    let mut rows = Vec::new();
    for OneSided { operation, mode, bench } in registry::one_sided(benches) {
        let Some(syncs) = bench.axis("sync") else { continue };
        let is_active = |sync: &str| ACTIVE.contains(&sync);
        // The default of operations with requests is a passive target, the only one that they have.
        let has_requests = !is_active(&syncs.default);
        for sync in &syncs.values {
            if is_active(sync) && has_requests || !is_active(sync) && mode == "bibw" {
                continue;
            }
            let loops = match mode {
                "bw" => "_many",
                "bibw" => "_both",
                _ => "",
            };
            let goal = match (operation, mode) {
                ("put", "latency") => LATENCY,
                (_, "latency") => OTHER,
                _ => RATE,
            };
            let reference = format!("{operation}{loops}_{sync}");
            let row =
                Row::of(Kind::OneSided, &bench.name, &reference, Shape::Chained, goal).with("sync", sync);
            if mode == "latency" {
                let default = operation == "put" && ["pscw", "lock", "flush"].contains(&sync.as_str());
                rows.push(Row { default, ..row });
                continue;
            }
            if mode == "bw"
                && ["put", "get"].contains(&operation)
                && ["pscw", "lock"].contains(&sync.as_str())
            {
                rows.push(Row { bytes: LARGE, ..row.clone() }.window());
            }
            rows.push(row.window());
        }
    }
    rows
}

fn collective(benches: &[Bench]) -> Vec<Row> {
    let row = |benchmark: &str, reference: &str, shape| {
        Row::of(Kind::Collective, &format!("collective.{benchmark}"), reference, shape, OTHER)
    };
    let paced = |benchmark: &str, reference: &str| row(benchmark, reference, Shape::Paced);
    let mut rows = Vec::new();
    for Collective { name, .. } in registry::collectives(benches) {
        let default = ["allreduce", "barrier", "bcast"].contains(&name);
        rows.push(Row { default, ..paced(name, name) });
        rows.push(Row { pure: true, ..paced(&format!("i{name}"), &format!("{name}_nonblocking")) });
        let persistent = format!("{name}_persistent");
        rows.push(paced(&persistent, &persistent));
    }
    rows.push(paced("allreduce", "allreduce_disseminated").with("pace", "dissemination"));
    rows.push(paced("bcast_window", "bcast").with("pace", "barrier"));
    rows.push(row("bcast_round", "bcast_round", Shape::Rounds));
    for name in ["bcast_ack", "bcast_acked"] {
        rows.push(row(name, "bcast_acked", Shape::Turns).with("ack-correction", "none"));
    }
    let tree = row("bcast_acked", "tree_acked", Shape::Turns);
    rows.push(tree.with("ack-correction", "none").with("by", "binomial"));
    rows
}

/// Returns every comparison of the registered benchmarks over MPI.
///
/// A benchmark whose loop has its name needs no entry here; the C program of its kind must have the loop.
pub(crate) fn all(benches: &[Bench]) -> Vec<Row> {
    [two_sided(benches), one_sided(benches), collective(benches)].concat()
}

/// Returns the registered benchmarks over MPI that no row compares.
pub(crate) fn without_row<'b>(rows: &[Row], benches: &'b [Bench]) -> Vec<&'b str> {
    let over_mpi =
        benches.iter().map(|bench| bench.name.as_str()).filter(|name| !name.starts_with("sockets."));
    over_mpi.filter(|name| rows.iter().all(|row| row.benchmark != *name)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ombx_toolchain::registry::Axis;
    use std::collections::BTreeSet;

    fn bench(name: &str, streams: bool, sync: &str) -> Bench {
        let values = ACTIVE.iter().chain(&["lock", "flush"]).map(|&value| value.to_owned()).collect();
        let sync = Axis { name: "sync".into(), default: sync.into(), values };
        let (name, sizes) = (name.to_owned(), "1..4M".to_owned());
        Bench { name, unavailable: None, streams, sizes, axes: vec![sync] }
    }

    /// Returns the first row whose name begins with `name`.
    pub(crate) fn row(name: &str) -> Row {
        all(&[]).into_iter().find(|row| row.name.starts_with(name)).unwrap()
    }

    #[test]
    fn names_of_rows_are_unique() {
        let benches =
            [("rma.put_latency", false), ("rma.put_bw", true), ("rma.put_bibw", true), ("p2p.new", true)]
                .map(|(name, streams)| bench(name, streams, "pscw"));
        let rows = all(&benches);
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), rows.len());
        assert!(rows.iter().all(|row| row.goal > 1.0 && row.goal < 1.05));
        assert!(rows.iter().any(|row| row.name == "p2p.new 64 x 8 B" && row.reference == "new"));
        assert_eq!(without_row(&rows, &benches), Vec::<&str>::new());
        assert_eq!(without_row(&rows, &[bench("collective.new", false, "")]), ["collective.new"]);
    }

    #[test]
    fn requests_need_a_passive_target_and_both_directions_an_active_one() {
        let syncs = |name, sync| {
            let rows = one_sided(&[bench(name, true, sync)]);
            rows.into_iter().map(|row| row.reference).collect::<Vec<_>>()
        };
        assert_eq!(syncs("rma.rput_bw", "flush"), ["rput_many_lock", "rput_many_flush"]);
        assert_eq!(syncs("rma.acc_bibw", "pscw"), ["acc_both_pscw", "acc_both_fence"]);
    }
}
