//! Summaries in lines of rows.

use serde::{Deserialize, Serialize};

/// Time of one leg of one iteration in nanoseconds, combined over ranks as `across` says.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct SummaryLine {
    /// Number of samples.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(in crate::file::lines) n: usize,
    /// Median. If `across` is `pairs`: total time over total iterations.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) median_ns: f64,
    /// Distribution-free 95 % interval of the median, low and high. Absent with too few or dependent samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) ci95_ns: Option<[f64; 2]>,
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) min_ns: f64,
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) mean_ns: f64,
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) max_ns: f64,
    /// Median absolute deviation from the median.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) mad_ns: f64,
    /// Number of samples of single iterations that the percentiles come from; 0 for none.
    #[serde(default)]
    pub(in crate::file::lines) tail_n: usize,
    /// 95th percentile of single iterations. Absent below 72 independent samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) p95_ns: Option<f64>,
    /// Distribution-free 95 % interval of the percentile, low and high.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) p95_ci95_ns: Option<[f64; 2]>,
    /// 99th percentile, likewise. Absent below 368 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) p99_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) p99_ci95_ns: Option<[f64; 2]>,
    /// 99.9th percentile, likewise. Absent below 3688 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) p999_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) p999_ci95_ns: Option<[f64; 2]>,
    /// Lag-1 autocorrelation of the samples.
    pub(in crate::file::lines) lag1: f64,
    /// Whether the samples form two groups.
    #[serde(default)]
    pub(in crate::file::lines) bimodal: bool,
    /// Bandwidth in 10^6 bytes per second, derived from the times above. Absent if the metric is latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) mb_per_s: Option<RateLine>,
    /// Operations per second, derived from the times above. Absent if the metric is latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) messages_per_s: Option<RateLine>,
    /// Algorithm bandwidth in 10^6 bytes per second, derived from `bus` and the times above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) algorithm_mb_per_s: Option<RateLine>,
    /// Bus bandwidth in 10^6 bytes per second, derived from `bus` and the times above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) bus_mb_per_s: Option<RateLine>,
}

/// Rate at the median time, and at the bounds of its interval.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct RateLine {
    pub(in crate::file::lines) median: f64,
    /// Low and high.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) ci95: Option<[f64; 2]>,
}
