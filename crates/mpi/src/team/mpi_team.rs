//! The engine's `Team`, implemented by an MPI communicator.

use std::{cell::Cell, ffi::c_int, time::Duration};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    fact::Facts,
    pacing::mesh,
    team::{EnteredBarrier, Fabric, Team},
    unit::Rank,
};

use crate::{
    Comm,
    runtime::library,
    sys::{
        buffer,
        constants::BYTE,
        datatype,
        error::{self, check},
        on_device,
    },
    team::communicator::{Handles, start},
};

/// Pause between two tests of the sleeping barrier.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The ranks of a communicator.
#[derive(Debug)]
pub struct MpiTeam {
    comm: Comm,
    /// What the operation that was opened last works on.
    handles: Cell<Handles>,
}

impl MpiTeam {
    pub(crate) fn world() -> Result<MpiTeam> {
        Comm::world().map(MpiTeam::of)
    }

    pub(crate) fn of(comm: Comm) -> MpiTeam {
        let handles = Cell::new(Handles::of(&comm));
        MpiTeam { comm, handles }
    }

    fn boxed(comm: Comm) -> Box<dyn Team> {
        Box::new(MpiTeam::of(comm))
    }

    /// Keeps the handles of an operation that is opened.
    pub(crate) fn lend(&self, describe: impl FnOnce(&mut Handles)) {
        let mut handles = Handles::of(&self.comm);
        describe(&mut handles);
        self.handles.set(handles);
    }

    /// Returns the handles of the operation that was opened last, for loops in C that repeat its calls.
    pub fn handles(&self) -> Handles {
        self.handles.get()
    }

    /// Returns the communicator.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }
}

impl Team for MpiTeam {
    fn rank(&self) -> Rank {
        self.comm.rank()
    }

    fn size(&self) -> u32 {
        self.comm.size()
    }

    fn fabric(&self) -> Fabric {
        Fabric { name: "mpi", library: library::library_version() }
    }

    fn software(&self) -> Facts {
        library::facts()
    }

    fn barrier(&self) -> Result<()> {
        self.comm.barrier()
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
        self.comm.broadcast(bytes)
    }

    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        self.comm.gather(mine)
    }

    fn gather_each(&self, mine: &[u8], take: &mut dyn FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        self.comm.gather_each(mine, take)
    }

    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>> {
        let number = Some(self.rank().0).filter(|rank| *rank < ranks);
        Ok(self.comm.part(number)?.map(MpiTeam::boxed))
    }

    fn subset(&self, ranks: &[Rank]) -> Result<Option<Box<dyn Team>>> {
        let number = ranks.iter().position(|rank| *rank == self.rank());
        Ok(self.comm.part(number.map(|number| number as u32))?.map(MpiTeam::boxed))
    }

    fn enter_barrier(&self) -> Result<Box<dyn EnteredBarrier + '_>> {
        Ok(Box::new(self.comm.enter_barrier()?))
    }

    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>> {
        self.comm.pair(partner, first).map(MpiTeam::boxed)
    }

    fn sleeping_barrier(&self) -> Result<()> {
        self.comm.sleeping_barrier(POLL_INTERVAL)
    }

    fn name_task(&self, task: &str) {
        error::name_task(task);
    }

    fn release_memory(&self) {
        buffer::release_kept();
    }

    fn write_buffers(&self) -> Result<()> {
        on_device::write_all()
    }

    fn read_buffers(&self) -> Result<()> {
        on_device::read_all()
    }

    fn abort(&self, code: u8) -> ! {
        library::abort(code)
    }
}

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
