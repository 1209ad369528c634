//! Links on which one rank sends datagrams that may be lost, and the other notes their arrival.

use crate::{
    benchmark::{Context, payload::Slots},
    error::Result,
};

/// A datagram that arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the datagram in its round, from 0.
    pub number: u64,
    /// When it was sent, in nanoseconds after the start of the round on the sender's clock.
    pub sent_ns: u64,
    /// When it arrived on the receiver's clock: raw ticks in the timed loop, later nanoseconds.
    pub at_ns: u64,
}

/// One endpoint of a link on which datagrams may be lost, late or doubled.
///
/// Datagram `number` of a round has the message slot `number` modulo the number of slots.
pub trait DatagramLink: Sized + 'static {
    /// Maximum size of a message in bytes.
    const MAX_BYTES: u64 = u64::MAX;

    /// Sends a datagram with its number and the time of sending.
    fn send(&mut self, number: u64, sent_ns: u64) -> Result<()>;
    /// Waits for the next datagram of the round; returns `None` after a while without one.
    fn receive(&mut self) -> Result<Option<Arrival>>;
    /// Returns whether no further datagram of the round can be expected. Called after [`DatagramLink::receive`] returned `None`.
    fn is_over(&mut self) -> Result<bool>;

    /// Opens the endpoint of this rank. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Begins a round on either rank. Datagrams of earlier rounds are ignored from now on. Untimed.
    fn begin(&mut self) -> Result<()>;
    /// Tells the sender that this rank receives. Untimed.
    fn ready(&mut self) -> Result<()>;
    /// Waits on the sender until the other rank receives. Untimed.
    fn wait_until_ready(&mut self) -> Result<()>;
    /// Tells the receiver that all datagrams are sent; returns its report. Untimed.
    fn finish(&mut self) -> Result<Vec<u8>>;
    /// Sends the report of the receiver. Untimed.
    fn report(&mut self, report: &[u8]) -> Result<()>;

    /// Returns the numbers of the datagrams whose messages are in the slots of the incoming buffer.
    fn arrived(&self) -> &[Option<u64>];
    /// Makes [`DatagramLink::arrived`] return no number until datagrams arrive.
    fn forget(&mut self);
    /// Returns the buffer that datagrams are sent from.
    fn outgoing(&mut self) -> &mut [u8];
    /// Returns the buffer that datagrams are received in.
    fn incoming(&mut self) -> &mut [u8];
}
