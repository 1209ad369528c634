//! Broadcast operations of any fabric, and the kernel of a single broadcast.

use ombx_core::{
    benchmark::{
        Case, Context, Kernel, Method, Metric, Work,
        payload::{Check, Fill, Slots},
    },
    error::Result,
    unit::Rank,
};

/// One rank's endpoint of a broadcast of one message.
pub trait Broadcast: Sized {
    /// Minimum size that is really sent. `MPI_Bcast` of 0 bytes may return at once.
    const MIN_BYTES: u64 = 1;

    /// Opens the endpoint of this rank; `slots` is one message. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Broadcasts the message of `root`.
    fn broadcast(&mut self, root: Rank) -> Result<()>;
    /// Returns the buffer that the message is sent from or received in.
    fn buffer(&mut self) -> &mut [u8];
}

/// `MPI_Bcast`.
impl Broadcast for ombx_mpi::Broadcast {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        ombx_mpi::Broadcast::open(cx, slots)
    }

    #[inline(always)]
    fn broadcast(&mut self, root: Rank) -> Result<()> {
        self.broadcast(root)
    }

    fn buffer(&mut self) -> &mut [u8] {
        self.buffer()
    }
}

/// A broadcast, with what is needed to fill and check its buffer.
pub(crate) struct Endpoint<B> {
    pub(crate) operation: B,
    slots: Slots,
    rank: Rank,
}

/// Returns the work of one broadcast.
pub(crate) fn work(case: &Case) -> Work {
    Work { bytes: case.bytes.0, ops: 1, legs: 1 }
}

impl<B: Broadcast> Endpoint<B> {
    pub(crate) fn open(cx: &Context<'_>, case: &Case) -> Result<Endpoint<B>> {
        Endpoint::of(cx, case.bytes.0)
    }

    /// Opens a broadcast of `bytes` bytes.
    pub(crate) fn of(cx: &Context<'_>, bytes: u64) -> Result<Endpoint<B>> {
        let slots = Slots::new(bytes, 1);
        cx.afford(slots.total())?;
        Ok(Endpoint { operation: B::open(cx, slots)?, slots, rank: cx.rank() })
    }

    /// Fills the buffer: on rank 0 with its pattern, elsewhere with bytes that differ from it.
    pub(crate) fn fill(&mut self, fill: Fill) {
        match self.rank {
            Rank(0) => fill.write(self.rank, self.slots, self.operation.buffer()),
            _ => fill.poison(Rank(0), self.slots, self.operation.buffer()),
        }
    }

    pub(crate) fn check(&mut self, fill: Fill) -> Check {
        fill.check(Rank(0), self.slots, self.operation.buffer(), self.rank)
    }
}

/// Kernel whose iteration is one broadcast from rank 0. Ranks are synchronised before it.
pub struct SingleBroadcast<B>(Endpoint<B>);

impl<B: Broadcast> Kernel for SingleBroadcast<B> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one broadcast from rank 0 after the ranks were synchronised; with a window, from the first rank's start to the \
                last rank's end",
        untimed: "synchronising the ranks; buffers, filling and checking them",
        like: "ReproMPI's broadcast; with a barrier, osu_bcast",
    };

    fn work(case: &Case) -> Work {
        work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Endpoint::open(cx, case).map(SingleBroadcast)
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.0.fill(fill);
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        self.0.operation.broadcast(Rank(0))
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.0.check(fill))
    }
}
