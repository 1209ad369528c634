//! Objects of MPI that threads other than the main thread use.

use ombx_core::{
    benchmark::{Context, Figures, Threading, payload::Slots},
    error::Result,
    two_sided::pattern::Link,
};

use crate::{
    Channel, NeighbourChannel,
    collective::{Call, Operation},
    runtime::library,
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

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.0.send()
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.0.receive()
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.0.push()
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.0.pull()
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.0.swap()
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        self.0.acknowledge()
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        self.0.acknowledged()
    }

    fn open(cx: &Context<'_>, slots: Slots) -> Result<OnThread<L>> {
        OnThread::hold(L::open(cx, slots)?)
    }

    fn begin(&mut self) -> Result<()> {
        self.0.begin()
    }

    fn end(&mut self) -> Result<()> {
        self.0.end()
    }

    fn figures(&mut self) -> Result<Figures> {
        self.0.figures()
    }

    fn outgoing(&mut self) -> &mut [u8] {
        self.0.outgoing()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.0.incoming()
    }
}
