//! Comparisons of one-sided operations.

use ombx_core::benchmark::Benchmark;

use super::{LATENCY, OTHER, RATE, Row, Shape, has_datatypes};

/// Synchronisations with an active target.
const ACTIVE: [&str; 2] = ["pscw", "fence"];

/// Returns a row for each loop. All kinds of windows have the same loop: launches take them in turn.
pub(super) fn rows(bench: &'static Benchmark, name: &str, launch: usize) -> Vec<Row> {
    if name == "put_incast" {
        return vec![Row::new(bench, "put_many_flush", Shape::Chained, RATE)];
    }
    if ["window", "put_passive"].contains(&name) {
        return vec![Row::new(bench, name, Shape::Paced, OTHER)];
    }
    if let Some((operation, mode)) = name.split_once("_many_") {
        let goal = if mode == "bw" { RATE } else { OTHER };
        if operation == "acc" {
            let row = |completion, reference| {
                Row::new(bench, reference, Shape::Paced, goal).with("completion", completion)
            };
            return vec![row("remote", "acc_flush_all"), row("fence", "acc_to_root_fence")];
        }
        let row = |shape, completion, reference: &str| {
            let reference = format!("{operation}_{reference}");
            let row = Row::new(bench, reference, Shape::Paced, goal).with("shape", shape);
            if completion == "remote" { row } else { row.with("completion", completion) }
        };
        return vec![
            row("one_to_all", "remote", "flush_all"),
            row("all_to_all", "remote", "flush_all"),
            row("neighbours", "remote", "flush_all"),
            row("all_to_all", "local", "flush_local_all"),
            row("pairs", "fence", "far_fence"),
        ];
    }
    let (Some((operation, mode)), Some(syncs)) = (name.rsplit_once('_'), bench.parameter("sync")) else {
        return Vec::new();
    };
    let windows = bench.parameter("win").map_or(&[][..], |parameter| parameter.names());
    let has_requests = bench.default_of(syncs) == Some("flush");
    let (suffix, goal) = match (mode, operation) {
        ("bw", _) => ("_many", RATE),
        ("bibw", _) => ("_both", RATE),
        (_, "put") => ("", LATENCY),
        _ => ("", OTHER),
    };
    let mut rows = Vec::new();
    for sync in syncs.names() {
        let active = ACTIVE.contains(sync);
        if active && has_requests || !active && mode == "bibw" {
            continue;
        }
        let reference = format!("{operation}{suffix}_{sync}");
        let window = windows.get(launch % windows.len().max(1)).copied();
        let row = Row { window, ..Row::new(bench, reference, Shape::Chained, goal).with("sync", sync) };
        // Puts and gets have the same datatype in each synchronisation.
        if has_datatypes(bench) && (operation.ends_with("acc") || Some(*sync) == bench.default_of(syncs)) {
            let derived = ["vector", "indexed"]
                .map(|datatype| Row { block: Some(8), ..row.clone().with("datatype", datatype) });
            rows.extend(derived);
        }
        rows.push(row);
    }
    rows
}
