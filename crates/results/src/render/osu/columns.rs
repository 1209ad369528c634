//! Columns of a row in the OSU format.

use super::{INIT, MESSAGE_RATE, OsuColumns, PROCESSES};
use ombx_core::{
    benchmark::{Aggregation, Figure, Metric, Work, payload::Check},
    result::{Measurement, Samples},
    stats::Summary,
};

/// Figures of nonblocking collectives: name, OMB title, and whether only `-f` shows it.
const OVERLAP: [(&str, &str, bool); 8] = [
    ("compute_us", "Compute(us)", false),
    ("init_us", "Coll. Init(us)", true),
    ("test_us", "MPI_Test(us)", true),
    ("wait_us", "MPI_Wait(us)", true),
    ("pure_us", "Pure Comm.(us)", false),
    ("pure_min_us", "Min Comm.(us)", true),
    ("pure_max_us", "Max Comm.(us)", true),
    ("overlap_percent", "Overlap(%)", false),
];

/// A figure that does not exist, for parsers that read every word as a number.
pub(super) const NO_FIGURE: &str = "nan";

/// Column of one row.
pub(super) struct Column {
    pub(super) title: String,
    pub(super) text: String,
    /// Width of the title.
    pub(super) width: usize,
    /// Width of the figure.
    pub(super) figure: usize,
}

impl Column {
    fn new(title: impl Into<String>, text: impl Into<String>) -> Column {
        Column { title: title.into(), text: text.into(), width: 18, figure: 18 }
    }
}

/// Returns whether a row of a program overlaps a nonblocking collective with computation.
pub(super) fn overlaps(row: &Measurement, program: &str) -> bool {
    let is_nonblocking = program.starts_with("osu_i") && program != INIT;
    is_nonblocking && row.axes.get("overlap").is_none_or(|computation| computation != "none")
}

/// Returns the columns of a row after its size.
pub(super) fn of(row: &Measurement, program: &str, options: &OsuColumns) -> Vec<Column> {
    let overlaps = overlaps(row, program);
    let mut columns = if overlaps {
        let overall = row.summary.as_ref().map(|summary| mean(row, summary) / 1e3);
        let shown = OVERLAP.iter().filter(|(_, _, full)| options.full || !full);
        let figures = shown.map(|(figure, title, _)| Column::new(*title, resolved(row, figure)));
        [Column::new("Overall(us)", two_decimals(overall))].into_iter().chain(figures).collect()
    } else {
        headline(row, program, options)
    };
    let every_rank = matches!(row.aggregation, Aggregation::Slowest | Aggregation::Global);
    // Rows that failed have the same titles.
    if options.full && every_rank && !overlaps {
        let ranks = row.across_ranks();
        columns.push(Column::new("Min Latency(us)", two_decimals(ranks.map(|ranks| ranks.min / 1e3))));
        columns.push(Column::new("Max Latency(us)", two_decimals(ranks.map(|ranks| ranks.max / 1e3))));
        let timed = |s: &Samples| s.elapsed_ns.len() as u64 * s.batch;
        let iterations = row.samples.first().map_or(0, timed).to_string();
        columns.push(Column { width: 12, figure: 12, ..Column::new("Iterations", iterations) });
    }
    if options.validation {
        columns.push(Column::new("Validation", validation(row)));
    }
    let unit = if row.metric == Metric::Bandwidth { "BW(MB/s)" } else { "Lat(us)" };
    let mut figures = if options.percentiles.is_empty() { Vec::new() } else { iterations(row) };
    figures.sort_by(f64::total_cmp);
    for percent in &options.percentiles {
        let figure = two_decimals(percentile(&figures, *percent));
        columns.push(Column::new(format!("P{percent} Tail {unit}"), figure));
    }
    if let Some(payload) = row.bytes.filter(|_| options.payloads.is_some()) {
        columns.push(Column::new("Transmit Size", payload.to_string()));
    }
    columns
}

fn headline(row: &Measurement, program: &str, options: &OsuColumns) -> Vec<Column> {
    let Some(summary) = &row.summary else { return vec![Column::new(title(row, program), NO_FIGURE)] };
    let figure = match row.metric {
        Metric::Latency => Some(mean(row, summary) / 1e3),
        Metric::Bandwidth => per_ns(row, summary, |work| work.bytes).map(|rate| rate * 1e3),
    };
    let mut columns = vec![Column::new(title(row, program), two_decimals(figure))];
    if program == PROCESSES && !options.validation {
        // The figure is narrower than the title.
        columns[0].figure = 10;
    }
    if program == MESSAGE_RATE && options.rate {
        let rate = per_ns(row, summary, |work| work.ops).map(|rate| rate * 1e9);
        columns.push(Column::new("Messages/s", two_decimals(rate)));
    }
    columns
}

fn title(row: &Measurement, program: &str) -> &'static str {
    match row.metric {
        Metric::Bandwidth if program == MESSAGE_RATE => "MB/s",
        Metric::Bandwidth => "Bandwidth (MB/s)",
        Metric::Latency if row.axes.contains_key("sync") => "Latency (us)",
        Metric::Latency => "Avg Latency(us)",
    }
}

/// Returns the mean time of a leg in nanoseconds, averaged over all timed ranks like `Avg` of OMB.
fn mean(row: &Measurement, summary: &Summary) -> f64 {
    row.across_ranks().map_or(summary.mean, |ranks| ranks.mean)
}

/// Returns the figure of each sample: microseconds averaged over the timed ranks, or MB/s.
fn iterations(row: &Measurement) -> Vec<f64> {
    let Some(work) = row.work else { return Vec::new() };
    let length = row.samples.iter().map(|s| s.elapsed_ns.len()).min().unwrap_or(0);
    let leg = |s: &Samples, i: usize| s.elapsed_ns[i] as f64 / (s.batch as f64 * work.legs as f64);
    let ranks = row.samples.len() as f64;
    let times = (0..length).map(|i| row.samples.iter().map(|s| leg(s, i)).sum::<f64>() / ranks);
    times
        .map(|ns| match row.metric {
            Metric::Latency => ns / 1e3,
            Metric::Bandwidth => work.bytes as f64 / (ns * work.legs as f64) * 1e3,
        })
        .collect()
}

/// Returns the smallest value that is at least as large as this percentage of all values.
fn percentile(sorted: &[f64], percent: u8) -> Option<f64> {
    let at = (sorted.len() * usize::from(percent)).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied()
}

fn validation(row: &Measurement) -> &'static str {
    let one_sided = row.axes.contains_key("sync");
    match &row.check {
        Check::Passed if one_sided => "passed",
        Check::Passed => "Pass",
        Check::Failed(_) if one_sided => "failed",
        Check::Failed(_) => "Fail",
        Check::Off | Check::Unsupported => "n/a",
    }
}

/// Returns a figure of a nonblocking collective. An overlap that is not resolved is the one that follows from the other figures, as OMB
/// computes it.
fn resolved(row: &Measurement, name: &str) -> String {
    let value = |name: &str| match row.figures.get(name) {
        Some(Figure::Value(value)) => Some(*value),
        Some(Figure::Unresolved(_)) | None => None,
    };
    let computed = || {
        let overall = mean(row, row.summary.as_ref()?) / 1e3;
        let (pure, compute) = (value("pure_us")?, value("compute_us")?);
        (name == "overlap_percent").then(|| (100.0 - (overall - compute) / pure * 100.0).max(0.0))
    };
    two_decimals(value(name).or_else(computed))
}

/// Returns work per nanosecond at the mean time. Of several pairs, that is the work of all pairs over the mean of the pairs' times, like
/// osu_mbw_mr.
fn per_ns(row: &Measurement, summary: &Summary, amount: fn(Work) -> u64) -> Option<f64> {
    row.work.map(|work| amount(work) as f64 / (mean(row, summary) * work.legs as f64))
}

fn two_decimals(figure: Option<f64>) -> String {
    figure.filter(|x| x.is_finite()).map_or_else(|| NO_FIGURE.into(), |x| format!("{x:.2}"))
}
