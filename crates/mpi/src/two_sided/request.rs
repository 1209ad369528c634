//! Requests and replies with one peer, for latency under an offered load.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, Role, payload::Slots},
    error::Result,
    two_sided::scheduled_link::{REPLY_BYTES, RequestLink},
};

use super::counting::{Counting, Endpoint, Int};
use crate::{Buffer, MpiTeam, sys::error::check};

/// Tag of requests.
const REQUEST: c_int = 1;
/// Tag of replies.
const REPLY: c_int = 2;
/// MPI requests of a slot: the receive of the reply and the send of the request.
const OPERATIONS: usize = 2;

/// Requests by `MPI_Isend`, `MPI_Irecv` and `MPI_Testall`, and replies by `MPI_Recv` and `MPI_Send`.
///
/// It owns the buffers that its MPI requests use, so that none is freed during a transfer.
#[derive(Debug)]
pub struct RequestChannel {
    requests_to: Endpoint,
    replies_from: Endpoint,
    bytes: c_int,
    reply_bytes: c_int,
    slots: Slots,
    outgoing: Buffer,
    incoming: Buffer,
    /// Replies of a round, or the reply of the other rank.
    echoes: Buffer,
    /// Number of replies that `echoes` can hold.
    capacity: u64,
    /// MPI requests of each slot.
    operations: Vec<ffi::MPI_Request>,
    sent: u64,
    arrived: u64,
}

impl RequestChannel {
    #[inline(always)]
    fn slot(&self, number: u64) -> usize {
        (number % u64::from(self.slots.count)) as usize
    }
}

impl RequestLink for RequestChannel {
    const MAX_BYTES: u64 = Int::MAX_ELEMENTS;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team: &MpiTeam = cx.fabric()?;
        // Each rank uses one of the two buffers.
        let of = |role: Role| if cx.role == role { slots.total() } else { 0 };
        let parts = Int::count(slots.bytes).and_then(|bytes| {
            let buffer = |role| Buffer::reserved(of(role))?.placed(cx);
            let buffers = (buffer(Role::Active)?, buffer(Role::Passive)?);
            Ok((bytes, buffers, Buffer::zeroed(REPLY_BYTES as u64)?))
        });
        let (bytes, (outgoing, incoming), echoes) = cx.agree(parts)?;
        team.lend(|handles| handles.describe_messages(cx, slots, &outgoing, &incoming));
        let endpoint = |tag| Endpoint::of_bytes(cx.peer.0 as c_int, tag, team.comm().raw());
        // SAFETY: this static of mpi-sys is never written.
        let operations = vec![unsafe { ffi::RSMPI_REQUEST_NULL }; OPERATIONS * slots.count as usize];
        Ok(RequestChannel {
            requests_to: endpoint(REQUEST),
            replies_from: endpoint(REPLY),
            bytes,
            reply_bytes: REPLY_BYTES as c_int,
            slots,
            outgoing,
            incoming,
            echoes,
            capacity: 1,
            operations,
            sent: 0,
            arrived: 0,
        })
    }

    fn prepare(&mut self, requests: u64) -> Result<()> {
        if requests > self.capacity {
            self.echoes = Buffer::zeroed(requests * REPLY_BYTES as u64)?;
            self.capacity = requests;
        }
        self.echoes.bytes_mut().fill(u8::MAX);
        (self.sent, self.arrived) = (0, 0);
        Ok(())
    }

    #[inline(always)]
    fn send_some(&mut self, number: u64) -> Result<bool> {
        debug_assert!(number < self.capacity);
        let slot = self.slot(number);
        let from = self.outgoing.start().wrapping_add(self.slots.offset(slot as u32));
        let into = self.echoes.start().wrapping_add(number as usize * REPLY_BYTES);
        let [receive, send] = [0, 1].map(|operation| OPERATIONS * slot + operation);
        // SAFETY: the reply lies inside the buffer, which is neither freed nor accessed before `replies` completes the MPI request.
        check("MPI_Irecv", unsafe {
            Int::start_receive(
                into.cast(),
                self.reply_bytes,
                self.replies_from,
                &mut self.operations[receive],
            )
        })?;
        // SAFETY: the message lies inside the buffer, which is not written before `replies` completes the MPI request.
        check("MPI_Isend", unsafe {
            Int::start_send(from.cast(), self.bytes, self.requests_to, &mut self.operations[send])
        })?;
        self.sent += 1;
        Ok(true)
    }

    #[inline(always)]
    fn replies(&mut self) -> Result<u64> {
        while self.arrived < self.sent {
            let first = OPERATIONS * self.slot(self.arrived);
            let operations = &mut self.operations[first..first + OPERATIONS];
            let mut complete: c_int = 0;
            // SAFETY: the slot has this many MPI requests, on buffers that `self` owns.
            check("MPI_Testall", unsafe {
                ffi::MPI_Testall(
                    OPERATIONS as c_int,
                    operations.as_mut_ptr(),
                    &mut complete,
                    ffi::RSMPI_STATUSES_IGNORE,
                )
            })?;
            if complete == 0 {
                break;
            }
            self.arrived += 1;
        }
        Ok(self.arrived)
    }

    #[inline(always)]
    fn answer(&mut self, number: u64) -> Result<()> {
        let into = self.incoming.start().wrapping_add(self.slots.offset(self.slot(number) as u32));
        // SAFETY: the message lies inside the buffer, and `&mut self` excludes other accesses.
        check("MPI_Recv", unsafe { Int::receive(into.cast(), self.bytes, self.requests_to) })?;
        let reply = number.to_le_bytes();
        // SAFETY: the reply has this many bytes, and the call returns when MPI no longer reads it.
        check("MPI_Send", unsafe { Int::send(reply.as_ptr().cast(), self.reply_bytes, self.replies_from) })
    }

    fn echoes(&mut self) -> &[u8] {
        let bytes = self.sent as usize * REPLY_BYTES;
        &self.echoes.bytes_mut()[..bytes]
    }

    buffers!();
}
