//! One end of two-sided traffic with a peer: its buffers, its requests, and the calls of a timed loop.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{
    benchmark::{context::Context, payload::Slots},
    error::Result,
    two_sided::pattern::Link,
};

use crate::{
    Buffer, MpiTeam,
    counting::{Counting, End, Int},
    ext::check,
};

const TAG: c_int = 1;

/// Two-sided MPI with one peer. It owns the buffers that its requests use, so that none is freed under a transfer.
#[derive(Debug)]
pub struct Channel<C: Counting = Int> {
    end: End,
    bytes: C::Count,
    none: C::Count,
    slots: Slots,
    outgoing: Buffer,
    incoming: Buffer,
    requests: Vec<ffi::MPI_Request>,
}

impl<C: Counting> Channel<C> {
    #[inline(always)]
    fn wait_all(&mut self, requests: usize) -> Result<()> {
        let count = requests.min(self.requests.len()) as c_int;
        // SAFETY: the requests are ours, started on buffers that live as long as we do.
        check("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(count, self.requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE)
        })
    }

    /// Starts sending every message, with the requests from `first` on.
    #[inline(always)]
    fn start_sends(&mut self, first: usize) -> Result<()> {
        let (mut from, stride) = (self.outgoing.start(), self.slots.stride as usize);
        for request in &mut self.requests[first..first + self.slots.count as usize] {
            // SAFETY: the message lies in the buffer, which lives until the request has completed.
            check("MPI_Isend", unsafe { C::start_send(from.cast(), self.bytes, self.end, request) })?;
            from = from.wrapping_add(stride);
        }
        Ok(())
    }

    /// Starts receiving every message, with the first requests.
    #[inline(always)]
    fn start_receives(&mut self) -> Result<()> {
        let (mut into, stride) = (self.incoming.start(), self.slots.stride as usize);
        for request in &mut self.requests[..self.slots.count as usize] {
            // SAFETY: the message lies in the buffer, which lives until the request has completed.
            check("MPI_Irecv", unsafe { C::start_receive(into.cast(), self.bytes, self.end, request) })?;
            into = into.wrapping_add(stride);
        }
        Ok(())
    }
}

impl<C: Counting> Link for Channel<C> {
    const MAX_BYTES: u64 = C::MOST;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<Channel<C>> {
        let team: &MpiTeam = cx.fabric()?;
        let parts = C::count(slots.bytes).and_then(|bytes| {
            let (outgoing, incoming) = (Buffer::zeroed(slots.total())?, Buffer::zeroed(slots.total())?);
            Ok(([bytes, C::count(0)?], outgoing, incoming))
        });
        let ([bytes, none], outgoing, incoming) = cx.agree(parts)?;
        // SAFETY: the null request is a constant of the library.
        let requests = vec![unsafe { ffi::RSMPI_REQUEST_NULL }; 2 * slots.count as usize];
        let end = End { peer: cx.peer.0 as c_int, tag: TAG, comm: team.comm().raw() };
        Ok(Channel { end, bytes, none, slots, outgoing, incoming, requests })
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        // SAFETY: the buffer holds `bytes`.
        check("MPI_Send", unsafe { C::send(self.outgoing.start().cast(), self.bytes, self.end) })
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        let from = self.incoming.start().cast();
        // SAFETY: the buffer holds `bytes`.
        check("MPI_Recv", unsafe { C::receive(from, self.bytes, self.end) })
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
        // SAFETY: nothing is read from the buffer.
        check("MPI_Send", unsafe { C::send(self.outgoing.start().cast(), self.none, self.end) })
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        let from = self.incoming.start().cast();
        // SAFETY: nothing is written to the buffer.
        check("MPI_Recv", unsafe { C::receive(from, self.none, self.end) })
    }

    fn outgoing(&mut self) -> &mut [u8] {
        self.outgoing.bytes_mut()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.incoming.bytes_mut()
    }
}
