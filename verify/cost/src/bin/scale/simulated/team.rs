//! Team whose rank 0 is real. The other ranks send what ranks of `ombx links` send.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
};

use ombx_core::team::{BYTES_OF_TURN, Fabric, Team};
use ombx_cost::link::BYTES;
use ombx_links::verdict::Retest;
use ombx_record::{
    codec,
    error::{Error, Result},
    event::Event,
    file,
    link::ROUND,
    result::{Check, Measurement, Metric, Outcome, Place, Samples, Work},
    stats::Summary,
    unit::Rank,
};
use ombx_sweep::{
    schedule::Schedule,
    sweep::{Task, renumbered, rounds_of},
};

use super::machine::Machine;

/// Number of samples of a row.
const SAMPLES: usize = 25;

fn fabric() -> Fabric {
    Fabric { name: "simulated", library: "no messages".into() }
}

/// Row of a link of two ranks, as one of them measures it.
fn row(machine: &Machine, [from, to]: [u32; 2], kind: u64) -> Measurement {
    let leg_ns = machine.ns(from, to, kind);
    Measurement {
        bytes: Some(BYTES),
        axes: [("pattern".to_owned(), "semidirectional".to_owned())].into(),
        work: Some(Work { bytes: 2 * BYTES, ops: 2, legs: 2 }),
        outcome: Outcome::Ok,
        check: Check::Passed,
        samples: vec![Samples { batch: 1, elapsed_ns: vec![2 * leg_ns; SAMPLES], ..Samples::default() }],
        summary: Summary::new(&[leg_ns as f64; SAMPLES]),
        ..Measurement::new("simulated.link", "simulated.link", Metric::Latency, 2)
    }
}

/// Rank 0 and its partner.
pub(super) struct Pair {
    machine: Rc<Machine>,
    partner: u32,
    pub(super) is_timed: bool,
    kind: u64,
}

impl Pair {
    /// Returns the row of rank 0.
    pub(super) fn row(&self) -> Measurement {
        row(&self.machine, [0, self.partner], self.kind)
    }
}

/// Step of a sweep: a direction of a round, or a link that is measured again.
#[derive(Clone, Copy)]
enum Step {
    Round(u32, bool),
    /// Link, and the number of the attempt.
    Again(Retest, usize),
}

impl Step {
    /// Returns a number that distinguishes the rows of a link.
    fn kind(self) -> u64 {
        match self {
            Step::Round(..) => 1,
            Step::Again(..) => 2,
        }
    }
}

pub(super) struct SimulatedTeam {
    machine: Rc<Machine>,
    schedule: Schedule,
    /// The current step, and those that follow. Links that are measured again come before the other rounds.
    steps: RefCell<VecDeque<Step>>,
    /// Lists of links to be measured again that rank 0 has announced since the last empty one, which ends a look.
    lists: Cell<usize>,
    /// Whether the next broadcast is a list, whose length was the last one.
    is_list_next: Cell<bool>,
    /// Whether a step is over.
    has_begun: Cell<bool>,
    /// Whether the places of the ranks have been gathered, which happens first.
    has_places: Cell<bool>,
}

impl SimulatedTeam {
    pub(super) fn new(machine: Rc<Machine>, task: &Task) -> SimulatedTeam {
        let schedule = task.mode.schedule(machine.shape.ranks, task.seed);
        let rounds = rounds_of(&schedule, task.rounds);
        let steps = rounds.flat_map(|round| [true, false].map(|lower| Step::Round(round, lower))).collect();
        let (has_begun, has_places) = (Cell::new(false), Cell::new(false));
        SimulatedTeam {
            machine,
            schedule,
            steps: RefCell::new(steps),
            lists: Cell::new(0),
            is_list_next: Cell::new(false),
            has_begun,
            has_places,
        }
    }

    fn current_step(&self) -> Result<Step> {
        let step = self.steps.borrow().front().copied();
        step.ok_or_else(|| Error::fabric("the sweep has more steps than were announced"))
    }

    /// Returns the ends of the link that a rank times in a step, if it does.
    fn timed(&self, rank: u32, step: Step) -> Option<[u32; 2]> {
        match step {
            Step::Round(round, lower) => {
                let Rank(partner) = self.schedule.partner(Rank(rank), round)?;
                ((rank < partner) == lower).then_some([rank, partner])
            }
            Step::Again(link, _) => (link.from == rank).then_some([link.from, link.to]),
        }
    }

    /// Returns what a rank sends in a step.
    fn line(&self, rank: u32, step: Step) -> Result<Option<Vec<u8>>> {
        let Some(ends) = self.timed(rank, step) else { return Ok(None) };
        let labels = match step {
            Step::Round(round, _) => vec![(ROUND, round.to_string())],
            Step::Again(link, attempt) => link.axes(attempt).to_vec(),
        };
        let row = renumbered(row(&self.machine, ends, step.kind()), ends.map(Rank), &labels);
        let mut line = Vec::new();
        file::write(&mut line, &Event::row(&row)).map_err(|e| Error::fabric(e.to_string()))?;
        Ok(Some(line))
    }
}

impl Team for SimulatedTeam {
    fn rank(&self) -> Rank {
        Rank(0)
    }

    fn size(&self) -> u32 {
        self.machine.shape.ranks
    }

    fn fabric(&self) -> Fabric {
        fabric()
    }

    fn place(&self) -> Place {
        Place { host: host_name(0), cpus: "0-9".into(), online: 1024, governor: None, quota: None }
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
        // After the first step, rank 0 broadcasts nothing but the length of a list of links that are measured again, and the list.
        if !self.has_begun.get() {
            return Ok(());
        }
        let is_list = self.is_list_next.replace(!self.is_list_next.get());
        if is_list {
            let unread = || Error::fabric("the list of links to be measured again is something else");
            let links: Vec<Retest> = codec::decode(bytes).ok_or_else(unread)?;
            let attempt = self.lists.get() + 1;
            self.lists.set(if links.is_empty() { 0 } else { attempt });
            let mut steps = self.steps.borrow_mut();
            links.iter().rev().for_each(|link| steps.push_front(Step::Again(*link, attempt)));
        }
        Ok(())
    }

    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let mut all = vec![Vec::new(); self.size() as usize];
        if !self.has_places.replace(true) {
            let own = Place::from_bytes(mine).ok_or_else(|| Error::fabric("a gather of something else"))?;
            for (rank, place) in (0..).zip(&mut all) {
                let host = host_name(self.machine.host(rank));
                *place = Place { host, ..own.clone() }.to_bytes();
            }
        }
        all[0] = mine.to_vec();
        Ok(Some(all))
    }

    /// Passes the rows of a step on in turns, as the teams of ranks do.
    fn gather_each(&self, mine: &[u8], take: &mut dyn FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        let step = self.current_step()?;
        let mut turn = vec![mine.to_vec()];
        let mut bytes = mine.len();
        for rank in 1..self.size() {
            let Some(line) = self.line(rank, step)? else { continue };
            if (bytes + line.len()) as u64 > BYTES_OF_TURN {
                turn.drain(..).filter(|line| !line.is_empty()).try_for_each(&mut *take)?;
                bytes = 0;
            }
            bytes += line.len();
            turn.push(line);
        }
        self.steps.borrow_mut().pop_front();
        self.has_begun.set(true);
        turn.into_iter().filter(|line| !line.is_empty()).try_for_each(take)
    }

    fn subteam(&self, _: u32) -> Result<Option<Box<dyn Team>>> {
        Err(Error::unsupported("simulated ranks are no smaller team"))
    }

    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>> {
        let (machine, kind) = (Rc::clone(&self.machine), self.current_step()?.kind());
        Ok(Box::new(Pair { machine, partner: partner.0, is_timed: first == Rank(0), kind }))
    }

    fn sleeping_barrier(&self) -> Result<()> {
        Ok(())
    }

    fn name_task(&self, _: &str) {}

    fn abort(&self, code: u8) -> ! {
        std::process::exit(code.into())
    }
}

fn host_name(host: u32) -> String {
    format!("node{host:06}")
}

impl Team for Pair {
    fn rank(&self) -> Rank {
        Rank(u32::from(!self.is_timed))
    }

    fn size(&self) -> u32 {
        2
    }

    fn fabric(&self) -> Fabric {
        fabric()
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn broadcast(&self, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        Ok(self.is_timed.then(|| vec![mine.to_vec(), Vec::new()]))
    }

    fn subteam(&self, _: u32) -> Result<Option<Box<dyn Team>>> {
        Err(Error::unsupported("a simulated pair is no smaller team"))
    }

    fn pair(&self, _: Rank, _: Rank) -> Result<Box<dyn Team>> {
        Err(Error::unsupported("a simulated pair has no pairs"))
    }

    fn sleeping_barrier(&self) -> Result<()> {
        Ok(())
    }

    fn name_task(&self, _: &str) {}

    fn abort(&self, code: u8) -> ! {
        std::process::exit(code.into())
    }
}
