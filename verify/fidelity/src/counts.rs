//! Iterations of each row in one launch, as a suite for ombx and as arguments of the C programs.

use std::fmt::Write;

use crate::row::{Kind, Row, Shape};

/// Iterations of a row in one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Iterations in a sample.
    pub(crate) batch: u64,
    pub(crate) samples: u64,
    pub(crate) warmup: u64,
}

/// Time of a batch and of a row. A reading of the clock is negligible beside the first. The second is long enough for a median
/// and short enough for many launches.
const BATCH_NS: f64 = 250e3;
const ROW_NS: f64 = 12e6;
/// Least and most samples of a row with one iteration per sample.
const PACED: [u64; 2] = [200, 4000];
/// Batch of back-to-back broadcasts: four rounds of two ranks.
const TURNS: u64 = 8;

impl Counts {
    /// Returns the counts of a row with this time of an iteration.
    pub(crate) fn of(row: &Row, iteration_ns: f64) -> Counts {
        let iteration_ns = iteration_ns.max(10.0);
        let in_all = (ROW_NS / iteration_ns) as u64;
        let (batch, samples) = match row.shape {
            // The barrier before an iteration takes about as long.
            Shape::Paced => (1, (in_all / 2).clamp(PACED[0], PACED[1])),
            Shape::Rounds => (TURNS, (in_all / TURNS).clamp(PACED[0], PACED[1])),
            Shape::Chained | Shape::Turns => {
                let batch = ((BATCH_NS / iteration_ns) as u64).max(1);
                (batch, (in_all / batch).clamp(15, 60))
            }
        };
        Counts { batch, samples, warmup: (batch * samples / 10).max(2 * batch) }
    }

    /// Returns few iterations, for a check that everything works.
    pub(crate) fn few(row: &Row) -> Counts {
        match row.shape {
            Shape::Rounds => Counts { batch: TURNS, samples: 6, warmup: TURNS },
            _ => Counts { batch: 1, samples: 6, warmup: 2 },
        }
    }

    /// Returns counts for callgrind: this many iterations in as few samples as possible.
    pub(crate) fn counted(row: &Row, iterations: u64, warmup: u64) -> Counts {
        match row.shape {
            Shape::Chained | Shape::Turns => Counts { batch: iterations, samples: 1, warmup },
            Shape::Paced => Counts { batch: 1, samples: iterations, warmup },
            Shape::Rounds => Counts { batch: TURNS, samples: iterations / TURNS, warmup },
        }
    }
}

/// Source of the iteration counts of a launch of ombx.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode<'a> {
    /// These counts, row by row.
    Fixed(&'a [Counts]),
    /// ombx, with this limit per row.
    Own { milliseconds: u32 },
}

/// Returns a suite of these rows.
pub(crate) fn suite(rows: &[&Row], mode: Mode<'_>, verify: bool) -> String {
    let mut text = String::from("about = \"fidelity\"\n\n[defaults]\nallow-skips = true\n");
    if let Mode::Own { milliseconds } = mode {
        let _ = writeln!(text, "max-time = \"{milliseconds}ms\"");
    }
    if !verify {
        text += "no-verify = true\n";
    }
    for (at, row) in rows.iter().enumerate() {
        let _ = writeln!(text, "\n[[entry]]\nrun = [\"{}\"]", row.benchmark);
        if !row.benchmark.contains("barrier") {
            let _ = writeln!(text, "sizes = \"{}\"", row.bytes);
        }
        if let Some(depth) = row.depth {
            let _ = writeln!(text, "window = {depth}");
        }
        for (key, value) in &row.options {
            let _ = writeln!(text, "{key} = \"{value}\"");
        }
        if let Mode::Fixed(counts) = mode {
            let Counts { batch, samples, warmup } = counts[at];
            let iterations = batch * samples;
            let _ = writeln!(text, "iterations = {iterations}\nwarmup = {warmup}\nbatch = {batch}");
        }
    }
    text
}

/// Returns the arguments of the C program of a kind.
pub(crate) fn words(kind: Kind, rows: &[&Row], counts: &[Counts]) -> Vec<String> {
    let each = rows.iter().zip(counts).map(|(row, Counts { batch, samples, warmup })| {
        let (bytes, depth) = (row.bytes, row.depth.unwrap_or(1));
        format!("{}:{bytes}:{depth}:{batch}:{samples}:{warmup}", row.reference)
    });
    let threads = (kind == Kind::Threads).then(|| "--threads".to_owned());
    threads.into_iter().chain(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;

    #[test]
    fn short_iterations_are_batched_and_long_ones_are_not() {
        let ping = row("p2p.latency");
        let short = Counts::of(&ping, 500.0);
        assert_eq!((short.batch, short.samples), (500, 48));
        let long = Counts::of(&ping, 2e6);
        assert_eq!((long.batch, long.samples), (1, 15));
        let paced = Counts::of(&row("collective.allreduce"), 1000.0);
        assert_eq!((paced.batch, paced.samples), (1, 4000));
    }

    #[test]
    fn both_programs_get_the_same_counts() {
        let stream = row("p2p.bw 64 x 8 B");
        let rows = [&stream];
        let counts = [Counts { batch: 7, samples: 3, warmup: 5 }];
        let text = suite(&rows, Mode::Fixed(&counts), true);
        assert!(text.contains("iterations = 21\nwarmup = 5\nbatch = 7\n") && text.contains("window = 64\n"));
        assert_eq!(words(Kind::TwoSided, &rows, &counts), ["stream:8:64:7:3:5"]);
        assert!(suite(&rows, Mode::Own { milliseconds: 9 }, false).contains("max-time = \"9ms\"\nno-verify"));
    }
}
