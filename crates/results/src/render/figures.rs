//! The figures of a row: one declaration, which CSV and OpenMetrics read.

use ombx_core::result::{BetweenRuns, Measurement, OverLaunches};

/// Column of CSV, whose name contains the unit; metric of OpenMetrics, or nothing; value in the unit of the column.
pub(super) type RowFigure = (&'static str, &'static str, fn(&Measurement) -> Option<f64>);

pub(super) const ROW_FIGURES: [RowFigure; 49] = [
    ("bytes", "", |row| Some(row.bytes? as f64)),
    ("depth", "", |row| row.depth.map(f64::from)),
    ("pairs", "", |row| Some(row.pairs.into())),
    ("ranks", "", |row| Some(row.ranks.into())),
    ("checked", "", |row| Some(row.checked as f64)),
    ("n", "ombx_samples", |row| Some(row.summary.as_ref()?.n as f64)),
    ("batch", "ombx_batch", |row| Some(row.batch()? as f64)),
    ("median_ns", "ombx_latency_seconds", |row| Some(row.summary.as_ref()?.median)),
    ("ci95_low_ns", "ombx_latency_low_seconds", |row| Some(row.summary.as_ref()?.ci95?[0])),
    ("ci95_high_ns", "ombx_latency_high_seconds", |row| Some(row.summary.as_ref()?.ci95?[1])),
    ("min_ns", "", |row| Some(row.summary.as_ref()?.min)),
    ("mean_ns", "", |row| Some(row.summary.as_ref()?.mean)),
    ("max_ns", "", |row| Some(row.summary.as_ref()?.max)),
    ("mad_ns", "", |row| Some(row.summary.as_ref()?.mad)),
    ("lag1", "", |row| Some(row.summary.as_ref()?.lag1)),
    ("tail_n", "", |row| Some(row.summary.as_ref()?.tail_n as f64)),
    ("p95_ns", "", |row| Some(row.summary.as_ref()?.p95?.value)),
    ("p95_low_ns", "", |row| Some(row.summary.as_ref()?.p95?.ci95?[0])),
    ("p95_high_ns", "", |row| Some(row.summary.as_ref()?.p95?.ci95?[1])),
    ("p99_ns", "ombx_latency_p99_seconds", |row| Some(row.summary.as_ref()?.p99?.value)),
    ("p99_low_ns", "ombx_latency_p99_low_seconds", |row| Some(row.summary.as_ref()?.p99?.ci95?[0])),
    ("p99_high_ns", "ombx_latency_p99_high_seconds", |row| Some(row.summary.as_ref()?.p99?.ci95?[1])),
    ("p999_ns", "", |row| Some(row.summary.as_ref()?.p999?.value)),
    ("p999_low_ns", "", |row| Some(row.summary.as_ref()?.p999?.ci95?[0])),
    ("p999_high_ns", "", |row| Some(row.summary.as_ref()?.p999?.ci95?[1])),
    ("mb_per_s", "ombx_bandwidth_bytes_per_second", |row| Some(row.mb_per_s()?.median)),
    ("mb_per_s_low", "ombx_bandwidth_low_bytes_per_second", |row| Some(row.mb_per_s()?.ci95?[0])),
    ("mb_per_s_high", "ombx_bandwidth_high_bytes_per_second", |row| Some(row.mb_per_s()?.ci95?[1])),
    ("messages_per_s", "ombx_rate_messages_per_second", |row| Some(row.messages_per_s()?.median)),
    ("messages_per_s_low", "ombx_rate_low_messages_per_second", |row| Some(row.messages_per_s()?.ci95?[0])),
    ("messages_per_s_high", "ombx_rate_high_messages_per_second", |row| Some(row.messages_per_s()?.ci95?[1])),
    ("algorithm_mb_per_s", "ombx_algorithm_bandwidth_bytes_per_second", |row| {
        Some(row.algorithm_mb_per_s()?.median)
    }),
    ("algorithm_mb_per_s_low", "", |row| Some(row.algorithm_mb_per_s()?.ci95?[0])),
    ("algorithm_mb_per_s_high", "", |row| Some(row.algorithm_mb_per_s()?.ci95?[1])),
    ("bus_mb_per_s", "ombx_bus_bandwidth_bytes_per_second", |row| Some(row.bus_mb_per_s()?.median)),
    ("bus_mb_per_s_low", "ombx_bus_bandwidth_low_bytes_per_second", |row| Some(row.bus_mb_per_s()?.ci95?[0])),
    ("bus_mb_per_s_high", "ombx_bus_bandwidth_high_bytes_per_second", |row| {
        Some(row.bus_mb_per_s()?.ci95?[1])
    }),
    ("launches", "ombx_launches", |row| Some(row.launch_count() as f64)),
    ("launches_in_state", "", |row| Some(row.launches_in_state() as f64)),
    ("coverage", "ombx_interval_coverage_ratio", |row| row.over_launches().map(OverLaunches::coverage)),
    ("launch_min_ns", "ombx_latency_lowest_launch_seconds", |row| of_launches(row, f64::min)),
    ("launch_max_ns", "ombx_latency_highest_launch_seconds", |row| of_launches(row, f64::max)),
    ("elapsed_s", "ombx_elapsed_seconds", |row| row.over_launches()?.elapsed_s),
    ("core_to_core_ns", "ombx_core_to_core_seconds", |row| {
        row.over_launches()?.states.first()?.core_to_core_ns
    }),
    ("runs", "ombx_earlier_runs", |row| Some(between(row)?.runs as f64)),
    ("next_run_low_ns", "ombx_latency_next_run_low_seconds", |row| Some(between(row)?.next_ns?[0])),
    ("next_run_high_ns", "ombx_latency_next_run_high_seconds", |row| Some(between(row)?.next_ns?[1])),
    ("level_low_ns", "", |row| Some(between(row)?.level_ns?[0])),
    ("level_high_ns", "", |row| Some(between(row)?.level_ns?[1])),
];

fn of_launches(row: &Measurement, pick: fn(f64, f64) -> f64) -> Option<f64> {
    row.over_launches()?.medians_ns.iter().copied().reduce(pick)
}

fn between(row: &Measurement) -> Option<BetweenRuns> {
    row.over_launches()?.between
}
