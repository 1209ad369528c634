//! Two-sided traffic with one peer by persistent requests.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    two_sided::pattern::Link,
};

use super::{
    counting::{Counting, Large},
    source::Source,
};
use crate::{
    Buffer, MpiTeam,
    sys::{
        constants::BYTE,
        error::{self, check},
    },
};

#[cfg(not(mpi_has = "MPI_Send_c"))]
use mpi::ffi::{MPI_Recv_init as recv_init, MPI_Send_init as send_init};
#[cfg(mpi_has = "MPI_Send_c")]
use mpi::ffi::{MPI_Recv_init_c as recv_init, MPI_Send_init_c as send_init};

const TAG: c_int = 2;

type Length = <Large as Counting>::Count;

/// Traffic with one peer by `MPI_Send_init`, `MPI_Recv_init` and `MPI_Start`. It owns the buffers that its requests use, and
/// frees the requests first.
#[derive(Debug)]
pub struct PersistentChannel {
    /// In this order: receives of all messages, sends of all messages, receive and send of the acknowledgement.
    requests: Vec<ffi::MPI_Request>,
    depth: usize,
    outgoing: Buffer,
    incoming: Buffer,
}

impl PersistentChannel {
    /// Starts `count` requests from index `first` on, and waits for them.
    #[inline(always)]
    fn run(&mut self, first: usize, count: usize) -> Result<()> {
        let requests = self.requests[first..first + count].as_mut_ptr();
        // SAFETY: the slice has `count` inactive persistent requests on buffers that `self` owns.
        unsafe {
            check("MPI_Startall", ffi::MPI_Startall(count as c_int, requests))?;
            check("MPI_Waitall", ffi::MPI_Waitall(count as c_int, requests, ffi::RSMPI_STATUSES_IGNORE))
        }
    }

    /// Starts one request and waits for it.
    #[inline(always)]
    fn run_one(&mut self, at: usize) -> Result<()> {
        let request = &raw mut self.requests[at];
        // SAFETY: an inactive persistent request on a buffer that `self` owns.
        unsafe {
            check("MPI_Start", ffi::MPI_Start(request))?;
            check("MPI_Wait", ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE))
        }
    }
}

impl Link for PersistentChannel {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<PersistentChannel> {
        let team: &MpiTeam = cx.fabric()?;
        let comm = team.comm().raw();
        let parts = Large::count(slots.bytes).and_then(|bytes| {
            let (outgoing, incoming) = (Buffer::reserved(slots.total())?, Buffer::reserved(slots.total())?);
            Ok((bytes, outgoing, incoming))
        });
        let (bytes, outgoing, incoming) = cx.agree(parts)?;
        let (depth, peer) = (slots.count as usize, cx.peer.0 as c_int);
        let source = Source::of(cx, cx.peer);
        let mut channel = PersistentChannel { requests: Vec::new(), depth, outgoing, incoming };
        let (to, from) = (channel.outgoing.start(), channel.incoming.start());
        let mut add = |start: *mut u8, length: Length, direction: Direction| -> Result<()> {
            let place = start.cast::<c_void>();
            // SAFETY: the `length` bytes at `start` lie in a buffer of the channel, which frees its requests before its
            // buffers. `request` outlives the call that writes it.
            unsafe {
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let out = &raw mut request;
                match direction {
                    Direction::Send => {
                        check("MPI_Send_init", send_init(place, length, BYTE, peer, TAG, comm, out))?;
                    }
                    Direction::Receive => {
                        check("MPI_Recv_init", recv_init(place, length, BYTE, source, TAG, comm, out))?;
                    }
                }
                channel.requests.push(request);
            }
            Ok(())
        };
        for slot in 0..slots.count {
            add(from.wrapping_add(slots.offset(slot)), bytes, Direction::Receive)?;
        }
        for slot in 0..slots.count {
            add(to.wrapping_add(slots.offset(slot)), bytes, Direction::Send)?;
        }
        add(from, 0, Direction::Receive)?;
        add(to, 0, Direction::Send)?;
        team.lend(|handles| {
            handles.describe_messages(cx, slots, &channel.outgoing, &channel.incoming);
            handles.requests = channel.requests.as_mut_ptr();
        });
        Ok(channel)
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.run_one(self.depth)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.run_one(0)
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.run(self.depth, self.depth)
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.run(0, self.depth)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.run(0, 2 * self.depth)
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        self.run_one(2 * self.depth + 1)
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        self.run_one(2 * self.depth)
    }

    fn outgoing(&mut self) -> &mut [u8] {
        self.outgoing.bytes_mut()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.incoming.bytes_mut()
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Send,
    Receive,
}

impl Drop for PersistentChannel {
    fn drop(&mut self) {
        if error::may_free() {
            for request in &mut self.requests {
                // SAFETY: every request is inactive between calls, and only `drop` frees it.
                error::check_freed(c"MPI_Request_free", unsafe { ffi::MPI_Request_free(&raw mut *request) });
            }
        }
    }
}
