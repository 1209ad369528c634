//! Broadcasts that one rank acknowledges, timed on the root without the time of the acknowledgement [de Supinski & Karonis].
//!
//! For each acker in turn, blocks of {broadcast; empty message from the acker} alternate with blocks of empty round trips.
//! Both kinds of block have equally many iterations and one untimed iteration before them, so clock overhead cancels out.
//! The time of the acknowledgement, a message one way, is half a round trip.

mod figures;
mod slowest;

use std::marker::PhantomData;

use self::{figures::add_ack_figures, slowest::Slowest};
use crate::broadcast::kernel::{Broadcast, Endpoint, work};
use ombx_core::{
    benchmark::{
        self, Case, Context, Heading, Metric, Named, Parameter, Role,
        payload::{Check, Fill},
        reduction::message_type,
    },
    error::Result,
    measure::{
        collect::RoundSamples,
        opened::{OpenKernel, Steps},
        row::{KernelFactory, KernelKind, one_case},
        session::Session,
        timed_loop::{Turns, answered_in_turn, in_turn},
    },
    pacing::mesh::Mesh,
    result::{Measurement, RoundTrips},
    system::clock::Clock,
    unit::Rank,
};

ombx_core::parameter! {
    /// What is subtracted for the acknowledgement
    pub enum AckCorrection: "ack-correction", Always, default Half {
        /// Half a round trip: the acknowledgement one way
        Half = "half",
        /// A whole round trip, as in goptest
        RoundTrip = "round-trip",
        /// Nothing
        None = "none",
    }
}

/// The rank that acknowledges, in rows of one such rank each.
static ACKER: Parameter = Parameter::free("acker", "RANK", "Rank that acknowledges", |_| Ok(()))
    .named(Named::First(|values, _| values.text(&ACKER).map(str::to_owned)))
    .under(Heading::None);

/// Returns the rank that broadcasts. Entries refuse a root that rotates.
fn root_of(case: &Case) -> Rank {
    case.get::<benchmark::Root>().first()
}

/// Role of one rank. It is a type, so that the timed loop has no branch.
trait AckRole<B, M>: 'static {
    fn work(rank: &mut Acked<Self, B, M>) -> Result<()>;
    fn echo(rank: &mut Acked<Self, B, M>) -> Result<()>;
}

/// Broadcasts, waits for the acknowledgement, and starts round trips.
enum Root {}

/// Acknowledges the broadcast and answers round trips.
enum Acker {}

/// Takes part in the broadcast only.
enum NonAcker {}

impl<B: Broadcast, M: Mesh> AckRole<B, M> for Root {
    #[inline(always)]
    fn work(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.endpoint.operation.broadcast(rank.root)?;
        rank.mesh.receive(rank.acker, &mut [])
    }

    #[inline(always)]
    fn echo(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.mesh.send(rank.acker, &[])?;
        rank.mesh.receive(rank.acker, &mut [])
    }
}

impl<B: Broadcast, M: Mesh> AckRole<B, M> for Acker {
    #[inline(always)]
    fn work(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.endpoint.operation.broadcast(rank.root)?;
        rank.mesh.send(rank.root, &[])
    }

    #[inline(always)]
    fn echo(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.mesh.receive(rank.root, &mut [])?;
        rank.mesh.send(rank.root, &[])
    }
}

impl<B: Broadcast, M: Mesh> AckRole<B, M> for NonAcker {
    #[inline(always)]
    fn work(rank: &mut Acked<Self, B, M>) -> Result<()> {
        rank.endpoint.operation.broadcast(rank.root)
    }

    #[inline(always)]
    fn echo(_: &mut Acked<Self, B, M>) -> Result<()> {
        Ok(())
    }
}

/// Acknowledged broadcasts on one rank, with role `P`.
struct Acked<P: ?Sized, B, M> {
    endpoint: Endpoint<B>,
    mesh: M,
    root: Rank,
    acker: Rank,
    /// Half round trips to subtract.
    halves: u64,
    batch: u64,
    /// Whether the next iteration is one that is verified: it is a single broadcast, which no other one before it can hide.
    verifying: bool,
    role: PhantomData<fn(&P)>,
}

impl<P: AckRole<B, M>, B: Broadcast, M: Mesh> Turns for Acked<P, B, M> {
    #[inline(always)]
    fn work(&mut self) -> Result<()> {
        P::work(self)
    }

    #[inline(always)]
    fn echo(&mut self) -> Result<()> {
        P::echo(self)
    }
}

impl<P: AckRole<B, M>, B: Broadcast, M: Mesh> Acked<P, B, M> {
    fn open<'k>(cx: &Context<'_>, case: &Case, acker: Rank) -> Result<Box<dyn OpenKernel + 'k>>
    where
        P: 'k,
        B: 'k,
        M: 'k,
    {
        let halves = match case.get() {
            AckCorrection::None => 0,
            AckCorrection::RoundTrip => 2,
            AckCorrection::Half => 1,
        };
        // MPI_Bcast of 0 bytes may return at once, so that the acknowledgement would not wait for the root.
        let bytes = case.bytes.0.max(B::MIN_BYTES).next_multiple_of(message_type(case).width());
        let root = root_of(case);
        let (endpoint, mesh) = (Endpoint::open(cx, case, bytes, root)?, M::open(cx)?);
        Ok(Box::new(Acked::<P, B, M> {
            endpoint,
            mesh,
            root,
            acker,
            halves,
            batch: 1,
            verifying: false,
            role: PhantomData,
        }))
    }
}

impl<P: AckRole<B, M>, B: Broadcast, M: Mesh> Steps for Acked<P, B, M> {
    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.verifying = fill.round > 0;
        self.endpoint.fill(fill);
        Ok(())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.endpoint.check(fill))
    }
}

impl<P: AckRole<B, M>, B: Broadcast, M: Mesh> OpenKernel for Acked<P, B, M> {
    fn steps(&mut self) -> &mut dyn Steps {
        self
    }

    fn readings(&self, samples: u64) -> u64 {
        4 * samples
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        if self.verifying {
            return P::work(self);
        }
        self.batch = batch;
        stamps.iter_mut().try_for_each(|stamps| in_turn(self, clock, [batch, batch], stamps))
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        if self.verifying {
            return P::work(self);
        }
        answered_in_turn(self, [batch, batch], samples)
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let all = stamps.as_chunks().0.iter();
        let (elapsed_ns, echoes) = all.map(|[a, b, c, d]| (clock.nanos(*a, *b), clock.nanos(*c, *d))).unzip();
        let round_trips = Some(RoundTrips { halves: self.halves, batch: self.batch, elapsed_ns: echoes });
        RoundSamples { elapsed_ns, round_trips, ..RoundSamples::default() }
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Measures a row for each rank but the root as acker. The last row of each case is the slowest of them.
pub fn run_acked<B: Broadcast, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let ackers = session.team.size() - 1;
    let root = session.get::<benchmark::Root>().first();
    let (clock, mut slowest) = (session.clock.facts(), Vec::<Slowest>::new());
    let (cases, mut is_whole) = (session.cases()?.len(), true);
    for acker in (0..=ackers).map(Rank).filter(|acker| *acker != root) {
        let rows = acknowledged::<B, M>(session, acker, ackers, Some(acker.to_string()))?;
        is_whole &= rows.len() == cases;
        for (at, row) in rows.into_iter().enumerate() {
            match slowest.get_mut(at) {
                Some(known) => known.compare(row, B::MIN_BYTES, clock),
                None => slowest.push(Slowest::of(row, B::MIN_BYTES, clock)),
            }
        }
    }
    // Other ranks have no rows, and ranks that have not measured all ackers do not know the slowest.
    for slowest in slowest.into_iter().filter(|_| is_whole) {
        let mut row = slowest.second_half;
        row.key = row.key.replacen(&format!("acker={},", row.axes["acker"]), "acker=slowest,", 1);
        row.axes.insert("acker".into(), "slowest".into());
        session.sink.case(&row)?;
    }
    Ok(())
}

/// Measures a row with the last rank as acker, or the one before it if the last is the root.
pub fn run_last_ack<B: Broadcast, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let last = session.team.size() - 1;
    let last = Rank(if session.get::<benchmark::Root>().first() == Rank(last) { last - 1 } else { last });
    acknowledged::<B, M>(session, last, 1, None).map(|_| ())
}

/// Measures every case with one acker and passes the rows to the sink. Returns them on rank 0, without figures of the method. `sharing` is the number of rows that share the time limit.
fn acknowledged<B: Broadcast, M: Mesh>(
    session: &mut Session<'_>,
    acker: Rank,
    sharing: u32,
    shown: Option<String>,
) -> Result<Vec<Measurement>> {
    let open = |cx: &Context<'_>, case: &Case| match cx.role {
        Role::Active => Acked::<Root, B, M>::open(cx, case, acker),
        Role::Passive if cx.rank() == acker => Acked::<Acker, B, M>::open(cx, case, acker),
        Role::Passive => Acked::<NonAcker, B, M>::open(cx, case, acker),
    };
    let kind = KernelKind::with_work(Metric::Latency, work);
    let factory = KernelFactory { sharing, ..KernelFactory::new(kind, &open) };
    let mut rows = Vec::new();
    for mut case in session.cases()? {
        case.values.push_first(&ACKER, shown.as_deref().map(Into::into));
        if !session.is_left(&case.key(session.bench.name, session.under.as_deref())) {
            continue;
        }
        let row = one_case(session, &factory, &case)?;
        if session.team.rank() == Rank(0) {
            let mut complete = row.clone();
            add_ack_figures(&mut complete, B::MIN_BYTES);
            session.sink.case(&complete)?;
            rows.push(row);
        }
    }
    Ok(rows)
}
