//! The team: ranks that measure together, independent of the transport between them.

use std::any::Any;

use ombx_host::environment::place_of_thread;
use ombx_record::{
    codec,
    error::{Error, Kind, Result},
    fact::Facts,
    result::Place,
    unit::Rank,
};
use serde::{Serialize, de::DeserializeOwned};

/// Transport between the ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fabric {
    /// `mpi`, `sockets` or `threads`.
    pub name: &'static str,
    /// Library and version, as the library reports them.
    pub library: String,
}

/// Ranks 0 to `size` - 1 that take part in a benchmark.
///
/// Every function is collective, that is, all ranks call it, in the same order; except `rank`, `size`, `fabric`, `software`, `place`,
/// `has_queues`, `name_task`, `release_memory`, `write_buffers`, `read_buffers`, `abort` and `pair`.
pub trait Team: Any {
    /// Returns this rank.
    fn rank(&self) -> Rank;
    /// Returns the number of ranks.
    fn size(&self) -> u32;
    /// Returns the transport between the ranks.
    fn fabric(&self) -> Fabric;
    /// Returns what is known about the software of the fabric, for the provenance of results.
    fn software(&self) -> Facts {
        Facts::new()
    }
    /// Returns the place of this rank.
    fn place(&self) -> Place {
        place_of_thread()
    }
    /// Waits until every rank has called it.
    fn barrier(&self) -> Result<()>;
    /// Returns whether the transport keeps messages in queues, in which empty messages move the positions of later ones.
    fn has_queues(&self) -> bool {
        false
    }
    /// Exchanges empty messages, at least one in each direction, and returns when all of this rank's have arrived.
    fn shift(&self, _messages: Shift) -> Result<()> {
        Ok(())
    }
    /// Copies the bytes of rank 0 to every rank. All ranks pass the same length.
    fn broadcast(&self, bytes: &mut [u8]) -> Result<()>;
    /// Gathers the bytes of every rank on rank 0, in rank order; returns `None` on other ranks. Lengths may differ.
    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>>;
    /// Passes the bytes of every rank that has some to `take` on rank 0, in rank order. Rank 0 need not hold all of them at the same
    /// time: ranks may send in turns, see [`turns`].
    fn gather_each(&self, mine: &[u8], take: &mut dyn FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        let all = self.gather(mine)?.into_iter().flatten();
        all.filter(|bytes| !bytes.is_empty()).try_for_each(take)
    }
    /// Returns a team of the first `ranks` ranks; `None` on the other ranks.
    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>>;
    /// Returns a team of these ranks, in this order; `None` on the other ranks.
    ///
    /// # Errors
    /// [`Error::unsupported`] if the transport cannot divide the team.
    fn subset(&self, _ranks: &[Rank]) -> Result<Option<Box<dyn Team>>> {
        Err(indivisible(&self.fabric()))
    }
    /// Enters the barrier of [`Team::sleeping_barrier`] without waiting for it.
    ///
    /// # Errors
    /// As [`Team::subset`].
    fn enter_barrier(&self) -> Result<Box<dyn EnteredBarrier + '_>> {
        Err(indivisible(&self.fabric()))
    }
    /// Returns a team of this rank and `partner`, in which `first` is rank 0. Only these two ranks call it.
    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>>;
    /// Waits as [`Team::barrier`], but asleep, so that idle ranks leave the CPUs to ranks that measure.
    fn sleeping_barrier(&self) -> Result<()>;
    /// Sets the name of the current case, for the messages of error handlers.
    fn name_task(&self, task: &str);
    /// Returns memory of this rank that is kept for later buffers to the system.
    fn release_memory(&self) {}
    /// Copies what kernels have written into their buffers to the devices on which the buffers are. Not collective.
    ///
    /// # Errors
    /// A device failed.
    fn write_buffers(&self) -> Result<()> {
        Ok(())
    }
    /// Copies the buffers on devices to where kernels read them. Not collective.
    ///
    /// # Errors
    /// A device failed.
    fn read_buffers(&self) -> Result<()> {
        Ok(())
    }
    /// Ends every rank immediately with an exit code.
    fn abort(&self, code: u8) -> !;
}

/// Empty messages that a rank sends to one rank and receives from another, at least one. What one sends, the other expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    /// Rank that gets messages of this one.
    pub to: Rank,
    /// Number of these messages.
    pub sent: u64,
    /// Rank that sends messages to this one.
    pub from: Rank,
    /// Number of these messages.
    pub received: u64,
}

/// A barrier that this rank has entered.
pub trait EnteredBarrier {
    /// Returns whether every rank has entered it. Does not wait.
    fn is_complete(&mut self) -> Result<bool>;
}

/// Returns the error of a transport that cannot run a load beside what is measured.
fn indivisible(fabric: &Fabric) -> Error {
    Error::unsupported(format!("ranks over {} cannot run a load beside what is measured", fabric.name))
}

/// Longest message of rank 0 to all ranks, in bytes.
const LONGEST_MESSAGE: u64 = 64 << 20;
/// Maximum number of bytes that ranks send to rank 0 in one turn, unless one rank sends more.
pub const BYTES_OF_TURN: u64 = 16 << 20;

/// Returns the first rank of each turn of a gather from the number of bytes of each rank. A rank without bytes may be in no turn.
pub fn turns(lengths: &[u64], most: u64) -> Vec<u32> {
    let (mut starts, mut sum) = (Vec::new(), 0);
    for (rank, length) in (0..).zip(lengths).filter(|(_, length)| **length > 0) {
        if starts.is_empty() || length.saturating_add(sum) > most {
            starts.push(rank);
            sum = 0;
        }
        sum += length;
    }
    starts
}

/// A team of one rank, for tests and for benchmarks that start other processes.
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
        Err(Error::unsupported("a team of one rank has no pairs; start at least 2 ranks"))
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
    /// Returns the number of rank 0 on every rank. Collective.
    pub fn broadcast_value(&self, number: u64) -> Result<u64> {
        let mut bytes = number.to_le_bytes();
        self.broadcast(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Returns `mine` if every rank has `Ok`, else the error of the lowest failed rank on every rank. Collective.
    ///
    /// A rank whose transport failed returns its error without communication. Other ranks may still wait in the failed call and
    /// would never join; the caller aborts the job.
    pub fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        match &mine {
            Err(error) if error.kind() == Kind::Fabric => {}
            Err(error) => self.agree_on_error(Some(error))?,
            Ok(_) => self.agree_on_error(None)?,
        }
        mine
    }

    /// Returns the message of rank 0 on every rank. Collective.
    ///
    /// # Errors
    /// Rank 0 is another build.
    pub fn broadcast_message<M: Serialize + DeserializeOwned>(&self, mine: M) -> Result<M> {
        let mut bytes = if self.rank() == Rank(0) { codec::encode(&mine) } else { Vec::new() };
        let length = self.broadcast_value(bytes.len() as u64)?;
        if length > LONGEST_MESSAGE {
            return Err(Error::fabric(format!("rank 0 announces a message of {length} bytes")));
        }
        bytes.resize(length as usize, 0);
        self.broadcast(&mut bytes)?;
        read_message(0, &bytes)
    }

    /// Returns the messages of all ranks on rank 0; `None` on other ranks. Collective.
    ///
    /// # Errors
    /// On rank 0: a rank is another build.
    pub fn gather_messages<M: Serialize, D: DeserializeOwned>(&self, mine: &M) -> Result<Option<Vec<D>>> {
        let all = self.gather(&codec::encode(mine))?;
        let read = |(rank, bytes): (u32, Vec<u8>)| read_message(rank, &bytes);
        all.map(|all| (0..).zip(all).map(read).collect::<Result<Vec<D>>>()).transpose()
    }

    /// Returns on rank 0 the messages of the ranks that have one, with the numbers of these ranks; nothing on other ranks. Collective.
    ///
    /// # Errors
    /// As [`gather_messages`](Self::gather_messages).
    pub(crate) fn gather_some<M: Serialize + DeserializeOwned>(
        &self,
        mine: Option<&M>,
    ) -> Result<Vec<(u32, M)>> {
        let all = self.gather(&mine.map(codec::encode).unwrap_or_default())?.unwrap_or_default();
        let sent = (0..).zip(all).filter(|(_, bytes)| !bytes.is_empty());
        sent.map(|(rank, bytes)| read_message(rank, &bytes).map(|message| (rank, message))).collect()
    }

    /// Returns the error of the lowest rank that has one. Collective.
    fn agree_on_error(&self, mine: Option<&Error>) -> Result<()> {
        let first = self.gather_some(mine)?.into_iter().next();
        let first = first.map(|(rank, error)| match error.kind() {
            Kind::Unsupported => error,
            _ => error.within(format!("rank {rank}")),
        });
        self.broadcast_message(first)?.map_or(Ok(()), Err)
    }
}

/// Returns the message that a rank has sent.
fn read_message<M: DeserializeOwned>(rank: u32, bytes: &[u8]) -> Result<M> {
    codec::decode(bytes).ok_or_else(|| {
        Error::fabric(format!(
            "cannot read a message of rank {rank}; start the same build of ombx on every rank"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::turns;

    #[test]
    fn turns_are_limited_and_have_all_ranks() {
        assert!(turns(&[], 10).is_empty());
        assert!(turns(&[0, 0], 10).is_empty());
        assert_eq!(turns(&[0, 4, 6, 0, 1], 10), [1, 4]);
        assert_eq!(turns(&[11, 1, 99, 3, 3], 10), [0, 1, 2, 3]);
        assert_eq!(turns(&[u64::MAX, u64::MAX], 10), [0, 1]);
    }
}
