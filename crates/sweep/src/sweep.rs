//! Sweep over links: measures pairs of ranks round by round, then measures the slowest links again, alone. In a long sweep, links that
//! stand out are measured again earlier, so that they can be named before the end.
//!
//! Each pair is a team of two, which runs an ordinary benchmark of two ranks. After each step, the timed ranks send their rows in
//! turns to rank 0, which passes each to the sink as it comes. To find the slowest links rank 0 keeps the times of a sample of
//! links, and of the slowest of each rank; no rank holds the matrix.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use ombx_core::{
    benchmark::{Choice, Layout},
    clock::Clock,
    measure::{
        plan::{Effort, Launch, Plan},
        runner::{self, OpenRun},
        session::{Memory, Session, Sink, sizes_of},
    },
    team::Team,
};
use ombx_links::verdict::{self, CommonPath, Criteria, Hosts, LOOKS, MOST_ROWS, Retest, Shares, TimesBySize};
use ombx_record::{
    error::{Error, Kind, Result},
    event::Event,
    file,
    link::{self, ROUND},
    result::{Check, Mark, Measurement, Outcome, Tally},
    unit::{Bytes, Rank},
};
use serde::{Deserialize, Serialize};

use crate::schedule::{Mode, Schedule};

/// Iterations of the warm-up at each size.
const WARM_UP_ITERATIONS: u64 = 3;

impl Mode {
    /// Returns the number of measuring steps and of rows, without retests. All pairs of a step take the time of one row. `rounds`
    /// limits the number of rounds.
    pub fn extent(self, ranks: u32, sizes: usize, rounds: Option<u32>) -> (u64, u64) {
        let schedule = self.schedule(ranks, None);
        let per_pair = 2 * sizes as u64;
        let rounds = u64::from(rounds_of(&schedule, rounds).len() as u32).saturating_mul(per_pair);
        let rows = rounds.saturating_mul(u64::from(schedule.pairs()));
        (if self == Mode::Serial { rows } else { rounds }, rows)
    }
}

/// Returns the rounds that are measured: all, or this many at equal distances.
pub fn rounds_of(schedule: &Schedule, limit: Option<u32>) -> impl ExactSizeIterator<Item = u32> + use<> {
    let all = schedule.rounds();
    let measured = limit.unwrap_or(all).min(all);
    (0..measured).map(move |at| (u64::from(at) * u64::from(all) / u64::from(measured)) as u32)
}

/// Arguments of a sweep.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    /// Benchmark of two ranks that measures one direction of one link.
    pub choice: Choice,
    /// Selection of pairs.
    pub mode: Mode,
    /// Maximum number of rounds: a sample of the pairs.
    pub rounds: Option<u32>,
    /// Seed that permutes the ranks of the schedule.
    pub seed: Option<u64>,
    /// Number of slowest links per size that are measured again, alone.
    pub retest: u32,
    /// Benchmark of all ranks that runs a few times at every size before the sweep, such as an all-to-all exchange.
    pub warm_up: Option<Choice>,
    /// What the user demands of the links.
    pub criteria: Criteria,
}

/// Runs a sweep. All ranks call this with the same arguments; the sink of rank 0 receives the rows.
pub fn run(
    team: &dyn Team,
    task: &Task,
    plan: &Plan,
    clock: &Clock,
    sink: &mut dyn Sink,
    argv: Vec<String>,
) -> Result<Tally> {
    if team.size() < 2 {
        return Err(Error::usage("links need at least 2 ranks: start with -n 2 or more"));
    }
    (task.choice.bench.available)().map_err(Error::unsupported)?;
    let schedule = task.mode.schedule(team.size(), task.seed);
    let mut options = describe(task, plan);
    if let Some(choice) = task.warm_up {
        options.insert("warm_up".into(), warm_up(team, choice, plan, clock, sink)?);
    }
    let opening = runner::open(team, clock, sink, options, argv)?;
    let hosts = Hosts::new(opening.places.iter().map(|place| place.host.as_str()));
    let hosts = hosts.grouped(&task.criteria.groups);
    let (times, alone) = (TimesBySize::default(), TimesBySize::default());
    let (again, shares) = (BTreeSet::new(), Shares::default());
    let mut sweep = Sweep { team, task, plan, clock, opening, hosts, times, alone, again, shares };
    let turns = if task.mode == Mode::Serial { schedule.pairs() } else { 1 };
    let sizes = sizes_of(task.choice.bench, plan)?;
    let rounds = rounds_of(&schedule, task.rounds);
    let looks = looks(rounds.len(), task, plan);
    for (number, round) in rounds.enumerate() {
        if looks.contains(&number) {
            sweep.look()?;
        }
        for turn in 0..turns {
            let partner = match task.mode {
                Mode::Parallel | Mode::Halves | Mode::Bisection => schedule.partner(team.rank(), round),
                Mode::Serial => partner_in(schedule.pair(round, turn).into(), team.rank()),
            };
            let label = (task.mode != Mode::Serial).then(|| (ROUND, round.to_string()));
            sweep.measure_both_directions(partner, &sizes, label.as_slice())?;
        }
    }
    // Ping-pongs use each direction half of the time, so that two of them fit into one link: they do not show what is shared.
    let is_directed = sweep.times.0.iter().any(|times| times.directed);
    sweep.retest_slowest()?;
    if let (Some(largest), true) = (sizes.iter().max(), task.retest > 0) {
        let pairs = (0..schedule.pairs()).map(|pair| schedule.pair(0, pair)).map(|(a, b)| [a.0, b.0]);
        let paths = match task.mode {
            Mode::Bisection => CommonPath::of_bisection(&sweep.hosts, pairs).into_iter().collect(),
            Mode::Parallel | Mode::Halves => CommonPath::of_groups(&sweep.hosts),
            Mode::Serial => Vec::new(),
        };
        sweep.measure_paths(if is_directed { paths } else { Vec::new() }, *largest)?;
    }
    sweep.opening.finish(team)
}

/// Runs a benchmark of all ranks at every size. Returns its name and the sizes that ran, for the result file of rank 0.
fn warm_up(
    team: &dyn Team,
    choice: Choice,
    plan: &Plan,
    clock: &Clock,
    sink: &mut dyn Sink,
) -> Result<String> {
    let effort = Effort::Fixed { iterations: WARM_UP_ITERATIONS, warmup: 0 };
    let plan = Plan { sizes: plan.sizes.clone(), verify: plan.verify, effort, ..Plan::default() };
    let assignment = choice.bench.ranks.layout.assign(team.size(), None)?;
    let mut rows = PairSink { kept: Memory::default(), outer: sink };
    let mut session = Session::new(team, assignment, (&plan, clock, &[]), choice, &mut rows);
    (choice.bench.run)(&mut session).map_err(|e| e.within("the warm-up"))?;
    let rows = rows.kept.rows;
    if let Some(Outcome::Failed(why)) =
        rows.iter().map(|row| &row.outcome).find(|o| matches!(o, Outcome::Failed(_)))
    {
        return Err(Error::new(Kind::Payload, format!("the warm-up failed: {why}")));
    }
    let ran = rows.iter().filter(|row| row.outcome == Outcome::Ok);
    let sizes: Vec<String> = ran.filter_map(|row| Some(Bytes(row.bytes?).to_string())).collect();
    Ok(format!("{} {}", choice.bench.name, if sizes.is_empty() { "none".into() } else { sizes.join(",") }))
}

fn partner_in([a, b]: [Rank; 2], me: Rank) -> Option<Rank> {
    match me {
        me if me == a => Some(b),
        me if me == b => Some(a),
        _ => None,
    }
}

/// Extra axes of a row.
pub type Labels<'a> = &'a [(&'static str, String)];

/// State of a sweep.
struct Sweep<'a> {
    team: &'a dyn Team,
    task: &'a Task,
    plan: &'a Plan,
    clock: &'a Clock,
    opening: OpenRun<'a>,
    /// Host of each rank on rank 0.
    hosts: Hosts,
    /// Times of the links, without those measured again. Only rank 0 has them.
    times: TimesBySize,
    /// Times of the links that were measured again. Only rank 0 has them.
    alone: TimesBySize,
    /// Links that were measured again, on rank 0: timed rank, other rank, bytes, and whether they stood out.
    again: BTreeSet<(u32, u32, u64, bool)>,
    /// Times of links that may share a bottleneck. Only rank 0 has them.
    shares: Shares,
}

impl Sweep<'_> {
    /// Measures both directions between this rank and its partner at every size. Collective over all ranks.
    fn measure_both_directions(
        &mut self,
        partner: Option<Rank>,
        sizes: &[Bytes],
        labels: Labels<'_>,
    ) -> Result<()> {
        let me = self.team.rank();
        for lower_is_timed in [true, false] {
            let first =
                partner.map(|other| Rank(if lower_is_timed { me.0.min(other.0) } else { me.0.max(other.0) }));
            let pair = match (partner, first) {
                (Some(partner), Some(first)) => Some((partner, self.team.pair(partner, first)?)),
                _ => None,
            };
            for bytes in sizes {
                self.measure_step(pair.as_ref().map(|(partner, pair)| (*partner, &**pair)), *bytes, labels)?;
            }
        }
        Ok(())
    }

    /// Measures at most one row per pair and passes the rows to the sink. Ranks without a pair sleep until all are done.
    fn measure_step(
        &mut self,
        pair: Option<(Rank, &dyn Team)>,
        bytes: Bytes,
        labels: Labels<'_>,
    ) -> Result<()> {
        let row = match pair {
            Some((partner, pair)) => self.measure(partner, pair, bytes, labels)?,
            None => None,
        };
        self.opening.sink.event(&Event::Alive)?;
        self.team.sleeping_barrier()?;
        let mut mine = Vec::new();
        if let Some(row) = row {
            file::write(&mut mine, &Event::row(&row))
                .map_err(|e| Error::fabric(format!("cannot send a row to rank 0: {e}")))?;
        }
        self.team.gather_each(&mine, &mut |line| {
            let Ok(Some(Event::Row(row))) = file::parse(&String::from_utf8_lossy(&line), 1) else {
                return Err(Error::fabric(
                    "cannot read the row of a rank: check that all ranks run the same ombx",
                ));
            };
            let is_again = row.axes.contains_key(link::RETEST);
            let times = if is_again { &mut self.alone } else { &mut self.times };
            times.add(&row, &self.hosts, MOST_ROWS);
            self.shares.add(&row, 0);
            self.opening.sink.event(&Event::row(&row))
        })
    }

    /// Measures one direction at one size. Returns the row on the timed rank.
    fn measure(
        &mut self,
        partner: Rank,
        pair: &dyn Team,
        bytes: Bytes,
        labels: Labels<'_>,
    ) -> Result<Option<Measurement>> {
        let plan = Plan { sizes: Some(vec![bytes]), ..self.plan.clone() };
        let assignment = Layout::Pair.assign(2, None)?;
        let mut rows = PairSink { kept: Memory::default(), outer: &mut self.opening.sink };
        let standing: &[Mark] = &self.opening.standing;
        let mut session =
            Session::new(pair, assignment, (&plan, self.clock, standing), self.task.choice, &mut rows);
        session.watched = self.opening.watched.as_ref();
        (self.task.choice.bench.run)(&mut session)
            .map_err(|e| e.within(format!("link of ranks {} and {partner}", self.team.rank())))?;
        let ends = [self.team.rank(), partner];
        Ok(rows.kept.rows.pop().map(|row| renumbered(row, ends, labels)))
    }
}

/// Converts the row of a pair to a row of the sweep, with rank numbers of the whole team.
pub fn renumbered(mut row: Measurement, ends: [Rank; 2], labels: Labels<'_>) -> Measurement {
    row.bench = link::BENCH.into();
    row.axes.insert("from".into(), ends[0].to_string());
    row.axes.insert("to".into(), ends[1].to_string());
    row.axes.extend(labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    row.key = link::key_of_link(&row.axes, row.bytes, row.depth);
    for samples in row.samples.iter_mut().chain(&mut row.tail) {
        samples.rank = ends[0].0;
    }
    if let Check::Failed(mismatch) = &mut row.check {
        mismatch.rank = ends[mismatch.rank.0.min(1) as usize];
        row.outcome = Outcome::Failed(format!("data arrived wrong at {mismatch}"));
    }
    row
}

/// Sink of a pair: keeps its row, and forwards progress to the sink of the sweep.
struct PairSink<'a> {
    kept: Memory,
    outer: &'a mut dyn Sink,
}

impl Sink for PairSink<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Starting(row) => {
                let row = Measurement { bench: link::BENCH.into(), ..row.clone().into_owned() };
                self.outer.event(&Event::Starting(Cow::Owned(row)))
            }
            Event::Alive => self.outer.event(event),
            event => self.kept.event(event),
        }
    }
}

/// Returns the options of the sweep for the result file.
fn describe(task: &Task, plan: &Plan) -> BTreeMap<String, String> {
    let mut options = runner::describe(plan, &[task.choice]);
    options.insert("benchmarks".into(), link::BENCH.into());
    options.insert("links".into(), task.mode.name().into());
    options.insert("retest".into(), task.retest.to_string());
    task.criteria.describe(&mut options);
    if let Some(rounds) = task.rounds {
        options.insert("rounds".into(), rounds.to_string());
    }
    if let Some(seed) = task.seed {
        options.insert("randomize".into(), seed.to_string());
    }
    if let Some(Launch { number, of, .. }) = plan.settings.launch {
        options.insert("launch".into(), number.to_string());
        options.insert("launches".into(), of.to_string());
    }
    options
}

/// Minimum number of rounds before a look, and between two: hosts are compared by at least three links of each.
const ROUNDS_PER_LOOK: usize = 4;

/// Returns the rounds before which rank 0 looks for slow links. A short sweep has none, and each launch of several has none but its
/// end.
fn looks(rounds: usize, task: &Task, plan: &Plan) -> Vec<usize> {
    let is_one = plan.settings.launch.is_none_or(|launch| launch.of == 1);
    let is_long = rounds >= (LOOKS + 1) * ROUNDS_PER_LOOK;
    let parts = if task.retest > 0 && is_one && is_long { LOOKS } else { 0 };
    (1..=parts).map(|part| part * rounds / (LOOKS + 1)).collect()
}

impl Sweep<'_> {
    /// Measures the links again that stand out before the end, and ordinary links for comparison.
    fn look(&mut self) -> Result<()> {
        let links = match self.team.rank() {
            Rank(0) => verdict::interim_candidates(&self.times.0, &self.hosts),
            _ => Vec::new(),
        };
        self.measure_again(links)
    }

    /// Measures suspicious links and, for comparison, ordinary links again, each alone.
    fn retest_slowest(&mut self) -> Result<()> {
        let times = std::mem::take(&mut self.times).0;
        let links = match self.team.rank() {
            Rank(0) => verdict::retest_candidates(&times, &self.hosts, self.task.retest as usize),
            _ => Vec::new(),
        };
        self.measure_again(links)
    }

    /// Measures the links of rank 0's list again, each alone, except those that were. A link that is slow each time is measured several
    /// times, which are apart, so that no short disturbance reaches all of them. Collective over all ranks.
    fn measure_again(&mut self, links: Vec<Retest>) -> Result<()> {
        let mut links = links;
        links.retain(|link| self.again.insert((link.from, link.to, link.bytes, link.is_slow)));
        for attempt in 1.. {
            let all = self.team.broadcast_message(links.clone())?;
            if all.is_empty() {
                break;
            }
            for link in all {
                self.measure_alone(link, attempt)?;
            }
            links = verdict::once_more(links, &self.alone.0, &self.hosts, attempt);
        }
        Ok(())
    }

    /// Measures the links of each path together and, in turns, some of them alone, as long as it may be found that they share a bottleneck.
    /// Collective over all ranks; the paths are those of rank 0.
    fn measure_paths(&mut self, paths: Vec<CommonPath>, bytes: Bytes) -> Result<()> {
        let mut paths = paths;
        for attempt in 1.. {
            paths = self.team.broadcast_message(paths)?;
            if paths.is_empty() {
                break;
            }
            for path in &paths {
                self.measure_links(&path.links, bytes, &of_path(path, link::TOGETHER, attempt))?;
                for ends in path.apart() {
                    self.measure_links(&[ends], bytes, &of_path(path, link::APART, attempt))?;
                }
            }
            paths = self.shares.once_more(paths, attempt);
        }
        Ok(())
    }

    /// Measures links at the same time while all other ranks sleep. The first end of each is timed. Collective over all ranks.
    fn measure_links(&mut self, links: &[[u32; 2]], bytes: Bytes, labels: Labels<'_>) -> Result<()> {
        let mine = links.iter().find_map(|ends| {
            let ends = ends.map(Rank);
            Some((ends[0], partner_in(ends, self.team.rank())?))
        });
        let pair = match mine {
            Some((timed, partner)) => Some((partner, self.team.pair(partner, timed)?)),
            None => None,
        };
        self.measure_step(pair.as_ref().map(|(partner, pair)| (*partner, &**pair)), bytes, labels)
    }

    /// Measures a link while all other ranks sleep. Collective over all ranks.
    fn measure_alone(&mut self, link: Retest, attempt: usize) -> Result<()> {
        self.measure_links(&[[link.from, link.to]], Bytes(link.bytes), &link.axes(attempt))
    }
}

/// Returns the axes of the rows of a path.
fn of_path(path: &CommonPath, how: &str, attempt: usize) -> [(&'static str, String); 3] {
    [(link::PATH, path.name.clone()), (link::RETEST, how.into()), (link::ATTEMPT, attempt.to_string())]
}

#[cfg(test)]
mod tests;
