//! Columns of the tables of IMB.

use ombx_core::{
    benchmark::Figure,
    result::{AcrossRanks, Measurement, Samples},
    stats::Summary,
};

/// Kinds of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImbClass {
    /// One time and its bandwidth.
    Single,
    /// Time of rank 0, which accesses all others, and the bandwidth over all of them.
    OneToAll,
    /// Bandwidth and message rate of windows of messages.
    Rate,
    /// Time of a message, and bandwidth and message rate of all messages of all ranks.
    Messages,
    /// Minimum, maximum and mean over ranks, and the bandwidth of this many messages per rank.
    Parallel(u64),
    /// Minimum, maximum and mean over ranks, and the bandwidth of bytes that all ranks share.
    Divided,
    /// Minimum, maximum and mean over ranks.
    Collective,
    /// The same without message sizes.
    Barrier,
    /// Nonblocking collective with its overlap.
    Overlap,
    /// The same without message sizes.
    OverlapBarrier,
    /// Nonblocking access to a file of one process with its overlap, the figures of the slowest process.
    SingleOverlap,
    /// The same of bytes that all processes share.
    DividedOverlap,
    /// Times of rank 0 while its target waits, and while it computes.
    Passive,
    /// One time without a bandwidth.
    Atomic,
}

const BYTES: &str = "#bytes";
const REPETITIONS: &str = "#repetitions";
const T_MIN: &str = "t_min[usec]";
const T_MAX: &str = "t_max[usec]";
const T_AVG: &str = "t_avg[usec]";
const MB_PER_S: &str = "Mbytes/sec";
const MSG_PER_S: &str = "Msg/sec";
const T_OVRL: &str = "t_ovrl[usec]";
const T_PURE: &str = "t_pure[usec]";
const T_CPU: &str = "t_CPU[usec]";
const OVERLAP: &str = "overlap[%]";

impl ImbClass {
    /// Returns the titles of the columns.
    pub(super) fn titles(self) -> &'static [&'static str] {
        match self {
            ImbClass::Single | ImbClass::OneToAll => &[BYTES, REPETITIONS, "t[usec]", MB_PER_S],
            ImbClass::Rate => &[BYTES, REPETITIONS, MB_PER_S, MSG_PER_S],
            ImbClass::Messages => &[BYTES, REPETITIONS, "t[usec]", MB_PER_S, MSG_PER_S],
            ImbClass::Parallel(_) | ImbClass::Divided => &[BYTES, REPETITIONS, T_MIN, T_MAX, T_AVG, MB_PER_S],
            ImbClass::Collective => &[BYTES, REPETITIONS, T_MIN, T_MAX, T_AVG],
            ImbClass::Barrier => &[REPETITIONS, T_MIN, T_MAX, T_AVG],
            ImbClass::Overlap | ImbClass::SingleOverlap | ImbClass::DividedOverlap => {
                &[BYTES, REPETITIONS, T_OVRL, T_PURE, T_CPU, OVERLAP]
            }
            ImbClass::OverlapBarrier => &[REPETITIONS, T_OVRL, T_PURE, T_CPU, OVERLAP],
            ImbClass::Atomic => &[BYTES, REPETITIONS, "t[usec]"],
            ImbClass::Passive => &[BYTES, REPETITIONS, T_PURE, T_OVRL],
        }
    }

    /// Returns how many of these processes share the bytes of a row.
    pub fn portions(self, processes: u32) -> u32 {
        if matches!(self, ImbClass::Divided | ImbClass::DividedOverlap) { processes } else { 1 }
    }

    /// Returns the cells of a row.
    pub(super) fn cells(self, row: &Measurement, summary: &Summary) -> Vec<String> {
        let bytes = row.bytes.unwrap_or(0) * u64::from(self.portions(row.ranks));
        // A window of one-sided operations is one iteration with as many repetitions as operations.
        let operations = if self == ImbClass::Rate { 1 } else { row.depth.unwrap_or(1) };
        let timed = row.samples.first().map_or(0, |s| s.elapsed_ns.len() as u64 * s.batch);
        let mut cells = vec![(timed * u64::from(operations)).to_string()];
        if self.titles()[0] == BYTES {
            cells.insert(0, bytes.to_string());
        }
        let mean = row.across_ranks().map_or(summary.mean, |ranks| ranks.mean);
        match self {
            ImbClass::Single => {
                let slowest = row.across_ranks().map_or(mean, |ranks| ranks.max);
                let each = slowest / f64::from(operations);
                cells.extend([microseconds(each), bandwidth(bytes, each)]);
            }
            ImbClass::OneToAll => {
                let first = row.samples.iter().find(|samples| samples.rank == 0).map_or(mean, mean_of);
                let each = first / f64::from(operations);
                let others = u64::from(row.ranks.saturating_sub(1));
                cells.extend([microseconds(each), bandwidth(others * bytes, each)]);
            }
            ImbClass::Atomic => cells.push(microseconds(mean)),
            ImbClass::Rate => {
                let messages = row.work.map_or(0, |work| work.ops) as f64;
                cells.extend([bandwidth(bytes, mean / messages), format!("{:.0}", messages * 1e9 / mean)]);
            }
            ImbClass::Messages => {
                let (messages, legs) = row.work.map_or((0, 1), |work| (work.ops, work.legs));
                let (messages, one) = (messages as f64, AcrossRanks { mean, min: mean, max: mean });
                let AcrossRanks { mean, max, .. } = row.across_ranks().unwrap_or(one);
                // Times are those of a leg. The time of a message is that of all ranks over all messages.
                let slowest = max * legs as f64;
                cells.push(microseconds(mean * f64::from(row.ranks) / messages));
                cells.push(bandwidth(bytes, slowest / messages));
                cells.push(format!("{:.0}", messages * 1e9 / slowest));
            }
            ImbClass::Parallel(_) | ImbClass::Divided | ImbClass::Collective | ImbClass::Barrier => {
                let one = AcrossRanks { mean, min: mean, max: mean };
                let AcrossRanks { mean, min, max } = row.across_ranks().unwrap_or(one);
                cells.extend([min, max, mean].map(|ns| microseconds(ns / f64::from(operations))));
                match self {
                    ImbClass::Parallel(messages) => cells.push(bandwidth(messages * bytes, max)),
                    ImbClass::Divided => cells.push(bandwidth(bytes, max / f64::from(operations))),
                    _ => {}
                }
            }
            ImbClass::Passive => {
                let first = row.samples.iter().find(|samples| samples.rank == 0).map_or(mean, mean_of);
                cells.extend([figure(row, "pure_us"), microseconds(first)]);
            }
            ImbClass::Overlap
            | ImbClass::OverlapBarrier
            | ImbClass::SingleOverlap
            | ImbClass::DividedOverlap => {
                let is_file = matches!(self, ImbClass::SingleOverlap | ImbClass::DividedOverlap);
                let slowest = row.across_ranks().map_or(mean, |ranks| ranks.max);
                cells.push(microseconds(if is_file { slowest } else { mean }));
                cells.extend(["pure_us", "compute_us", "overlap_percent"].map(|name| figure(row, name)));
            }
        }
        cells
    }
}

/// Returns the mean time of an iteration on a rank.
fn mean_of(samples: &Samples) -> f64 {
    let iterations = samples.elapsed_ns.len() as u64 * samples.batch;
    samples.elapsed_ns.iter().sum::<u64>() as f64 / iterations as f64
}

fn microseconds(ns: f64) -> String {
    decimals(ns / 1e3)
}

/// Formats 10^6 bytes per second.
fn bandwidth(bytes: u64, ns: f64) -> String {
    decimals(bytes as f64 * 1e3 / ns)
}

fn decimals(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { "n/a".into() }
}

fn figure(row: &Measurement, name: &str) -> String {
    match row.figures.get(name) {
        Some(Figure::Value(value)) => decimals(*value),
        Some(Figure::Unresolved(_)) | None => "n/a".into(),
    }
}
