//! Where a kernel runs: its team, its role and its peer.

use std::{any::Any, collections::BTreeMap};

use crate::{
    benchmark::work::Role,
    error::{Error, Result},
    system::environment,
    team::Team,
    unit::Rank,
};

/// What a kernel learns about where it runs.
pub struct Context<'a> {
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

impl<'a> Context<'a> {
    /// A rank that is timed and has no peer.
    pub fn of(team: &'a dyn Team) -> Context<'a> {
        Context { team, role: Role::Active, peer: team.rank(), thread: 0, memory_limit: None }
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
        let free = environment::available_memory().unwrap_or(u64::MAX);
        let note =
            [&mine.to_le_bytes()[..], &free.to_le_bytes()[..], environment::hostname().as_bytes()].concat();
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
