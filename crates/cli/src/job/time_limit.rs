//! Time limits of a job: the user's, or one that the plan cannot exceed unless something hangs.

use std::time::Duration;

use ombx_core::measure::plan::{Effort, Plan, Verify};

/// Time for starting MPI on a slow cluster.
const START: Duration = Duration::from_secs(120);
/// Time for opening, warming up and verifying a row, in addition to measuring it.
const ROW: Duration = Duration::from_secs(20);
/// Shortest time without progress that ends a case.
const SILENCE: Duration = Duration::from_secs(30);
/// The same where iterations are fixed, whose warm-up takes an unknown time.
const FIXED_SILENCE: Duration = Duration::from_secs(300);
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

/// Returns the limit for a case that shows no progress. Cases show it when a round of samples ends. Without a known time, a warm-up of a
/// fixed number of iterations tells how many of them are a round. Ranks of which `shared` share a CPU take longer.
pub(crate) fn of_silence(plan: &Plan, timeout: Option<Duration>, shared: u32) -> Duration {
    let of_time = |time: Duration| time.saturating_mul(3).max(SILENCE);
    let silence = match plan.effort {
        Effort::Fixed { warmup: 0, .. } => FIXED_ROW,
        Effort::Fixed { .. } => FIXED_SILENCE,
        Effort::Precision { .. } | Effort::Time(_) => plan.row_time().map_or(FIXED_ROW, of_time),
    };
    let silence = silence.saturating_mul(shared.max(1));
    timeout.map_or(silence, |timeout| timeout.min(silence))
}

/// Returns the limit for a rank that does not begin its first case.
pub(crate) fn of_start(timeout: Option<Duration>) -> Duration {
    timeout.map_or(START, |timeout| timeout.min(START))
}

/// Returns the time of a row if it is known. How long it takes to verify every iteration is not.
fn row_time(plan: &Plan) -> Option<Duration> {
    plan.row_time().filter(|_| plan.verify != Verify::Full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_without_progress_has_a_limit_that_fits() {
        let s = Duration::from_secs;
        let of = |effort, timeout, shared| of_silence(&Plan { effort, ..Plan::default() }, timeout, shared);
        let precision = |max_time| Effort::Precision { precision: 0.01, max_time };
        assert_eq!(of(precision(Duration::from_millis(100)), None, 1), s(30));
        assert_eq!(of(precision(s(60)), None, 1), s(180));
        assert_eq!(of(precision(s(1)), None, 32), s(960));
        assert_eq!(of(precision(s(1)), Some(s(5)), 32), s(5));
        let fixed = |warmup| Effort::Fixed { iterations: 1000, warmup };
        assert_eq!([fixed(10), fixed(0)].map(|effort| of(effort, None, 1)), [FIXED_SILENCE, FIXED_ROW]);
        assert_eq!([None, Some(s(5))].map(of_start), [START, s(5)]);
    }
}
