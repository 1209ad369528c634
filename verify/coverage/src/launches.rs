//! Repeated launches of one benchmark, on this machine and over a link of known delay.

use std::process::Command;

use ombx_core::stats;
use serde_json::Value;

use ombx_toolchain::{
    command::output,
    failure::{Failure, Result},
    mpi::Mpi,
    release,
    workspace::{Workspace, cargo},
};

/// Message sizes: eager and rendezvous.
const SIZES: &str = "8,64K";
/// Options of the emulated link.
const LINK: [&str; 6] = ["--hosts", "2", "--delay", "2ms", "--rate", "100Mbit"];

/// All launches of one size.
#[derive(Debug)]
pub(crate) struct Launched {
    /// Transport.
    pub(crate) over: String,
    pub(crate) bytes: u64,
    pub(crate) launches: u64,
    /// Median of the launches' medians.
    pub(crate) median_us: f64,
    pub(crate) ends_us: [f64; 2],
    /// Median over launches of the half-width of the interval, relative to the median.
    pub(crate) half: f64,
    /// Launches whose interval holds the median of all launches.
    pub(crate) covered: u64,
}

/// Measures `p2p.latency` on this host.
pub(crate) fn measure(mpi: &Mpi, workspace: &Workspace, launches: u32) -> Result<Vec<Launched>> {
    let ombx = release::built(mpi, workspace, &workspace.target)?;
    let mut command = Command::new(ombx);
    mpi.launch_with(&mut command);
    command.args(["run", "p2p.latency"]);
    launched_all(&mpi.flavour.to_string(), &mut command, launches)
}

/// Measures `sockets.latency` between two hosts of a temporary test bed.
pub(crate) fn over_a_link(mpi: &Mpi, workspace: &Workspace, launches: u32) -> Result<Vec<Launched>> {
    let ombx = release::built(mpi, workspace, &workspace.target)?;
    let bed = |task: &str| {
        let mut command = cargo();
        command.args(["run", "-q", "-p", "ombx-testbed", "--", "--dir"]).current_dir(&workspace.root);
        command.arg(workspace.target.join("coverage")).arg(task);
        command
    };
    output(bed("up").args(LINK))?;
    let mut command = bed("exec");
    command.args(["h1", "--"]).arg(ombx).args(["run", "sockets.latency", "--hosts", "h1,h2"]);
    command.args(["--interface", "eth0", "--bind", "none"]);
    let launched = launched_all("sockets, an emulated link of 2 ms", &mut command, launches);
    output(&mut bed("down"))?;
    launched
}

fn launched_all(over: &str, command: &mut Command, launches: u32) -> Result<Vec<Launched>> {
    command.args(["--sizes", SIZES, "--format", "jsonl", "--quiet", "--launches"]);
    command.arg(launches.to_string());
    let text = output(command)?;
    let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let rows: Vec<Value> = rows.filter(|record| record["kind"] == "case").collect();
    let mut sizes: Vec<u64> = rows.iter().filter_map(|row| row["bytes"].as_u64()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of = |bytes: &u64| {
        let rows = rows.iter().filter(|row| row["bytes"].as_u64() == Some(*bytes));
        launched(over, *bytes, &rows.filter_map(figures).collect::<Vec<_>>())
    };
    sizes
        .iter()
        .map(of)
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Failure::Missing("a launch measured no row".into()))
}

/// Returns median and interval of a row, in nanoseconds.
fn figures(row: &Value) -> Option<[f64; 3]> {
    let summary = &row["summary"];
    let end = |at: usize| summary["ci95_ns"][at].as_f64();
    Some([summary["median_ns"].as_f64()?, end(0)?, end(1)?])
}

fn launched(over: &str, bytes: u64, rows: &[[f64; 3]]) -> Option<Launched> {
    let medians: Vec<f64> = rows.iter().map(|[median, ..]| *median).collect();
    let halves: Vec<f64> = rows.iter().map(|[median, low, high]| (high - low) / 2.0 / median).collect();
    let median = stats::median(&medians)?;
    let covered = rows.iter().filter(|[_, low, high]| *low <= median && median <= *high).count();
    Some(Launched {
        over: over.to_owned(),
        bytes,
        launches: rows.len() as u64,
        median_us: median / 1e3,
        ends_us: [
            medians.iter().copied().fold(f64::INFINITY, f64::min) / 1e3,
            medians.iter().copied().fold(0.0, f64::max) / 1e3,
        ],
        half: stats::median(&halves)?,
        covered: covered as u64,
    })
}
