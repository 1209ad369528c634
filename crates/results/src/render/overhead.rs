//! Overhead of MPI over sockets: rows of the same work side by side.

use std::io::{Result, Write};

use super::grid::grid;
use ombx_core::{
    result::{Measurement, Outcome},
    unit::Bytes,
};

/// Compares rows `p2p.X` and `sockets.X` of the same size and depth.
#[derive(Debug, Default)]
pub struct Overhead {
    mpi: Vec<Timed>,
    sockets: Vec<Timed>,
}

/// Time and identity of a row.
#[derive(Debug)]
struct Timed {
    name: String,
    axes: String,
    bytes: u64,
    depth: Option<u32>,
    median_ns: f64,
    ci95_ns: Option<[f64; 2]>,
}

const MPI: &str = "p2p.";
const SOCKETS: &str = "sockets.";

impl Overhead {
    /// Adds a row.
    pub fn add(&mut self, row: &Measurement) {
        let (Some(bytes), Some(summary), Outcome::Ok) = (row.bytes, &row.summary, &row.outcome) else {
            return;
        };
        let (list, name) = match (row.bench.strip_prefix(MPI), row.bench.strip_prefix(SOCKETS)) {
            (Some(name), _) => (&mut self.mpi, name),
            (_, Some(name)) => (&mut self.sockets, name),
            _ => return,
        };
        let axes: Vec<String> = row.axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
        list.push(Timed {
            name: name.into(),
            axes: axes.join(" "),
            bytes,
            depth: row.depth,
            median_ns: summary.median,
            ci95_ns: summary.ci95,
        });
    }

    /// Writes the table, or nothing without matching rows.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        let mut grid = grid(["bytes", "MPI us", "sockets us", "ratio", "95 % interval", "of"], 0..5);
        for ours in &self.sockets {
            let alike = |theirs: &&Timed| {
                (&theirs.name, theirs.bytes, theirs.depth) == (&ours.name, ours.bytes, ours.depth)
            };
            for theirs in self.mpi.iter().filter(alike) {
                let interval = match (theirs.ci95_ns, ours.ci95_ns) {
                    // Quotient of the interval bounds. The confidence is at least 90 %.
                    (Some([low, high]), Some([least, most])) if least > 0.0 => {
                        format!("{:.2}..{:.2}", low / most, high / least)
                    }
                    _ => "n/a".into(),
                };
                grid.add_row([
                    Bytes(ours.bytes).to_string(),
                    format!("{:.2}", theirs.median_ns / 1e3),
                    format!("{:.2}", ours.median_ns / 1e3),
                    format!("{:.2} x", theirs.median_ns / ours.median_ns),
                    interval,
                    format!("{MPI}{} {} / {SOCKETS}{} {}", theirs.name, theirs.axes, ours.name, ours.axes)
                        .split_whitespace()
                        .collect::<Vec<_>>()
                        .join(" "),
                ]);
            }
        }
        if grid.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nMPI compared with sockets\n{}", grid.trim_fmt())
    }
}
