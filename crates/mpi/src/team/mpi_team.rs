//! The engine's `Team`, implemented by an MPI communicator.

use std::{cell::Cell, time::Duration};

use ombx_core::{
    error::Result,
    fact::Facts,
    team::{EnteredBarrier, Fabric, Team},
    unit::Rank,
};

use super::handles::Handles;
use crate::{
    Comm,
    runtime::{library, software},
    sys::{buffer, error, on_device},
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
        software::facts()
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
