//! Time limits of a job: the user's, or one that the plan cannot exceed unless something hangs.

use std::time::Duration;

use ombx_core::measure::plan::{Plan, Verify};

/// Time for starting MPI on a slow cluster.
const START: Duration = Duration::from_secs(120);
/// Time for opening, warming up and verifying a row, in addition to measuring it.
const ROW: Duration = Duration::from_secs(20);
/// Time for a row with a fixed number of iterations, whose duration is unknown.
const FIXED_ROW: Duration = Duration::from_secs(3600);

/// Time that the launcher and its ranks have for ending by themselves after the launching process has ended the job.
pub(crate) const AFTER_JOB: Duration = Duration::from_secs(10);

/// Returns the limit for starting the ranks and measuring rows that take up to `rows`.
pub(crate) fn of_job(rows: Duration, timeout: Option<Duration>) -> Duration {
    timeout.unwrap_or_else(|| START.saturating_add(rows))
}

/// Returns the limit for measuring this many rows one after the other.
pub(crate) fn of_rows(plan: &Plan, rows: u64) -> Duration {
    of_row(plan).unwrap_or(FIXED_ROW).saturating_mul(u32::try_from(rows).unwrap_or(u32::MAX))
}

/// Returns the limit for measuring one row, if it has one.
pub(crate) fn of_row(plan: &Plan) -> Option<Duration> {
    row_time(plan).map(|time| time.saturating_mul(10).saturating_add(ROW))
}

/// Returns the limit for a rank that shows no progress.
pub(crate) fn of_silence(plan: &Plan, timeout: Option<Duration>) -> Duration {
    let of_time = |time: Duration| START.saturating_add(time.saturating_mul(10));
    let silence = row_time(plan).map_or(FIXED_ROW, of_time);
    timeout.map_or(silence, |timeout| timeout.min(silence))
}

/// Returns the time of a row if it is known. How long it takes to verify every iteration is not.
fn row_time(plan: &Plan) -> Option<Duration> {
    plan.row_time().filter(|_| plan.verify != Verify::Full)
}
