//! Two-sided patterns, written once and crossed with links at compile time: MPI and sockets run the same loops.

use std::marker::PhantomData;

use crate::{
    benchmark::{
        case::Case,
        context::Context,
        figure::Figures,
        kernel::Kernel,
        payload::{Check, Fill, Slots},
        work::{Method, Metric, Role, Work},
    },
    error::Result,
    unit::Rank,
};

/// Two ends that exchange messages of equal size. Every call in the first group may stand in a timed region.
pub trait Link: Sized {
    /// Bytes of a message at the most.
    const MOST: u64 = u64::MAX;
    /// Whether messages of a window lie one directly behind the other.
    const PACKED: bool = false;

    /// Sends message 0 and returns when its buffer can be used again.
    fn send(&mut self) -> Result<()>;
    /// Receives message 0.
    fn receive(&mut self) -> Result<()>;
    /// Starts sending every message, then waits for all.
    fn push(&mut self) -> Result<()>;
    /// Starts receiving every message, then waits for all.
    fn pull(&mut self) -> Result<()>;
    /// Starts receiving and sending every message, then waits for all of both.
    fn swap(&mut self) -> Result<()>;
    /// Tells the other end that a window has arrived.
    fn acknowledge(&mut self) -> Result<()>;
    /// Waits to be told so.
    fn acknowledged(&mut self) -> Result<()>;

    /// Opens the end of this rank. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// What it tells beside times; untimed.
    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }
    /// What this end sends.
    fn outgoing(&mut self) -> &mut [u8];
    /// Where this end receives.
    fn incoming(&mut self) -> &mut [u8];
}

crate::axis! {
    /// Buffers of the messages in flight
    pub enum Buffers: "buffers", IfChosen, default Multiple {
        /// One buffer for each message
        Multiple = "multiple",
        /// One buffer for all messages, as in OMB: it stays in the cache, and MPI does not allow it
        Single = "single",
    }
}

/// A link with what is needed to fill and check its buffers.
pub struct End<L> {
    link: L,
    slots: Slots,
    role: Role,
    rank: Rank,
    peer: Rank,
}

/// What two ends do in an iteration, written once for every link.
pub trait Pattern: 'static {
    /// What the headline is.
    const METRIC: Metric;
    /// What is timed.
    const METHOD: Method;
    /// Whether data flows to the timed rank too.
    const BOTH_WAYS: bool;

    /// Messages that have a buffer: one, or the whole window.
    fn messages(depth: u32) -> u32;
    /// Bytes, operations and legs of one pair.
    fn work(bytes: u64, depth: u64) -> Work;
    /// An iteration of the timed end.
    fn active<L: Link>(link: &mut L, depth: u32) -> Result<()>;
    /// The same iteration of the other end.
    fn passive<L: Link>(link: &mut L, depth: u32) -> Result<()>;
}

/// A pattern over a link: the kernel of every two-sided benchmark.
pub struct Over<P, L> {
    end: End<L>,
    depth: u32,
    pattern: PhantomData<fn() -> P>,
}

impl<P: Pattern, L: Link> Kernel for Over<P, L> {
    const METRIC: Metric = P::METRIC;
    const METHOD: Method = P::METHOD;

    fn supports(case: &Case) -> bool {
        case.bytes.0 <= L::MOST
    }

    fn work(case: &Case) -> Work {
        let Work { bytes, ops, legs } = P::work(case.bytes.0, u64::from(case.depth));
        let pairs = u64::from(case.pairs);
        Work { bytes: bytes * pairs, ops: ops * pairs, legs }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let messages = P::messages(case.depth);
        let slots = match case.choice() {
            Buffers::Single => Slots::shared(case.bytes.0, messages),
            Buffers::Multiple if L::PACKED => Slots::packed(case.bytes.0, messages),
            Buffers::Multiple => Slots::new(case.bytes.0, messages),
        };
        cx.afford(2 * slots.total())?;
        let end = End { link: L::open(cx, slots)?, slots, role: cx.role, rank: cx.rank(), peer: cx.peer };
        Ok(Over { end, depth: case.depth, pattern: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let End { link, slots, rank, peer, .. } = &mut self.end;
        fill.write(*rank, *slots, link.outgoing());
        fill.poison(*peer, *slots, link.incoming());
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        P::active(&mut self.end.link, self.depth)
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        P::passive(&mut self.end.link, self.depth)
    }

    fn figures(&mut self) -> Result<Figures> {
        self.end.link.figures()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let End { link, slots, role, rank, peer } = &mut self.end;
        Ok(match role {
            Role::Active if !P::BOTH_WAYS => Check::Passed,
            _ => fill.check(*peer, *slots, link.incoming(), *rank),
        })
    }
}

/// Ping-pong: rank 0 sends and receives, rank 1 receives and sends; two legs.
pub enum PingPong {}

impl Pattern for PingPong {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one blocking send and one blocking receive on rank 0, a receive and a send on rank 1; the figure is half of it",
        untimed: "connections, buffers, filling and checking them",
        like: "osu_latency; IMB PingPong",
    };
    const BOTH_WAYS: bool = true;

    fn messages(_: u32) -> u32 {
        1
    }

    fn work(bytes: u64, _: u64) -> Work {
        Work { bytes: 2 * bytes, ops: 2, legs: 2 }
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.send()?;
        link.receive()
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.receive()?;
        link.send()
    }
}

/// Stream: rank 0 keeps a window of messages in flight, rank 1 acknowledges the whole window; one leg.
pub enum Stream {}

impl Pattern for Stream {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a window of nonblocking sends on rank 0, waiting for all, and the receipt from rank 1, which posted all receives and waited",
        untimed: "connections, buffers, filling and checking them",
        like: "osu_bw, whose messages share a single buffer; IMB Uniband",
    };
    const BOTH_WAYS: bool = false;

    fn messages(depth: u32) -> u32 {
        depth
    }

    fn work(bytes: u64, depth: u64) -> Work {
        Work { bytes: bytes * depth, ops: depth, legs: 1 }
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.push()?;
        link.acknowledged()
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.pull()?;
        link.acknowledge()
    }
}

/// Streams both ways at once: each end keeps a window in flight and receives the other's; one leg.
pub enum BiStream {}

impl Pattern for BiStream {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "on both ranks a window of nonblocking receives, a window of nonblocking sends, and waiting for all of them",
        untimed: "connections, buffers, filling and checking them",
        like: "osu_bibw, whose messages share a single buffer; IMB Biband",
    };
    const BOTH_WAYS: bool = true;

    fn messages(depth: u32) -> u32 {
        depth
    }

    fn work(bytes: u64, depth: u64) -> Work {
        Work { bytes: 2 * bytes * depth, ops: 2 * depth, legs: 1 }
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.swap()
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.swap()
    }
}

crate::axis! {
    /// Pattern of LinkTest by which two ranks load a link
    pub enum LinkPattern: "pattern", Always, default Semidirectional {
        /// Ping-pong
        Semidirectional = "semidirectional",
        /// Two ping-pongs at once
        Bidirectional = "bidirectional",
        /// Messages one way and one receipt
        Unidirectional = "unidirectional",
    }
}

/// LinkTest's semidirectional test: a ping-pong, as bandwidth.
pub enum Semidirectional {}

impl Pattern for Semidirectional {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a ping-pong of blocking messages; the figure is the message by half its time",
        untimed: "connections, buffers, filling and checking them",
        like: "LinkTest, semidirectional",
    };
    const BOTH_WAYS: bool = true;

    fn messages(_: u32) -> u32 {
        1
    }

    fn work(bytes: u64, depth: u64) -> Work {
        PingPong::work(bytes, depth)
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        PingPong::active(link, depth)
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        PingPong::passive(link, depth)
    }
}

/// LinkTest's bidirectional test: two ping-pongs at once, one begun by each end; two legs.
pub enum Bidirectional {}

impl Pattern for Bidirectional {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "two ping-pongs at once, one begun by each rank; the figure is two messages by half their time",
        untimed: "connections, buffers, filling and checking them",
        like: "LinkTest, bidirectional",
    };
    const BOTH_WAYS: bool = true;

    fn messages(_: u32) -> u32 {
        1
    }

    fn work(bytes: u64, _: u64) -> Work {
        Work { bytes: 4 * bytes, ops: 4, legs: 2 }
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.swap()?;
        link.swap()
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, _: u32) -> Result<()> {
        link.swap()?;
        link.swap()
    }
}

/// LinkTest's unidirectional test: a window of blocking messages back to back, then one receipt; one leg.
pub enum Unidirectional {}

impl Pattern for Unidirectional {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a window of blocking sends back to back and one receipt; the figure is the window by that time",
        untimed: "connections, buffers, filling and checking them",
        like: "LinkTest, unidirectional",
    };
    const BOTH_WAYS: bool = false;

    fn messages(_: u32) -> u32 {
        1
    }

    fn work(bytes: u64, depth: u64) -> Work {
        Stream::work(bytes, depth)
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        for _ in 0..depth {
            link.send()?;
        }
        link.acknowledged()
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        for _ in 0..depth {
            link.receive()?;
        }
        link.acknowledge()
    }
}
