//! Ping-pong between threads of two ranks, where any thread of the second answers: written once for every link.

use crate::{
    benchmark::{
        case::Case,
        context::Context,
        kernel::Kernel,
        payload::{Check, Fill, Slots},
        work::{Method, Metric, Role, Work},
    },
    error::Result,
    unit::Rank,
};

/// One thread's end of the traffic between two ranks. Messages carry the number of the sending thread, and so do answers.
pub trait SharedLink: Sized + Send + 'static {
    /// Opens the end of a thread. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Sends this thread's message.
    fn send(&mut self) -> Result<()>;
    /// Receives the answer to this thread's message.
    fn receive(&mut self) -> Result<()>;
    /// Receives the next message of any thread.
    fn take(&mut self) -> Result<()>;
    /// Answers what was taken last.
    fn answer(&mut self) -> Result<()>;

    /// The thread whose message was taken last; `None` before the first.
    fn taken(&self) -> Option<u32>;
    /// Forgets what was taken.
    fn forget(&mut self);
    /// What this end sends.
    fn outgoing(&mut self) -> &mut [u8];
    /// Where this end receives.
    fn incoming(&mut self) -> &mut [u8];
}

/// A thread's part of the ping-pong.
pub struct SharedPing<L> {
    link: L,
    slots: Slots,
    role: Role,
    rank: Rank,
    peer: Rank,
    thread: u32,
}

/// The pattern of a sending thread: no two are alike. Answers are alike, because any thread gives them.
fn of_thread(fill: Fill, thread: u32) -> Fill {
    Fill { round: fill.round ^ (u64::from(thread) << 32), ..fill }
}

impl<L: SharedLink> Kernel for SharedPing<L> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "on each of rank 0's threads one blocking send and one blocking receive of the answer, which any of rank 1's \
                threads gives; the figure is half of it, over the samples of all threads",
        untimed: "starting threads, buffers, filling and checking them",
        like: "osu_latency_mt, which tells only the mean of its threads; IMB-MT PingPong",
    };

    fn work(case: &Case) -> Work {
        Work { bytes: 2 * case.bytes.0, ops: 2, legs: 2 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = Slots::new(case.bytes.0, 1);
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

    #[inline]
    fn active(&mut self) -> Result<()> {
        self.link.send()?;
        self.link.receive()
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        self.link.take()?;
        self.link.answer()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let SharedPing { link, slots, role, rank, peer, .. } = self;
        let expected = match (role, link.taken()) {
            (Role::Active, _) => fill,
            (Role::Passive, Some(thread)) => of_thread(fill, thread),
            // Others were quicker.
            (Role::Passive, None) => return Ok(Check::Passed),
        };
        Ok(expected.check(*peer, *slots, link.incoming(), *rank))
    }
}
