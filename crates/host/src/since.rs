//! Time spans outside timed regions.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// First reading of the clock.
static FIRST: OnceLock<Instant> = OnceLock::new();
/// Nanoseconds from it to the latest reading.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// Start of a time span, for deadlines and estimates outside timed regions.
#[derive(Debug, Clone, Copy)]
pub struct Since(Duration);

impl Since {
    /// Starts a time span now.
    pub fn now() -> Since {
        Since(reading())
    }

    /// Returns the time since the start, never less than before.
    pub fn elapsed(&self) -> Duration {
        reading().saturating_sub(self.0)
    }
}

/// Returns the time since the first reading. If the clock goes back, the time stands still.
#[expect(clippy::disallowed_methods, reason = "deadlines and estimates, outside timed regions")]
fn reading() -> Duration {
    latest(FIRST.get_or_init(Instant::now).elapsed(), &LATEST)
}

fn latest(reading: Duration, known: &AtomicU64) -> Duration {
    let ns = u64::try_from(reading.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(known.fetch_max(ns, Ordering::Relaxed).max(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_goes_back_stands_still() {
        let known = AtomicU64::new(0);
        let read = |seconds| latest(Duration::from_secs(seconds), &known).as_secs();
        assert_eq!([3, 1, 4, 0].map(read), [3, 3, 4, 4]);
    }
}
