//! Broadcast operations of any fabric, and the kernels of a single broadcast and of broadcasts back to back.

use ombx_core::{
    benchmark::{
        BusTraffic, Case, Context, Kernel, Method, Metric, Root, Work, memory,
        payload::{Check, Fill, Slots},
        reduction::message_type,
    },
    error::Result,
    measure::{
        engine::{self, OneThread, OpenKernel},
        row::{self, KernelFactory, KernelKind},
        session::Session,
    },
    pacing::mesh::{Mesh, one_way_ns},
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

/// Number of times that each rank is root per sample.
const ROTATIONS: u64 = 4;

/// Kernel whose iterations are broadcasts from rank 0, 1, .., as in goptest's `BroadcastRound`.
pub struct BackToBack<B> {
    endpoint: Endpoint<B>,
    root: u32,
    ranks: u32,
}

impl<B: Broadcast> Kernel for BackToBack<B> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "broadcasts back to back, each from the next root, without synchronisation; the figure is the time per broadcast",
        untimed: "buffers, filling and checking them",
        like: "goptest's BroadcastRound; broadcasts overlap, so the figure is too low",
    };

    fn work(case: &Case) -> Work {
        work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Ok(BackToBack {
            endpoint: Endpoint::open(cx, case, case.bytes.0, Rank(0))?,
            root: 0,
            ranks: cx.team.size(),
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        // Only rank 0 has the pattern, so it must be the first root.
        self.root = 0;
        self.endpoint.fill(fill);
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        let root = Rank(self.root);
        self.root = (self.root + 1) % self.ranks;
        self.endpoint.operation.broadcast(root)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.endpoint.check(fill))
    }
}

/// Runs a kernel of broadcasts back to back. Rows are marked when their time is below an empty message one way.
pub fn run_back_to_back<K: Kernel, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let floor_ns = one_way_ns::<M>(session.team, session.clock)?;
    let batch = ROTATIONS * u64::from(session.team.size());
    let open = |cx: &Context<'_>, case: &Case| -> Result<Box<dyn OpenKernel + '_>> {
        Ok(Box::new(OneThread::chained(engine::open::<K>(cx, case)?, Some(batch))))
    };
    row::every_case(session, &KernelFactory { floor_ns, ..KernelFactory::new(KernelKind::new::<K>(), &open) })
}
