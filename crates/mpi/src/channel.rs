//! One end of two-sided traffic with a peer: its buffers, its requests, and the calls of a timed loop.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{error::Result, kernel::Cx, pattern::Link, payload::Slots};

use crate::{
    Buffer, MpiTeam,
    ext::{self, BYTE, check},
};

const TAG: c_int = 1;

/// Two-sided MPI with one peer. It owns the buffers that its requests use, so that none is freed under a transfer.
#[derive(Debug)]
pub struct Channel {
    comm: ffi::MPI_Comm,
    peer: c_int,
    bytes: c_int,
    slots: Slots,
    outgoing: Buffer,
    incoming: Buffer,
    requests: Vec<ffi::MPI_Request>,
}

impl Channel {
    #[inline(always)]
    fn wait_all(&mut self, requests: usize) -> Result<()> {
        let count = requests.min(self.requests.len()) as c_int;
        // SAFETY: the requests are ours, started on buffers that live as long as we do.
        check("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(count, self.requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE)
        })
    }

    #[inline(always)]
    fn slot(start: *mut u8, stride: u64, at: usize) -> *mut c_void {
        start.wrapping_add(at * stride as usize).cast()
    }

    /// Starts sending every message, with the requests from `first` on.
    #[inline(always)]
    fn start_sends(&mut self, first: usize) -> Result<()> {
        let requests = self.requests[first..].iter_mut().take(self.slots.count as usize);
        for (at, request) in requests.enumerate() {
            let from = Self::slot(self.outgoing.start(), self.slots.stride, at);
            // SAFETY: slot `at` lies in the buffer, which lives until the request has completed.
            check("MPI_Isend", unsafe {
                ffi::MPI_Isend(from, self.bytes, BYTE, self.peer, TAG, self.comm, request)
            })?;
        }
        Ok(())
    }

    /// Starts receiving every message, with the first requests.
    #[inline(always)]
    fn start_receives(&mut self) -> Result<()> {
        for (at, request) in self.requests.iter_mut().take(self.slots.count as usize).enumerate() {
            let into = Self::slot(self.incoming.start(), self.slots.stride, at);
            // SAFETY: slot `at` lies in the buffer, which lives until the request has completed.
            check("MPI_Irecv", unsafe {
                ffi::MPI_Irecv(into, self.bytes, BYTE, self.peer, TAG, self.comm, request)
            })?;
        }
        Ok(())
    }
}

impl Link for Channel {
    fn open(cx: &Cx<'_>, slots: Slots) -> Result<Channel> {
        let team: &MpiTeam = cx.fabric()?;
        let parts = ext::count(slots.bytes).and_then(|bytes| {
            let (outgoing, incoming) = (Buffer::zeroed(slots.total())?, Buffer::zeroed(slots.total())?);
            Ok((bytes, outgoing, incoming))
        });
        let (bytes, outgoing, incoming) = cx.agree(parts)?;
        // SAFETY: the null request is a constant of the library.
        let requests = vec![unsafe { ffi::RSMPI_REQUEST_NULL }; 2 * slots.count as usize];
        let (comm, peer) = (team.comm().raw(), cx.peer.0 as c_int);
        Ok(Channel { comm, peer, bytes, slots, outgoing, incoming, requests })
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        // SAFETY: the buffer holds `bytes`.
        check("MPI_Send", unsafe {
            ffi::MPI_Send(self.outgoing.start().cast(), self.bytes, BYTE, self.peer, TAG, self.comm)
        })
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        let from = self.incoming.start().cast();
        // SAFETY: the buffer holds `bytes`.
        check("MPI_Recv", unsafe {
            ffi::MPI_Recv(from, self.bytes, BYTE, self.peer, TAG, self.comm, ffi::RSMPI_STATUS_IGNORE)
        })
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
        check("MPI_Send", unsafe {
            ffi::MPI_Send(self.outgoing.start().cast(), 0, BYTE, self.peer, TAG, self.comm)
        })
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        let from = self.incoming.start().cast();
        // SAFETY: nothing is written to the buffer.
        check("MPI_Recv", unsafe {
            ffi::MPI_Recv(from, 0, BYTE, self.peer, TAG, self.comm, ffi::RSMPI_STATUS_IGNORE)
        })
    }

    fn outgoing(&mut self) -> &mut [u8] {
        self.outgoing.bytes_mut()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.incoming.bytes_mut()
    }
}
