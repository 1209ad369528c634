//! A benchmark under load: some ranks of the job are measured while the others repeat another benchmark.

mod division;
mod impact;

use std::cell::RefCell;

use self::division::Division;
use crate::{
    benchmark::{
        Assignment, Benchmark, Case, Choice, Figure, Layout, MEMORY_LIMIT, Pairs, Registry, Role,
        payload::Check,
    },
    error::{Error, Kind, Result},
    measure::{
        collect::first_mismatch,
        intervals::Interval,
        opened::OpenKernel,
        plan::{Congestor, Plan, Under, load_names},
        ranks::{Ranks, skipped},
        repeat::{Background, Repeated},
        session::Session,
        sink::Sink,
    },
    result::{Growth, Measurement, Outcome, Run, Tally},
    team::{EnteredBarrier, Place, Team},
    unit::Rank,
};

/// Figure of a row under load: bytes that all congestors together sent, by the time of their rounds.
const RATE_OF_LOAD: &str = "congestors_mb_per_s";

/// Measures a benchmark under each load of a plan, one after the other. Collective.
pub(super) fn measure(all: &Ranks<'_>, choice: Choice, plan: &Plan, sink: &mut dyn Sink) -> Result<()> {
    let (team, bench) = (all.team, choice.bench);
    let needed = bench.ranks.layout.ranks_wanted(plan.pairs());
    let seed = plan.launch.map_or(0, |launch| launch.order);
    let division = match Division::of(team, all.places, needed, seed) {
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
            Under::Congestor(congestor) => team
                .agree(Load::open(congestor, &division.congestors, plan))
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
    impact::describe(&mut rows);
    rows.iter().try_for_each(|row| sink.case(row))
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
        Rank(0) => sink.case(&skipped(bench, under, team.size(), why.to_string())),
        _ => Ok(()),
    }
}

/// A congestor on its ranks.
struct Load {
    choice: Choice,
    plan: Plan,
    assignment: Assignment,
    /// Ranks of the job that run it, in the order of their team.
    ranks: Vec<Rank>,
}

impl Load {
    /// Returns the load of a congestor on these ranks; a benchmark of one pair runs on all pairs of neighbours in the list.
    fn open(congestor: &Congestor, ranks: &[Rank], plan: &Plan) -> Result<Load> {
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
        Ok(Load { choice, plan, assignment, ranks })
    }

    /// Runs the congestor on its ranks until `measured` has returned on the ranks that are measured. Collective over the job.
    ///
    /// # Errors
    /// [`Error::unsupported`] on every rank if the congestor cannot run.
    fn run(
        self,
        all: &Ranks<'_>,
        sink: &mut dyn Sink,
        measured: &dyn Fn(&mut dyn Sink) -> Result<()>,
    ) -> Result<Ended> {
        let team = all.team;
        let part = team.subset(&self.ranks)?;
        let job = Job { team, end: RefCell::default(), why: RefCell::default(), ended: RefCell::default() };
        if let Some(part) = &part {
            let mut rows = Held { sink, is_measured: false, rows: Vec::new() };
            let context = (&self.plan, all.clock, &[][..]);
            let mut session = Session::new(&**part, self.assignment, context, self.choice, &mut rows);
            session.background = Some(&job);
            (self.choice.bench.run)(&mut session)?;
            if job.end.borrow().is_none() {
                let why = job.why.take().unwrap_or_else(|| "it has no such case".into());
                let name = self.choice.bench.name;
                team.agree::<()>(Err(Error::unsupported(format!("the load {name} cannot run: {why}"))))?;
            }
        } else {
            team.agree(Ok(()))?;
            measured(sink)?;
            team.sleeping_barrier()?;
        }
        let me = part.as_ref().map(|part| part.rank());
        let (work, check) = job.ended.take().unwrap_or((Repeated::default(), Check::Passed));
        // The rank on which wrong data arrived says so, which names it by its number in the job.
        let mine = match &check {
            Check::Failed(mismatch) if Some(mismatch.rank) != me => Check::Passed,
            _ => check,
        };
        let note = match me {
            Some(Rank(0)) => [work.bytes, work.spent_ns].map(u64::to_le_bytes).concat(),
            _ => Vec::new(),
        };
        let check = first_mismatch(team, mine)?;
        let all = team.gather(&note)?.unwrap_or_default().concat();
        let number = |at: usize| all.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let work = number(0).zip(number(8)).map(|(bytes, spent_ns)| Repeated { bytes, spent_ns });
        Ok(Ended { bench: self.choice.bench, work: work.unwrap_or_default(), check })
    }
}

/// A load that is over.
struct Ended {
    bench: &'static Benchmark,
    /// Known on rank 0.
    work: Repeated,
    /// Check of what the congestors received.
    check: Check,
}

impl Ended {
    /// Adds to a row what its load was. A row whose load received wrong data has failed.
    fn describe(&self, row: &mut Measurement) {
        let Repeated { bytes, spent_ns } = self.work;
        if bytes > 0 {
            let rate = bytes as f64 * 1e3 / spent_ns.max(1) as f64;
            row.figures.insert(RATE_OF_LOAD.into(), Figure::Value(rate));
        }
        if let (Check::Failed(mismatch), false) = (&self.check, matches!(row.check, Check::Failed(_))) {
            let name = self.bench.name;
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
    fn run(&mut self, run: &Run) -> Result<()> {
        self.sink.run(run)
    }

    fn starting(&mut self, row: &Measurement) {
        // A load that fails has no row of its own.
        if self.is_measured {
            self.sink.starting(row);
        } else {
            self.sink.alive();
        }
    }

    fn alive(&self) {
        self.sink.alive();
    }

    fn interval(&self, interval: &Interval) {
        self.sink.interval(interval);
    }

    fn grown(&self) -> Vec<Growth> {
        self.sink.grown()
    }

    fn status(&mut self, process: u32, line: &str) {
        self.sink.status(process, line);
    }

    fn takes(&self, kernel: &mut dyn OpenKernel, case: &Case, role: Role) -> Result<bool> {
        self.sink.takes(kernel, case, role)
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        self.rows.push(row.clone());
        Ok(())
    }

    fn end(&mut self, tally: &Tally) -> Result<()> {
        self.sink.end(tally)
    }
}

#[cfg(test)]
mod tests;
