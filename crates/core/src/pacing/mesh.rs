//! Messages between any two ranks of a case, which pacing and clock synchronisation need.

use crate::{
    benchmark::Context,
    error::Result,
    system::{clock::Clock, environment},
    unit::Rank,
};

/// One rank's endpoint for small messages to and from every other rank of a case. No method allocates after `open`.
pub trait Mesh: Sized + 'static {
    /// Opens the endpoint of this rank. Collective, untimed.
    fn open(cx: &Context<'_>) -> Result<Self>;
    /// Enters the barrier of the library.
    fn barrier(&mut self) -> Result<()>;
    /// Sends an empty message to one rank and receives one from another, in any order.
    fn pass(&mut self, to: Rank, from: Rank) -> Result<()>;
    /// Sends a message to one rank; `bytes` may be empty.
    fn send(&mut self, to: Rank, bytes: &[u8]) -> Result<()>;
    /// Receives a message of exactly `bytes.len()` bytes from one rank.
    fn receive(&mut self, from: Rank, bytes: &mut [u8]) -> Result<()>;

    /// Spins for a moment while a rank waits for a time that is `ticks` ticks away.
    #[inline(always)]
    fn linger(&mut self, _ticks: u64) {
        std::hint::spin_loop();
    }

    /// Describes the message of an operation that consists of this mesh's messages, for programs that repeat its calls. Untimed.
    fn describe(&self, _cx: &Context<'_>, _message: &mut [u8]) {}

    /// Returns a name of the clock that this rank reads. Ranks with equal names read the same clock.
    fn clock_name(&self, clock: &Clock) -> String {
        clock_name(clock)
    }
}

/// Returns the name of the clock of this process. Processes of one host that read the same source have one clock.
pub(crate) fn clock_name(clock: &Clock) -> String {
    format!("{}/{}", environment::boot_id(), clock.facts().source)
}
