//! The ranks that measure together, as the engine sees them: it is deaf to what connects them.

use std::any::Any;

use crate::{
    error::{Error, Kind, Result},
    unit::Rank,
};

/// Where a rank runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Place {
    /// Host name.
    pub host: String,
    /// CPUs that it may use, as the kernel lists them: `0`, `0-3,8`.
    pub cpus: String,
    /// CPUs of the host that are online.
    pub online: u32,
    /// Frequency governor of its first CPU, where the kernel tells.
    pub governor: Option<String>,
}

impl Place {
    /// Encodes the place for the gather to rank 0.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let online = self.online.to_string();
        join_texts([&*self.host, &*self.cpus, &*online, self.governor.as_deref().unwrap_or_default()])
    }

    /// Decodes what [`Place::to_bytes`] wrote; `None` for anything else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Place> {
        let [host, cpus, online, governor] = split_texts(bytes)?.try_into().ok()?;
        let governor = Some(governor).filter(|name| !name.is_empty());
        Some(Place { host, cpus, online: online.parse().ok()?, governor })
    }
}

/// Joins texts that hold no NUL into one message.
pub(crate) fn join_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    texts.into_iter().flat_map(|text| text.bytes().chain([0])).collect()
}

/// Splits a message of [`join_texts`]; `None` where it is not UTF-8 or does not end with NUL.
pub(crate) fn split_texts(bytes: &[u8]) -> Option<Vec<String>> {
    match std::str::from_utf8(bytes).ok()? {
        "" => Some(Vec::new()),
        text => Some(text.strip_suffix('\0')?.split('\0').map(str::to_owned).collect()),
    }
}

/// What connects the ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fabric {
    /// `mpi`, `sockets` or `threads`.
    pub name: &'static str,
    /// The library and its version, in its own words.
    pub library: String,
}

/// Ranks 0 to size - 1 that take part in a benchmark. Every call but `rank`, `size`, `fabric`, `name_task` and `abort` is
/// collective: all ranks make it, in the same order. `pair` is made by the two ranks of the pair alone.
pub trait Team: Any {
    /// This rank.
    fn rank(&self) -> Rank;
    /// How many there are.
    fn size(&self) -> u32;
    /// What connects them.
    fn fabric(&self) -> Fabric;
    /// Returns when every rank has called it.
    fn barrier(&self) -> Result<()>;
    /// Gives every rank what rank 0 has; all pass the same length.
    fn broadcast(&self, bytes: &mut [u8]) -> Result<()>;
    /// Brings every rank's bytes to rank 0, in rank order; `None` elsewhere. Lengths may differ.
    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>>;
    /// The first `ranks` ranks as a team of their own; `None` on the others.
    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>>;
    /// This rank and another as a team of their own, in which `first`, one of the two, is rank 0. Only the two call it.
    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>>;
    /// A barrier in which waiting ranks sleep, so that idle ones leave the cores to those that measure.
    fn sleeping_barrier(&self) -> Result<()>;
    /// Names what runs now, for the messages of error handlers.
    fn name_task(&self, task: &str);
    /// Ends every rank, at once, with an exit code.
    fn abort(&self, code: u8) -> !;
}

/// A team of one, for a benchmark that brings its own processes.
#[derive(Debug, Clone)]
pub struct Alone(pub Fabric);

impl Team for Alone {
    fn rank(&self) -> Rank {
        Rank(0)
    }

    fn size(&self) -> u32 {
        1
    }

    fn fabric(&self) -> Fabric {
        self.0.clone()
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn broadcast(&self, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        Ok(Some(vec![mine.to_vec()]))
    }

    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>> {
        Ok((ranks > 0).then(|| Box::new(self.clone()) as Box<dyn Team>))
    }

    fn pair(&self, _: Rank, _: Rank) -> Result<Box<dyn Team>> {
        Err(Error::unsupported("a team of one has no pairs"))
    }

    fn sleeping_barrier(&self) -> Result<()> {
        Ok(())
    }

    fn name_task(&self, _: &str) {}

    fn abort(&self, code: u8) -> ! {
        std::process::exit(code.into())
    }
}

impl dyn Team {
    /// Rank 0's number, on every rank.
    pub fn broadcast_value(&self, number: u64) -> Result<u64> {
        let mut bytes = number.to_le_bytes();
        self.broadcast(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Passes `mine` on if every rank has `Ok`; else every rank gets the first rank's error, so that all take the same way.
    ///
    /// A rank on which MPI or a connection has failed asks nobody: the others may still be in the call that failed here, and
    /// would never come to agree. Its error ends the job.
    pub fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        if let Err(error) = &mine
            && error.kind() == Kind::Fabric
        {
            return mine;
        }
        let note = match &mine {
            Ok(_) => Vec::new(),
            Err(e) => [&[e.kind().index()], e.to_string().as_bytes()].concat(),
        };
        let all = self.gather(&note)?;
        let first = all.into_iter().flatten().enumerate().find(|(_, note)| !note.is_empty());
        let mut verdict = first
            .map(|(rank, note)| {
                let text = String::from_utf8_lossy(&note[1..]).into_owned();
                let text =
                    if note[0] == Kind::Unsupported.index() { text } else { format!("rank {rank}: {text}") };
                [&[note[0]], text.as_bytes()].concat()
            })
            .unwrap_or_default();
        let length = self.broadcast_value(verdict.len() as u64)?;
        if length == 0 {
            return mine;
        }
        verdict.resize(length as usize, 0);
        self.broadcast(&mut verdict)?;
        let text = String::from_utf8_lossy(&verdict[1..]).into_owned();
        Err(Error::new(Kind::from_index(verdict[0]), text))
    }
}
