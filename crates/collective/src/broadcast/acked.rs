//! Broadcasts that one rank acknowledges, timed on the root without the time of the acknowledgement (de Supinski and Karonis,
//! HPDC'99).
//!
//! For each acker in turn, blocks of {broadcast; empty message from the acker} alternate with blocks of empty round trips.
//! Both kinds of block have equally many iterations and one untimed iteration before them, so clock overhead cancels out.
//! The time of the acknowledgement, a message one way, is half a round trip.

use std::marker::PhantomData;

use ombx_core::{
    benchmark::{
        self, Case, Context, Figure, Heading, Metric, Named, Parameter, Role, payload::Fill,
        reduction::message_type,
    },
    clock::Clock,
    error::Result,
    event::Event,
    measure::{
        collect::RoundSamples,
        open_kernel::{OpenKernel, Steps},
        row::{KernelFactory, KernelKind, one_case},
        session::Session,
        timed_loop::{Turns, answered_in_turn, in_turn},
    },
    pacing::mesh::Mesh,
    result::{Check, ClockProperties, MarkCode, Measurement, RoundTrips},
    stats::Summary,
    trust,
    unit::Rank,
};

use crate::broadcast::kernel::{Broadcast, Endpoint, work};

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

/// Role that broadcasts, waits for the acknowledgement, and starts round trips. Roles are types, so that the timed loop has no branch.
enum Root {}

/// Role that acknowledges the broadcast and answers round trips.
enum Acker {}

/// Role that takes part in the broadcast only.
enum NonAcker {}

impl<B: Broadcast, M: Mesh> Turns for Acked<Root, B, M> {
    #[inline(always)]
    fn work(&mut self) -> Result<()> {
        self.endpoint.operation.broadcast(self.root)?;
        self.mesh.receive(self.acker, &mut [])
    }

    #[inline(always)]
    fn echo(&mut self) -> Result<()> {
        self.mesh.send(self.acker, &[])?;
        self.mesh.receive(self.acker, &mut [])
    }
}

impl<B: Broadcast, M: Mesh> Turns for Acked<Acker, B, M> {
    #[inline(always)]
    fn work(&mut self) -> Result<()> {
        self.endpoint.operation.broadcast(self.root)?;
        self.mesh.send(self.root, &[])
    }

    #[inline(always)]
    fn echo(&mut self) -> Result<()> {
        self.mesh.receive(self.root, &mut [])?;
        self.mesh.send(self.root, &[])
    }
}

impl<B: Broadcast, M: Mesh> Turns for Acked<NonAcker, B, M> {
    #[inline(always)]
    fn work(&mut self) -> Result<()> {
        self.endpoint.operation.broadcast(self.root)
    }

    #[inline(always)]
    fn echo(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Acknowledged broadcasts on one rank, with role `P`.
struct Acked<P, B, M> {
    endpoint: Endpoint<B>,
    mesh: M,
    root: Rank,
    acker: Rank,
    /// Half round trips to subtract.
    halves: u64,
    batch: u64,
    /// Whether the next iteration is one that is verified: it is a single broadcast, which no other one before it can hide.
    verifying: bool,
    role: PhantomData<fn() -> P>,
}

impl<P: 'static, B: Broadcast, M: Mesh> Acked<P, B, M>
where
    Acked<P, B, M>: Turns,
{
    fn open<'k>(cx: &Context<'_>, case: &Case, acker: Rank) -> Result<Box<dyn OpenKernel + 'k>> {
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

impl<P, B: Broadcast, M: Mesh> Steps for Acked<P, B, M> {
    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.verifying = fill.round > 0;
        self.endpoint.fill(fill);
        Ok(())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(self.endpoint.check(fill))
    }
}

impl<P, B: Broadcast, M: Mesh> OpenKernel for Acked<P, B, M>
where
    Acked<P, B, M>: Turns,
{
    /// Its figures are medians of all samples.
    fn has_rounds(&self) -> bool {
        false
    }

    fn steps(&mut self) -> &mut dyn Steps {
        self
    }

    fn readings(&self, samples: u64) -> u64 {
        4 * samples
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        if self.verifying {
            return self.work();
        }
        self.batch = batch;
        stamps.iter_mut().try_for_each(|stamps| in_turn(self, clock, [batch, batch], stamps))
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        if self.verifying {
            return self.work();
        }
        answered_in_turn(self, [batch, batch], samples)
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let all = stamps.as_chunks().0.iter();
        let (elapsed_ns, echoes) = all.map(|[a, b, c, d]| (clock.nanos(*a, *b), clock.nanos(*c, *d))).unzip();
        let round_trips = Some(RoundTrips { halves: self.halves, batch: self.batch, elapsed_ns: echoes });
        RoundSamples { elapsed_ns, round_trips, ..RoundSamples::default() }
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
                None => slowest.push(Slowest::new(row, B::MIN_BYTES, clock)),
            }
        }
    }
    // Other ranks have no rows, and ranks that have not measured all ackers do not know the slowest.
    for slowest in slowest.into_iter().filter(|_| is_whole) {
        let mut row = slowest.second_half;
        row.key = row.key.replacen(&format!("acker={},", row.axes["acker"]), "acker=slowest,", 1);
        row.axes.insert("acker".into(), "slowest".into());
        session.sink.event(&Event::row(&row))?;
    }
    Ok(())
}

/// Measures a row with the last rank as acker, or the one before it if the last is the root.
pub fn run_last_ack<B: Broadcast, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    let last = session.team.size() - 1;
    let last = Rank(if session.get::<benchmark::Root>().first() == Rank(last) { last - 1 } else { last });
    acknowledged::<B, M>(session, last, 1, None).map(drop)
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
            session.sink.event(&Event::row(&complete))?;
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Adds the figures of the method to a row. Removes the time if the correction is too large to resolve it.
pub(super) fn add_ack_figures(row: &mut Measurement, least: u64) {
    let Some(samples) = row.samples.first() else { return };
    let Some(trips) = &samples.round_trips else { return };
    let with_ack: Vec<f64> = samples.elapsed_ns.iter().map(|ns| *ns as f64 / samples.batch as f64).collect();
    let round_trips = trips.each_ns();
    let (Some(t), Some(rtt)) = (Summary::new(&with_ack), Summary::new(&round_trips)) else { return };
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
        "not resolved: {:.3} us with the acknowledgement minus {part} round trips of {:.3} us is {:.3} us, \
         with a 95 % interval from {:.3} to {:.3} and a minimum of {:.3}",
        t.median / 1e3,
        rtt.median / 1e3,
        summary.median / 1e3,
        low / 1e3,
        high / 1e3,
        summary.min / 1e3
    );
    row.figures.insert("corrected_us".into(), Figure::Unresolved(why));
    row.summary = None;
    // This mark is about the removed time.
    row.trust.retain(|mark| mark.code != MarkCode::NotConverged);
}

/// Returns the sample variance.
fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0)
}

/// Marks that follow from the samples alone.
const OF_SAMPLES: [MarkCode; 3] = [MarkCode::NoInterval, MarkCode::Autocorrelated, MarkCode::Bimodal];

/// The slowest acker so far. The first half of its samples chose it, the second half is reported: the maximum of many noisy
/// medians is higher than the median of any of them.
pub(super) struct Slowest {
    /// Time of the first half of the samples; infinite without a time.
    chosen_by_ns: f64,
    pub(super) second_half: Measurement,
}

impl Slowest {
    /// Divides a row that has no figures of the method yet.
    pub(super) fn new(row: Measurement, least: u64, clock: ClockProperties) -> Slowest {
        let middle = row.samples.first().map_or(0, |samples| samples.elapsed_ns.len() / 2);
        let first = part(&row, |samples| &samples[..middle], least, clock);
        let chosen_by_ns = first.summary.map_or(f64::INFINITY, |summary| summary.median);
        Slowest { chosen_by_ns, second_half: part(&row, |samples| &samples[middle..], least, clock) }
    }

    /// Takes the row of another acker, which replaces the slowest one if its first half is slower.
    pub(super) fn compare(&mut self, row: Measurement, least: u64, clock: ClockProperties) {
        let other = Slowest::new(row, least, clock);
        if other.chosen_by_ns > self.chosen_by_ns {
            *self = other;
        }
    }
}

/// Returns a row with a part of the samples and what follows from them.
fn part(row: &Measurement, of: impl Fn(&[u64]) -> &[u64], least: u64, clock: ClockProperties) -> Measurement {
    let mut part = row.clone();
    for samples in &mut part.samples {
        samples.elapsed_ns = of(&samples.elapsed_ns).to_vec();
        if let Some(trips) = &mut samples.round_trips {
            trips.elapsed_ns = of(&trips.elapsed_ns).to_vec();
        }
    }
    let legs = part.work.map_or(1, |work| work.legs);
    part.summary = Measurement::summarise(&part.samples, legs, clock);
    if let Some(summary) = &mut part.summary {
        Measurement::take_percentiles(summary, [&part.samples, &part.tail], legs, clock);
    }
    part.trust.retain(|mark| !OF_SAMPLES.contains(&mark.code));
    part.trust.extend(part.summary.iter().flat_map(trust::of_samples));
    add_ack_figures(&mut part, least);
    part
}

#[cfg(test)]
mod slowest_tests {
    use ombx_core::{
        benchmark::{Figure, Metric, Work},
        result::{RoundTrips, Samples},
        stats::Summary,
    };
    use ombx_testkit::noise::Noise;

    use super::*;

    const CLOCK: ClockProperties = ClockProperties { source: "manual", resolution_ns: 1, overhead_ns: 9 };

    /// Returns the row of an acker with 60 samples around 100 us, and without acknowledgement to subtract.
    fn noisy(acker: u64, seed: u64, slower: f64) -> Measurement {
        let mut noise = Noise::Independent { sigma: 0.2 }.stream(64 * seed + acker);
        let elapsed_ns = (0..60).map(|_| (100_000.0 * noise.next_time() * slower) as u64).collect();
        let round_trips = RoundTrips { halves: 0, batch: 1, elapsed_ns: vec![2000; 60] };
        let mut row = Measurement::new("x", format!("x/acker={acker},"), Metric::Latency, 17);
        row.axes.insert("acker".into(), acker.to_string());
        row.work = Some(Work { bytes: 0, ops: 1, legs: 1 });
        row.samples =
            vec![Samples { batch: 1, elapsed_ns, round_trips: Some(round_trips), ..Samples::default() }];
        row
    }

    fn slowest_of(rows: impl IntoIterator<Item = Measurement>) -> Measurement {
        let mut rows = rows.into_iter();
        let mut slowest = Slowest::new(rows.next().unwrap(), 1, CLOCK);
        rows.for_each(|row| slowest.compare(row, 1, CLOCK));
        slowest.second_half
    }

    #[test]
    fn the_slowest_of_equal_ackers_is_not_slower_than_they_are() {
        let medians = |of: &dyn Fn(u64) -> f64| (0..200).map(of).sum::<f64>() / 200.0;
        let median = |row: &Measurement| {
            Summary::of_batches(&Measurement::combine(&row.samples, 1)).unwrap().median / 100_000.0
        };
        let maximum =
            medians(&|seed| (0..16).map(|acker| median(&noisy(acker, seed, 1.0))).fold(0.0, f64::max));
        assert!(maximum > 1.04, "the maximum of medians is {maximum} times too high");
        let slowest = medians(&|seed| median(&slowest_of((0..16).map(|acker| noisy(acker, seed, 1.0)))));
        assert!((slowest - 1.0).abs() < 0.01, "the other half is {slowest} times the truth");
    }

    #[test]
    fn a_slower_acker_is_found_and_its_second_half_reported() {
        let rows = (0..16).map(|acker| noisy(acker, 7, if acker == 11 { 1.5 } else { 1.0 }));
        let row = slowest_of(rows);
        let all = noisy(11, 7, 1.5);
        assert_eq!(row.axes["acker"], "11");
        assert_eq!(row.samples[0].elapsed_ns, all.samples[0].elapsed_ns[30..]);
        assert_eq!(row.samples[0].round_trips.as_ref().unwrap().elapsed_ns.len(), 30);
        let mut expected = Measurement::summarise(&row.samples, 1, CLOCK).unwrap();
        Measurement::take_percentiles(&mut expected, [&row.samples, &[]], 1, CLOCK);
        assert_eq!(row.summary, Some(expected));
        assert_eq!(row.figures["round_trip_us"], Figure::Value(2.0));
        let few = part(&all, |samples| &samples[..5], 1, CLOCK);
        assert!(few.trust.iter().any(|mark| mark.code == MarkCode::NoInterval), "{:?}", few.trust);
    }
}
