//! Broadcasts that one rank acknowledges: the time of the root alone, less the way of the acknowledgement [de Supinski & Karonis].
//!
//! For every acker in turn, blocks of {broadcast; an empty message from the acker} alternate with blocks of empty round trips with
//! it, as many in a block, both after one of their kind that is not timed: what a reading of the clock costs is in both alike. The loop holds one message one way: half a round trip.

use std::marker::PhantomData;

use crate::broadcast::kernel::{Broadcast, End, work};
use ombx_core::{
    benchmark::{
        case::Case,
        context::Context,
        figure::{Figure, Figures},
        payload::{Check, Fill},
        work::{Metric, Role},
    },
    error::Result,
    measure::{
        collect::RoundSamples,
        opened::OpenKernel,
        row::{KernelFactory, one_case},
        session::Session,
        timed_loop::{Turns, answered_in_turn, in_turn},
    },
    pacing::mesh::Mesh,
    result::{Measurement, RoundTrips},
    stats::Summary,
    system::clock::Clock,
    trust,
    unit::Rank,
};

ombx_core::axis! {
    /// What is subtracted for the acknowledgement
    pub enum AckCorrection: "ack-correction", Always, default Half {
        /// Half a round trip: the way of the acknowledgement
        Half = "half",
        /// A whole round trip, as goptest subtracts
        RoundTrip = "round-trip",
        /// Nothing
        None = "none",
    }
}

/// What one rank has to do.
trait Part<B, M> {
    fn work(rank: &mut Acked<Self, B, M>) -> Result<()>;
    fn echo(rank: &mut Acked<Self, B, M>) -> Result<()>;
}

/// Broadcasts, waits for the acknowledgement, and asks for round trips.
enum Root {}

/// Acknowledges, and returns what it is asked.
enum Acker {}

/// Only takes part in the broadcast.
enum Bystander {}

impl<B: Broadcast, M: Mesh> Part<B, M> for Root {
    #[inline(always)]
    fn work(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.end.tree.broadcast(Rank(0))?;
        rank.mesh.receive(rank.acker, &mut [])
    }

    #[inline(always)]
    fn echo(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.mesh.send(rank.acker, &[])?;
        rank.mesh.receive(rank.acker, &mut [])
    }
}

impl<B: Broadcast, M: Mesh> Part<B, M> for Acker {
    #[inline(always)]
    fn work(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.end.tree.broadcast(Rank(0))?;
        rank.mesh.send(Rank(0), &[])
    }

    #[inline(always)]
    fn echo(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.mesh.receive(Rank(0), &mut [])?;
        rank.mesh.send(Rank(0), &[])
    }
}

impl<B: Broadcast, M: Mesh> Part<B, M> for Bystander {
    #[inline(always)]
    fn work(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.end.tree.broadcast(Rank(0))
    }

    #[inline(always)]
    fn echo(_: &mut Acked<Self, B, M>) -> Result<()> {
        Ok(())
    }
}

/// One rank of acknowledged broadcasts; what it does is a type, so that its loop does not ask.
struct Acked<P: ?Sized, B, M> {
    end: End<B>,
    mesh: M,
    acker: Rank,
    halves: u64,
    batch: u64,
    part: PhantomData<fn(&P)>,
}

impl<P: Part<B, M>, B: Broadcast, M: Mesh> Turns for Acked<P, B, M> {
    #[inline(always)]
    fn work(&mut self) -> Result<()> {
        P::work(self)
    }

    #[inline(always)]
    fn echo(&mut self) -> Result<()> {
        P::echo(self)
    }
}

impl<P: Part<B, M>, B: Broadcast, M: Mesh> Acked<P, B, M> {
    fn open<'k>(cx: &Context<'_>, case: &Case, acker: Rank) -> Result<Box<dyn OpenKernel + 'k>>
    where
        P: 'k,
        B: 'k,
        M: 'k,
    {
        let halves = match case.choice() {
            AckCorrection::None => 0,
            AckCorrection::RoundTrip => 2,
            AckCorrection::Half => 1,
        };
        // MPI_Bcast of nothing returns at once, and an acknowledgement must have something to wait for.
        let (end, mesh) = (End::of(cx, case.bytes.0.max(B::LEAST))?, M::open(cx)?);
        Ok(Box::new(Acked::<P, B, M> { end, mesh, acker, halves, batch: 1, part: PhantomData }))
    }
}

impl<P: Part<B, M>, B: Broadcast, M: Mesh> OpenKernel for Acked<P, B, M> {
    fn clocks(&self) -> usize {
        1
    }

    fn readings(&self, samples: u64) -> u64 {
        4 * samples
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.end.fill(fill);
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        self.batch = batch;
        stamps.iter_mut().try_for_each(|stamps| in_turn(self, clock, [batch, batch], stamps))
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        answered_in_turn(self, [batch, batch], samples)
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let all = stamps.as_chunks().0.iter();
        let (elapsed_ns, echoes) = all.map(|[a, b, c, d]| (clock.nanos(*a, *b), clock.nanos(*c, *d))).unzip();
        let round_trips = Some(RoundTrips { halves: self.halves, batch: self.batch, elapsed_ns: echoes });
        RoundSamples { elapsed_ns, round_trips, ..RoundSamples::default() }
    }

    fn end(&mut self) -> Result<()> {
        Ok(())
    }

    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.end.check(fill))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Every rank but the root acknowledges in turn, a row each; the slowest of each case is the last row.
pub fn run_acked<B: Broadcast, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let ackers = session.team.size() - 1;
    let mut slowest: Vec<Option<Measurement>> = Vec::new();
    for acker in (1..=ackers).map(Rank) {
        for (at, row) in
            acknowledged::<B, M>(session, acker, ackers, Some(acker.to_string()))?.into_iter().enumerate()
        {
            match slowest.get_mut(at) {
                Some(known) => *known = known.take().map(|known| slower(known, row)),
                None => slowest.push(Some(row)),
            }
        }
    }
    if session.team.rank() == Rank(0) {
        for mut row in slowest.into_iter().flatten() {
            row.key = row.key.replacen(&format!("/acker={},", row.axes["acker"]), "/acker=slowest,", 1);
            row.axes.insert("acker".into(), "slowest".into());
            session.sink.case(&row)?;
        }
    }
    Ok(())
}

/// Only the last rank acknowledges.
pub fn run_last_ack<B: Broadcast, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let last = Rank(session.team.size() - 1);
    acknowledged::<B, M>(session, last, 1, None).map(|_| ())
}

/// The row of the acker to which a broadcast takes longer; one that is not resolved could be any.
fn slower(a: Measurement, b: Measurement) -> Measurement {
    let time = |row: &Measurement| row.summary.as_ref().map_or(f64::INFINITY, |summary| summary.median);
    if time(&b) > time(&a) { b } else { a }
}

/// Measures every case with one acker, and hands the rows to the sink.
fn acknowledged<B: Broadcast, M: Mesh>(
    session: &mut Session<'_>,
    acker: Rank,
    sharing: u32,
    label: Option<String>,
) -> Result<Vec<Measurement>> {
    let open = |cx: &Context<'_>, case: &Case| match cx.role {
        Role::Active => Acked::<Root, B, M>::open(cx, case, acker),
        Role::Passive if cx.rank() == acker => Acked::<Acker, B, M>::open(cx, case, acker),
        Role::Passive => Acked::<Bystander, B, M>::open(cx, case, acker),
    };
    let label = label.map(|acker| ("acker", acker));
    let make = KernelFactory { metric: Metric::Latency, work, open: &open, floor_ns: None, label, sharing };
    let mut rows = Vec::new();
    for case in session.cases()? {
        let mut row = one_case(session, &make, &case)?;
        tell(&mut row, B::LEAST);
        if session.team.rank() == Rank(0) {
            session.sink.case(&row)?;
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Adds what the method says of a row, and takes away a time that it does not resolve.
fn tell(row: &mut Measurement, least: u64) {
    let Some(samples) = row.samples.first() else { return };
    let Some(trips) = &samples.round_trips else { return };
    let with_ack: Vec<f64> = samples.elapsed_ns.iter().map(|ns| *ns as f64 / samples.batch as f64).collect();
    let round_trips = trips.each_ns();
    let (Some(t), Some(rtt)) = (Summary::of(&with_ack), Summary::of(&round_trips)) else { return };
    let part = trips.halves as f64 / 2.0;
    let spread = variance(&with_ack) + part * part * variance(&round_trips);
    let mut add = |name: &str, value: f64| row.figures.insert(name.into(), Figure::Value(value));
    add("with_ack_us", t.median / 1e3);
    add("round_trip_us", rtt.median / 1e3);
    add("bound_us", rtt.median / 2e3);
    add("variance_us2", spread / 1e6);
    row.trust.extend(row.bytes.is_some_and(|bytes| bytes < least).then(trust::one_byte));
    let Some(summary) = &row.summary else { return };
    let [low, high] = summary.ci95.unwrap_or([summary.median; 2]);
    if summary.min > 0.0 && low > 0.0 {
        if trips.halves > 0 {
            row.trust
                .extend(trust::below_one_way(summary, rtt.ci95.map_or(rtt.median, |[low, _]| low) / 2.0));
        }
        return;
    }
    let why = format!(
        "{:.3} us with the acknowledgement less {part} round trips of {:.3} us is {:.3} us, between {:.3} and {:.3}, and {:.3} in one \
         sample: not resolved",
        t.median / 1e3,
        rtt.median / 1e3,
        summary.median / 1e3,
        low / 1e3,
        high / 1e3,
        summary.min / 1e3
    );
    row.figures.insert("corrected_us".into(), Figure::Unresolved(why));
    row.summary = None;
    // Of a time that there is not.
    row.trust.retain(|notice| notice.code != "not_converged");
}

/// Variance of a sample.
fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0)
}
