//! Every pair of ranks, or every pair across the bisection, measured round by round; the slowest are measured again alone.
//!
//! Each pair is a team of two and is measured as any benchmark of two ranks is. Rows go to rank 0 after every step, one of
//! each timed rank, and from there to the sink: no rank holds the matrix. What grows with the square of the ranks are
//! 12 bytes for each row on rank 0, by which it finds the slowest.

use std::collections::BTreeMap;

use crate::schedule::Schedule;
use ombx_core::{
    benchmark::{case::Case, entry::Choice, layout::Layout, payload::Check},
    error::{Error, Result},
    measure::{
        plan::Plan,
        runner::{self, OpenRun},
        session::{Session, sizes_of},
        sink::{Memory, Sink},
    },
    result::{Measurement, Notice, Outcome, Run, Tally},
    system::clock::Clock,
    team::Team,
    unit::{Bytes, Rank},
};
use ombx_results::{
    file::{self, Record},
    verdict::{self, Hosts, TimesBySize},
};

/// Which pairs are measured, and which at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All pairs, as many at the same time as there are in a round.
    Parallel,
    /// All pairs, one at a time; the other ranks sleep.
    Serial,
    /// Rank i with i + N/2, all at the same time.
    Bisection,
}

impl Mode {
    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Parallel => "parallel",
            Mode::Serial => "serial",
            Mode::Bisection => "bisection",
        }
    }

    fn schedule(self, ranks: u32, seed: Option<u64>) -> Schedule {
        let plain = match self {
            Mode::Parallel | Mode::Serial => Schedule::all_pairs(ranks),
            Mode::Bisection => Schedule::bisection(ranks),
        };
        seed.map_or(plain, |seed| plain.shuffled(seed))
    }

    /// Steps of measuring, each a row of as many pairs as it has, and rows, before anything is measured again.
    pub fn extent(self, ranks: u32, sizes: usize) -> (u64, u64) {
        let schedule = self.schedule(ranks, None);
        let per_pair = 2 * sizes as u64;
        let rounds = u64::from(schedule.rounds()).saturating_mul(per_pair);
        let rows = rounds.saturating_mul(u64::from(schedule.pairs()));
        (if self == Mode::Serial { rows } else { rounds }, rows)
    }
}

/// What is measured of links.
#[derive(Debug, Clone)]
pub struct Task {
    /// The benchmark of two ranks that measures one direction of one link.
    pub choice: Choice,
    /// Which pairs, and when.
    pub mode: Mode,
    /// Permutes which rank plays which part of the schedule.
    pub seed: Option<u64>,
    /// How many of the slowest links of each size are measured again alone.
    pub retest: u32,
}

/// Measures links. Every rank calls it with the same arguments; the sink of rank 0 gets the rows.
pub fn run(
    team: &dyn Team,
    task: &Task,
    plan: &Plan,
    clock: &Clock,
    sink: &mut dyn Sink,
    argv: Vec<String>,
) -> Result<Tally> {
    if team.size() < 2 {
        return Err(Error::usage("links are between two ranks and more; start it with -n 2 or more"));
    }
    (task.choice.bench.available)().map_err(Error::unsupported)?;
    let schedule = task.mode.schedule(team.size(), task.seed);
    let opening = runner::open(team, clock, sink, describe(task, plan), argv)?;
    let mut sweep = Sweep { team, task, plan, clock, opening, times: TimesBySize::default() };
    let turns = if task.mode == Mode::Serial { schedule.pairs() } else { 1 };
    let sizes = sizes_of(task.choice.bench, plan)?;
    for round in 0..schedule.rounds() {
        for turn in 0..turns {
            let partner = match task.mode {
                Mode::Parallel | Mode::Bisection => schedule.partner(team.rank(), round),
                Mode::Serial => other_of(schedule.pair(round, turn), team.rank()),
            };
            let label = (task.mode != Mode::Serial).then(|| ("round", round.to_string()));
            sweep.both_ways(partner, &sizes, label.as_ref())?;
        }
    }
    sweep.again()?;
    if team.rank() == Rank(0) {
        sweep.opening.sink.finish()?;
    }
    Ok(sweep.opening.sink.tally)
}

fn other_of((a, b): (Rank, Rank), me: Rank) -> Option<Rank> {
    match me {
        me if me == a => Some(b),
        me if me == b => Some(a),
        _ => None,
    }
}

/// One more axis of a row.
type Label<'a> = Option<&'a (&'static str, String)>;

/// A sweep under way.
struct Sweep<'a> {
    team: &'a dyn Team,
    task: &'a Task,
    plan: &'a Plan,
    clock: &'a Clock,
    opening: OpenRun<'a>,
    times: TimesBySize,
}

impl Sweep<'_> {
    /// A turn: this rank and its partner, if it has one, in both directions at every size. Collective over all ranks.
    fn both_ways(&mut self, partner: Option<Rank>, sizes: &[Bytes], label: Label<'_>) -> Result<()> {
        let me = self.team.rank();
        for lower_is_timed in [true, false] {
            let first =
                partner.map(|other| Rank(if lower_is_timed { me.0.min(other.0) } else { me.0.max(other.0) }));
            let pair = match (partner, first) {
                (Some(partner), Some(first)) => Some((partner, self.team.pair(partner, first)?)),
                _ => None,
            };
            for bytes in sizes {
                self.step(pair.as_ref().map(|(partner, pair)| (*partner, &**pair)), *bytes, label)?;
            }
        }
        Ok(())
    }

    /// One row of every pair at the most, and its way to the sink. Who has nothing to measure sleeps until all have done.
    fn step(&mut self, pair: Option<(Rank, &dyn Team)>, bytes: Bytes, label: Label<'_>) -> Result<()> {
        let row = match pair {
            Some((partner, pair)) => self.measure(partner, pair, bytes, label)?,
            None => None,
        };
        self.opening.sink.alive();
        self.team.sleeping_barrier()?;
        let mut mine = Vec::new();
        if let Some(row) = row {
            file::write_row(&mut mine, &row)
                .map_err(|e| Error::fabric(format!("a row could not be sent to rank 0: {e}")))?;
        }
        for line in self.team.gather(&mine)?.into_iter().flatten().filter(|line| !line.is_empty()) {
            let row = match file::parse(&String::from_utf8_lossy(&line), 1) {
                Ok(Some(Record::Case(row))) => row,
                _ => {
                    return Err(Error::fabric("a rank sent a row that cannot be read: is it the same ombx?"));
                }
            };
            self.times.add(&row);
            self.opening.sink.case(&row)?;
        }
        Ok(())
    }

    /// Measures one direction at one size; the row is the timed rank's.
    fn measure(
        &mut self,
        partner: Rank,
        pair: &dyn Team,
        bytes: Bytes,
        label: Label<'_>,
    ) -> Result<Option<Measurement>> {
        let plan = Plan { sizes: Some(vec![bytes]), pairs: None, ..self.plan.clone() };
        let assignment = Layout::Pair.assign(2, None)?;
        let mut rows = Rows { kept: Memory::default(), outer: &mut self.opening.sink };
        let standing: &[Notice] = &self.opening.standing;
        let mut session =
            Session::new(pair, assignment, (&plan, self.clock, standing), self.task.choice, &mut rows);
        (self.task.choice.bench.run)(&mut session)
            .map_err(|e| e.within(format!("link of ranks {} and {partner}", self.team.rank())))?;
        let ends = [self.team.rank(), partner];
        Ok(rows.kept.rows.pop().map(|row| named(row, ends, label)))
    }

    /// Measures suspects and, for comparison, ordinary links again, each alone.
    fn again(&mut self) -> Result<()> {
        let (team, me) = (self.team, self.team.rank());
        let mut list: Vec<u8> = Vec::new();
        if me == Rank(0) {
            let hosts = Hosts::of(self.opening.places.iter().map(|p| p.host.as_str()));
            for link in verdict::retest_candidates(&self.times.0, &hosts, self.task.retest as usize) {
                let [from, to] = [link.from, link.to].map(u64::from);
                list.extend([from, to, link.bytes, link.is_slow.into()].iter().flat_map(|n| n.to_le_bytes()));
            }
        }
        list.resize(team.broadcast_value(list.len() as u64)? as usize, 0);
        team.broadcast(&mut list)?;
        for link in list.chunks_exact(32) {
            let number = |at: usize| link[8 * at..8 * at + 8].try_into().map_or(0, u64::from_le_bytes);
            let (from, to) = (Rank(number(0) as u32), Rank(number(1) as u32));
            let value = if number(3) == 1 { verdict::ALONE } else { verdict::REFERENCE };
            let pair = match other_of((from, to), me) {
                Some(partner) => Some((partner, team.pair(partner, from)?)),
                None => None,
            };
            let pair = pair.as_ref().map(|(partner, pair)| (*partner, &**pair));
            self.step(pair, Bytes(number(2)), Some(&(verdict::RETEST, value.into())))?;
        }
        Ok(())
    }
}

/// The row of a team of two in the words of the whole: ranks by their numbers there.
fn named(mut row: Measurement, ends: [Rank; 2], label: Label<'_>) -> Measurement {
    row.bench = verdict::BENCH.into();
    row.axes.insert("from".into(), ends[0].to_string());
    row.axes.insert("to".into(), ends[1].to_string());
    if let Some((name, value)) = label {
        row.axes.insert((*name).into(), value.clone());
    }
    let axes: String = row.axes.iter().map(|(name, value)| format!("{name}={value},")).collect();
    row.key = format!("{}/{axes}bytes={}", verdict::BENCH, row.bytes.unwrap_or(0));
    if let Some(depth) = row.depth {
        row.key += &format!(",depth={depth}");
    }
    for samples in &mut row.samples {
        samples.rank = ends[0].0;
    }
    if let Check::Failed(mismatch) = &mut row.check {
        mismatch.rank = ends[mismatch.rank.0.min(1) as usize];
        row.outcome = Outcome::Failed(format!("data arrived wrong at {mismatch}"));
    }
    row
}

/// Keeps the row of a team of two on its timed rank; signs of life go on to the sink of the whole.
struct Rows<'a> {
    kept: Memory,
    outer: &'a mut dyn Sink,
}

impl Sink for Rows<'_> {
    fn run(&mut self, _: &Run) -> Result<()> {
        Ok(())
    }

    fn starting(&mut self, _: &str, case: &Case) {
        self.outer.starting(verdict::BENCH, case);
    }

    fn alive(&self) {
        self.outer.alive();
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        self.kept.case(row)
    }

    fn end(&mut self, _: &Tally) -> Result<()> {
        Ok(())
    }
}

/// The resolved plan, as it is kept in results.
fn describe(task: &Task, plan: &Plan) -> BTreeMap<String, String> {
    let mut options = runner::describe(plan, &[task.choice]);
    options.insert("benchmarks".into(), verdict::BENCH.into());
    options.insert("links".into(), task.mode.name().into());
    options.insert("retest".into(), task.retest.to_string());
    if let Some(seed) = task.seed {
        options.insert("randomize".into(), seed.to_string());
    }
    options
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;
    use ombx_core::{
        benchmark::entry::Benchmark,
        measure::plan::{Effort, parse_sizes},
        testkit::{Delay, SimLink, on_uneven_ranks},
        two_sided::pattern::{Over, Semidirectional},
    };
    use ombx_results::verdict::{Component, find_slow};

    static SIM: Benchmark =
        Benchmark::of::<Over<Semidirectional, SimLink<5000, 2>>>("sim.link", "a link of known cost");

    fn sweep(ranks: u32, mode: Mode, seed: Option<u64>, retest: u32, delay: Delay) -> Memory {
        let choice = Choice { bench: &SIM, preset: &[] };
        let task = Task { choice, mode, seed, retest };
        let effort = Effort::Precision { precision: 0.01, max_time: Duration::from_micros(400) };
        let plan = Plan { sizes: Some(parse_sizes("8,1000").unwrap()), effort, ..Plan::default() };
        let mut all = on_uneven_ranks(ranks, delay, |team| {
            let mut sink = Memory::default();
            run(team, &task, &plan, &team.clock, &mut sink, vec![]).unwrap();
            sink
        });
        assert!(all[1..].iter().all(|other| other.rows.is_empty()));
        all.swap_remove(0)
    }

    fn axis(row: &Measurement, name: &str) -> u32 {
        row.axes[name].parse().unwrap()
    }

    #[test]
    fn every_direction_of_every_pair_is_a_row_of_each_size() {
        for ranks in 2..=7 {
            for (mode, seed) in [(Mode::Parallel, None), (Mode::Serial, None), (Mode::Parallel, Some(5))] {
                let memory = sweep(ranks, mode, seed, 0, |_, _| 0);
                let rows = (ranks * (ranks - 1) * 2) as usize;
                assert_eq!((memory.rows.len(), memory.tally.unwrap().cases), (rows, rows as u64), "{ranks}");
                assert_eq!(mode.extent(ranks, 2).1, rows as u64);
                let keys: BTreeSet<&str> = memory.rows.iter().map(|r| r.key.as_str()).collect();
                assert_eq!(keys.len(), rows);
                for row in &memory.rows {
                    assert_eq!(
                        (row.outcome.clone(), row.check.clone(), row.ranks),
                        (Outcome::Ok, Check::Passed, 2)
                    );
                    assert_eq!(row.samples[0].rank, axis(row, "from"));
                    let leg = 5000.0 + 2.0 * row.bytes.unwrap() as f64;
                    assert_eq!(row.summary.as_ref().unwrap().median, leg, "{}", row.key);
                }
            }
        }
    }

    #[test]
    fn pairs_of_a_round_are_disjoint() {
        let memory = sweep(6, Mode::Parallel, Some(1), 0, |_, _| 0);
        for round in 0..5 {
            let of_round = memory.rows.iter().filter(|r| axis(r, "round") == round && r.bytes == Some(8));
            let ends: Vec<u32> = of_round.flat_map(|r| [axis(r, "from"), axis(r, "to")]).collect();
            assert_eq!((ends.len(), ends.iter().collect::<BTreeSet<_>>().len()), (12, 6));
        }
    }

    #[test]
    fn a_bisection_is_one_round() {
        for ranks in 2..=7 {
            let rows = sweep(ranks, Mode::Bisection, None, 0, |_, _| 0).rows;
            assert_eq!(rows.len() as u32, ranks / 2 * 4, "{ranks}");
            assert!(rows.iter().all(|r| axis(r, "from").abs_diff(axis(r, "to")) == ranks / 2));
        }
    }

    #[test]
    fn a_slow_link_is_measured_again_and_named() {
        fn slow(from: u32, to: u32) -> u64 {
            if (from.min(to), from.max(to)) == (2, 4) { 2500 } else { 0 }
        }
        let memory = sweep(6, Mode::Parallel, None, 4, slow);
        let mut times = TimesBySize::default();
        memory.rows.iter().for_each(|row| times.add(row));
        let again: Vec<&Measurement> =
            memory.rows.iter().filter(|r| r.axes.get("retest").is_some_and(|v| v == "alone")).collect();
        assert_eq!(again.len(), 2 * 4);
        assert_eq!(again.iter().filter(|r| axis(r, "from") + axis(r, "to") == 6).count(), 4);
        let hosts = Hosts::of(["n0", "n0", "n0", "n0", "n0", "n0"]);
        let found = find_slow(&times.0, &hosts);
        assert_eq!(found.iter().map(|s| s.component.clone()).collect::<Vec<_>>(), [Component::Link(2, 4)]);
        assert!(find_slow(&times.0[..0], &hosts).is_empty());
    }

    #[test]
    fn one_rank_has_no_links() {
        let result = std::panic::catch_unwind(|| sweep(1, Mode::Parallel, None, 0, |_, _| 0));
        assert!(result.is_err());
    }
}
