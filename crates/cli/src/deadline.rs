//! How long a job may take: what the plan needs, with room to spare, or what the user says.

use std::time::Duration;

use ombx_core::measure::plan::{Effort, Plan};

/// Starting MPI on a tired cluster.
const START: Duration = Duration::from_secs(120);
/// Opening, warming up and verifying a row, beside measuring it.
const ROW: Duration = Duration::from_secs(20);
/// A fixed number of iterations says nothing of their time.
const UNKNOWN: Duration = Duration::from_secs(3600);

/// After the starting process has ended a job, its launcher and its ranks have this long to end by themselves.
pub(crate) const BEYOND: Duration = Duration::from_secs(10);

/// For starting the ranks of a job and measuring rows that may take so long.
pub(crate) fn of_job(rows: Duration, wish: Option<Duration>) -> Duration {
    wish.unwrap_or_else(|| START.saturating_add(rows))
}

/// For measuring so many rows, one after the other.
pub(crate) fn of_rows(plan: &Plan, rows: u64) -> Duration {
    let per_row = match plan.effort {
        Effort::Precision { max_time, .. } => max_time.saturating_mul(10).saturating_add(ROW),
        Effort::Fixed { .. } => UNKNOWN,
    };
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    per_row.saturating_mul(rows)
}

/// Without a sign of life of a rank.
pub(crate) fn of_silence(plan: &Plan, wish: Option<Duration>) -> Duration {
    let silence = match plan.effort {
        Effort::Precision { max_time, .. } => START.saturating_add(max_time.saturating_mul(10)),
        Effort::Fixed { .. } => UNKNOWN,
    };
    wish.map_or(silence, |w| w.min(silence))
}
