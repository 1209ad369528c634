//! `acme.request`: a request of each size to a server, which answers. The kernel sends messages, has a passive side, a parameter
//! and a figure of its own.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Figure, Figures, Kernel, Method, Metric, ParameterValue, Role, Work,
        payload::{Fill, Slots},
    },
    error::Result,
    result::Check,
    two_sided::pattern::Link,
    unit::Rank,
};
use ombx_mpi::Channel;

ombx_core::parameter! {
    /// Answer of the server
    pub enum Answer: "answer", Always, default Empty {
        /// A message without data
        Empty = "empty",
        /// As many bytes as the request
        Equal = "equal",
    }
}

/// Endpoint of a client (the timed rank) or a server.
struct Request {
    channel: Channel,
    slots: Slots,
    answer: Answer,
    role: Role,
    rank: Rank,
    peer: Rank,
    requests: u64,
}

impl Kernel for Request {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "a request and its answer, on the rank of the client",
        untimed: "buffers, filling and checking them",
        like: "a remote procedure call; with equal answers, twice the latency of a ping-pong",
    };

    fn work(case: &Case) -> Work {
        let messages = if case.get::<Answer>() == Answer::Equal { 2 } else { 1 };
        Work { bytes: messages * case.bytes.0, ops: messages, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Request> {
        let slots = Slots::new(case.bytes.0, 1);
        cx.afford(2 * slots.total())?;
        let channel = Channel::open(cx, slots)?;
        Ok(Request {
            channel,
            slots,
            answer: case.get(),
            role: cx.role,
            rank: cx.rank(),
            peer: cx.peer,
            requests: 0,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        fill.write(self.rank, self.slots, self.channel.outgoing());
        fill.poison(self.peer, self.slots, self.channel.incoming());
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        self.requests = 0;
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        self.requests += 1;
        self.channel.send()?;
        match self.answer {
            Answer::Empty => self.channel.acknowledged(),
            Answer::Equal => self.channel.receive(),
        }
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        self.channel.receive()?;
        match self.answer {
            Answer::Empty => self.channel.acknowledge(),
            Answer::Equal => self.channel.send(),
        }
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        if self.role == Role::Active && self.answer == Answer::Empty {
            return Ok(Check::Passed);
        }
        Ok(fill.check(self.peer, self.slots, self.channel.incoming(), self.rank))
    }

    fn figures(&mut self) -> Result<Figures> {
        Ok([("requests".to_owned(), Figure::Value(self.requests as f64))].into())
    }
}

ombx_core::inventory::submit!(
    Benchmark::new::<Request>("acme.request", "a request to a server and its answer")
        .sizes("1..64K:x4")
        .with(&[Answer::PARAMETER])
);
