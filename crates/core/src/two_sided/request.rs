//! Open-loop requests: latency under an offered load.
//!
//! The active rank sends requests at scheduled times and does not wait for replies. The latency of a request counts from its
//! scheduled time, so that a pause of the other rank delays every request that was due meanwhile. A closed loop would send none
//! meanwhile and omit them (coordinated omission).

pub mod load;
pub mod schedule;

use self::{
    load::Load,
    schedule::{Rate, Schedule},
};
use crate::{
    benchmark::{
        Case, Context, Figures, Method, Metric, Role, Work,
        payload::{Check, Fill, Mismatch, Slots},
    },
    error::{Error, Result},
    measure::{
        collect::RoundSamples,
        opened::{OpenKernel, Steps},
        row::{self, KernelFactory, KernelKind},
        session::Session,
        timed_loop::open_loop,
    },
    system::clock::Clock,
    unit::Rank,
};

/// Formula of the headline.
pub const FORMULA: &str = "t: from the scheduled time of a request to its reply";

/// Returns the description of what is timed.
pub const fn method(like: &'static str) -> Method {
    Method {
        timed: "rank 0 sends requests at scheduled times without waiting for replies and polls for them; rank 1 receives each \
                request and replies with 8 bytes; the figure counts from the scheduled time to the arrival of the reply, also if \
                a request is sent late because as many as --window are in flight",
        untimed: "connections, the schedule, buffers, filling and checking them",
        like,
    }
}

/// Runs open-loop requests over a link, at every rate of the plan.
pub fn run_requests<L: RequestLink>(session: &mut Session<'_>) -> Result<()> {
    let batch = session.plan.batch;
    at_each_rate(session, Metric::Latency, &|cx, case, schedule| open::<L>(cx, case, schedule, batch))
}

fn open<'k, L: RequestLink + 'k>(
    cx: &Context<'_>,
    case: &Case,
    schedule: Schedule,
    batch: Option<u64>,
) -> Result<Box<dyn OpenKernel + 'k>> {
    if batch.is_some_and(|batch| batch > 1) {
        return Err(Error::unsupported("each request is one sample; leave out --batch"));
    }
    Ok(Box::new(OpenLoop::<L>::open(cx, case, schedule)?))
}

/// Requests over a link at scheduled times.
struct OpenLoop<L> {
    link: L,
    slots: Slots,
    role: Role,
    rank: Rank,
    peer: Rank,
    schedule: Schedule,
    /// Scheduled times of the last round in ticks after its start.
    due: Vec<u64>,
    /// Slots that requests have used since the buffers were filled.
    used: u32,
    /// First wrong reply since the buffers were filled.
    wrong: Option<Mismatch>,
    /// Load of the longest round since the warm-up.
    load: Load,
}

impl<L: RequestLink> OpenLoop<L> {
    fn open(cx: &Context<'_>, case: &Case, schedule: Schedule) -> Result<OpenLoop<L>> {
        if case.bytes.0 > L::MAX_BYTES {
            return Err(Error::unsupported(format!("requests have at most {} bytes", L::MAX_BYTES)));
        }
        let slots = Slots::new(case.bytes.0, case.depth());
        cx.afford(2 * slots.total())?;
        let link = L::open(cx, slots)?;
        let (role, rank, peer) = (cx.role, cx.rank(), cx.peer);
        let load = Load::offered(schedule.rate);
        Ok(OpenLoop { link, slots, role, rank, peer, schedule, due: Vec::new(), used: 0, wrong: None, load })
    }

    fn use_slots(&mut self, requests: u64) {
        self.used = self.used.max(requests.min(self.slots.count.into()) as u32);
    }
}

/// Returns the first reply that is not the number of its request.
fn wrong_reply(echoes: &[u8], rank: Rank) -> Option<Mismatch> {
    let found = echoes.as_chunks::<REPLY_BYTES>().0;
    let (number, reply) = (0u64..).zip(found).find(|(number, reply)| number.to_le_bytes() != **reply)?;
    let expected = number.to_le_bytes();
    let byte = expected.iter().zip(reply).position(|(a, b)| a != b)?;
    Some(Mismatch { rank, slot: number, byte: byte as u64, expected: expected[byte], actual: reply[byte] })
}

impl<L: RequestLink> Steps for OpenLoop<L> {
    fn fill(&mut self, fill: Fill) -> Result<()> {
        (self.used, self.wrong) = (0, None);
        match self.role {
            Role::Active => fill.write(self.rank, self.slots, self.link.outgoing()),
            Role::Passive => fill.poison(self.peer, self.slots, self.link.incoming()),
        }
        Ok(())
    }

    fn figures(&mut self) -> Result<Figures> {
        Ok(self.load.figures())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let OpenLoop { link, role, rank, peer, .. } = self;
        let arrived = Slots { count: self.used, ..self.slots };
        Ok(match (role, &self.wrong) {
            (Role::Active, Some(mismatch)) => Check::Failed(mismatch.clone()),
            (Role::Active, None) => Check::Passed,
            (Role::Passive, _) => fill.check(*peer, arrived, link.incoming(), *rank),
        })
    }
}

impl<L: RequestLink> OpenKernel for OpenLoop<L> {
    fn steps(&mut self) -> &mut dyn Steps {
        self
    }

    fn batch(&self) -> Option<u64> {
        Some(1)
    }

    fn interval_ns(&self) -> Option<f64> {
        Some(self.schedule.interval_ns())
    }

    fn warmed_up(&mut self, _: &Clock) -> Result<()> {
        self.load = Load::offered(self.schedule.rate);
        Ok(())
    }

    fn timed(&mut self, clock: &Clock, _: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        for stamps in stamps {
            let requests = stamps.len().saturating_sub(1);
            self.due = self.schedule.ticks(requests, clock);
            self.use_slots(requests as u64);
            self.link.prepare(requests as u64)?;
            open_loop(&mut self.link, clock, self.slots.count.into(), &self.due, stamps)?;
        }
        Ok(())
    }

    fn answered(&mut self, _: u64, samples: u64) -> Result<()> {
        self.use_slots(samples);
        (0..samples).try_for_each(|number| self.link.answer(number))
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let Some((start, completed)) = stamps.split_first() else { return RoundSamples::default() };
        let of = |(due, completed): (&u64, &u64)| clock.nanos(start + due, *completed);
        let latencies: Vec<u64> = self.due.iter().zip(completed).map(of).collect();
        self.load.take(
            self.due.iter().map(|due| clock.nanos(0, *due)),
            completed.iter().map(|at| clock.nanos(*start, *at)),
            &latencies,
        );
        self.wrong = self.wrong.take().or_else(|| wrong_reply(self.link.echoes(), self.rank));
        RoundSamples::chained(latencies)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Bytes of a reply: the number of its request, little endian.
pub const REPLY_BYTES: usize = 8;

/// One endpoint of a link on which one rank sends requests and the other replies to each, in order.
///
/// Request `number` of a round has the message slot `number` modulo the number of slots. At most as many requests as slots are in
/// flight.
pub trait RequestLink: Sized + 'static {
    /// Maximum size of a request in bytes.
    const MAX_BYTES: u64 = u64::MAX;

    /// Opens the endpoint of this rank. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Prepares a round of `requests` on the rank that sends them: memory for their replies. Untimed.
    fn prepare(&mut self, requests: u64) -> Result<()>;
    /// Continues to send a request, without blocking. Returns whether the request is sent.
    fn send_some(&mut self, number: u64) -> Result<bool>;
    /// Takes the replies that have arrived, without blocking. Returns how many requests of the round have their reply.
    fn replies(&mut self) -> Result<u64>;
    /// Receives a request on the other rank and replies with its number.
    fn answer(&mut self, number: u64) -> Result<()>;

    /// Returns the replies of the last round, [`REPLY_BYTES`] each.
    fn echoes(&mut self) -> &[u8];
    /// Returns the buffer that requests are sent from.
    fn outgoing(&mut self) -> &mut [u8];
    /// Returns the buffer that requests are received in.
    fn incoming(&mut self) -> &mut [u8];
}

/// Opens the kernel of a case with a schedule.
pub(in crate::two_sided) type OpenScheduled<'k> =
    &'k dyn Fn(&Context<'_>, &Case, Schedule) -> Result<Box<dyn OpenKernel + 'k>>;

/// Measures every case at every rate of the plan.
pub(in crate::two_sided) fn at_each_rate(
    session: &mut Session<'_>,
    metric: Metric,
    open: OpenScheduled<'_>,
) -> Result<()> {
    let seed = session.plan.launch.map_or(0, |launch| launch.order);
    let open = |cx: &Context<'_>, case: &Case| {
        // A rate that is not possible is the reason of a skipped row.
        let rate = case.get::<Rate>().of_messages(case.bytes.0)?;
        open(cx, case, Schedule { rate, arrivals: case.get(), seed })
    };
    let kind = KernelKind::with_work(metric, |case| Work { bytes: case.bytes.0, ops: 1, legs: 1 });
    row::every_case(session, &KernelFactory::new(kind, &open))
}

#[cfg(test)]
mod tests;
