//! Two-sided traffic with other partners in each iteration. They are drawn before.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    unit::Rank,
};

use crate::{
    Buffer, MpiTeam,
    sys::{datatype::MessageType, error::check},
};

/// Tag of messages to the first partner of a step. Those to the second have the next tag.
const TAG: c_int = 16;
/// Messages that a rank sends in a step at most.
const SIDES: usize = RoundsChannel::SIDES;

/// Partners of a rank in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Rank that gets a message of this rank.
    pub to: Option<Rank>,
    /// Rank that sends one to this rank.
    pub from: Option<Rank>,
}

/// Partners of a step as MPI counts; negative where there is none. C code reads them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Partners {
    to: c_int,
    from: c_int,
}

/// Traffic of a rank with partners that follow from a table. It owns the buffers that its requests use, so that none is freed during a
/// transfer.
///
/// An iteration makes all steps of a round, and the next iteration those of the next round. Each buffer holds a message per side.
#[derive(Debug)]
pub struct RoundsChannel {
    comm: ffi::MPI_Comm,
    message: MessageType,
    /// Bytes from one message to the next.
    stride: usize,
    /// Steps of all rounds.
    steps: Vec<Partners>,
    /// The first step of each round, and the number of steps.
    starts: Box<[c_int; RoundsChannel::ROUNDS + 1]>,
    /// Iterations since the channel was opened.
    iterations: u64,
    outgoing: Buffer,
    incoming: Buffer,
    requests: Box<[ffi::MPI_Request; 2 * SIDES]>,
}

impl RoundsChannel {
    /// Number of rounds. The first follows the last.
    pub const ROUNDS: usize = 256;
    /// Messages that a buffer holds.
    pub const SIDES: usize = 2;

    /// Opens the channel of this rank. `slots` is one message, and `steps` returns the steps of a round. Collective, untimed.
    ///
    /// # Errors
    /// The message is too long for an `int`, its datatype does not exist, or there is not enough memory.
    pub fn open(cx: &Context<'_>, slots: Slots, steps: impl Fn(usize) -> Vec<Step>) -> Result<RoundsChannel> {
        let team: &MpiTeam = cx.fabric()?;
        let total = slots.total() * SIDES as u64;
        cx.afford(2 * slots.copies.total(total))?;
        let (message, outgoing, incoming) = Buffer::two(cx, MessageType::new(slots), slots.copies, total)?;
        let number = |rank: Option<Rank>| rank.map_or(-1, |rank| rank.0 as c_int);
        let (mut all, mut starts) = (Vec::new(), Box::new([0; RoundsChannel::ROUNDS + 1]));
        for round in 0..RoundsChannel::ROUNDS {
            let partners = |step: Step| Partners { to: number(step.to), from: number(step.from) };
            all.extend(steps(round).into_iter().map(partners));
            starts[round + 1] = all.len() as c_int;
        }
        // SAFETY: this static of mpi-sys is never written.
        let requests = Box::new([unsafe { ffi::RSMPI_REQUEST_NULL }; 2 * SIDES]);
        let mut channel = RoundsChannel {
            comm: team.comm().raw(),
            message,
            stride: slots.total() as usize,
            steps: all,
            starts,
            iterations: 0,
            outgoing,
            incoming,
            requests,
        };
        team.lend(|handles| {
            handles.describe_messages(cx, slots, &channel.outgoing, &channel.incoming);
            (handles.datatype, handles.elements) = (channel.message.raw, channel.message.count);
            handles.requests = channel.requests.as_mut_ptr();
            handles.partners = channel.steps.as_ptr().cast();
            handles.counts = channel.starts.as_ptr();
            handles.partner_count = RoundsChannel::ROUNDS as c_int;
            handles.partner_stride = channel.stride;
        });
        Ok(channel)
    }

    /// Returns the steps of the next round.
    #[inline(always)]
    fn next(&mut self) -> std::ops::Range<usize> {
        let round = self.iterations as usize % RoundsChannel::ROUNDS;
        self.iterations += 1;
        self.starts[round] as usize..self.starts[round + 1] as usize
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
    fn send(&self, to: c_int) -> Result<()> {
        let MessageType { raw, count, .. } = self.message;
        // SAFETY: the message lies inside the buffer, and the call returns when MPI no longer reads it.
        check("MPI_Send", unsafe { ffi::MPI_Send(self.outgoing_at(0), count, raw, to, TAG, self.comm) })
    }

    #[inline(always)]
    fn start_receive(&mut self, side: usize, from: c_int) -> Result<()> {
        let (into, tag) = (self.incoming_at(side), TAG + side as c_int);
        let MessageType { raw, count, .. } = self.message;
        // SAFETY: the message lies inside the buffer, which is neither freed nor accessed before the request is complete.
        check("MPI_Irecv", unsafe {
            ffi::MPI_Irecv(into, count, raw, from, tag, self.comm, &raw mut self.requests[side])
        })
    }

    /// Sends a message to a side, which arrives on the same side of the partner.
    #[inline(always)]
    fn start_send(&mut self, side: usize, to: c_int) -> Result<()> {
        let (from, tag) = (self.outgoing_at(side), TAG + side as c_int);
        let MessageType { raw, count, .. } = self.message;
        // SAFETY: as above.
        check("MPI_Isend", unsafe {
            ffi::MPI_Isend(from, count, raw, to, tag, self.comm, &raw mut self.requests[SIDES + side])
        })
    }

    /// Makes the steps of the next round, in each of which this rank sends a message or receives one.
    ///
    /// # Errors
    /// A call of MPI failed.
    #[inline(always)]
    pub fn one_way(&mut self) -> Result<()> {
        for at in self.next() {
            let Partners { to, from } = self.steps[at];
            if to >= 0 {
                self.send(to)?;
            } else {
                let into = self.incoming_at(0);
                let MessageType { raw, count, .. } = self.message;
                // SAFETY: the message lies inside the buffer, and `&mut self` excludes other accesses.
                check("MPI_Recv", unsafe {
                    ffi::MPI_Recv(into, count, raw, from, TAG, self.comm, ffi::RSMPI_STATUS_IGNORE)
                })?;
            }
        }
        Ok(())
    }

    /// Makes the steps of the next round, in each of which this rank sends a message and receives one.
    ///
    /// # Errors
    /// A call of MPI failed.
    #[inline(always)]
    pub fn both_ways(&mut self) -> Result<()> {
        for at in self.next() {
            let Partners { to, from } = self.steps[at];
            self.start_receive(0, from)?;
            self.send(to)?;
            // SAFETY: the request was started on a buffer that `self` owns.
            check("MPI_Wait", unsafe { ffi::MPI_Wait(&raw mut self.requests[0], ffi::RSMPI_STATUS_IGNORE) })?;
        }
        Ok(())
    }

    /// Makes the steps of the next round, in each of which this rank exchanges messages with both partners.
    ///
    /// # Errors
    /// A call of MPI failed.
    #[inline(always)]
    pub fn exchange(&mut self) -> Result<()> {
        for at in self.next() {
            let Partners { to, from } = self.steps[at];
            self.start_receive(0, from)?;
            self.start_receive(1, to)?;
            self.start_send(0, to)?;
            self.start_send(1, from)?;
            // SAFETY: each request was started on a buffer that `self` owns.
            check("MPI_Waitall", unsafe {
                ffi::MPI_Waitall(2 * SIDES as c_int, self.requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE)
            })?;
        }
        Ok(())
    }

    /// Returns the number of iterations since the channel was opened.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    buffers!(copies pub);
}
