//! The fields of a row: one declaration, which CSV and OpenMetrics read.

use ombx_estimate::{publishable::obstacles, runs::core_to_core_ns, text::named_values};
use ombx_record::result::{BetweenRuns, Figure, Measurement, Outcome, Rate, Run, StateFigure};

use crate::{
    csv::{ends, text},
    fields::Field::{Number, Text},
};

/// Value of a field.
pub(super) enum Field {
    /// Number in the unit of the column.
    Number(fn(&Measurement) -> Option<f64>),
    /// Text about the row or its run.
    Text(fn(&Measurement, &Run) -> String),
}

impl Field {
    /// Returns the value as text, which is empty without one.
    pub(super) fn text(&self, row: &Measurement, run: &Run) -> String {
        match self {
            Number(value) => text(value(row)),
            Text(value) => value(row, run),
        }
    }
}

/// Column of CSV, whose name contains the unit; metric of OpenMetrics, or nothing; value.
pub(super) type RowField = (&'static str, &'static str, Field);

/// Fields in the order of columns. New ones are added at the end only.
pub(super) const ROW_FIELDS: [RowField; 67] = [
    ("run", "", Text(|_, run| run.id.clone())),
    ("bench", "", Text(|row, _| row.bench.clone())),
    ("key", "", Text(|row, _| row.key.clone())),
    ("axes", "", Text(|row, _| named_values(&row.axes, ";"))),
    ("bytes", "", Number(|row| Some(row.bytes? as f64))),
    ("depth", "", Number(|row| row.depth.map(f64::from))),
    ("pairs", "", Number(|row| Some(row.pairs.into()))),
    ("ranks", "", Number(|row| Some(row.ranks.into()))),
    ("metric", "", Text(|row, _| row.metric.name().into())),
    ("across", "", Text(|row, _| row.aggregation.name().into())),
    ("outcome", "", Text(|row, _| outcome(row)[0].into())),
    ("reason", "", Text(|row, _| outcome(row)[1].into())),
    ("check", "", Text(|row, _| row.check.name().into())),
    ("n", "ombx_samples", Number(|row| Some(row.summary.as_ref()?.n as f64))),
    ("batch", "ombx_batch", Number(|row| Some(row.batch()? as f64))),
    ("median_ns", "ombx_latency_seconds", Number(|row| Some(row.summary.as_ref()?.median))),
    ("ci95_low_ns", "ombx_latency_low_seconds", Number(|row| Some(row.summary.as_ref()?.ci95?[0]))),
    ("ci95_high_ns", "ombx_latency_high_seconds", Number(|row| Some(row.summary.as_ref()?.ci95?[1]))),
    ("sample_min_ns", "", Number(|row| Some(row.summary.as_ref()?.min))),
    ("mean_ns", "", Number(|row| Some(row.summary.as_ref()?.mean))),
    ("sample_max_ns", "", Number(|row| Some(row.summary.as_ref()?.max))),
    ("mad_ns", "", Number(|row| Some(row.summary.as_ref()?.mad))),
    ("iteration_p95_ns", "", Number(|row| Some(row.summary.as_ref()?.p95?.value))),
    ("iteration_p99_ns", "ombx_latency_p99_seconds", Number(|row| Some(row.summary.as_ref()?.p99?.value))),
    ("iteration_p999_ns", "", Number(|row| Some(row.summary.as_ref()?.p999?.value))),
    ("lag1", "", Number(|row| Some(row.summary.as_ref()?.lag1))),
    ("mb_per_s", "ombx_bandwidth_bytes_per_second", Number(|row| Some(row.mb_per_s()?.median))),
    ("mb_per_s_low", "ombx_bandwidth_low_bytes_per_second", Number(|row| low(row.mb_per_s()))),
    ("mb_per_s_high", "ombx_bandwidth_high_bytes_per_second", Number(|row| high(row.mb_per_s()))),
    ("messages_per_s", "ombx_rate_messages_per_second", Number(|row| Some(row.messages_per_s()?.median))),
    ("library", "", Text(|_, run| run.library.clone())),
    ("trust", "", Text(|row, _| mark_codes(row))),
    ("figures", "", Text(|row, _| figures(row))),
    ("started", "", Text(|_, run| run.started.clone())),
    ("launch", "", Text(|_, run| text(run.plan.get("launch")))),
    ("levels", "", Text(|row, _| mark_levels(row))),
    ("publishable", "", Text(|row, _| obstacles(row).is_empty().to_string())),
    ("launches", "ombx_launches", Number(|row| Some(row.launch_count() as f64))),
    ("coverage", "ombx_interval_coverage_ratio", Number(|row| Some(row.over_launches()?.coverage()))),
    ("launch_min_ns", "ombx_latency_lowest_launch_seconds", Number(|row| of_launches(row, f64::min))),
    ("launch_max_ns", "ombx_latency_highest_launch_seconds", Number(|row| of_launches(row, f64::max))),
    ("tail_n", "", Number(|row| Some(row.summary.as_ref()?.tail_n as f64))),
    ("iteration_p95_low_ns", "", Number(|row| Some(row.summary.as_ref()?.p95?.ci95?[0]))),
    ("iteration_p95_high_ns", "", Number(|row| Some(row.summary.as_ref()?.p95?.ci95?[1]))),
    (
        "iteration_p99_low_ns",
        "ombx_latency_p99_low_seconds",
        Number(|row| Some(row.summary.as_ref()?.p99?.ci95?[0])),
    ),
    (
        "iteration_p99_high_ns",
        "ombx_latency_p99_high_seconds",
        Number(|row| Some(row.summary.as_ref()?.p99?.ci95?[1])),
    ),
    ("iteration_p999_low_ns", "", Number(|row| Some(row.summary.as_ref()?.p999?.ci95?[0]))),
    ("iteration_p999_high_ns", "", Number(|row| Some(row.summary.as_ref()?.p999?.ci95?[1]))),
    ("messages_per_s_low", "ombx_rate_low_messages_per_second", Number(|row| low(row.messages_per_s()))),
    ("messages_per_s_high", "ombx_rate_high_messages_per_second", Number(|row| high(row.messages_per_s()))),
    ("checked", "", Number(|row| Some(row.checked as f64))),
    (
        "algorithm_mb_per_s",
        "ombx_algorithm_bandwidth_bytes_per_second",
        Number(|row| Some(row.algorithm_mb_per_s()?.median)),
    ),
    ("algorithm_mb_per_s_low", "", Number(|row| low(row.algorithm_mb_per_s()))),
    ("algorithm_mb_per_s_high", "", Number(|row| high(row.algorithm_mb_per_s()))),
    ("bus_mb_per_s", "ombx_bus_bandwidth_bytes_per_second", Number(|row| Some(row.bus_mb_per_s()?.median))),
    ("bus_mb_per_s_low", "ombx_bus_bandwidth_low_bytes_per_second", Number(|row| low(row.bus_mb_per_s()))),
    ("bus_mb_per_s_high", "ombx_bus_bandwidth_high_bytes_per_second", Number(|row| high(row.bus_mb_per_s()))),
    ("interval", "", Text(|row, _| interval_kind(row).into())),
    ("elapsed_s", "ombx_elapsed_seconds", Number(|row| row.over_launches()?.elapsed_s)),
    ("launches_in_state", "", Number(|row| Some(row.launches_in_state() as f64))),
    ("core_to_core_ns", "ombx_core_to_core_seconds", Number(core_to_core_ns)),
    ("other_states", "", Text(|row, _| other_states(row))),
    ("runs", "ombx_earlier_runs", Number(|row| Some(between(row)?.runs as f64))),
    ("next_run_low_ns", "ombx_latency_next_run_low_seconds", Number(|row| Some(between(row)?.next_ns?[0]))),
    ("next_run_high_ns", "ombx_latency_next_run_high_seconds", Number(|row| Some(between(row)?.next_ns?[1]))),
    ("level_low_ns", "", Number(|row| Some(between(row)?.level_ns?[0]))),
    ("level_high_ns", "", Number(|row| Some(between(row)?.level_ns?[1]))),
];

fn low(rate: Option<Rate>) -> Option<f64> {
    Some(rate?.ci95?[0])
}

fn high(rate: Option<Rate>) -> Option<f64> {
    Some(rate?.ci95?[1])
}

fn of_launches(row: &Measurement, pick: fn(f64, f64) -> f64) -> Option<f64> {
    row.over_launches()?.medians_ns.iter().copied().reduce(pick)
}

fn between(row: &Measurement) -> Option<BetweenRuns> {
    row.over_launches()?.between
}

fn figures(row: &Measurement) -> String {
    let figures = row.figures.iter().map(|(name, figure)| match figure {
        Figure::Value(value) => format!("{name}={value}"),
        Figure::Unresolved(_) => format!("{name}="),
    });
    figures.collect::<Vec<_>>().join(";")
}

/// Returns the name of the outcome, and the reason unless the row was measured.
pub(super) fn outcome(row: &Measurement) -> [&str; 2] {
    match &row.outcome {
        Outcome::Ok => ["ok", ""],
        Outcome::Skipped(why) => ["skipped", why],
        Outcome::Failed(why) => ["failed", why],
    }
}

/// Returns what the interval is about: `within_launch`, `within_run`, or `range` of fewer launches than 95 % needs.
fn interval_kind(row: &Measurement) -> &'static str {
    match row.over_launches() {
        _ if row.summary.as_ref().is_none_or(|summary| summary.ci95.is_none()) => "",
        None => "within_launch",
        Some(over) if over.coverage() < 0.95 => "range",
        Some(_) => "within_run",
    }
}

/// Returns the figures of less frequent states: launches, median, low and high end in nanoseconds, and the distance of cores, separated
/// by colons; states are separated by semicolons.
fn other_states(row: &Measurement) -> String {
    let state = |state: &StateFigure| {
        let [low, high] = ends(state.ends_ns);
        let cores = text(state.core_to_core_ns);
        format!("{}:{}:{low}:{high}:{cores}", state.launches.len(), state.median_ns)
    };
    let states = row.over_launches().map_or(&[][..], |over| over.states.as_slice());
    states.iter().skip(1).map(state).collect::<Vec<_>>().join(";")
}

/// Returns the code of each mark.
pub(super) fn mark_codes(row: &Measurement) -> String {
    row.trust.iter().map(|mark| mark.code.name()).collect::<Vec<_>>().join(";")
}

/// Returns the level of each mark, in the order of the codes.
pub(super) fn mark_levels(row: &Measurement) -> String {
    row.trust.iter().map(|mark| mark.level.name()).collect::<Vec<_>>().join(";")
}
