//! Where the time of a row went on rank 0: what is not sampling is what measuring costs.

use crate::system::clock::{Clock, Mark};

/// The time of a row from its beginning to its end, in parts that follow one another, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// Memory, windows, threads and whatever else is opened for the case.
    pub open_ns: u64,
    /// Filling buffers with the first pattern.
    pub fill_ns: u64,
    /// Warming up, and finding how many iterations make a sample.
    pub warm_up_ns: u64,
    /// Rounds of samples, each from the barrier before it to the one after it.
    pub sample_ns: u64,
    /// Between those rounds: storage, bringing samples together, summarising them, deciding whether there are enough.
    pub decide_ns: u64,
    /// Comparing what arrived, and the same for a second pattern.
    pub verify_ns: u64,
    /// Closing what was opened.
    pub close_ns: u64,
}

impl Phases {
    /// Every part by its name in results, in the order in which they happen.
    pub const fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("open", self.open_ns),
            ("fill", self.fill_ns),
            ("warm_up", self.warm_up_ns),
            ("sample", self.sample_ns),
            ("decide", self.decide_ns),
            ("verify", self.verify_ns),
            ("close", self.close_ns),
        ]
    }

    /// Those of two rows, part by part.
    #[must_use]
    pub const fn plus(self, other: Phases) -> Phases {
        Phases {
            open_ns: self.open_ns.saturating_add(other.open_ns),
            fill_ns: self.fill_ns.saturating_add(other.fill_ns),
            warm_up_ns: self.warm_up_ns.saturating_add(other.warm_up_ns),
            sample_ns: self.sample_ns.saturating_add(other.sample_ns),
            decide_ns: self.decide_ns.saturating_add(other.decide_ns),
            verify_ns: self.verify_ns.saturating_add(other.verify_ns),
            close_ns: self.close_ns.saturating_add(other.close_ns),
        }
    }

    /// All of it.
    pub fn total_ns(&self) -> u64 {
        self.named().iter().fold(0, |sum, (_, part)| sum.saturating_add(*part))
    }
}

/// A watch that is never stopped, so that its laps add up to all that it has run.
pub(crate) struct Stopwatch<'c> {
    start: Mark<'c>,
    told: u64,
}

impl<'c> Stopwatch<'c> {
    /// From now on.
    pub(crate) fn from_now(clock: &'c Clock) -> Stopwatch<'c> {
        Stopwatch { start: clock.mark(), told: 0 }
    }

    /// Nanoseconds since the last lap.
    pub(crate) fn lap(&mut self) -> u64 {
        let now = self.start.elapsed_ns();
        now - std::mem::replace(&mut self.told, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_add_up_to_the_whole() {
        let (clock, hand) = Clock::manual(1);
        let mut laps = Stopwatch::from_now(&clock);
        let told: Vec<u64> = [5, 0, 17].map(|ns| (hand.advance(ns), laps.lap()).1).into();
        assert_eq!(told, [5, 0, 17]);
        let real = Clock::measured();
        let (whole, mut laps) = (real.mark(), Stopwatch::from_now(&real));
        let sum: u64 = (0..1000).map(|_| laps.lap()).sum();
        assert!(sum <= whole.elapsed_ns() && sum > 0);
    }

    #[test]
    fn a_part_that_is_not_named_would_be_missing_from_the_sum() {
        let phases = Phases {
            open_ns: 1,
            fill_ns: 2,
            warm_up_ns: 4,
            sample_ns: 8,
            decide_ns: 16,
            verify_ns: 32,
            close_ns: 64,
        };
        assert_eq!(phases.total_ns(), 127);
        assert_eq!(phases.plus(phases).named().map(|(_, ns)| ns), phases.named().map(|(_, ns)| 2 * ns));
    }
}
