//! Deadlines for everything that waits for another process.

use std::{io, time::Duration};

use ombx_core::system::clock::Since;
use rustix::event::Timespec;

/// A point in time at which waiting for another process ends.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    since: Since,
    limit: Duration,
}

impl Deadline {
    /// Returns the deadline that is `limit` from now.
    pub fn after(limit: Duration) -> Deadline {
        Deadline { since: Since::now(), limit }
    }

    /// Returns the remaining time; `None` once the deadline has passed.
    pub fn left(&self) -> Option<Duration> {
        self.limit.checked_sub(self.since.elapsed()).filter(|left| !left.is_zero())
    }

    /// Returns the remaining time, or a `TimedOut` error once the deadline has passed.
    pub fn check(&self) -> io::Result<Duration> {
        self.left().ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "timed out"))
    }

    /// Returns the time from the creation of the deadline until it passes.
    pub fn limit(&self) -> Duration {
        self.limit
    }
}

/// Converts a duration to the kernel's type.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes() {
        assert!(Deadline::after(Duration::from_secs(60)).left().is_some());
        let now = Deadline::after(Duration::ZERO);
        assert_eq!(now.left(), None);
        assert_eq!(now.check().unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
