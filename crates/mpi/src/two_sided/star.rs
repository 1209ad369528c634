//! Two-sided traffic with several partners at the same time.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    two_sided::pattern::Link,
};

use crate::{
    Buffer, MpiTeam,
    sys::{BYTE, datatype::MessageType, error::check},
};

const TAG: c_int = 3;

/// Traffic with every partner of a rank. It owns the buffers that its requests use, so that none is freed during a transfer.
/// A buffer holds all messages of the first partner, then those of the second, and so on.
#[derive(Debug)]
pub struct StarChannel {
    comm: ffi::MPI_Comm,
    /// The messages of one iteration in the order of their start: the first of every partner, then the second, and so on.
    messages: Vec<StarMessage>,
    partners: Vec<c_int>,
    message: MessageType,
    outgoing: Buffer,
    incoming: Buffer,
    /// Receives of all messages, then sends of all messages.
    requests: Vec<ffi::MPI_Request>,
}

#[derive(Debug, Clone, Copy)]
struct StarMessage {
    partner: c_int,
    offset: usize,
}

impl StarChannel {
    #[inline(always)]
    fn start_receives(&mut self) -> Result<()> {
        let start = self.incoming.start();
        let MessageType { raw, count, .. } = self.message;
        for (request, StarMessage { partner, offset }) in self.requests.iter_mut().zip(&self.messages) {
            let into = start.wrapping_add(*offset).cast::<c_void>();
            // SAFETY: the message lies inside the buffer, which is neither freed nor accessed before `wait` completes the
            // request.
            check("MPI_Irecv", unsafe {
                ffi::MPI_Irecv(into, count, raw, *partner, TAG, self.comm, request)
            })?;
        }
        Ok(())
    }

    #[inline(always)]
    fn start_sends(&mut self) -> Result<()> {
        let start = self.outgoing.start();
        let MessageType { raw, count, .. } = self.message;
        let requests = self.requests[self.messages.len()..].iter_mut();
        for (request, StarMessage { partner, offset }) in requests.zip(&self.messages) {
            let from = start.wrapping_add(*offset).cast::<c_void>();
            // SAFETY: the message lies inside the buffer, which is neither freed nor accessed before `wait` completes the
            // request.
            check("MPI_Isend", unsafe {
                ffi::MPI_Isend(from, count, raw, *partner, TAG, self.comm, request)
            })?;
        }
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, first: usize, count: usize) -> Result<()> {
        let requests = self.requests[first..first + count].as_mut_ptr();
        // SAFETY: the slice has `count` requests. Each is null or was started on a buffer that `self` owns.
        check("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(count as c_int, requests, ffi::RSMPI_STATUSES_IGNORE)
        })
    }
}

impl Link for StarChannel {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<StarChannel> {
        let team: &MpiTeam = cx.fabric()?;
        let comm = team.comm().raw();
        let partners: Vec<c_int> = cx.partners().iter().map(|rank| rank.0 as c_int).collect();
        let total = slots.total() * partners.len() as u64;
        let (message, outgoing, incoming) = Buffer::two(cx, MessageType::new(slots), slots.copies, total)?;
        let each = slots.total() as usize;
        let mut messages = Vec::new();
        for slot in 0..slots.count {
            for (at, partner) in partners.iter().enumerate() {
                messages.push(StarMessage { partner: *partner, offset: at * each + slots.offset(slot) });
            }
        }
        // SAFETY: this static of mpi-sys is never written.
        let mut requests = vec![unsafe { ffi::RSMPI_REQUEST_NULL }; 2 * messages.len()];
        team.lend(|handles| {
            handles.describe_messages(cx, slots, &outgoing, &incoming);
            (handles.datatype, handles.elements) = (message.raw, message.count);
            handles.requests = requests.as_mut_ptr();
            (handles.partners, handles.partner_count) = (partners.as_ptr(), partners.len() as c_int);
            handles.partner_stride = each;
        });
        Ok(StarChannel { comm, messages, partners, message, outgoing, incoming, requests })
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        let MessageType { raw, count, .. } = self.message;
        for (at, partner) in self.partners.iter().enumerate() {
            let from = self.outgoing.start().wrapping_add(self.messages[at].offset).cast();
            // SAFETY: the first message to the partner lies inside the buffer, and the call returns when MPI no longer reads it.
            check("MPI_Send", unsafe { ffi::MPI_Send(from, count, raw, *partner, TAG, self.comm) })?;
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        let MessageType { raw, count, .. } = self.message;
        for (at, partner) in self.partners.iter().enumerate() {
            let into = self.incoming.start().wrapping_add(self.messages[at].offset).cast();
            // SAFETY: the first message from the partner lies inside the buffer, and `&mut self` excludes other accesses.
            check("MPI_Recv", unsafe {
                ffi::MPI_Recv(into, count, raw, *partner, TAG, self.comm, ffi::RSMPI_STATUS_IGNORE)
            })?;
        }
        Ok(())
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.start_sends()?;
        self.wait(self.messages.len(), self.messages.len())
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.start_receives()?;
        self.wait(0, self.messages.len())
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.start_receives()?;
        self.start_sends()?;
        self.wait(0, 2 * self.messages.len())
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        for partner in &self.partners {
            // SAFETY: the count is 0, so MPI does not read the buffer.
            check("MPI_Send", unsafe {
                ffi::MPI_Send(self.outgoing.start().cast(), 0, BYTE, *partner, TAG, self.comm)
            })?;
        }
        Ok(())
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        for partner in &self.partners {
            let into = self.incoming.start().cast();
            // SAFETY: the count is 0, so MPI does not write to the buffer.
            check("MPI_Recv", unsafe {
                ffi::MPI_Recv(into, 0, BYTE, *partner, TAG, self.comm, ffi::RSMPI_STATUS_IGNORE)
            })?;
        }
        Ok(())
    }

    buffers!();
}
