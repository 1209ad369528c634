//! Objects of MPI that threads other than the main thread use.

use std::{ffi::c_int, mem::MaybeUninit};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, Figures, Threading, payload::Slots},
    error::Result,
    two_sided::{pattern::Link, threaded::SharedLink},
};

use crate::{
    Buffer, Channel, MpiTeam, NeighbourChannel,
    collective::{Call, Operation},
    runtime::library,
    sys::{datatype::MessageType, error::check},
    two_sided::counting::Counting,
};

/// What a kernel keeps an object of MPI in: the object itself on the main thread, or [`OnThread`].
pub trait Holder<T>: Sized + 'static {
    /// Keeps the object.
    ///
    /// # Errors
    /// Other threads would use it, and the library does not let them.
    fn hold(object: T) -> Result<Self>;
    /// Returns the object.
    fn object(&mut self) -> &mut T;
}

impl<T: 'static> Holder<T> for T {
    fn hold(object: T) -> Result<T> {
        Ok(object)
    }

    #[inline(always)]
    fn object(&mut self) -> &mut T {
        self
    }
}

/// An object that a thread other than the main thread may use.
#[derive(Debug)]
pub struct OnThread<T>(T);

// SAFETY: `hold` checks that the library grants MPI_THREAD_MULTIPLE, so any thread may use the communicator and the requests. The
// buffers and the memory of the requests have no other owner.
unsafe impl<C: Counting> Send for OnThread<Channel<C>> {}
// SAFETY: as above.
unsafe impl Send for OnThread<Box<NeighbourChannel>> {}
// SAFETY: as above. Arguments point to memory that the operation owns.
unsafe impl<C: Call> Send for OnThread<Operation<C>> {}

impl<T: 'static> Holder<T> for OnThread<T> {
    fn hold(object: T) -> Result<OnThread<T>> {
        library::grants(Threading::Multiple)?;
        Ok(OnThread(object))
    }

    #[inline(always)]
    fn object(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<L: Link> Link for OnThread<L> {
    const MAX_ELEMENTS: u64 = L::MAX_ELEMENTS;
    const PACKED: bool = L::PACKED;

    ombx_core::forwards!(0: send, receive, push, pull, swap, acknowledge, acknowledged -> Result<()>);
    ombx_core::forwards!(0: begin, end -> Result<()>);
    ombx_core::forwards!(0: figures -> Result<Figures>);
    ombx_core::forwards!(0: outgoing, incoming -> &mut [u8]);

    fn open(cx: &Context<'_>, slots: Slots) -> Result<OnThread<L>> {
        OnThread::hold(L::open(cx, slots)?)
    }
}

/// Value of `taken` before the first message. Tags are thread numbers, which are not negative.
const NONE: c_int = -1;

/// One thread's traffic with a peer. Messages carry the number of the sending thread as their tag. It owns the buffers that
/// its calls use.
#[derive(Debug)]
pub struct SharedChannel {
    comm: ffi::MPI_Comm,
    peer: c_int,
    message: MessageType,
    thread: c_int,
    /// Tag of the message that was received last for an answer.
    taken: c_int,
    outgoing: Buffer,
    incoming: Buffer,
}

// SAFETY: `open` checks that the library grants MPI_THREAD_MULTIPLE, so any thread may use the communicator. The buffers have
// no other owner.
unsafe impl Send for SharedChannel {}

impl SharedChannel {
    #[inline(always)]
    fn send_as(&self, thread: c_int) -> Result<()> {
        let MessageType { raw, count, .. } = self.message;
        // SAFETY: the buffer has the message, and the call returns when MPI no longer reads it.
        check("MPI_Send", unsafe {
            ffi::MPI_Send(self.outgoing.start().cast(), count, raw, self.peer, thread, self.comm)
        })
    }
}

impl SharedLink for SharedChannel {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<SharedChannel> {
        let team: &MpiTeam = cx.fabric()?;
        let comm = team.comm().raw();
        let message = library::grants(Threading::Multiple).and_then(|()| MessageType::new(slots));
        let (message, outgoing, incoming) = Buffer::two(cx, message, slots.copies, slots.total())?;
        team.lend(|handles| handles.describe_messages(cx, slots, &outgoing, &incoming));
        let (peer, thread) = (cx.peer.0 as c_int, cx.thread as c_int);
        Ok(SharedChannel { comm, peer, message, thread, taken: NONE, outgoing, incoming })
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.send_as(self.thread)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        let (into, thread) = (self.incoming.start().cast(), self.thread);
        let MessageType { raw, count, .. } = self.message;
        // SAFETY: the buffer has the message, and `&mut self` excludes other accesses.
        check("MPI_Recv", unsafe {
            ffi::MPI_Recv(into, count, raw, self.peer, thread, self.comm, ffi::RSMPI_STATUS_IGNORE)
        })
    }

    #[inline(always)]
    fn take(&mut self) -> Result<()> {
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        let into = self.incoming.start().cast();
        let MessageType { raw, count, .. } = self.message;
        // SAFETY: as in `receive`. `check` returns before the status is read if the receive has failed; one that succeeds
        // writes the status.
        unsafe {
            let any = ffi::RSMPI_ANY_TAG;
            let code = ffi::MPI_Recv(into, count, raw, self.peer, any, self.comm, status.as_mut_ptr());
            check("MPI_Recv", code)?;
            self.taken = status.assume_init_ref().MPI_TAG;
        }
        Ok(())
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<()> {
        self.send_as(self.taken)
    }

    fn taken(&self) -> Option<u32> {
        u32::try_from(self.taken).ok()
    }

    fn forget(&mut self) {
        self.taken = NONE;
    }

    buffers!();
}
