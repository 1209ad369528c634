//! Broadcast operations of any fabric, and the kernel of a single broadcast.

use ombx_core::{
    benchmark::{
        BusTraffic, Case, Context, Kernel, Method, Metric, Root, Work, memory,
        payload::{Check, Fill, Slots},
        reduction::message_type,
    },
    error::Result,
    unit::Rank,
};
use ombx_mpi::collective::DataFlow;

/// One rank's endpoint of a broadcast of one message.
pub trait Broadcast: Sized + 'static {
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
    /// Rank that has the message at first.
    source: Rank,
}

/// Returns the work of one broadcast.
pub(crate) fn work(case: &Case) -> Work {
    Work { bytes: case.bytes.0, ops: 1, legs: 1 }
}

impl<B: Broadcast> Endpoint<B> {
    /// Opens a broadcast of `bytes` bytes, in elements of the case's type, that `source` has at first.
    pub(crate) fn open(cx: &Context<'_>, case: &Case, bytes: u64, source: Rank) -> Result<Endpoint<B>> {
        memory::only_warm(cx, "broadcasts that ombx makes of messages: choose --by library")?;
        let element = message_type(case).of_size(bytes);
        let slots = Slots { element, ..Slots::new(bytes, 1) };
        cx.afford(slots.total())?;
        Ok(Endpoint { operation: B::open(cx, slots)?, slots, rank: cx.rank(), source })
    }

    /// Fills the buffer: on the source with its pattern, elsewhere with bytes that differ from it.
    pub(crate) fn fill(&mut self, fill: Fill) {
        let buffer = self.operation.buffer();
        match self.rank == self.source {
            true => fill.write(self.source, self.slots, buffer),
            false => fill.poison(self.source, self.slots, buffer),
        }
    }

    pub(crate) fn check(&mut self, fill: Fill) -> Check {
        fill.check(self.source, self.slots, self.operation.buffer(), self.rank)
    }
}

/// Kernel whose iteration is one broadcast. Ranks are synchronised before it. If the root `ROTATES`, the next rank is the root of
/// the next iteration.
pub struct SingleBroadcast<B, const ROTATES: bool = false> {
    endpoint: Endpoint<B>,
    ranks: u32,
    /// Root of the next iteration.
    root: Rank,
}

impl<B: Broadcast, const ROTATES: bool> Kernel for SingleBroadcast<B, ROTATES> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one broadcast after the ranks were synchronised; with a window, from the first rank's start to the last rank's end",
        untimed: "synchronising the ranks; buffers, filling and checking them",
        like: "ReproMPI's broadcast; with a barrier, osu_bcast",
    };

    fn work(case: &Case) -> Work {
        work(case)
    }

    fn bus_traffic(case: &Case) -> Option<BusTraffic> {
        DataFlow::BCAST.bus_traffic(case.bytes.0, case.ranks)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let (choice, ranks) = (case.get::<Root>(), cx.team.size());
        cx.agree(choice.is_among(ranks))?;
        let root = choice.first();
        Ok(SingleBroadcast { endpoint: Endpoint::open(cx, case, case.bytes.0, root)?, ranks, root })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        // Only the source has the pattern, so it must be the first root.
        self.root = self.endpoint.source;
        self.endpoint.fill(fill);
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.endpoint.operation.broadcast(self.root)?;
        if ROTATES {
            let next = self.root.0 + 1;
            self.root = Rank(if next == self.ranks { 0 } else { next });
        }
        Ok(())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.endpoint.check(fill))
    }
}
