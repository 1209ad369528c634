//! Two-sided patterns, written once and crossed with links at compile time: MPI and sockets run the same loops.

use crate::{
    case::Case,
    error::Result,
    kernel::{Cx, Kernel, Method, Metric, Role, Work},
    payload::{Check, Fill, Slots},
    unit::Rank,
};

/// Two ends that exchange messages of equal size. Every call in the first group may stand in a timed region.
pub trait Link: Sized {
    /// Sends message 0 and returns when its buffer can be used again.
    fn send(&mut self) -> Result<()>;
    /// Receives message 0.
    fn receive(&mut self) -> Result<()>;
    /// Starts sending every message, then waits for all.
    fn push(&mut self) -> Result<()>;
    /// Starts receiving every message, then waits for all.
    fn pull(&mut self) -> Result<()>;
    /// Tells the other end that a window has arrived.
    fn acknowledge(&mut self) -> Result<()>;
    /// Waits to be told so.
    fn acknowledged(&mut self) -> Result<()>;

    /// Opens the end of this rank. Collective, untimed.
    fn open(cx: &Cx<'_>, slots: Slots) -> Result<Self>;
    /// What this end sends.
    fn outgoing(&mut self) -> &mut [u8];
    /// Where this end receives.
    fn incoming(&mut self) -> &mut [u8];
}

/// A link with what is needed to fill and check its buffers.
struct End<L> {
    link: L,
    slots: Slots,
    rank: Rank,
    peer: Rank,
}

impl<L: Link> End<L> {
    fn open(cx: &Cx<'_>, slots: Slots) -> Result<End<L>> {
        cx.afford(2 * slots.total())?;
        Ok(End { link: L::open(cx, slots)?, slots, rank: cx.rank(), peer: cx.peer })
    }

    fn fill(&mut self, fill: Fill) {
        fill.write(self.rank, self.slots, self.link.outgoing());
        fill.poison(self.peer, self.slots, self.link.incoming());
    }

    fn check(&mut self, fill: Fill) -> Check {
        fill.check(self.peer, self.slots, self.link.incoming(), self.rank)
    }
}

/// Ping-pong: rank 0 sends and receives, rank 1 receives and sends; two legs.
pub struct PingPong<L>(End<L>);

impl<L: Link> Kernel for PingPong<L> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one blocking send and one blocking receive on rank 0, a receive and a send on rank 1; the figure is half of it",
        untimed: "connections, buffers, filling and checking them",
        like: "osu_latency; IMB PingPong; LinkTest's semidirectional test",
    };

    fn work(case: &Case) -> Work {
        let pairs = u64::from(case.pairs);
        Work { bytes: 2 * case.bytes.0 * pairs, ops: 2 * pairs, legs: 2 }
    }

    fn open(cx: &Cx<'_>, case: &Case) -> Result<Self> {
        End::open(cx, Slots::new(case.bytes.0, 1)).map(PingPong)
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.0.fill(fill);
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        self.0.link.send()?;
        self.0.link.receive()
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        self.0.link.receive()?;
        self.0.link.send()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.0.check(fill))
    }
}

/// Stream: rank 0 keeps a window of messages in flight, rank 1 acknowledges the whole window; one leg.
pub struct Stream<L> {
    end: End<L>,
    role: Role,
}

impl<L: Link> Kernel for Stream<L> {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a window of nonblocking sends on rank 0, waiting for all, and the receipt from rank 1, which posted all receives and waited",
        untimed: "connections, buffers, filling and checking them; every message in flight has its own buffer",
        like: "osu_bw, which reuses one buffer; IMB Uniband",
    };

    fn work(case: &Case) -> Work {
        let ops = u64::from(case.depth) * u64::from(case.pairs);
        Work { bytes: case.bytes.0 * ops, ops, legs: 1 }
    }

    fn open(cx: &Cx<'_>, case: &Case) -> Result<Self> {
        Ok(Stream { end: End::open(cx, Slots::new(case.bytes.0, case.depth))?, role: cx.role })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.end.fill(fill);
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        self.end.link.push()?;
        self.end.link.acknowledged()
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        self.end.link.pull()?;
        self.end.link.acknowledge()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(match self.role {
            Role::Active => Check::Passed,
            Role::Passive => self.end.check(fill),
        })
    }
}
