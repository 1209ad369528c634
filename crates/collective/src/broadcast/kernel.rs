//! Broadcasts, written once for every fabric: back to back, and one at a time.

use ombx_core::{
    benchmark::{
        case::Case,
        context::Context,
        kernel::Kernel,
        payload::{Check, Fill, Slots},
        work::{Method, Metric, Work},
    },
    error::Result,
    unit::Rank,
};

/// One rank's end of a broadcast of one message.
pub trait Broadcast: Sized {
    /// Bytes below which nothing need be sent, so that there is nothing to wait for.
    const LEAST: u64 = 1;

    /// Opens the end of this rank; `slots` is one message. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Gives every rank the message of `root`.
    fn broadcast(&mut self, root: Rank) -> Result<()>;
    /// What is sent, or where it arrives.
    fn buffer(&mut self) -> &mut [u8];
}

/// The library's own broadcast.
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

/// The end of a rank with what is needed to fill and check its buffer.
pub(crate) struct End<B> {
    pub(crate) tree: B,
    slots: Slots,
    rank: Rank,
}

/// One broadcast.
pub(crate) fn work(case: &Case) -> Work {
    Work { bytes: case.bytes.0, ops: 1, legs: 1 }
}

impl<B: Broadcast> End<B> {
    pub(crate) fn open(cx: &Context<'_>, case: &Case) -> Result<End<B>> {
        End::of(cx, case.bytes.0)
    }

    /// With so many bytes.
    pub(crate) fn of(cx: &Context<'_>, bytes: u64) -> Result<End<B>> {
        let slots = Slots::new(bytes, 1);
        cx.afford(slots.total())?;
        Ok(End { tree: B::open(cx, slots)?, slots, rank: cx.rank() })
    }

    /// The pattern of rank 0 on rank 0, anything else elsewhere.
    pub(crate) fn fill(&mut self, fill: Fill) {
        match self.rank {
            Rank(0) => fill.write(self.rank, self.slots, self.tree.buffer()),
            _ => fill.poison(Rank(0), self.slots, self.tree.buffer()),
        }
    }

    pub(crate) fn check(&mut self, fill: Fill) -> Check {
        fill.check(Rank(0), self.slots, self.tree.buffer(), self.rank)
    }
}

/// Broadcasts back to back, each from the next rank: what goptest's `BroadcastRound` times.
pub struct Round<B> {
    end: End<B>,
    root: u32,
    ranks: u32,
}

impl<B: Broadcast> Kernel for Round<B> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "broadcasts back to back, the root advancing by one rank each time, nothing between them; the time by their number",
        untimed: "buffers, filling and checking them",
        like: "goptest's BroadcastRound; broadcasts overlap, so that it reads low",
    };

    fn work(case: &Case) -> Work {
        work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Ok(Round { end: End::open(cx, case)?, root: 0, ranks: cx.team.size() })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        // Rank 0 has the pattern: it goes first, and then every rank has it.
        self.root = 0;
        self.end.fill(fill);
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        let root = Rank(self.root);
        self.root = (self.root + 1) % self.ranks;
        self.end.tree.broadcast(root)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.end.check(fill))
    }
}

/// One broadcast from rank 0, ranks being brought together before it.
pub struct Once<B>(End<B>);

impl<B: Broadcast> Kernel for Once<B> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one broadcast from rank 0, after ranks were brought together; with a window, from the first rank's start to the \
                last one's end",
        untimed: "bringing ranks together, buffers, filling and checking them",
        like: "ReproMPI's broadcast; osu_bcast where ranks meet in a barrier",
    };

    fn work(case: &Case) -> Work {
        work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        End::open(cx, case).map(Once)
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.0.fill(fill);
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        self.0.tree.broadcast(Rank(0))
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.0.check(fill))
    }
}
