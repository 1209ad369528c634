//! Small messages between any two ranks, and `MPI_Barrier`, for pacing and clock synchronisation.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    pacing::mesh,
    unit::Rank,
};

use super::communicator::start;
use crate::{
    MpiTeam,
    sys::{constants::BYTE, datatype, error::check},
};

/// Tag that no kernel uses.
const TAG: c_int = 3;

/// One rank's endpoint for small messages on its team's communicator.
#[derive(Debug)]
pub struct Mesh {
    comm: ffi::MPI_Comm,
}

impl mesh::Mesh for Mesh {
    fn open(cx: &Context<'_>) -> Result<Mesh> {
        Ok(Mesh { comm: cx.fabric::<MpiTeam>()?.comm().raw() })
    }

    fn describe(&self, cx: &Context<'_>, message: &mut [u8]) {
        if let Ok(team) = cx.fabric::<MpiTeam>() {
            team.lend(|handles| {
                handles.describe_slots(Slots::new(message.len() as u64, 1));
                handles.outgoing = message.as_mut_ptr().cast();
                handles.incoming = handles.outgoing;
            });
        }
    }

    #[inline(always)]
    fn barrier(&mut self) -> Result<()> {
        // SAFETY: the communicator is valid: its team outlives the case.
        check("MPI_Barrier", unsafe { ffi::MPI_Barrier(self.comm) })
    }

    #[inline(always)]
    fn send(&mut self, to: Rank, bytes: &[u8]) -> Result<()> {
        let (from, count) = (start(bytes), datatype::byte_count(bytes.len() as u64)?);
        // SAFETY: the communicator is valid, and the slice has `count` bytes, or is empty and its address null.
        check("MPI_Send", unsafe { ffi::MPI_Send(from, count, BYTE, to.0 as c_int, TAG, self.comm) })
    }

    #[inline(always)]
    fn receive(&mut self, from: Rank, bytes: &mut [u8]) -> Result<()> {
        let (into, count) = (start(bytes).cast_mut(), datatype::byte_count(bytes.len() as u64)?);
        // SAFETY: the communicator is valid. The slice is exclusively borrowed and has `count` bytes, or is empty and its
        // address null.
        check("MPI_Recv", unsafe {
            let ignore = ffi::RSMPI_STATUS_IGNORE;
            ffi::MPI_Recv(into, count, BYTE, from.0 as c_int, TAG, self.comm, ignore)
        })
    }

    #[inline(always)]
    fn pass(&mut self, to: Rank, from: Rank) -> Result<()> {
        let none = std::ptr::null_mut();
        let (to, from) = (to.0 as c_int, from.0 as c_int);
        // SAFETY: the communicator is valid. Both counts are 0, so MPI accesses neither buffer.
        check("MPI_Sendrecv", unsafe {
            let (comm, ignore) = (self.comm, ffi::RSMPI_STATUS_IGNORE);
            ffi::MPI_Sendrecv(none, 0, BYTE, to, TAG, none, 0, BYTE, from, TAG, comm, ignore)
        })
    }
}
