//! A benchmark under load: some ranks of the job are measured while the others repeat another benchmark.

use std::{cell::RefCell, collections::BTreeMap};

use ombx_record::{
    error::{Error, Kind, Result},
    event::Event,
    order::sort_by_number,
    result::{
        Check, Figure, LOAD_AGAIN, Mark, MarkCode, Measurement, NO_LOAD, Outcome, Place, interval_names,
    },
    stats::Summary,
    unit::Rank,
};

use crate::{
    benchmark::{Assignment, Benchmark, Choice, Layout, MEMORY_LIMIT, Pairs, Registry},
    measure::{
        background::{Background, Repeated},
        collect::first_mismatch,
        plan::{Congestor, Plan, Under, load_names},
        session::{Ranks, Session, Sink, skipped},
    },
    team::{EnteredBarrier, Team},
};

/// Figure of a row under load: bytes that all congestors together sent, by the time of their rounds.
const RATE_OF_LOAD: &str = "congestors_mb_per_s";

/// Measures a benchmark under each load of a plan, one after the other. Collective.
pub(super) fn measure(all: &Ranks<'_>, choice: Choice, plan: &Plan, sink: &mut dyn Sink) -> Result<()> {
    let (team, bench) = (all.team, choice.bench);
    let needed = bench.ranks.layout.ranks_wanted(plan.pairs());
    let seed = plan.settings.launch.map_or(0, |launch| launch.order);
    let least_of_load = Under::least_ranks(&plan.under);
    let division = match Division::new(team, all.places, needed, least_of_load, seed) {
        Err(e) if e.kind() == Kind::Unsupported => return skip(team, bench, None, &e, sink),
        division => division?,
    };
    let part = team.subset(&division.victims)?;
    let place = |rank: &Rank| all.places.get(rank.0 as usize).cloned();
    let places: Vec<Place> = division.victims.iter().filter_map(place).collect();
    let victims = part.as_deref().map(|team| Ranks { team, places: &places, ..*all });
    let mut rows = Vec::new();
    for (load, name) in plan.under.iter().zip(load_names(&plan.under)) {
        let mut held = Held { sink: &mut *sink, is_measured: true, rows: Vec::new() };
        let measured = |sink: &mut dyn Sink| match &victims {
            Some(victims) => victims.measure(choice, plan, Some(&name), sink),
            None => Ok(()),
        };
        let ended = match load {
            Under::Nothing => {
                measured(&mut held)?;
                team.sleeping_barrier().map(|()| None)
            }
            Under::Congestors(congestors) => team
                .agree(Load::open(congestors, &division.congestors, plan))
                .and_then(|load| load.run(all, &mut held, &measured))
                .map(Some),
        };
        match ended {
            Ok(ended) => {
                ended.iter().for_each(|ended| held.rows.iter_mut().for_each(|row| ended.describe(row)));
            }
            Err(e) if e.kind() == Kind::Unsupported => skip(team, bench, Some(&name), &e, &mut held)?,
            Err(e) => return Err(e),
        }
        rows.append(&mut held.rows);
    }
    describe_impact(&mut rows);
    rows.iter().try_for_each(|row| sink.event(&Event::row(row)))
}

/// Passes the row of a benchmark that cannot run to the sink of rank 0.
fn skip(
    team: &dyn Team,
    bench: &Benchmark,
    under: Option<&str>,
    why: &Error,
    sink: &mut dyn Sink,
) -> Result<()> {
    match team.rank() {
        Rank(0) => sink.event(&Event::row(&skipped(bench, under, team.size(), why.to_string()))),
        _ => Ok(()),
    }
}

/// Congestors that run at the same time, each on its ranks.
struct Load(Vec<PlacedCongestor>);

/// A congestor on its ranks.
struct PlacedCongestor {
    choice: Choice,
    plan: Plan,
    assignment: Assignment,
    /// Ranks of the job that run it, in the order of their team.
    ranks: Vec<Rank>,
}

impl PlacedCongestor {
    /// Returns a congestor on these ranks; a benchmark of one pair runs on all pairs of neighbours in the list.
    fn open(congestor: &Congestor, ranks: &[Rank], plan: &Plan) -> Result<PlacedCongestor> {
        let choice = Registry::load()?.get(&congestor.bench)?;
        let layout = match choice.bench.ranks.layout {
            Layout::Pair | Layout::Pairs(_) => Layout::Pairs(Pairs::Most),
            layout => layout,
        };
        let why = |why: String| Error::unsupported(format!("the load {} cannot run: {why}", congestor.bench));
        (choice.bench.available)().map_err(why)?;
        let assignment = layout.assign(ranks.len() as u32, None).map_err(|e| why(e.to_string()))?;
        let ranks = &ranks[..assignment.ranks as usize];
        let ranks = match layout {
            // Rank i and rank i + pairs of a team are a pair.
            Layout::Pairs(_) => (0..2).flat_map(|end| ranks.iter().skip(end).step_by(2)).copied().collect(),
            _ => ranks.to_vec(),
        };
        let plan = Plan {
            sizes: Some(vec![congestor.bytes]),
            verify: plan.verify,
            chosen: plan.chosen.only(&MEMORY_LIMIT),
            ..Plan::default()
        };
        Ok(PlacedCongestor { choice, plan, assignment, ranks })
    }
}

impl Load {
    /// Divides ranks evenly among congestors. Each part has neighbours of the list.
    fn open(congestors: &[Congestor], ranks: &[Rank], plan: &Plan) -> Result<Load> {
        let end = |part: usize| part * (ranks.len() / congestors.len());
        let open = |(at, congestor)| PlacedCongestor::open(congestor, &ranks[end(at)..end(at + 1)], plan);
        congestors.iter().enumerate().map(open).collect::<Result<_>>().map(Load)
    }

    /// Runs the congestors on their ranks until `measured` has returned on the ranks that are measured. Collective over the job.
    ///
    /// # Errors
    /// [`Error::unsupported`] on every rank if a congestor cannot run.
    fn run(
        self,
        all: &Ranks<'_>,
        sink: &mut dyn Sink,
        measured: &dyn Fn(&mut dyn Sink) -> Result<()>,
    ) -> Result<EndedLoad> {
        let team = all.team;
        let mut own = None;
        let names: Vec<&str> = self.0.iter().map(|part| part.choice.bench.name).collect();
        for part in self.0 {
            if let Some(team) = team.subset(&part.ranks)? {
                own = Some((team, part));
            }
        }
        let me = own.as_ref().map(|(team, _)| team.rank());
        let job = Job { team, end: RefCell::default(), why: RefCell::default(), ended: RefCell::default() };
        if let Some((part_team, PlacedCongestor { choice, plan, assignment, .. })) = own {
            let mut rows = Held { sink, is_measured: false, rows: Vec::new() };
            let context = (&plan, all.clock, &[][..]);
            let mut session = Session::new(&*part_team, assignment, context, choice, &mut rows);
            session.background = Some(&job);
            (choice.bench.run)(&mut session)?;
            if job.end.borrow().is_none() {
                let why = job.why.take().unwrap_or_else(|| "it has no such case".into());
                let name = choice.bench.name;
                team.agree::<()>(Err(Error::unsupported(format!("the load {name} cannot run: {why}"))))?;
            }
        } else {
            team.agree(Ok(()))?;
            measured(sink)?;
            team.sleeping_barrier()?;
        }
        let (work, check) = job.ended.take().unwrap_or((Repeated::default(), Check::Passed));
        // The rank on which wrong data arrived says so, which names it by its number in the job.
        let mine = match &check {
            Check::Failed(mismatch) if Some(mismatch.rank) != me => Check::Passed,
            _ => check,
        };
        let check = first_mismatch(team, mine)?;
        let all = team.gather_some((me == Some(Rank(0))).then_some(&work))?;
        let rates = all.iter().map(|(_, work)| work.bytes as f64 * 1e3 / (work.spent_ns as f64).max(1.0));
        Ok(EndedLoad { name: names.join("+"), mb_per_s: rates.sum(), check })
    }
}

/// A load that is over.
struct EndedLoad {
    /// Names of its benchmarks.
    name: String,
    /// Rate of all congestors together, known on rank 0.
    mb_per_s: f64,
    /// Check of what the congestors received.
    check: Check,
}

impl EndedLoad {
    /// Adds to a row what its load was. A row whose load received wrong data has failed.
    fn describe(&self, row: &mut Measurement) {
        if self.mb_per_s > 0.0 {
            row.figures.insert(RATE_OF_LOAD.into(), Figure::Value(self.mb_per_s));
        }
        if let (Check::Failed(mismatch), false) = (&self.check, matches!(row.check, Check::Failed(_))) {
            let name = &self.name;
            row.outcome = Outcome::Failed(format!("data of the load {name} arrived wrong at {mismatch}"));
            row.check = self.check.clone();
        }
    }
}

/// The job around a congestor, on one of its ranks.
struct Job<'a> {
    team: &'a dyn Team,
    /// Barrier of the job, which the ranks that are measured enter at their end; `None` before the start.
    end: RefCell<Option<Box<dyn EnteredBarrier + 'a>>>,
    why: RefCell<Option<String>>,
    ended: RefCell<Option<(Repeated, Check)>>,
}

impl Background for Job<'_> {
    fn is_unsupported(&self, why: &Error) {
        self.why.replace(Some(why.to_string()));
    }

    fn has_started(&self) -> bool {
        self.end.borrow().is_some()
    }

    fn start(&self) -> Result<()> {
        self.team.agree(Ok(()))?;
        self.end.replace(Some(self.team.enter_barrier()?));
        Ok(())
    }

    fn is_over(&self) -> Result<bool> {
        self.end.borrow_mut().as_mut().map_or(Ok(true), |end| end.is_complete())
    }

    fn ended(&self, work: Repeated, check: Check) {
        self.ended.replace(Some((work, check)));
    }
}

/// A sink that keeps rows and passes on everything else.
struct Held<'a> {
    sink: &'a mut dyn Sink,
    /// Whether the rows are those of the ranks that are measured, and not of the load.
    is_measured: bool,
    rows: Vec<Measurement>,
}

impl Sink for Held<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Row(row) => {
                self.rows.push(row.clone().into_owned());
                Ok(())
            }
            // A load that fails has no row of its own.
            Event::Starting(_) if !self.is_measured => self.sink.event(&Event::Alive),
            event => self.sink.event(event),
        }
    }
}

/// One of this many ranks is measured, if the benchmark needs no more. GPCNeT has the same share of nodes.
const SHARE: u32 = 5;

/// Ranks of a job in the order of their teams. Neighbours in both lists are on different hosts where there are several.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Division {
    /// Ranks that are measured; the first is rank 0, through which rows go.
    victims: Vec<Rank>,
    congestors: Vec<Rank>,
}

impl Division {
    /// Divides the ranks of a team for a benchmark and its loads, which need this many ranks. Rank 0 passes the places of all ranks. Collective.
    ///
    /// # Errors
    /// [`Error::unsupported`] if there are too few ranks.
    fn new(
        team: &dyn Team,
        places: &[Place],
        needed: u32,
        least_of_load: u32,
        seed: u64,
    ) -> Result<Division> {
        let total = team.size();
        let victims = needed.max(total / SHARE);
        let least = victims.saturating_add(least_of_load);
        if least > total {
            return Err(Error::unsupported(format!(
                "needs {least} ranks, {victims} that are measured and {least_of_load} for the load, has \
                 {total}; start it with -n {least}"
            )));
        }
        let hosts: Vec<&str> = places.iter().map(|place| &*place.host).collect();
        let mut ranks = team.broadcast_message(in_turns(&hosts, seed))?.into_iter();
        let victims = ranks.by_ref().take(victims as usize).collect();
        Ok(Division { victims, congestors: ranks.collect() })
    }
}

/// Returns all ranks in a random order in which the hosts take turns. The first is rank 0. `hosts` are the hosts of the ranks.
fn in_turns(hosts: &[&str], seed: u64) -> Vec<Rank> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut on_host: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
    for (rank, host) in (0..).map(Rank).zip(hosts) {
        on_host.entry(host).or_default().push(rank);
    }
    let mut by_host: Vec<Vec<Rank>> = on_host.into_values().collect();
    by_host.iter_mut().for_each(|ranks| random.shuffle(ranks));
    random.shuffle(&mut by_host);
    sort_by_number(&mut by_host, |ranks| (!ranks.contains(&Rank(0))).into());
    if let Some(first) = by_host.first_mut() {
        sort_by_number(first, |rank| (*rank != Rank(0)).into());
    }
    let most = by_host.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).flat_map(|at| by_host.iter().filter_map(move |ranks| ranks.get(at).copied())).collect()
}

/// Name of the load among the values that a row names.
const UNDER: &str = "under";
/// Figures with the factor of the median and of the 99th percentile.
const FACTORS: [&str; 2] = ["impact_times", "impact_p99_times"];
/// A row is marked if the case without load took this much longer or shorter after the loads than before, as a fraction.
const MOST_MOVED: f64 = 0.1;

/// A value with the ends of its interval, if it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Timed {
    value: f64,
    ends: Option<[f64; 2]>,
}

impl Timed {
    /// Returns how many times `base` this is. The ends of the quotient are those of the worst case.
    fn over(self, base: Timed) -> Timed {
        let ends = self.ends.zip(base.ends).map(|([low, high], [least, most])| [low / most, high / least]);
        Timed { value: self.value / base.value, ends }
    }

    /// Returns the geometric mean of both.
    fn and(self, other: Timed) -> Timed {
        let mean = |a: f64, b: f64| (a * b).sqrt();
        let ends = self.ends.zip(other.ends).map(|(a, b)| [mean(a[0], b[0]), mean(a[1], b[1])]);
        Timed { value: mean(self.value, other.value), ends }
    }
}

/// Returns median and 99th percentile of a row; `None` for what it does not have.
fn times(row: &Measurement) -> [Option<Timed>; 2] {
    let summary: Option<&Summary> = row.summary.as_ref().filter(|_| row.outcome == Outcome::Ok);
    let positive = |timed: &Timed| timed.value > 0.0 && timed.ends.is_none_or(|[low, _]| low > 0.0);
    let median = summary.map(|s| Timed { value: s.median, ends: s.ci95 });
    let p99 = summary.and_then(|s| s.p99).map(|p| Timed { value: p.value, ends: p.ci95 });
    [median.filter(positive), p99.filter(positive)]
}

/// Adds impact factors to the rows of one benchmark in one launch: of each load against the case without load, which is the geometric
/// mean of both measurements if it was measured before and after; and of the second measurement against the first.
fn describe_impact(rows: &mut [Measurement]) {
    let [before, after] = [Under::Nothing.to_string(), format!("{NO_LOAD}{LOAD_AGAIN}")];
    let case = |row: &Measurement| {
        let mut axes = row.axes.clone();
        let under = axes.remove(UNDER).unwrap_or_default();
        (under, (axes, row.bytes, row.depth, row.pairs))
    };
    let mut bases: BTreeMap<_, [[Option<Timed>; 2]; 2]> = BTreeMap::new();
    for row in rows.iter() {
        let (under, case) = case(row);
        let base = bases.entry(case).or_default();
        match under {
            under if under == before => base[0] = times(row),
            under if under == after => base[1] = times(row),
            _ => {}
        }
    }
    for row in rows {
        let (under, case) = case(row);
        let Some([first, second]) = bases.get(&case).filter(|_| under != before) else { continue };
        let timed = times(row);
        for (at, name) in FACTORS.into_iter().enumerate() {
            let base = match (first[at], second[at]) {
                (Some(first), Some(second)) if under != after => Some(first.and(second)),
                (first, _) => first,
            };
            let Some(factor) = timed[at].zip(base).map(|(timed, base)| timed.over(base)) else { continue };
            row.figures.insert(name.into(), Figure::Value(factor.value));
            // Without an interval in this launch, the names of its ends let the launches together have one.
            let ends = factor.ends.map_or_else(
                || {
                    [(); 2].map(|()| {
                        Figure::Unresolved("an impact factor needs two rows with an interval".into())
                    })
                },
                |ends| ends.map(Figure::Value),
            );
            row.figures.extend(
                interval_names(name).into_iter().flat_map(|names| names.into_iter().zip(ends.clone())),
            );
        }
        row.trust.extend(moved(first[0], second[0]));
    }
}

/// Returns the mark of rows whose base was not the same before and after the loads.
fn moved(before: Option<Timed>, after: Option<Timed>) -> Option<Mark> {
    let factor = after?.over(before?).value;
    (!(1.0 / (1.0 + MOST_MOVED)..=1.0 + MOST_MOVED).contains(&factor)).then(|| {
        let cause = format!("without load the case took {factor:.2} times as long after the loads as before");
        Mark::new(MarkCode::BaseMoved, "base moved", cause)
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod division_tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn hosts_take_turns_in_a_random_order() {
        let hosts = ["a", "a", "a", "b", "b", "b", "c", "c", "c"];
        let orders: BTreeSet<Vec<Rank>> = (0..50).map(|seed| in_turns(&hosts, seed)).collect();
        assert!(orders.len() > 30, "{} different orders", orders.len());
        for order in orders {
            assert_eq!(order[0], Rank(0));
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), hosts.len());
            let on = |rank: &Rank| hosts[rank.0 as usize];
            assert!(order.windows(2).all(|pair| on(&pair[0]) != on(&pair[1])), "{order:?}");
        }
        assert_eq!(in_turns(&hosts, 7), in_turns(&hosts, 7));
        assert_eq!(in_turns(&["a", "b", "b"], 1)[..2].len(), 2);
        assert_eq!(in_turns(&[], 1), []);
    }
}

#[cfg(test)]
mod impact_tests {
    use ombx_record::{result::Metric, stats::Percentile};

    use super::*;

    fn row(under: &str, ns: u64, p99: f64) -> Measurement {
        let summary = Summary::of_batches(&[ns as f64; 40]).map(|summary| Summary {
            p99: Some(Percentile { value: p99, ci95: Some([p99 * 0.9, p99 * 1.1]) }),
            ..summary
        });
        Measurement {
            axes: [(UNDER.to_owned(), under.to_owned())].into(),
            bytes: Some(8),
            summary,
            ..Measurement::new("p2p.latency", format!("p2p.latency/under={under}"), Metric::Latency, 2)
        }
    }

    fn value(row: &Measurement, name: &str) -> Option<f64> {
        match row.figures.get(name) {
            Some(Figure::Value(value)) => Some(*value),
            _ => None,
        }
    }

    #[test]
    fn factors_are_against_the_mean_of_both_bases() {
        let mut rows = vec![
            row("nothing", 400, 500.0),
            row("p2p.bw:4K", 1200, 3000.0),
            row("nothing-again", 900, 500.0),
        ];
        rows[1].bytes = Some(16);
        describe_impact(&mut rows);
        assert!(rows[1].figures.is_empty(), "there is no base of this size");

        rows[1].bytes = Some(8);
        describe_impact(&mut rows);
        assert!(rows[0].figures.is_empty());
        assert_eq!(value(&rows[1], "impact_times"), Some(2.0));
        assert_eq!(value(&rows[1], "impact_p99_times"), Some(6.0));
        let [low, high] = ["low", "high"].map(|end| value(&rows[1], &format!("impact_p99_{end}_times")));
        assert!(low.unwrap() < 5.0 && high.unwrap() > 7.3, "{low:?} {high:?}");
        assert_eq!(value(&rows[2], "impact_times"), Some(2.25));
        assert!(rows[1].trust.iter().any(|mark| mark.code == MarkCode::BaseMoved));
    }

    #[test]
    fn a_factor_without_interval_names_the_ends() {
        let mut rows = vec![row("nothing", 100, 100.0), row("p2p.bw:4K", 300, 300.0)];
        for row in &mut rows {
            row.summary.as_mut().unwrap().ci95 = None;
        }
        describe_impact(&mut rows);
        assert_eq!(value(&rows[1], "impact_times"), Some(3.0));
        assert!(matches!(rows[1].figures["impact_low_times"], Figure::Unresolved(_)));
        assert!(matches!(rows[1].figures["impact_high_times"], Figure::Unresolved(_)));
    }

    #[test]
    fn without_a_base_there_is_no_factor() {
        let mut rows = vec![row("p2p.bw:4K", 1200, 3000.0)];
        describe_impact(&mut rows);
        assert!(rows[0].figures.is_empty() && rows[0].trust.is_empty());
        let mut rows = vec![row("nothing", 100, 100.0), row("p2p.bw:4K", 300, 300.0)];
        rows[1].outcome = Outcome::Failed("x".into());
        describe_impact(&mut rows);
        assert!(rows[1].figures.is_empty(), "a failed row has no factor");
    }
}
