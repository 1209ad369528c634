//! Small messages from any rank to any other, and the library's barrier: what pacing and clocks need.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{benchmark::context::Context, error::Result, pacing::mesh, unit::Rank};

use crate::{
    MpiTeam,
    comm::start,
    ext::{self, BYTE, check},
};

/// Of messages between barriers; no kernel uses it.
const TAG: c_int = 3;

/// One rank's end of small messages on the communicator of its team.
#[derive(Debug)]
pub struct Mesh {
    comm: ffi::MPI_Comm,
}

impl mesh::Mesh for Mesh {
    fn open(cx: &Context<'_>) -> Result<Mesh> {
        Ok(Mesh { comm: cx.fabric::<MpiTeam>()?.comm().raw() })
    }

    #[inline(always)]
    fn barrier(&mut self) -> Result<()> {
        // SAFETY: the team outlives the case.
        check("MPI_Barrier", unsafe { ffi::MPI_Barrier(self.comm) })
    }

    #[inline(always)]
    fn send(&mut self, to: Rank, bytes: &[u8]) -> Result<()> {
        let (from, count) = (start(bytes), ext::count(bytes.len() as u64)?);
        // SAFETY: the slice is as long as the count says.
        check("MPI_Send", unsafe { ffi::MPI_Send(from, count, BYTE, to.0 as c_int, TAG, self.comm) })
    }

    #[inline(always)]
    fn receive(&mut self, from: Rank, bytes: &mut [u8]) -> Result<()> {
        let (into, count) = (start(bytes).cast_mut(), ext::count(bytes.len() as u64)?);
        // SAFETY: the slice is as long as the count says, and ours to write.
        check("MPI_Recv", unsafe {
            let ignore = ffi::RSMPI_STATUS_IGNORE;
            ffi::MPI_Recv(into, count, BYTE, from.0 as c_int, TAG, self.comm, ignore)
        })
    }

    #[inline(always)]
    fn pass(&mut self, to: Rank, from: Rank) -> Result<()> {
        let none = std::ptr::null_mut();
        let (to, from) = (to.0 as c_int, from.0 as c_int);
        // SAFETY: nothing is read from or written to the buffers.
        check("MPI_Sendrecv", unsafe {
            let (comm, ignore) = (self.comm, ffi::RSMPI_STATUS_IGNORE);
            ffi::MPI_Sendrecv(none, 0, BYTE, to, TAG, none, 0, BYTE, from, TAG, comm, ignore)
        })
    }
}
