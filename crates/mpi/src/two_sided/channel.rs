//! Two-sided traffic with one peer by blocking and nonblocking calls.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, Parameter, ParameterValue, payload::Slots},
    error::Result,
    two_sided::pattern::Link,
};

use super::counting::{Counting, Endpoint, Int};
use crate::{
    Buffer, MpiTeam,
    sys::{datatype::MessageType, error::check},
    two_sided::mode::Source,
};

const TAG: c_int = 1;

/// Traffic with one peer by `MPI_Send`, `MPI_Recv`, `MPI_Isend` and `MPI_Irecv`. It owns the buffers that its requests use,
/// so that none is freed during a transfer.
#[derive(Debug)]
pub struct Channel<C: Counting = Int> {
    pub(super) endpoint: Endpoint,
    /// Count argument of a message, in elements of its datatype.
    pub(super) count: C::Count,
    zero: C::Count,
    pub(super) slots: Slots,
    pub(super) outgoing: Buffer,
    incoming: Buffer,
    pub(super) requests: Vec<ffi::MPI_Request>,
    _message: MessageType<C::Count>,
}

impl<C: Counting> Channel<C> {
    /// Parameters that [`Link::open`] reads, besides those of the buffers.
    pub const PARAMETERS: &'static [&'static Parameter] = &[Source::PARAMETER];

    #[inline(always)]
    pub(super) fn wait_all(&mut self, requests: usize) -> Result<()> {
        let count = requests.min(self.requests.len()) as c_int;
        // SAFETY: `count` requests exist. Each is null or was started on a buffer that `self` owns.
        check("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(count, self.requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE)
        })
    }

    /// Starts to send every message. The requests are stored from index `first` on.
    #[inline(always)]
    fn start_sends(&mut self, first: usize) -> Result<()> {
        let (mut from, stride) = (self.outgoing.start(), self.slots.stride as usize);
        for request in &mut self.requests[first..first + self.slots.count as usize] {
            // SAFETY: the message lies inside the buffer, which is neither freed nor accessed before `wait_all` completes the
            // request.
            check("MPI_Isend", unsafe { C::start_send(from.cast(), self.count, self.endpoint, request) })?;
            from = from.wrapping_add(stride);
        }
        Ok(())
    }

    /// Starts to receive every message. The requests are stored from index 0 on.
    #[inline(always)]
    pub(super) fn start_receives(&mut self) -> Result<()> {
        let (mut into, stride) = (self.incoming.start(), self.slots.stride as usize);
        for request in &mut self.requests[..self.slots.count as usize] {
            // SAFETY: the message lies inside the buffer, which is neither freed nor accessed before `wait_all` completes the
            // request.
            check("MPI_Irecv", unsafe { C::start_receive(into.cast(), self.count, self.endpoint, request) })?;
            into = into.wrapping_add(stride);
        }
        Ok(())
    }
}

impl<C: Counting> Link for Channel<C> {
    const MAX_ELEMENTS: u64 = C::MAX_ELEMENTS;
    const COPIES: bool = true;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<Channel<C>> {
        let team: &MpiTeam = cx.fabric()?;
        let counts = MessageType::counted(slots, C::count).and_then(|message| Ok((message, C::count(0)?)));
        let ((message, zero), outgoing, incoming) = Buffer::two(cx, counts, slots.copies, slots.total())?;
        // SAFETY: this static of mpi-sys is never written.
        let mut requests = vec![unsafe { ffi::RSMPI_REQUEST_NULL }; 2 * slots.count as usize];
        team.lend(|handles| {
            handles.describe_messages(cx, slots, &outgoing, &incoming);
            handles.requests = requests.as_mut_ptr();
            (handles.datatype, handles.elements) = (message.raw, C::as_int(message.count));
        });
        let endpoint = Endpoint::of_bytes(cx.peer.0 as c_int, TAG, team.comm().raw());
        let endpoint = endpoint.receiving_from(Source::of_receive(cx, cx.peer)).of_type(message.raw);
        let count = message.count;
        Ok(Channel { endpoint, count, zero, slots, outgoing, incoming, requests, _message: message })
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        // SAFETY: the buffer has at least one message, and the call returns when MPI no longer reads it.
        check("MPI_Send", unsafe { C::send(self.outgoing.start().cast(), self.count, self.endpoint) })
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        let into = self.incoming.start().cast();
        // SAFETY: the buffer has at least one message, and `&mut self` excludes other accesses.
        check("MPI_Recv", unsafe { C::receive(into, self.count, self.endpoint) })
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.start_sends(0)?;
        self.wait_all(self.slots.count as usize)
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.start_receives()?;
        self.wait_all(self.slots.count as usize)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.start_receives()?;
        self.start_sends(self.slots.count as usize)?;
        self.wait_all(2 * self.slots.count as usize)
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        // SAFETY: the count is 0, so MPI does not read the buffer.
        check("MPI_Send", unsafe { C::send(self.outgoing.start().cast(), self.zero, self.endpoint) })
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        let into = self.incoming.start().cast();
        // SAFETY: the count is 0, so MPI does not write to the buffer.
        check("MPI_Recv", unsafe { C::receive(into, self.zero, self.endpoint) })
    }

    buffers!(copies);
}
