//! Links on which messages are sent at scheduled times: requests with replies, and datagrams.

use std::ops::Range;

use ombx_record::{error::Result, result::Figures};

use crate::{
    benchmark::{Context, payload::Slots},
    two_sided::received::{Arrival, Received},
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

/// One endpoint of a link on which datagrams may be lost, late or doubled.
///
/// Datagram `number` of a round has the message slot `number` modulo the number of slots.
pub trait DatagramLink: Sized + 'static {
    /// Maximum size of a message in bytes.
    const MAX_BYTES: u64 = u64::MAX;
    /// Bytes of the header before each message in its slot, at least 1. The link writes and reads it.
    const HEADER: u64;

    /// Returns the maximum number of datagrams that a call sends.
    fn most_sent(&self) -> usize;
    /// Sends datagrams with their numbers and the time of sending.
    fn send(&mut self, numbers: Range<u64>, sent_ns: u64) -> Result<()>;
    /// Waits for datagrams of the round. Writes those that one call receives to `found`, without the time of arrival, and returns their number;
    /// 0 after a while without one.
    fn receive(&mut self, found: &mut [Arrival]) -> Result<usize>;
    /// Returns whether no further datagram of the round can be expected. Called after [`DatagramLink::receive`] returned 0.
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
    fn finish(&mut self) -> Result<Received>;
    /// Sends the report of the receiver. Untimed.
    fn report(&mut self, received: &Received) -> Result<()>;

    /// Returns figures of the link, on the sender. Untimed.
    fn figures(&self) -> Figures {
        Figures::new()
    }
    /// Returns the numbers of the datagrams whose messages are in the slots of the incoming buffer.
    fn arrived(&self) -> &[Option<u64>];
    /// Makes [`DatagramLink::arrived`] return no number until datagrams arrive.
    fn forget(&mut self);
    /// Returns the buffer that datagrams are sent from, from the first message on.
    fn outgoing(&mut self) -> &mut [u8];
    /// Returns the buffer that datagrams are received in, from the first message on.
    fn incoming(&mut self) -> &mut [u8];
}
