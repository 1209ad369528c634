//! Communicators: the collectives that the harness needs, untimed, and the handle that timed calls use.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    error::{Error, Result},
    unit::Rank,
};

use crate::ext::{self, BYTE, check};

/// Of the messages by which two ranks agree on a communicator.
const PAIR_TAG: c_int = 2;

/// A communicator of ours, freed when dropped; errors on it end the job with a sentence.
#[derive(Debug)]
pub struct Comm {
    raw: ffi::MPI_Comm,
    rank: Rank,
    size: u32,
}

impl Comm {
    /// A duplicate of the world, so that the harness cannot meddle with the library's own traffic.
    pub(crate) fn world() -> Result<Comm> {
        // SAFETY: MPI is initialised before a team exists; the world lives until it is finalised.
        unsafe {
            ext::guard_comm(ffi::RSMPI_COMM_WORLD)?;
            let mut raw = ffi::RSMPI_COMM_NULL;
            check("MPI_Comm_dup", ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &raw mut raw))?;
            Comm::own(raw)
        }
    }

    /// Takes ownership of a live communicator.
    pub(crate) unsafe fn own(raw: ffi::MPI_Comm) -> Result<Comm> {
        ext::guard_comm(raw)?;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the caller passes a live communicator.
        unsafe {
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(raw, &raw mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(raw, &raw mut size))?;
        }
        Ok(Comm { raw, rank: Rank(rank as u32), size: size as u32 })
    }

    /// The first `ranks` ranks as a communicator of their own; `None` on the others. Collective.
    pub(crate) fn first(&self, ranks: u32) -> Result<Option<Comm>> {
        // SAFETY: a live communicator; undefined colour gives the null communicator.
        unsafe {
            let color = if self.rank.0 < ranks { 0 } else { ffi::RSMPI_UNDEFINED };
            let mut raw = ffi::RSMPI_COMM_NULL;
            check(
                "MPI_Comm_split",
                ffi::MPI_Comm_split(self.raw, color, self.rank.0 as c_int, &raw mut raw),
            )?;
            if raw == ffi::RSMPI_COMM_NULL { Ok(None) } else { Comm::own(raw).map(Some) }
        }
    }

    /// This rank and another as a communicator in which `first`, one of the two, is rank 0. Only the two call it.
    pub(crate) fn pair(&self, partner: Rank, first: Rank) -> Result<Comm> {
        let me = self.rank;
        let second = if first == me { partner } else { me };
        let ends = [first, second].map(|rank| rank.0 as c_int);
        // SAFETY: a live communicator; the groups are freed here, the new communicator is owned.
        unsafe {
            let (mut all, mut two) = (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL);
            check("MPI_Comm_group", ffi::MPI_Comm_group(self.raw, &raw mut all))?;
            check("MPI_Group_incl", ffi::MPI_Group_incl(all, 2, ends.as_ptr(), &raw mut two))?;
            let mut raw = ffi::RSMPI_COMM_NULL;
            // MPI 4.1, 7.4.2: collective over the group alone, so that pairs do not wait for each other.
            let rc = ffi::MPI_Comm_create_group(self.raw, two, PAIR_TAG, &raw mut raw);
            check("MPI_Comm_create_group", rc)?;
            check("MPI_Group_free", ffi::MPI_Group_free(&raw mut two))?;
            check("MPI_Group_free", ffi::MPI_Group_free(&raw mut all))?;
            Comm::own(raw)
        }
    }

    /// Whether all its ranks share memory. Collective.
    pub(crate) fn is_on_one_host(&self) -> Result<bool> {
        let mut size = 0;
        // SAFETY: a live communicator; the part is freed here.
        unsafe {
            let mut part = ffi::RSMPI_COMM_NULL;
            let (kind, none) = (ffi::RSMPI_COMM_TYPE_SHARED, ffi::RSMPI_INFO_NULL);
            let rc = ffi::MPI_Comm_split_type(self.raw, kind, self.rank.0 as c_int, none, &raw mut part);
            check("MPI_Comm_split_type", rc)?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(part, &raw mut size))?;
            check("MPI_Comm_free", ffi::MPI_Comm_free(&raw mut part))?;
        }
        Ok(size as u32 == self.size)
    }

    /// The handle, for timed calls.
    pub(crate) fn raw(&self) -> ffi::MPI_Comm {
        self.raw
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// How many there are.
    pub fn size(&self) -> u32 {
        self.size
    }

    pub(crate) fn barrier(&self) -> Result<()> {
        // SAFETY: a live communicator.
        check("MPI_Barrier", unsafe { ffi::MPI_Barrier(self.raw) })
    }

    /// A barrier that sleeps while it waits.
    pub(crate) fn rest(&self, nap: std::time::Duration) -> Result<()> {
        let mut done = 0;
        // SAFETY: the request lives until the test completes it.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            check("MPI_Ibarrier", ffi::MPI_Ibarrier(self.raw, &raw mut request))?;
            loop {
                check("MPI_Test", ffi::MPI_Test(&raw mut request, &raw mut done, ffi::RSMPI_STATUS_IGNORE))?;
                if done != 0 {
                    return Ok(());
                }
                std::thread::sleep(nap);
            }
        }
    }

    pub(crate) fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = length(bytes.len())?;
        // SAFETY: the slice is as long as the count says.
        check("MPI_Bcast", unsafe {
            ffi::MPI_Bcast(bytes.as_mut_ptr().cast::<c_void>(), length, BYTE, 0, self.raw)
        })
    }

    /// Equal numbers of bytes of every rank, on every rank, in rank order.
    pub(crate) fn all_gather(&self, mine: &[u8]) -> Result<Vec<u8>> {
        let mut all = vec![0u8; mine.len() * self.size as usize];
        let (each, from) = (length(mine.len())?, start(mine));
        // SAFETY: the receive buffer holds the count of every rank.
        check("MPI_Allgather", unsafe {
            ffi::MPI_Allgather(from, each, BYTE, all.as_mut_ptr().cast::<c_void>(), each, BYTE, self.raw)
        })?;
        Ok(all)
    }

    /// Each rank's bytes on rank 0, in rank order; lengths may differ. Only rank 0 holds anything for every rank.
    pub(crate) fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let root = self.rank.0 == 0;
        let mut lengths = vec![0u8; if root { self.size as usize * 8 } else { 1 }];
        let own = (mine.len() as u64).to_ne_bytes();
        // SAFETY: eight bytes of each rank go to rank 0, whose buffer holds as many of every one; others' is ignored by MPI.
        check("MPI_Gather", unsafe {
            let (from, to) = (own.as_ptr().cast::<c_void>(), lengths.as_mut_ptr().cast::<c_void>());
            ffi::MPI_Gather(from, 8, BYTE, to, 8, BYTE, 0, self.raw)
        })?;
        let lengths = lengths.chunks_exact(8).map(|b| u64::from_ne_bytes(b.try_into().unwrap_or_default()));
        let lengths: Vec<u64> = lengths.collect();
        let mut total = lengths.iter().sum::<u64>().to_ne_bytes();
        self.broadcast(&mut total)?;
        // All ranks know the sum, so that they give up together.
        let total = length(usize::try_from(u64::from_ne_bytes(total)).unwrap_or(usize::MAX))?;
        if total == 0 {
            return Ok(root.then(|| vec![Vec::new(); lengths.len()]));
        }
        let counts: Vec<c_int> = lengths.iter().map(|length| *length as c_int).collect();
        let before = |at: &mut c_int, count: &c_int| Some(std::mem::replace(at, *at + count));
        let starts: Vec<c_int> = counts.iter().scan(0, before).collect();
        let mut all = vec![0u8; if root { total as usize } else { 1 }];
        // SAFETY: rank 0's buffer holds every rank's count at its displacement; others' is ignored by MPI.
        check("MPI_Gatherv", unsafe {
            ffi::MPI_Gatherv(
                start(mine),
                mine.len() as c_int,
                BYTE,
                all.as_mut_ptr().cast::<c_void>(),
                counts.as_ptr(),
                starts.as_ptr(),
                BYTE,
                0,
                self.raw,
            )
        })?;
        let part =
            |(start, length): (&c_int, &c_int)| all[*start as usize..(*start + *length) as usize].to_vec();
        Ok(root.then(|| starts.iter().zip(&counts).map(part).collect()))
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        if ext::may_free() {
            // SAFETY: owned, live, and freed once.
            ext::freed(c"MPI_Comm_free", unsafe { ffi::MPI_Comm_free(&raw mut self.raw) });
        }
    }
}

/// Where a slice starts. An empty one starts at address 1 in Rust, which is Open MPI's `MPI_IN_PLACE`.
#[inline(always)]
pub(crate) fn start(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() { std::ptr::null() } else { bytes.as_ptr().cast() }
}

fn length(bytes: usize) -> Result<c_int> {
    c_int::try_from(bytes)
        .map_err(|_| Error::fabric(format!("{bytes} bytes between ranks are more than one message holds")))
}
