//! A moment by which something must have happened.

use std::{io, time::Duration};

use ombx_core::system::clock::Since;
use rustix::event::Timespec;

/// A moment by which something must have happened: everything that waits for others has one.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    since: Since,
    limit: Duration,
}

impl Deadline {
    /// So long from now.
    pub fn after(limit: Duration) -> Deadline {
        Deadline { since: Since::now(), limit }
    }

    /// Time that is left; none once it has passed.
    pub fn left(&self) -> Option<Duration> {
        self.limit.checked_sub(self.since.elapsed()).filter(|left| !left.is_zero())
    }

    /// Time that is left, or the error that it has passed.
    pub fn check(&self) -> io::Result<Duration> {
        self.left().ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "nothing came in time"))
    }

    /// The whole time that it gave.
    pub fn limit(&self) -> Duration {
        self.limit
    }
}

/// A duration, as the kernel wants it.
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
