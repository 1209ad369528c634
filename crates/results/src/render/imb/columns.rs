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
    /// Minimum, maximum and mean over threads, and the bandwidth of this many messages of each thread.
    Threads(u64),
    /// Mean over threads of the time of a message, and bandwidth and message rate of all of them.
    ThreadRate,
    /// Minimum, maximum and mean over threads.
    ThreadCollective,
    /// The same without message sizes.
    ThreadBarrier,
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
            ImbClass::Threads(_) => &[BYTES, REPETITIONS, T_MIN, T_MAX, T_AVG, MB_PER_S],
            ImbClass::ThreadRate => &[BYTES, REPETITIONS, T_AVG, MB_PER_S, MSG_PER_S],
            ImbClass::ThreadCollective => &[BYTES, REPETITIONS, T_MIN, T_MAX, T_AVG],
            ImbClass::ThreadBarrier => &[REPETITIONS, T_MIN, T_MAX, T_AVG],
            ImbClass::Passive => &[BYTES, REPETITIONS, T_PURE, T_OVRL],
        }
    }

    /// Returns whether its figures are those of threads.
    pub(super) const fn has_threads(self) -> bool {
        matches!(
            self,
            ImbClass::Threads(_)
                | ImbClass::ThreadRate
                | ImbClass::ThreadCollective
                | ImbClass::ThreadBarrier
        )
    }

    /// Returns how many of these processes share the bytes of a row.
    pub fn portions(self, processes: u32) -> u32 {
        if matches!(self, ImbClass::Divided | ImbClass::DividedOverlap) { processes } else { 1 }
    }

    /// Returns the cells of a row.
    pub(super) fn cells(self, row: &Measurement, summary: &Summary) -> Vec<String> {
        if self.has_threads() {
            return self.cells_of_threads(row);
        }
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
                cells.extend([figure(row, "pure_us", first), microseconds(first)]);
            }
            ImbClass::Overlap
            | ImbClass::OverlapBarrier
            | ImbClass::SingleOverlap
            | ImbClass::DividedOverlap => {
                let is_file = matches!(self, ImbClass::SingleOverlap | ImbClass::DividedOverlap);
                let slowest = row.across_ranks().map_or(mean, |ranks| ranks.max);
                let whole = if is_file { slowest } else { mean };
                cells.push(microseconds(whole));
                cells.extend(
                    ["pure_us", "compute_us", "overlap_percent"].map(|name| figure(row, name, whole)),
                );
            }
            ImbClass::Threads(_)
            | ImbClass::ThreadRate
            | ImbClass::ThreadCollective
            | ImbClass::ThreadBarrier => {}
        }
        cells
    }

    /// Returns the cells of a row of several threads. Bytes are those of all threads of a rank.
    fn cells_of_threads(self, row: &Measurement) -> Vec<String> {
        let threads: u64 = row.axes.get("threads").and_then(|threads| threads.parse().ok()).unwrap_or(1);
        let bytes = row.bytes.unwrap_or(0);
        let timed = row.samples.first().map_or(0, |s| s.elapsed_ns.len() as u64 * s.batch);
        let mut cells = vec![timed.to_string()];
        if self.titles()[0] == BYTES {
            cells.insert(0, (bytes * threads).to_string());
        }
        // Figures are times of an iteration: both ways of a ping-pong, and all messages of a window.
        let (ops, legs) = row.work.map_or((1, 1), |work| (work.ops, work.legs));
        let partners = threads * u64::from(row.pairs);
        let messages = if self == ImbClass::ThreadRate { ops / partners } else { legs };
        let ns = |name: &str| match row.figures.get(name) {
            Some(Figure::Value(us)) => us * 1e3 / messages as f64,
            Some(Figure::Unresolved(_)) | None => f64::NAN,
        };
        let [least, largest, mean] = ["thread_min_us", "thread_max_us", "thread_mean_us"].map(ns);
        match self {
            ImbClass::ThreadRate => cells.extend([
                microseconds(mean),
                bandwidth(bytes * partners, largest),
                format!("{:.0}", (partners as f64 * 1e9 / mean).floor()),
            ]),
            _ => cells.extend([least, largest, mean].map(microseconds)),
        }
        if let ImbClass::Threads(times) = self {
            cells.push(bandwidth(times * bytes * threads, largest));
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
    if value.is_finite() { format!("{value:.2}") } else { "nan".into() }
}

/// Returns a figure. An overlap that is not resolved is the one that follows from the printed times, of which `whole` is that of both together.
fn figure(row: &Measurement, name: &str, whole_ns: f64) -> String {
    let value = |name: &str| match row.figures.get(name) {
        Some(Figure::Value(value)) => *value,
        Some(Figure::Unresolved(_)) | None => f64::NAN,
    };
    let (is_overlap, found) = (name == "overlap_percent", value(name));
    let computed = (100.0 - (whole_ns / 1e3 - value("compute_us")) / value("pure_us") * 100.0).max(0.0);
    decimals(if is_overlap && found.is_nan() { computed } else { found })
}
