//! Time spans outside timed regions.

use std::time::Duration;

/// Start of a time span, for deadlines and estimates outside timed regions.
#[derive(Debug, Clone, Copy)]
pub struct Since(std::time::Instant);

impl Since {
    /// Starts a time span now.
    #[expect(clippy::disallowed_methods, reason = "deadlines and estimates, outside timed regions")]
    pub fn now() -> Since {
        Since(std::time::Instant::now())
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
