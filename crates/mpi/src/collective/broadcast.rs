//! `MPI_Bcast` of one message.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    unit::Rank,
};

use crate::{
    Buffer, MpiTeam,
    sys::{datatype, error::check},
};

/// `MPI_Bcast` on the team's communicator, with one buffer.
#[derive(Debug)]
pub struct Broadcast {
    comm: ffi::MPI_Comm,
    count: c_int,
    datatype: ffi::MPI_Datatype,
    buffer: Buffer,
}

impl Broadcast {
    /// Allocates the buffer for one message. Collective.
    ///
    /// # Errors
    /// The ranks of the team are not MPI ranks, or the memory is not available.
    pub fn open(cx: &Context<'_>, slots: Slots) -> Result<Broadcast> {
        let team: &MpiTeam = cx.fabric()?;
        let comm = team.comm().raw();
        let parts = datatype::elements(slots.bytes, slots.element)
            .and_then(datatype::count)
            .and_then(|count| Ok((count, Buffer::zeroed(slots.total())?)));
        let (count, buffer) = cx.agree(parts)?;
        team.lend(|handles| handles.describe_messages(cx, slots, &buffer, &buffer));
        Ok(Broadcast { comm, count, datatype: datatype::handle(slots.element), buffer })
    }

    /// Broadcasts the buffer of `root` to all ranks. Collective.
    #[inline(always)]
    pub fn broadcast(&mut self, root: Rank) -> Result<()> {
        // SAFETY: the buffer has `count` elements of the datatype, and the communicator is valid: its team outlives the case.
        check("MPI_Bcast", unsafe {
            ffi::MPI_Bcast(self.buffer.start().cast(), self.count, self.datatype, root.0 as c_int, self.comm)
        })
    }

    /// Returns the buffer.
    pub fn buffer(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }
}
