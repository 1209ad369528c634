//! Where a kernel runs: its team, role and peer.

use std::{any::Any, collections::BTreeMap};

use crate::{
    benchmark::{CaseValues, Distance, Heading, Parameter, ParameterValue, Reader, Role},
    error::{Error, Result},
    system::environment,
    team::Team,
    unit::{Rank, parse_memory},
};

/// Maximum memory of buffers. Every benchmark has it.
pub static MEMORY_LIMIT: Parameter = Parameter::read_by(
    "memory-limit",
    "BYTES",
    "Maximum memory for the buffers of a rank; rows that need more are skipped, for example: 512M [default: the host's free memory]",
    Reader::List(|text| Ok(vec![parse_memory(text)?.0.to_string()])),
)
.under(Heading::General)
.kept_as("memory_limit");

/// What a kernel knows about the rank that it runs on.
pub struct Context<'a> {
    /// Ranks of this case; none is idle.
    pub team: &'a dyn Team,
    /// Role of this rank.
    pub role: Role,
    /// The other rank of the pair, or the parent in a fan; this rank itself if it has neither.
    pub peer: Rank,
    /// Children of this rank in a fan.
    pub children: &'a [Rank],
    /// Number of this thread in its rank, from 0.
    pub thread: u32,
    /// Threads of this rank that open a kernel each.
    pub threads: u32,
    /// Values of the case.
    pub values: &'a CaseValues,
}

impl<'a> Context<'a> {
    /// Returns the context of a timed rank without peer.
    pub fn of(team: &'a dyn Team) -> Context<'a> {
        let (role, peer) = (Role::Active, team.rank());
        let values = CaseValues::NONE;
        Context { team, role, peer, children: &[], thread: 0, threads: 1, values }
    }

    /// Returns this rank.
    pub fn rank(&self) -> Rank {
        self.team.rank()
    }

    /// Returns the ranks with which this rank exchanges messages: its peer, its children, or every other rank if it has neither.
    pub fn partners(&self) -> Vec<Rank> {
        match self.peer == self.rank() {
            true if !self.children.is_empty() => self.children.to_vec(),
            true => (0..self.team.size()).map(Rank).filter(|rank| *rank != self.rank()).collect(),
            false => vec![self.peer],
        }
    }

    /// Returns the right and the left neighbour in a periodic chain of all ranks, at a [`Distance`]; in a pair, both are the peer.
    pub fn neighbours(&self) -> [Rank; 2] {
        let (rank, ranks) = (self.rank().0, self.team.size());
        let distance = match self.get() {
            Distance::Next => 1,
            Distance::Half => (ranks / 2).max(1),
        };
        match self.peer == self.rank() {
            true => [Rank((rank + distance) % ranks), Rank((rank + ranks - distance) % ranks)],
            false => [self.peer; 2],
        }
    }

    /// Returns the value of a parameter; the default of its type if the case has none.
    pub fn get<V: ParameterValue>(&self) -> V {
        self.values.get()
    }

    /// Returns the team as the concrete type that a family needs.
    ///
    /// # Errors
    /// [`Error::unsupported`] if the team has another type.
    pub fn fabric<T: Team>(&self) -> Result<&'a T> {
        let any: &'a dyn Any = self.team;
        any.downcast_ref().ok_or_else(|| {
            Error::unsupported(format!("ranks over {} cannot run it", self.team.fabric().name))
        })
    }

    /// Checks that the buffers of a case, `mine` bytes of each thread, fit the memory limit and the memory of every host.
    ///
    /// Collective.
    ///
    /// # Errors
    /// [`Error::unsupported`] on every rank, with the rank or host that has too little.
    pub fn afford(&self, mine: u64) -> Result<()> {
        let mine = mine.saturating_mul(self.threads.into());
        if let Some(limit) = self.values.number(&MEMORY_LIMIT) {
            let excess = || {
                let rank = self.rank();
                Error::unsupported(format!(
                    "needs {mine} bytes of buffers on rank {rank}, --memory-limit is {limit}"
                ))
            };
            self.agree(if mine > limit { Err(excess()) } else { Ok(()) })?;
        }
        let available = || environment::available_memory().unwrap_or(u64::MAX);
        let mut free = available();
        // All ranks may be on one host.
        if mine.saturating_mul(self.team.size().into()) > free {
            self.team.release_memory();
            free = available();
        }
        let note =
            [&mine.to_le_bytes()[..], &free.to_le_bytes()[..], environment::hostname().as_bytes()].concat();
        let notes = self.team.gather(&note)?.unwrap_or_default();
        self.agree(check_hosts(&notes))
    }

    /// Returns a local result if every rank has `Ok`, else an error on every rank. Collective.
    ///
    /// Kernels call it before a collective call that depends on the result.
    pub fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        self.team.agree(mine)
    }
}

/// Returns an error if the ranks of a host need more memory than it has. A note is two numbers and a host name.
fn check_hosts(notes: &[Vec<u8>]) -> Result<()> {
    let mut hosts: BTreeMap<&[u8], (u64, u64)> = BTreeMap::new();
    for note in notes {
        let Some((mine, rest)) = note.split_first_chunk() else { continue };
        let Some((free, host)) = rest.split_first_chunk() else { continue };
        let (needed, least_free) = hosts.entry(host).or_insert((0, u64::MAX));
        *needed = needed.saturating_add(u64::from_le_bytes(*mine));
        *least_free = (*least_free).min(u64::from_le_bytes(*free));
    }
    match hosts.iter().find(|(_, (needed, free))| needed > free) {
        None => Ok(()),
        Some((host, (needed, free))) => {
            let (host, mib) = (String::from_utf8_lossy(host), 1 << 20);
            Err(Error::unsupported(format!(
                "needs {} MiB of buffers on {host}, which has {} MiB free",
                needed / mib,
                free / mib
            )))
        }
    }
}
