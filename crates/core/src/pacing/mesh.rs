//! What pacing and clocks need of a fabric: the library's own barrier, and small messages from any rank to any other.

use crate::{
    benchmark::context::Context,
    error::Result,
    system::{clock::Clock, environment},
    unit::Rank,
};

/// One rank's end of small messages to and from every other rank of a case. No call allocates.
pub trait Mesh: Sized {
    /// Opens the end of this rank. Collective, untimed.
    fn open(cx: &Context<'_>) -> Result<Self>;
    /// The fabric's own barrier.
    fn barrier(&mut self) -> Result<()>;
    /// Sends a message of 0 bytes to one rank and waits for one of another, in any order.
    fn pass(&mut self, to: Rank, from: Rank) -> Result<()>;
    /// Sends a few bytes, or none, to one rank.
    fn send(&mut self, to: Rank, bytes: &[u8]) -> Result<()>;
    /// Waits for as many bytes of one rank.
    fn receive(&mut self, from: Rank, bytes: &mut [u8]) -> Result<()>;

    /// Lets a moment pass while waiting for a time that is so many ticks of the clock away.
    #[inline(always)]
    fn linger(&mut self, _ticks: u64) {
        std::hint::spin_loop();
    }

    /// Names the clock that this rank reads: ranks that name the same one read the same times.
    fn clock_of(&self, clock: &Clock) -> String {
        format!("{}/{}", environment::boot_id(), clock.facts().source)
    }
}
