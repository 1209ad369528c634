//! `p2p.latency_mp`: a ping-pong between ranks that have forked a child each.

use crate::PING_PONG;
use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Method, Metric, Role, Work, derived,
        payload::{Check, Fill},
        reduction::MESSAGE_TYPE,
    },
    error::Result,
    two_sided::pattern::{PatternKernel, PingPong},
};
use ombx_mpi::{Channel, ForkedChild};

type Ping = PatternKernel<PingPong, Channel>;

/// A ping-pong on a rank with a sleeping child process, which shares the rank's pages and never calls MPI.
struct Forked {
    ping: Ping,
    child: ForkedChild,
}

impl Kernel for Forked {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one blocking send and one blocking receive on rank 0, a receive and a send on rank 1; each rank has forked a \
                child that sleeps; the figure is half the time",
        untimed: "a first message, so that the library has registered the buffers; forking and ending the children; buffers, \
                  filling and checking them",
        like: "osu_latency_mp, whose children end after two seconds",
    };

    fn work(case: &Case) -> Work {
        Ping::work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let mut ping = Ping::open(cx, case)?;
        match cx.role {
            Role::Active => ping.active()?,
            Role::Passive => ping.passive()?,
        }
        Ok(Forked { ping, child: cx.agree(ForkedChild::fork())? })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.ping.fill(fill)
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.ping.active()
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        self.ping.passive()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.ping.check(fill)
    }

    fn close(self) -> Result<()> {
        self.child.end()?;
        self.ping.close()
    }
}

ombx_core::inventory::submit! {
    Benchmark::of::<Forked>("p2p.latency_mp", "blocking ping-pong between ranks that forked children, one way")
        .iterates(PING_PONG, "t / 2").sizes("0,1..4M").with(&[MESSAGE_TYPE]).made_of(derived::block_bytes, derived::check)
        .osu("osu_latency_mp", "OSU MPI Multi-process Latency Test")
}
