//! Start times of samples on one rank's clock.

use crate::pacing::clock_sync::ClockModel;

/// Window length before the operation was measured.
pub(crate) const FIRST_WINDOW_NS: f64 = 1_000_000.0;

/// Start times at equal distances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartTimes {
    /// Converts times of rank 0 to this rank's clock.
    pub(crate) model: ClockModel,
    /// Next start in rank 0's time.
    pub(crate) next_ns: f64,
    /// Distance of two starts: the window length.
    pub(crate) length_ns: f64,
}

impl Default for StartTimes {
    fn default() -> StartTimes {
        StartTimes { model: ClockModel::default(), next_ns: 0.0, length_ns: FIRST_WINDOW_NS }
    }
}

impl StartTimes {
    /// Returns the next start as a raw reading of this rank's clock.
    #[inline(always)]
    pub(crate) fn next_ticks(&mut self) -> u64 {
        let start = self.next_ns;
        self.next_ns += self.length_ns;
        self.model.ticks(start)
    }
}
