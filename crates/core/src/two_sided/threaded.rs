//! Ping-pong between threads of two ranks. Any thread of the second rank answers.

use ombx_record::{
    error::Result,
    result::{Check, Metric, Work},
    unit::Rank,
};

use crate::benchmark::{
    Case, Context, Kernel, Method, Role, derived,
    payload::{Fill, Slots},
};

/// One thread's endpoint of a link between two ranks that its threads share.
///
/// A message carries the number of the sending thread. Its answer carries the same number.
pub trait SharedLink: Sized + Send + 'static {
    /// Opens the endpoint of a thread. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Sends this thread's message.
    fn send(&mut self) -> Result<()>;
    /// Receives the answer to this thread's message.
    fn receive(&mut self) -> Result<()>;
    /// Receives the next message of any thread.
    fn take(&mut self) -> Result<()>;
    /// Sends the answer to the last message of [`SharedLink::take`].
    fn answer(&mut self) -> Result<()>;

    /// Returns the sender of the last message of [`SharedLink::take`]; `None` before the first.
    fn taken(&self) -> Option<u32>;
    /// Makes [`SharedLink::taken`] return `None` until the next message.
    fn forget(&mut self);
    /// Returns the buffer that this endpoint sends from.
    fn outgoing(&mut self) -> &mut [u8];
    /// Returns the buffer that this endpoint receives in.
    fn incoming(&mut self) -> &mut [u8];
}

/// Kernel of one thread of the ping-pong.
pub struct SharedPing<L> {
    link: L,
    slots: Slots,
    role: Role,
    rank: Rank,
    peer: Rank,
    thread: u32,
}

/// Returns the fill pattern of one sending thread. Answers have one pattern, because any thread may send them.
fn of_thread(fill: Fill, thread: u32) -> Fill {
    Fill { round: fill.round ^ (u64::from(thread) << 32), ..fill }
}

impl<L: SharedLink> Kernel for SharedPing<L> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "on each thread of rank 0, one blocking send and one blocking receive of the answer, which \
                any thread of rank 1 sends; the figure is half the time, over the samples of all threads",
        untimed: "starting threads, buffers, filling and checking them",
        like: "osu_latency_mt, which reports only the mean of its threads; IMB-MT PingPong",
    };

    fn work(case: &Case) -> Work {
        Work { bytes: 2 * case.bytes.0, ops: 2, legs: 2 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = derived::typed(Slots::new(case.bytes.0, 1), case)?;
        cx.afford(2 * slots.total())?;
        let link = L::open(cx, slots)?;
        Ok(SharedPing { link, slots, role: cx.role, rank: cx.rank(), peer: cx.peer, thread: cx.thread })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let SharedPing { link, slots, role, rank, peer, thread } = self;
        let (own, expected) = match role {
            Role::Active => (of_thread(fill, *thread), fill),
            Role::Passive => (fill, of_thread(fill, 0)),
        };
        own.write(*rank, *slots, link.outgoing());
        expected.poison(*peer, *slots, link.incoming());
        link.forget();
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.link.send()?;
        self.link.receive()
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        self.link.take()?;
        self.link.answer()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let SharedPing { link, slots, role, rank, peer, .. } = self;
        let expected = match (role, link.taken()) {
            (Role::Active, _) => fill,
            (Role::Passive, Some(thread)) => of_thread(fill, thread),
            // The other threads answered all messages.
            (Role::Passive, None) => return Ok(Check::Passed),
        };
        Ok(expected.check(*peer, *slots, link.incoming(), *rank))
    }
}
