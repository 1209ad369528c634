//! Two-sided traffic with one peer in another mode of sends than the standard one (MPI 4.0, 3.4).

use std::{
    ffi::{c_int, c_void},
    marker::PhantomData,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, Role, memory::Staged, payload::Slots},
    error::{Error, Result},
    two_sided::pattern::Link,
    unit::Rank,
};

use crate::{
    Buffer,
    sys::error::{self, check},
    two_sided::{
        channel::Channel,
        counting::{Counting, Endpoint, Int},
    },
};

ombx_core::parameter! {
    /// Mode of sends
    pub enum SendMode: "send", IfChosen, default Standard {
        /// MPI_Send and MPI_Isend
        Standard = "standard",
        /// MPI_Ssend and MPI_Issend, which complete after the receive has begun
        Synchronous = "synchronous",
        /// MPI_Bsend and MPI_Ibsend, with an attached buffer for 8 windows of messages
        Buffered = "buffered",
        /// MPI_Rsend and MPI_Irsend; the receiver posts its receives and then lets the sender start
        Ready = "ready",
    }
}

/// Windows of messages that the attached buffer holds. The library frees the memory of a message when it notices that the message has
/// been received.
const BUFFERED_WINDOWS: u64 = 8;
/// Alignment that a library may give to a message in the attached buffer.
const ALIGNMENT: u64 = 64;

/// A blocking send of MPI.
pub type SendCall =
    unsafe extern "C" fn(*const c_void, c_int, ffi::MPI_Datatype, c_int, c_int, ffi::MPI_Comm) -> c_int;
/// A nonblocking send of MPI.
pub type StartSendCall = unsafe extern "C" fn(
    *const c_void,
    c_int,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    ffi::MPI_Comm,
    *mut ffi::MPI_Request,
) -> c_int;

/// A mode of sends, known at compile time: its calls, with their names for errors.
pub trait Mode: 'static {
    /// The blocking send.
    const SEND: (SendCall, &'static str);
    /// The nonblocking send.
    const START_SEND: (StartSendCall, &'static str);
    /// Whether sends need an attached buffer.
    const BUFFERED: bool = false;
}

/// Sends that complete after the receive has begun.
#[derive(Debug)]
pub enum Synchronous {}

impl Mode for Synchronous {
    const SEND: (SendCall, &'static str) = (ffi::MPI_Ssend, "MPI_Ssend");
    const START_SEND: (StartSendCall, &'static str) = (ffi::MPI_Issend, "MPI_Issend");
}

/// Sends that complete when the message is in the attached buffer.
#[derive(Debug)]
pub enum Buffered {}

impl Mode for Buffered {
    const SEND: (SendCall, &'static str) = (ffi::MPI_Bsend, "MPI_Bsend");
    const START_SEND: (StartSendCall, &'static str) = (ffi::MPI_Ibsend, "MPI_Ibsend");
    const BUFFERED: bool = true;
}

/// Sends whose receives are posted before.
#[derive(Debug)]
pub enum Ready {}

impl Mode for Ready {
    const SEND: (SendCall, &'static str) = (ffi::MPI_Rsend, "MPI_Rsend");
    const START_SEND: (StartSendCall, &'static str) = (ffi::MPI_Irsend, "MPI_Irsend");
}

/// Traffic with one peer whose messages are sent in mode `M`. An acknowledgement is a standard send.
#[derive(Debug)]
pub struct ModeChannel<M> {
    /// Detached first: fields are dropped in this order.
    _attached: Option<AttachedBuffer>,
    pub(super) channel: Channel<Int>,
    mode: PhantomData<fn() -> M>,
}

impl<M: Mode> ModeChannel<M> {
    #[inline(always)]
    fn start_sends(&mut self, first: usize) -> Result<()> {
        let Channel { endpoint, count, slots, outgoing, requests, .. } = &mut self.channel;
        let (start_send, name) = M::START_SEND;
        let (mut from, stride) = (outgoing.start(), slots.stride as usize);
        let Endpoint { peer, tag, comm, datatype, .. } = *endpoint;
        for request in &mut requests[first..first + slots.count as usize] {
            // SAFETY: the message lies inside the buffer, which is neither freed nor accessed before `wait_all` completes the
            // request. `open` has attached a buffer for buffered sends, and `ReadyChannel` posts receives before ready sends.
            check(name, unsafe { start_send(from.cast(), *count, datatype, peer, tag, comm, request) })?;
            from = from.wrapping_add(stride);
        }
        Ok(())
    }
}

impl<M: Mode> Link for ModeChannel<M> {
    const MAX_ELEMENTS: u64 = Int::MAX_ELEMENTS;
    const COPIES: bool = true;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<ModeChannel<M>> {
        if cx.get::<Staged>() == Staged::On {
            return Err(Error::unsupported("--staged is for standard sends: leave out --send"));
        }
        let channel = Channel::open(cx, slots)?;
        let attached = if M::BUFFERED { Some(AttachedBuffer::open(cx, slots)?) } else { None };
        Ok(ModeChannel { _attached: attached, channel, mode: PhantomData })
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        let Endpoint { peer, tag, comm, datatype, .. } = self.channel.endpoint;
        let (from, (send, name)) = (self.channel.outgoing.start().cast(), M::SEND);
        // SAFETY: the buffer has at least one message, and the call returns when MPI no longer reads it.
        check(name, unsafe { send(from, self.channel.count, datatype, peer, tag, comm) })
    }

    ombx_core::forwards!(channel: receive, pull, acknowledge, acknowledged -> Result<()>);
    ombx_core::forwards!(channel: outgoing, incoming -> &mut [u8]);

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.start_sends(0)?;
        self.channel.wait_all(self.channel.slots.count as usize)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.channel.start_receives()?;
        self.start_sends(self.channel.slots.count as usize)?;
        self.channel.wait_all(2 * self.channel.slots.count as usize)
    }

    ombx_core::forwards!(channel: move_to(offset: usize) -> ());
}

/// The buffer of a rank for buffered sends, attached until it is dropped. A rank has at most one (MPI 4.0, 3.6).
#[derive(Debug)]
struct AttachedBuffer {
    _memory: Buffer,
}

impl AttachedBuffer {
    /// Attaches memory for several windows of messages. Collective.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<AttachedBuffer> {
        let Slots { bytes, count: messages, .. } = slots;
        let each = bytes.next_multiple_of(ALIGNMENT) + (ffi::MPI_BSEND_OVERHEAD as u64);
        let size = BUFFERED_WINDOWS * u64::from(messages) * each;
        let length = c_int::try_from(size).map_err(|_| {
            Error::unsupported(format!(
                "{BUFFERED_WINDOWS} windows of {messages} messages of {bytes} bytes do not fit into the 2 \
                 GiB that MPI_Buffer_attach can take: choose a smaller --window or --sizes"
            ))
        });
        let length = cx.agree(length)?;
        // Beside it are the buffers of the messages.
        cx.afford(2 * slots.reserved() + size)?;
        let memory = cx.agree(Buffer::zeroed(size))?;
        // SAFETY: the memory has `length` bytes, and `drop` detaches it before it is freed.
        check("MPI_Buffer_attach", unsafe { ffi::MPI_Buffer_attach(memory.start().cast(), length) })?;
        Ok(AttachedBuffer { _memory: memory })
    }
}

impl Drop for AttachedBuffer {
    fn drop(&mut self) {
        if error::may_free() {
            let (mut start, mut length): (*mut c_void, c_int) = (std::ptr::null_mut(), 0);
            // SAFETY: both results outlive the call, which returns when the messages in the buffer have been delivered.
            let code = unsafe { ffi::MPI_Buffer_detach((&raw mut start).cast(), &raw mut length) };
            error::check_freed(c"MPI_Buffer_detach", code);
        }
    }
}

ombx_core::parameter! {
    /// Source argument of receives
    pub enum Source: "receive-from", IfChosen, default Specific {
        /// The rank that sends
        Specific = "specific",
        /// MPI_ANY_SOURCE
        Any = "any",
    }
}

impl Source {
    /// Returns the source that the receives from `rank` name in this case.
    pub(crate) fn of_receive(cx: &Context<'_>, rank: Rank) -> c_int {
        match cx.get() {
            Source::Specific => rank.0 as c_int,
            // SAFETY: this static of mpi-sys is never written.
            Source::Any => unsafe { ffi::RSMPI_ANY_SOURCE },
        }
    }
}

/// Traffic with one peer by `MPI_Rsend` and `MPI_Irsend`, for patterns in which the passive rank receives first.
///
/// A rank posts its next receives before the message that lets the other rank send: the passive rank before the timed loop, and then
/// before each reply or acknowledgement; the active rank before each message that is answered. What is posted after the last iteration
/// is cancelled.
#[derive(Debug)]
pub struct ReadyChannel {
    mode: ModeChannel<Ready>,
    role: Role,
}

impl ReadyChannel {
    /// Cancels the receives that are posted.
    fn cancel(&mut self) -> Result<()> {
        for request in &mut self.mode.channel.requests {
            // SAFETY: these statics of mpi-sys are never written. A request that is not null is a receive that `post` has started, and no
            // message for it is sent before the next `begin`.
            unsafe {
                if *request != ffi::RSMPI_REQUEST_NULL {
                    check("MPI_Cancel", ffi::MPI_Cancel(&raw mut *request))?;
                    check("MPI_Wait", ffi::MPI_Wait(&raw mut *request, ffi::RSMPI_STATUS_IGNORE))?;
                }
            }
        }
        Ok(())
    }
}

impl Link for ReadyChannel {
    const MAX_ELEMENTS: u64 = ModeChannel::<Ready>::MAX_ELEMENTS;

    fn open(cx: &Context<'_>, slots: Slots) -> Result<ReadyChannel> {
        Ok(ReadyChannel { mode: ModeChannel::open(cx, slots)?, role: cx.role })
    }

    fn begin(&mut self) -> Result<()> {
        match self.role {
            Role::Active => self.mode.acknowledged(),
            Role::Passive => {
                self.mode.channel.start_receives()?;
                self.mode.acknowledge()
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        self.cancel()
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.mode.channel.start_receives()?;
        self.mode.send()
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        let request = &raw mut self.mode.channel.requests[0];
        // SAFETY: `send` or `begin` has started the receive into a buffer that the channel owns.
        check("MPI_Wait", unsafe { ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE) })
    }

    ombx_core::forwards!(mode: push, acknowledged -> Result<()>);
    ombx_core::forwards!(mode: outgoing, incoming -> &mut [u8]);

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.mode.channel.wait_all(self.mode.channel.slots.count as usize)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        Err(ombx_core::error::Error::unsupported(
            "ready sends in both directions at once may precede their receives",
        ))
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        self.mode.channel.start_receives()?;
        self.mode.acknowledge()
    }
}

impl Drop for ReadyChannel {
    fn drop(&mut self) {
        if error::may_free() {
            // A load ends without `end`. After a failure the job ends.
            let _ = self.cancel();
        }
    }
}
