//! Measures one case on every rank: opens the kernel, warms up, takes samples, verifies, and records the row.

use std::{borrow::Cow, collections::BTreeMap};

use ombx_host::{
    control_group::cpu_quota,
    device_counters::DeviceCounters,
    environment::Counters,
    performance::{self, Counted},
};
use ombx_record::{
    error::{Kind, Result},
    event::Event,
    result::{
        Aggregation, BusTraffic, Check, CpuQuota, Figure, Figures, Growth, Measurement, Metric, Outcome,
        Phases, Work,
    },
    stats::HeadlineOf,
    unit::Rank,
};

use crate::{
    benchmark::{Case, Context, Kernel, Root, payload::Fill, position},
    clock::{Clock, Reading},
    measure::{
        alignment::Alignment,
        background::Background,
        collect::Intervals,
        open_kernel::OpenKernel,
        rounds::{OpenCase, Sampling},
        session::Session,
    },
    pacing::windows::RESIDUAL_RANGE,
    team::Team,
    trust,
};

/// Why a row for one alignment is skipped.
const NO_ALIGNMENTS: &str = "--alignment is for the messages of one pair or of collectives, over MPI, whose samples follow one another";

/// What the rows of a kernel type have in common, as values.
#[derive(Clone, Copy)]
pub struct KernelKind {
    /// Metric of the headline figure.
    pub metric: Metric,
    /// Returns the bytes, operations and legs of one iteration.
    pub work: fn(&Case) -> Work,
    /// Bytes that define the bus bandwidth.
    pub bus_traffic: fn(&Case) -> Option<BusTraffic>,
    /// Returns how many checked iterations count as one; see [`Kernel::iterations_per_check`].
    pub iterations_per_check: fn(&Case) -> u64,
}

impl KernelKind {
    /// Returns the kind of kernel `K`.
    pub const fn new<K: Kernel>() -> KernelKind {
        KernelKind {
            metric: K::METRIC,
            work: K::work,
            bus_traffic: K::bus_traffic,
            iterations_per_check: K::iterations_per_check,
        }
    }

    /// Returns the kind of a kernel without bus bandwidth whose checks see all that an iteration delivers.
    pub const fn with_work(metric: Metric, work: fn(&Case) -> Work) -> KernelKind {
        KernelKind { metric, work, bus_traffic: |_| None, iterations_per_check: |_| 1 }
    }
}

/// A kernel type as values, so that the code around the timed loop is compiled once.
pub struct KernelFactory<'k> {
    /// What all its rows have in common.
    pub kind: KernelKind,
    /// Opens the kernel for a case.
    pub open: Open<'k>,
    /// One-way time of an empty message in nanoseconds, on rank 0. A row that takes less gets a mark.
    pub floor_ns: Option<f64>,
    /// Rows that share the time budget of one row.
    pub sharing: u32,
}

/// Function that opens a kernel for a case.
pub type Open<'k> = &'k dyn Fn(&Context<'_>, &Case) -> Result<Box<dyn OpenKernel + 'k>>;

impl<'k> KernelFactory<'k> {
    /// Returns the factory of a kind of kernels, without floor.
    pub fn new(kind: KernelKind, open: Open<'k>) -> KernelFactory<'k> {
        KernelFactory { kind, open, floor_ns: None, sharing: 1 }
    }
}

/// Returns the stable name of the row of a case.
fn key(session: &Session<'_>, case: &Case) -> String {
    case.key(session.bench.name, session.under.as_deref())
}

/// Measures every case of a session and passes the rows to its sink.
pub fn every_case(session: &mut Session<'_>, factory: &KernelFactory<'_>) -> Result<()> {
    each_case(session, |session, case| one_case(session, factory, case))
}

/// Calls `row` for every case of a session. Passes the rows of rank 0 to the sink.
pub fn each_case<'a>(
    session: &mut Session<'a>,
    mut row: impl FnMut(&mut Session<'a>, &Case) -> Result<Measurement>,
) -> Result<()> {
    for case in session.cases()? {
        let key = key(session, &case);
        if !session.is_left(&key) {
            continue;
        }
        let row = row(session, &case)?;
        if session.team.rank() == Rank(0) {
            session.sink.event(&Event::row(&row))?;
        }
    }
    Ok(())
}

/// Announces one case to the team and the sink, and measures it. Errors name the case.
pub fn one_case(session: &mut Session<'_>, factory: &KernelFactory<'_>, case: &Case) -> Result<Measurement> {
    let aggregation = session.assignment.aggregation();
    let row = announce(session, factory.kind, case, aggregation)?;
    measure(session, factory, case).map_err(|e| e.within(&row.key))
}

/// Announces one case to the team and the sink. Returns its row without samples.
///
/// # Errors
/// Those of the sink.
pub fn announce(
    session: &mut Session<'_>,
    kind: KernelKind,
    case: &Case,
    aggregation: Aggregation,
) -> Result<Measurement> {
    let row = empty_row(session, kind, case, aggregation);
    session.team.name_task(&row.key);
    session.sink.event(&Event::Starting(Cow::Borrowed(&row)))?;
    Ok(row)
}

/// Measures one case. Collective. Every rank returns a row; only rank 0's holds the samples of all ranks.
///
/// # Errors
/// Errors that every rank returns. A case that some rank does not support is a skipped row, not an error.
pub fn measure(session: &mut Session<'_>, factory: &KernelFactory<'_>, case: &Case) -> Result<Measurement> {
    let team = session.team;
    let assignment = session.assignment.clone().paired(case.get()).directed(case.get());
    let root: Root = case.get();
    if let Err(error) = team.agree(root.is_among(team.size())) {
        let mut row = empty_row(session, factory.kind, case, assignment.aggregation());
        row.outcome = Outcome::Skipped(error.to_string());
        return Ok(row);
    }
    let assignment = assignment.rooted(root.first());
    let (role, peer) = assignment.role(team.rank());
    let children = assignment.children(team.rank());
    let mut row = empty_row(session, factory.kind, case, assignment.aggregation());
    if session.background.is_some_and(Background::has_started) {
        return Ok(row);
    }
    let (mut stopwatch, mut phases) = (Stopwatch::start(session.clock), Phases::default());

    let (children, values) = (&*children, &case.values);
    let context = Context { team, role, peer, children, thread: 0, threads: 1, values };
    let kernel = match team.agree((factory.open)(&context, case)) {
        Ok(kernel) => kernel,
        Err(e) if e.kind() == Kind::Unsupported => {
            if let Some(background) = session.background {
                background.is_unsupported(&e);
            }
            row.outcome = Outcome::Skipped(e.to_string());
            return Ok(row);
        }
        Err(e) => return Err(e),
    };
    row.aggregation = kernel.aggregation(row.aggregation);
    // A schedule is one round.
    let interval = session.plan.interval.filter(|_| team.rank() == Rank(0) && kernel.interval_ns().is_none());
    let mut open = OpenCase {
        kernel,
        role,
        effort: session.plan.effort_for(case.bytes),
        legs: (factory.kind.work)(case).legs,
        aggregation: row.aggregation,
        sharing: factory.sharing,
        known_batch: session.plan.settings.batches.get(&row.key),
        key: row.key.clone(),
        alignment: Alignment::new(None, team.rank(), assignment.neighbours(team.rank())),
        meter: None,
        intervals: interval.map(|length| Intervals::new(length, &row)),
        session,
    };
    phases.open_ns = stopwatch.lap();
    let position = position(case, open.session.bench.name);
    if position.is_some() && !(open.has_alignments() && case.pairs == 1) {
        row.outcome = Outcome::Skipped(NO_ALIGNMENTS.into());
        open.kernel.close()?;
        return Ok(row);
    }

    let fill = Fill { round: 0, bytes: case.bytes.0, iterations: 0 };
    open.begin(fill)?;
    open.session.sink.event(&Event::Alive)?;
    phases.fill_ns = stopwatch.lap();
    if let Some(background) = open.session.background {
        open.repeat(background, fill, (factory.kind.work)(case).bytes)?;
        open.kernel.close()?;
        return Ok(row);
    }
    if let Some(instead) = open.session.instead {
        instead.measure(&mut *open.kernel, case, role)?;
        open.kernel.steps().end()?;
        team.barrier()?;
        open.kernel.close()?;
        return Ok(row);
    }

    let warm_up = open.warm_up()?;
    phases.warm_up_ns = stopwatch.lap();

    let (before, compared) = (Counters::now(), open.session.clock.compare());
    let work = (factory.kind.work)(case);
    let mut sampling = match position {
        None => open.sample(&warm_up)?,
        Some(position) => open.sample_at(position, work.ops, &warm_up)?,
    };
    let counters = sampling.counters.unwrap_or_else(|| Counters::now().since(before));
    let clock_error = open.session.clock.error_since(compared);
    let sample_and_decide_ns = stopwatch.lap();
    phases.sample_ns = (sampling.wall.as_nanos() as u64).min(sample_and_decide_ns);
    phases.decide_ns = sample_and_decide_ns - phases.sample_ns;

    open.kernel.steps().end()?;
    row.figures = open.kernel.figures()?;
    if assignment.timed() != Rank(0) {
        row.figures = figures_of(assignment.timed(), team, &row.figures)?;
    }
    let iterations = warm_up.iterations + sampling.untimed + sampling.iterations;
    let last = Fill { iterations, ..fill };
    let whole = (factory.kind.iterations_per_check)(case);
    let (check, checked) = open.verify(last, whole, work.ops, &sampling)?;
    row.check = check;
    sampling.checked = checked.map(|iterations| iterations / whole);
    row.checked = sampling.checked.unwrap_or(0);
    team.barrier()?;
    phases.verify_ns = stopwatch.lap();

    open.kernel.close()?;
    conclude(open.session, &mut row, sampling, counters, clock_error, factory.floor_ns)?;
    phases.close_ns = stopwatch.lap();
    row.phases = Some(phases);
    Ok(row)
}

/// Returns the row of a case without samples.
fn empty_row(session: &Session<'_>, kind: KernelKind, case: &Case, aggregation: Aggregation) -> Measurement {
    let bench = session.bench;
    Measurement {
        bytes: Some(case.bytes.0),
        depth: case.window(),
        pairs: case.pairs,
        axes: named(case, session.under.as_ref()),
        work: Some((kind.work)(case)),
        bus: (kind.bus_traffic)(case),
        aggregation,
        ..Measurement::new(bench.name, key(session, case), kind.metric, session.team.size())
    }
}

/// Returns the figures of a rank on rank 0. Collective.
fn figures_of(rank: Rank, team: &dyn Team, mine: &Figures) -> Result<Figures> {
    let mine: Vec<(String, SentFigure)> =
        mine.iter().map(|(name, figure)| (name.clone(), sent(figure))).collect();
    let all = team.gather_some((team.rank() == rank).then_some(&mine))?;
    let figures = all.into_iter().flat_map(|(_, figures)| figures);
    let figure = |sent: SentFigure| sent.map_or_else(Figure::Unresolved, Figure::Value);
    Ok(figures.map(|(name, sent)| (name, figure(sent))).collect())
}

/// The value of a figure, or the reason why it has none, as ranks send it: the codec has no untagged values.
type SentFigure = std::result::Result<f64, String>;

fn sent(figure: &Figure) -> SentFigure {
    match figure {
        Figure::Value(value) => Ok(*value),
        Figure::Unresolved(why) => Err(why.clone()),
    }
}

/// Returns what a row names: values of parameters, and the load.
fn named(case: &Case, under: Option<&String>) -> BTreeMap<String, String> {
    let under = under.map(|load| ("under".to_owned(), load.clone()));
    case.named().map(|(name, value)| (name.to_owned(), value)).chain(under).collect()
}

/// What a rank tells rank 0 about a row: counters of the scheduler, the quota of a rank that was stopped, the error of its clock, counters of
/// devices that grew, and counters of its thread with their iterations.
type OfRank = (Counters, Option<CpuQuota>, f64, Vec<Growth>, Option<(Counted, u64)>);

/// Fills the row from what was measured. Collective, because the counters of every rank are added, and the clock with the largest error counts.
fn conclude(
    session: &Session<'_>,
    row: &mut Measurement,
    sampling: Sampling,
    counters: Counters,
    clock_error: f64,
    floor_ns: Option<f64>,
) -> Result<()> {
    let mine = (
        counters,
        Some(counters).filter(|counters| counters.stops.number > 0).and_then(|_| cpu_quota()),
        clock_error,
        session.watched.map_or_else(Vec::new, DeviceCounters::grown),
        &sampling.counted,
    );
    let all: Vec<OfRank> = session.team.gather_messages(&mine)?.unwrap_or_default();
    let counters = all.iter().fold(Counters::default(), |sum, (one, ..)| sum.and(*one));
    let quota = all.iter().filter_map(|(_, quota, ..)| *quota).min();
    if let Check::Failed(mismatch) = &row.check {
        row.outcome = Outcome::Failed(format!("data arrived wrong at {mismatch}"));
    }
    row.trust = session.standing.to_vec();
    if let (Some(summary), Some(floor_ns)) = (&sampling.summary, floor_ns) {
        row.figures.insert("one_way_us".into(), Figure::Value(floor_ns / 1e3));
        row.trust.extend(trust::below_one_way(summary, floor_ns));
    }
    if row.aggregation == Aggregation::Global {
        let late: usize = sampling.samples.iter().map(|s| s.late.len()).sum();
        row.figures.insert("late_starts".into(), Figure::Value(late as f64));
        row.trust.extend(trust::late_starts(&sampling.samples));
        if let (Some(summary), Some(Figure::Value(us))) = (&sampling.summary, row.figures.get(RESIDUAL_RANGE))
        {
            row.trust.extend(trust::clocks_apart(us * 1e3, summary));
        }
    }
    let operations = row.work.map_or(1, |work| work.ops.max(1)) as f64;
    let counted = all.iter().filter_map(|(.., counted)| counted.as_ref());
    row.figures.extend(performance::figures(counted, operations));
    row.trust.extend(trust::wrong_clock(all.iter().map(|(_, _, error, ..)| *error)));
    row.grown = Growth::summed(all.into_iter().flat_map(|(_, _, _, grown, _)| grown));
    row.trust.extend(trust::throttled(&row.grown));
    row.trust.extend(trust::starts_apart(&sampling.samples));
    row.trust.extend(trust::saturated(&row.figures));
    if let Some(summary) = &sampling.summary {
        let legs = row.work.map_or(1, |work| work.legs);
        let rounds = Measurement::combine_rounds(&sampling.samples, legs);
        row.trust.extend(trust::several_levels(&rounds, row));
        let samples = match rounds.as_slice() {
            [] => Measurement::combine(&sampling.samples, legs),
            _ => Vec::new(),
        };
        let headline = match rounds.as_slice() {
            [] if sampling.samples.iter().any(|of_rank| !of_rank.started_ns.is_empty()) => {
                HeadlineOf::Mean(&samples)
            }
            [] => HeadlineOf::Median(&samples),
            rounds => HeadlineOf::Levels(rounds),
        };
        let legs_per_sample = legs as f64 * sampling.batch as f64;
        if sampling.one_stamp_each {
            let sample_ns = summary.median * legs_per_sample;
            row.trust.extend(trust::costly_clock(session.clock.facts().overhead_ns, sample_ns));
        }
        row.trust.extend(trust::of_row(trust::RowFacts {
            samples: headline,
            summary,
            legs_per_sample,
            counters,
            quota,
            grown: &row.grown,
            wall_ns: sampling.wall.as_nanos() as f64,
            ranks: row.ranks,
            ending: sampling.ending,
            precision: sampling.precision,
            check: &row.check,
            checked: sampling.checked,
        }));
    }
    row.samples = sampling.samples;
    row.tail = sampling.tail;
    row.summary = sampling.summary;
    Ok(())
}

/// A stopwatch that is never stopped, so that its laps add up to the whole time.
pub(crate) struct Stopwatch<'c> {
    start: Reading<'c>,
    /// Time of the last lap since the start, in nanoseconds.
    last_ns: u64,
}

impl<'c> Stopwatch<'c> {
    /// Starts a stopwatch.
    pub(crate) fn start(clock: &'c Clock) -> Stopwatch<'c> {
        Stopwatch { start: clock.mark(), last_ns: 0 }
    }

    /// Returns the nanoseconds since the last lap or the start.
    pub(crate) fn lap(&mut self) -> u64 {
        let now = self.start.elapsed_ns();
        now - std::mem::replace(&mut self.last_ns, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_add_up_to_the_whole() {
        let (clock, hand) = Clock::manual(1);
        let mut laps = Stopwatch::start(&clock);
        let measured: Vec<u64> = [5, 0, 17].map(|ns| (hand.advance(ns), laps.lap()).1).into();
        assert_eq!(measured, [5, 0, 17]);
        let real = Clock::measured();
        let (whole, mut laps) = (real.mark(), Stopwatch::start(&real));
        let sum: u64 = (0..1000).map(|_| laps.lap()).sum();
        assert!(sum <= whole.elapsed_ns() && sum > 0);
    }
}
