//! Two-sided traffic with the two neighbours of a rank in a periodic chain.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
};

use crate::{
    Buffer, MpiTeam,
    sys::{datatype::MessageType, error::check},
    two_sided::mode::Source,
};

const TAG: c_int = 4;

/// Traffic with the neighbours of a rank. It owns the buffers that its requests use, so that none is freed during a transfer.
///
/// The neighbours are the next and the previous rank, and the peer in a pair. The buffer for sending holds the message to the
/// right, then that to the left. The buffer for receiving holds the message from the left, then that from the right.
#[derive(Debug)]
pub struct NeighbourChannel {
    comm: ffi::MPI_Comm,
    /// Right neighbour, then left neighbour.
    neighbours: [c_int; 2],
    /// Source that receives from the left name where nothing arrives from the right.
    left_source: c_int,
    message: MessageType,
    /// Bytes from one message to the next.
    stride: usize,
    outgoing: Buffer,
    incoming: Buffer,
    requests: [ffi::MPI_Request; 2],
}

impl NeighbourChannel {
    /// Opens the channel of this rank. `slots` is one message. Collective, untimed.
    ///
    /// # Errors
    /// The message is too long for an `int`, or there is not enough memory.
    pub fn open(cx: &Context<'_>, slots: Slots) -> Result<Box<NeighbourChannel>> {
        let team: &MpiTeam = cx.fabric()?;
        let comm = team.comm().raw();
        let [_, left] = cx.neighbours();
        let neighbours = cx.neighbours().map(|rank| rank.0 as c_int);
        let left_source = Source::of_receive(cx, left);
        let (message, outgoing, incoming) =
            Buffer::two(cx, MessageType::new(slots), slots.copies, 2 * slots.total())?;
        let stride = slots.total() as usize;
        // SAFETY: this static of mpi-sys is never written.
        let requests = [unsafe { ffi::RSMPI_REQUEST_NULL }; 2];
        // C code may know the addresses of requests and neighbours, so they must not move.
        let mut channel = Box::new(NeighbourChannel {
            comm,
            neighbours,
            left_source,
            message,
            stride,
            outgoing,
            incoming,
            requests,
        });
        team.lend(|handles| {
            handles.describe_messages(cx, slots, &channel.outgoing, &channel.incoming);
            (handles.datatype, handles.elements) = (channel.message.raw, channel.message.count);
            handles.requests = channel.requests.as_mut_ptr();
            (handles.partners, handles.partner_count) = (channel.neighbours.as_ptr(), 2);
            (handles.partner_stride, handles.source) = (stride, left_source);
        });
        Ok(channel)
    }

    #[inline(always)]
    fn outgoing_at(&self, side: usize) -> *const c_void {
        self.outgoing.start().wrapping_add(side * self.stride).cast::<c_void>()
    }

    #[inline(always)]
    fn incoming_at(&self, side: usize) -> *mut c_void {
        self.incoming.start().wrapping_add(side * self.stride).cast::<c_void>()
    }

    #[inline(always)]
    fn start_send(&mut self, side: usize) -> Result<()> {
        let (from, to) = (self.outgoing_at(side), self.neighbours[side]);
        let MessageType { raw, count, .. } = self.message;
        // SAFETY: the message lies inside the buffer, which is neither freed nor accessed before the request is complete.
        check("MPI_Isend", unsafe {
            ffi::MPI_Isend(from, count, raw, to, TAG, self.comm, &raw mut self.requests[side])
        })
    }

    /// Receives the message from the left (0) or from the right (1).
    #[inline(always)]
    fn receive(&mut self, side: usize, from: c_int) -> Result<()> {
        let into = self.incoming_at(side);
        let MessageType { raw, count, .. } = self.message;
        // SAFETY: the message lies inside the buffer, and `&mut self` excludes other accesses.
        check("MPI_Recv", unsafe {
            ffi::MPI_Recv(into, count, raw, from, TAG, self.comm, ffi::RSMPI_STATUS_IGNORE)
        })
    }

    /// Starts a send to the right, receives from the left, and waits for the send.
    ///
    /// # Errors
    /// A call of MPI failed.
    #[inline(always)]
    pub fn ping_ping(&mut self) -> Result<()> {
        self.start_send(0)?;
        self.receive(0, self.left_source)?;
        // SAFETY: the request is null or was started on a buffer that `self` owns.
        check("MPI_Wait", unsafe { ffi::MPI_Wait(&raw mut self.requests[0], ffi::RSMPI_STATUS_IGNORE) })
    }

    /// Sends to the right and receives from the left by one call.
    ///
    /// # Errors
    /// The call of MPI failed.
    #[inline(always)]
    pub fn send_receive(&mut self) -> Result<()> {
        let (from, into) = (self.outgoing_at(0), self.incoming_at(0));
        let MessageType { raw, count, .. } = self.message;
        let (right, left) = (self.neighbours[0], self.left_source);
        // SAFETY: both messages lie inside their buffers, which do not overlap, and the call returns when MPI no longer uses them.
        check("MPI_Sendrecv", unsafe {
            ffi::MPI_Sendrecv(
                from,
                count,
                raw,
                right,
                TAG,
                into,
                count,
                raw,
                left,
                TAG,
                self.comm,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })
    }

    /// Sends the message in the buffer for receiving to the right, and replaces it by that from the left, by one call.
    ///
    /// # Errors
    /// The call of MPI failed.
    #[inline(always)]
    pub fn send_receive_replace(&mut self) -> Result<()> {
        let message = self.incoming_at(0);
        let MessageType { raw, count, .. } = self.message;
        let (right, left) = (self.neighbours[0], self.left_source);
        // SAFETY: the message lies inside its buffer, and the call returns when MPI no longer uses it.
        check("MPI_Sendrecv_replace", unsafe {
            ffi::MPI_Sendrecv_replace(
                message,
                count,
                raw,
                right,
                TAG,
                left,
                TAG,
                self.comm,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })
    }

    /// Starts sends to both neighbours, receives from both, and waits for the sends.
    ///
    /// # Errors
    /// A call of MPI failed.
    #[inline(always)]
    pub fn exchange(&mut self) -> Result<()> {
        self.start_send(0)?;
        self.start_send(1)?;
        self.receive(0, self.neighbours[1])?;
        self.receive(1, self.neighbours[0])?;
        // SAFETY: each request is null or was started on a buffer that `self` owns.
        check("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(2, self.requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE)
        })
    }

    buffers!(copies pub);
}
