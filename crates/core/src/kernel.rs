//! What a benchmark is: one rank's work, which never reads a clock, loops over sizes, counts iterations or prints.

use std::{any::Any, collections::BTreeMap};

use crate::{
    case::Case,
    env,
    error::{Error, Result},
    payload::{Check, Fill},
    result::Figures,
    team::Team,
    unit::Rank,
};

/// What a benchmark's headline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Time of one leg, in microseconds.
    Latency,
    /// Bytes by time, in MB/s (10^6), and messages per second.
    Bandwidth,
}

impl Metric {
    /// Lower-case name, as in results.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Latency => "latency",
            Metric::Bandwidth => "bandwidth",
        }
    }

    /// Unit of the headline.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::Latency => "us",
            Metric::Bandwidth => "MB/s",
        }
    }
}

/// What one iteration does. Figures are derived from this: no benchmark halves a time itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Payload bytes moved in one iteration, over all its operations, both directions and all pairs.
    pub bytes: u64,
    /// Operations (messages) of one iteration.
    pub ops: u64,
    /// Equal legs, one after the other: 2 in a ping-pong.
    pub legs: u64,
}

/// What a rank does in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is timed.
    Active,
    /// It answers.
    Passive,
}

/// What a kernel learns about where it runs.
pub struct Cx<'a> {
    /// The ranks of this case, none of them idle.
    pub team: &'a dyn Team,
    /// What this rank does.
    pub role: Role,
    /// The other rank of its pair; itself where the layout has no pairs.
    pub peer: Rank,
    /// Which of the rank's threads this is; 0 where it has one.
    pub thread: u32,
    /// Bytes of buffers that a rank may have, if the user set a limit.
    pub memory_limit: Option<u64>,
}

impl<'a> Cx<'a> {
    /// A rank that is timed and has no peer.
    pub fn of(team: &'a dyn Team) -> Cx<'a> {
        Cx { team, role: Role::Active, peer: team.rank(), thread: 0, memory_limit: None }
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.team.rank()
    }

    /// Those with whom this rank exchanges messages: its peer, or every other rank where it has none.
    pub fn partners(&self) -> Vec<Rank> {
        match self.peer == self.rank() {
            true => (0..self.team.size()).map(Rank).filter(|rank| *rank != self.rank()).collect(),
            false => vec![self.peer],
        }
    }

    /// The team as the concrete type that a family needs.
    pub fn fabric<T: Team>(&self) -> Result<&'a T> {
        let any: &'a dyn Any = self.team;
        any.downcast_ref().ok_or_else(|| {
            Error::unsupported(format!("needs ranks of another kind than {}", self.team.fabric().name))
        })
    }

    /// Refuses a case whose buffers, `mine` bytes on this rank, are more than a rank may have, or do not fit into the
    /// memory of a host. Collective.
    pub fn afford(&self, mine: u64) -> Result<()> {
        if let Some(limit) = self.memory_limit {
            let rank = self.rank();
            let excess = || {
                Error::unsupported(format!(
                    "needs {mine} bytes of buffers on rank {rank}, --memory-limit is {limit}"
                ))
            };
            self.agree(if mine > limit { Err(excess()) } else { Ok(()) })?;
        }
        let free = env::available_memory().unwrap_or(u64::MAX);
        let note = [&mine.to_le_bytes()[..], &free.to_le_bytes()[..], env::hostname().as_bytes()].concat();
        let mut hosts: BTreeMap<Vec<u8>, (u64, u64)> = BTreeMap::new();
        for note in self.team.gather(&note)?.unwrap_or_default() {
            // Every rank says two numbers and its host.
            let Some((mine, rest)) = note.split_first_chunk() else { continue };
            let Some((spare, host)) = rest.split_first_chunk() else { continue };
            let (need, free) = hosts.entry(host.to_vec()).or_insert((0, u64::MAX));
            *need = need.saturating_add(u64::from_le_bytes(*mine));
            *free = (*free).min(u64::from_le_bytes(*spare));
        }
        let full = hosts.iter().find(|(_, (need, free))| need > free).map(|(host, (need, free))| {
            let (host, mib) = (String::from_utf8_lossy(host), 1 << 20);
            Error::unsupported(format!(
                "needs {} MiB of buffers on {host}, which has {} MiB free",
                need / mib,
                free / mib
            ))
        });
        self.agree(full.map_or(Ok(()), Err))
    }

    /// Passes a local result on if every rank has `Ok`; to be called before anything collective depends on it.
    pub fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        self.team.agree(mine)
    }
}

/// One benchmark's work, as one rank sees it.
///
/// The engine calls, on every rank of the case and in this order: `open`, `fill`, `begin`, then many times `active` or
/// `passive` by role, `end`, `figures`, `check`, once more `fill` to `check` with a fresh pattern, and `close`. Only `active` is timed.
pub trait Kernel: Sized {
    /// What the headline is.
    const METRIC: Metric;
    /// What is timed, what is not, and which benchmark of others it corresponds to.
    const METHOD: Method;

    /// Whether it is the kernel for such a case; [`crate::registry::Benchmark::either`] has another for those that it cannot.
    fn carries(_case: &Case) -> bool {
        true
    }
    /// Bytes, operations and legs of one iteration.
    fn work(case: &Case) -> Work;
    /// Collective, untimed. [`Error::unsupported`] on any rank skips the case on all of them.
    fn open(cx: &Cx<'_>, case: &Case) -> Result<Self>;
    /// Writes a pattern into what will be sent and poisons what will be received.
    fn fill(&mut self, _fill: Fill) -> Result<()> {
        Ok(())
    }
    /// Opens what must be open around iterations, for instance a lock; untimed.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    /// One iteration on a timed rank.
    fn active(&mut self) -> Result<()>;
    /// The same iteration on its peer.
    fn passive(&mut self) -> Result<()> {
        Ok(())
    }
    /// Closes what `begin` opened; untimed.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
    /// Compares what arrived with what `fill` sent; a payload mismatch is a [`Check`], not an error.
    fn check(&mut self, _fill: Fill) -> Result<Check> {
        Ok(Check::Unsupported)
    }
    /// What it tells beside times, of the iterations between `begin` and `end`. Collective, untimed; rank 0's is kept.
    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }
    /// Collective, untimed.
    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// The method of a kernel in three sentences, from which the catalogue of benchmarks is generated.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// What is between two readings of the clock.
    pub timed: &'static str,
    /// What is deliberately outside.
    pub untimed: &'static str,
    /// Its counterpart in OMB, IMB or LinkTest, and how it differs.
    pub like: &'static str,
}
