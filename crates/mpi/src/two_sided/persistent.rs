//! Two-sided traffic with one peer by persistent requests.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{
        Context, Parameter, ParameterValue,
        payload::{Numbering, Slots},
    },
    error::Result,
    two_sided::pattern::Link,
};

use super::counting::{Counting, Large};
use crate::{
    Buffer, MpiTeam,
    sys::{self, PersistentRequests, datatype::MessageType, error::check, session::LargeCalls},
    two_sided::mode::Source,
};

const TAG: c_int = 2;

type Length = <Large as Counting>::Count;

/// Traffic with one peer by `MPI_Send_init`, `MPI_Recv_init` and `MPI_Start`. It owns the buffers that its requests use, and
/// drops the requests first.
#[derive(Debug)]
pub struct PersistentChannel {
    /// For each copy of the buffers receives and sends of all messages, then receive and send of the acknowledgement.
    requests: PersistentRequests,
    depth: usize,
    /// Index of the first request of the copy that calls use.
    at: usize,
    numbering: Numbering,
    /// Index of the receive of the acknowledgement.
    acknowledgement: usize,
    outgoing: Buffer,
    incoming: Buffer,
    message: MessageType<Length>,
}

impl PersistentChannel {
    /// Parameters that [`Link::open`] reads, besides those of the buffers.
    pub const PARAMETERS: &'static [&'static Parameter] = &[Source::PARAMETER];

    /// Starts `count` requests from index `first` on, and waits for them.
    #[inline(always)]
    fn run(&mut self, first: usize, count: usize) -> Result<()> {
        let requests = self.requests.0[first..first + count].as_mut_ptr();
        // SAFETY: the slice has `count` inactive persistent requests on buffers that `self` owns.
        unsafe {
            check("MPI_Startall", ffi::MPI_Startall(count as c_int, requests))?;
            check("MPI_Waitall", ffi::MPI_Waitall(count as c_int, requests, ffi::RSMPI_STATUSES_IGNORE))
        }
    }

    /// Starts one request and waits for it.
    #[inline(always)]
    fn run_one(&mut self, at: usize) -> Result<()> {
        let request = &raw mut self.requests.0[at];
        // SAFETY: an inactive persistent request on a buffer that `self` owns.
        unsafe {
            check("MPI_Start", ffi::MPI_Start(request))?;
            check("MPI_Wait", ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE))
        }
    }

    /// Creates the requests of all copies.
    fn create_requests(&mut self, cx: &Context<'_>, slots: Slots, comm: ffi::MPI_Comm) -> Result<()> {
        let (peer, source) = (cx.peer.0 as c_int, Source::of_receive(cx, cx.peer));
        let MessageType { raw: datatype, count, .. } = self.message;
        let requests = &mut self.requests.0;
        let LargeCalls { send_init, receive_init, .. } = *LargeCalls::get();
        let mut add = |start: *mut u8, length: Length, direction: Direction| -> Result<()> {
            let place = start.cast::<c_void>();
            // SAFETY: the message of `length` elements at `start` lies in a buffer of the channel, which drops its requests before its
            // buffers and its datatype. `request` outlives the call that writes it.
            unsafe {
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let out = &raw mut request;
                match direction {
                    Direction::Send => {
                        check("MPI_Send_init", send_init(place, length, datatype, peer, TAG, comm, out))?;
                    }
                    Direction::Receive => {
                        check(
                            "MPI_Recv_init",
                            receive_init(place, length, datatype, source, TAG, comm, out),
                        )?;
                    }
                }
                requests.push(request);
            }
            Ok(())
        };
        for copy in slots.copies.offsets() {
            self.outgoing.move_to(copy);
            self.incoming.move_to(copy);
            for slot in 0..slots.count {
                add(self.incoming.start().wrapping_add(slots.offset(slot)), count, Direction::Receive)?;
            }
            for slot in 0..slots.count {
                add(self.outgoing.start().wrapping_add(slots.offset(slot)), count, Direction::Send)?;
            }
        }
        self.outgoing.move_to(0);
        self.incoming.move_to(0);
        let none = Large::count(0)?;
        add(self.incoming.start(), none, Direction::Receive)?;
        add(self.outgoing.start(), none, Direction::Send)
    }
}

impl Link for PersistentChannel {
    const COPIES: bool = true;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<PersistentChannel> {
        let team: &MpiTeam = cx.fabric()?;
        let comm = team.comm().raw();
        let depth = slots.count as usize;
        slots.blocks.map(|blocks| blocks.count(slots.bytes)).transpose()?;
        sys::afford(
            cx,
            slots.copies,
            2 * u64::from(slots.count),
            2 * slots.reserved() + slots.extra_bytes(),
        )?;
        let message = MessageType::counted(slots, Large::count);
        let (message, outgoing, incoming) = Buffer::two(cx, message, slots.copies, slots.total())?;
        let mut channel = PersistentChannel {
            requests: PersistentRequests::default(),
            depth,
            at: 0,
            numbering: slots.copies.numbering(),
            acknowledgement: slots.copies.count() as usize * 2 * depth,
            outgoing,
            incoming,
            message,
        };
        channel.create_requests(cx, slots, comm)?;
        team.lend(|handles| {
            handles.describe_messages(cx, slots, &channel.outgoing, &channel.incoming);
            handles.requests = channel.requests.0.as_mut_ptr();
        });
        Ok(channel)
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.run_one(self.at + self.depth)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.run_one(self.at)
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.run(self.at + self.depth, self.depth)
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.run(self.at, self.depth)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.run(self.at, 2 * self.depth)
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        self.run_one(self.acknowledgement + 1)
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        self.run_one(self.acknowledgement)
    }

    #[inline(always)]
    fn move_to(&mut self, offset: usize) {
        self.at = self.numbering.number(offset) * 2 * self.depth;
        self.outgoing.move_to(offset);
        self.incoming.move_to(offset);
    }

    buffers!();
}

#[derive(Clone, Copy)]
enum Direction {
    Send,
    Receive,
}
