//! Links on which one rank sends requests and the other replies.

use crate::{
    benchmark::{Context, payload::Slots},
    error::Result,
};

/// Bytes of a reply: the number of its request, little endian.
pub const REPLY_BYTES: usize = 8;

/// One endpoint of a link on which one rank sends requests and the other replies to each, in order.
///
/// Request `number` of a round has the message slot `number` modulo the number of slots. At most as many requests as slots are in
/// flight.
pub trait RequestLink: Sized + 'static {
    /// Maximum size of a request in bytes.
    const MAX_BYTES: u64 = u64::MAX;

    /// Opens the endpoint of this rank. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Prepares a round of `requests` on the rank that sends them: memory for their replies. Untimed.
    fn prepare(&mut self, requests: u64) -> Result<()>;
    /// Continues to send a request, without blocking. Returns whether the request is sent.
    fn send_some(&mut self, number: u64) -> Result<bool>;
    /// Takes the replies that have arrived, without blocking. Returns how many requests of the round have their reply.
    fn replies(&mut self) -> Result<u64>;
    /// Receives a request on the other rank and replies with its number.
    fn answer(&mut self, number: u64) -> Result<()>;

    /// Returns the replies of the last round, [`REPLY_BYTES`] each.
    fn echoes(&mut self) -> &[u8];
    /// Returns the buffer that requests are sent from.
    fn outgoing(&mut self) -> &mut [u8];
    /// Returns the buffer that requests are received in.
    fn incoming(&mut self) -> &mut [u8];
}
