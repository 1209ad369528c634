//! Two-sided patterns, and the kernel that combines a pattern with a link at compile time.

use std::marker::PhantomData;

use ombx_record::{
    error::Result,
    result::{Check, ConnectionCounters, Figures, Metric, Work},
    unit::Rank,
};

use crate::benchmark::{
    Case, Context, Kernel, Method, Role,
    cold::Movable,
    derived,
    memory::{self, Copies},
    payload::{Fill, Slots},
    reduction,
};

/// One endpoint of a link between two ranks that exchange messages of equal size.
///
/// The methods of the first group are called in the timed region, the others outside.
pub trait Link: Sized + 'static {
    /// Maximum number of elements of a message.
    const MAX_ELEMENTS: u64 = u64::MAX;
    /// Whether the messages of a window are contiguous in memory.
    const PACKED: bool = false;
    /// Whether the link makes the copies of its slots, for buffers that are not in the cache.
    const COPIES: bool = false;

    /// Sends message 0 and returns when its buffer can be reused.
    fn send(&mut self) -> Result<()>;
    /// Receives message 0.
    fn receive(&mut self) -> Result<()>;
    /// Sends a window: starts sending every message, then waits for all.
    fn push(&mut self) -> Result<()>;
    /// Receives a window: starts receiving every message, then waits for all.
    fn pull(&mut self) -> Result<()>;
    /// Exchanges windows: starts receiving and sending every message, then waits for all.
    fn swap(&mut self) -> Result<()>;
    /// Sends the acknowledgement that a window has arrived.
    fn acknowledge(&mut self) -> Result<()>;
    /// Receives the acknowledgement.
    fn acknowledged(&mut self) -> Result<()>;

    /// Makes the copies of both buffers at an offset those of the next calls.
    fn move_to(&mut self, _offset: usize) {}

    /// Opens the endpoint of this rank. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Opens what iterations need; see [`Kernel::begin`]. Untimed.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    /// Closes what `begin` opened. Untimed.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns figures other than times. Untimed.
    fn figures(&mut self) -> Result<Figures> {
        Ok(self.connections()?.map(ConnectionCounters::figures).unwrap_or_default())
    }
    /// Returns the counters of its connections; see [`Kernel::connections`].
    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        Ok(None)
    }
    /// Returns the buffer that this endpoint sends from.
    fn outgoing(&mut self) -> &mut [u8];
    /// Returns the buffer that this endpoint receives in.
    fn incoming(&mut self) -> &mut [u8];
}

crate::parameter! {
    /// Buffers of the messages in flight
    pub enum Buffers: "buffers", IfChosen, default Multiple {
        /// One buffer for each message
        Multiple = "multiple",
        /// One buffer for all messages, as in OMB; it stays in the cache, and the MPI standard forbids it
        Single = "single",
    }
}

/// Communication of two endpoints in one iteration.
pub trait Pattern: 'static {
    /// Figure that a row shows first.
    const METRIC: Metric;
    /// Description of what is timed.
    const METHOD: Method;
    /// Whether the timed rank receives data too.
    const BOTH_WAYS: bool;

    /// Returns the number of messages with a buffer: one, or the whole window.
    fn messages(depth: u32) -> u32;
    /// Returns the work of one pair in one iteration.
    fn work(bytes: u64, depth: u64) -> Work;
    /// Runs an iteration of the timed rank.
    fn active<L: Link>(link: &mut L, depth: u32) -> Result<()>;
    /// Runs the same iteration of the other rank.
    fn passive<L: Link>(link: &mut L, depth: u32) -> Result<()>;
}

/// A pattern over a link. This is the kernel of most two-sided benchmarks.
pub struct PatternKernel<P, L> {
    link: L,
    depth: u32,
    slots: Slots,
    role: Role,
    rank: Rank,
    peer: Rank,
    pattern: PhantomData<fn() -> P>,
}

impl<P: Pattern, L: Link> Kernel for PatternKernel<P, L> {
    const METRIC: Metric = P::METRIC;
    const METHOD: Method = P::METHOD;

    fn supports(case: &Case) -> bool {
        case.bytes.0 / reduction::message_type(case).width() <= L::MAX_ELEMENTS
    }

    fn work(case: &Case) -> Work {
        let Work { bytes, ops, legs } = P::work(case.bytes.0, u64::from(case.depth()));
        let pairs = u64::from(case.pairs);
        Work { bytes: bytes * pairs, ops: ops * pairs, legs }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let messages = P::messages(case.depth());
        let slots = match case.get() {
            Buffers::Single => Slots::shared(case.bytes.0, messages),
            Buffers::Multiple if L::PACKED => Slots::packed(case.bytes.0, messages),
            Buffers::Multiple => Slots::new(case.bytes.0, messages),
        };
        if !L::COPIES {
            memory::only_warm(cx, "this kind of traffic: choose --send standard, synchronous or buffered")?;
        }
        let slots = derived::typed(slots, case)?.copied(cx, 1)?;
        cx.afford(slots.reserved().saturating_mul(2).saturating_add(slots.extra_bytes()))?;
        let (link, depth) = (L::open(cx, slots)?, case.depth());
        let (role, rank, peer) = (cx.role, cx.rank(), cx.peer);
        Ok(PatternKernel { link, depth, slots, role, rank, peer, pattern: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let PatternKernel { link, slots, role, rank, peer, .. } = self;
        // Memory of the direction that carries no data stays untouched.
        if P::BOTH_WAYS || *role == Role::Active {
            fill.write(*rank, *slots, link.outgoing());
        }
        // A link may wait for this call before it goes on.
        let incoming = link.incoming();
        if P::BOTH_WAYS || *role != Role::Active {
            fill.poison(*peer, *slots, incoming);
        }
        Ok(())
    }

    /// Messages that share a buffer overwrite each other: the check sees the last one.
    fn iterations_per_check(case: &Case) -> u64 {
        let buffers = match case.get() {
            Buffers::Single => 1,
            Buffers::Multiple => P::messages(case.depth()),
        };
        let directions = if P::BOTH_WAYS { 2 } else { 1 };
        P::work(1, u64::from(case.depth())).ops / (directions * u64::from(buffers))
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        P::active(&mut self.link, self.depth)
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        P::passive(&mut self.link, self.depth)
    }

    crate::forwards!(link: begin, end -> Result<()>);
    crate::forwards!(link: figures -> Result<Figures>);
    crate::forwards!(link: connections -> Result<Option<ConnectionCounters>>);

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let PatternKernel { link, slots, role, rank, peer, .. } = self;
        Ok(match role {
            Role::Active if !P::BOTH_WAYS => Check::Passed,
            _ => fill.check(*peer, *slots, link.incoming(), *rank),
        })
    }
}

impl<P: Pattern, L: Link> Movable for PatternKernel<P, L> {
    fn copies(&self) -> Copies {
        self.slots.copies
    }

    crate::forwards!(link: move_to(offset: usize) -> ());
}

/// Ping-pong: rank 0 sends and receives, rank 1 receives and sends. Two legs.
pub enum PingPong {}

impl Pattern for PingPong {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one blocking send and one blocking receive on rank 0, a receive and a send on rank 1; the \
                figure is half the time",
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

/// Stream: rank 0 sends a window of messages, rank 1 acknowledges the whole window. One leg.
pub enum Stream {}

impl Pattern for Stream {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "on rank 0, a window of nonblocking sends, waiting for all, and receiving the \
                acknowledgement; rank 1 posts all receives, waits, and acknowledges",
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

/// Streams in both directions at once: each rank sends a window and receives the other's. One leg.
pub enum BiStream {}

impl Pattern for BiStream {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "on both ranks, a window of nonblocking receives, a window of nonblocking sends, and \
                waiting for all of them",
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

crate::parameter! {
    /// Pattern of LinkTest that loads a link
    pub enum LinkPattern: "pattern", Always, default Semidirectional {
        /// Ping-pong
        Semidirectional = "semidirectional",
        /// Two ping-pongs at once
        Bidirectional = "bidirectional",
        /// Messages one way and one acknowledgement
        Unidirectional = "unidirectional",
    }
}

/// LinkTest's semidirectional test: a ping-pong, reported as bandwidth.
pub enum Semidirectional {}

impl Pattern for Semidirectional {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a ping-pong of blocking messages; the figure is one message divided by half the time",
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

/// LinkTest's bidirectional test: two ping-pongs at once, one started by each rank. Two legs.
pub enum Bidirectional {}

impl Pattern for Bidirectional {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "two ping-pongs at once, one started by each rank; the figure is two messages divided by half the time",
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

/// LinkTest's unidirectional test: a window of blocking messages back to back, then an acknowledgement. Each message is a leg, so that
/// the time of a leg is (t1 - t0) / n.
pub enum Unidirectional {}

impl Pattern for Unidirectional {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a window of blocking sends back to back and one acknowledgement; the figure is the window \
                divided by the time, and the time of a message is that of the window divided by its messages",
        untimed: "connections, buffers, filling and checking them",
        like: "LinkTest, unidirectional",
    };
    const BOTH_WAYS: bool = false;

    fn messages(_: u32) -> u32 {
        1
    }

    fn work(bytes: u64, depth: u64) -> Work {
        Work { bytes: bytes * depth, ops: depth, legs: depth }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that notes the calls and sends nothing.
    #[derive(Default)]
    struct Noted(Vec<&'static str>);

    impl Noted {
        fn note(&mut self, call: &'static str) -> Result<()> {
            self.0.push(call);
            Ok(())
        }
    }

    impl Link for Noted {
        fn send(&mut self) -> Result<()> {
            self.note("send")
        }

        fn receive(&mut self) -> Result<()> {
            self.note("receive")
        }

        fn push(&mut self) -> Result<()> {
            self.note("push")
        }

        fn pull(&mut self) -> Result<()> {
            self.note("pull")
        }

        fn swap(&mut self) -> Result<()> {
            self.note("swap")
        }

        fn acknowledge(&mut self) -> Result<()> {
            self.note("acknowledge")
        }

        fn acknowledged(&mut self) -> Result<()> {
            self.note("acknowledged")
        }

        fn open(_: &Context<'_>, _: Slots) -> Result<Noted> {
            Ok(Noted::default())
        }

        fn outgoing(&mut self) -> &mut [u8] {
            &mut []
        }

        fn incoming(&mut self) -> &mut [u8] {
            &mut []
        }
    }

    /// Returns the calls of the timed rank and of the other in an iteration with a window of 3 messages.
    fn calls<P: Pattern>() -> [String; 2] {
        let (mut active, mut passive) = (Noted::default(), Noted::default());
        P::active(&mut active, 3).unwrap();
        P::passive(&mut passive, 3).unwrap();
        [active, passive].map(|noted| noted.0.join(" "))
    }

    #[test]
    fn each_pattern_sends_its_messages_and_one_reply() {
        assert_eq!(calls::<PingPong>(), ["send receive", "receive send"]);
        assert_eq!(calls::<Stream>(), ["push acknowledged", "pull acknowledge"]);
        assert_eq!(calls::<BiStream>(), ["swap", "swap"]);
        assert_eq!(calls::<Semidirectional>(), ["send receive", "receive send"]);
        assert_eq!(calls::<Bidirectional>(), ["swap swap", "swap swap"]);
        assert_eq!(
            calls::<Unidirectional>(),
            ["send send send acknowledged", "receive receive receive acknowledge"]
        );
    }
}
