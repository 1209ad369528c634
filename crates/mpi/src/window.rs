//! Windows: memory exposed to the peers of a communicator, and the origin's buffer beside it.

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    ptr,
};

use mpi::ffi;
use ombx_core::{
    error::{Error, Result},
    kernel::Cx,
    payload::Slots,
    unit::Rank,
};

use crate::{
    Buffer, Comm, MpiTeam,
    ext::{self, check},
};

/// How a window comes by its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// `MPI_Win_allocate`: the library chooses the memory.
    Allocate,
    /// `MPI_Win_create`: over memory of ours.
    Create,
    /// `MPI_Win_create_dynamic`, then `MPI_Win_attach`; addressed absolutely.
    Dynamic,
}

/// A window over equal slots, with a local buffer of the same shape for the origin. It owns both memories, so that neither
/// is freed under a transfer, and is freed collectively when dropped.
pub struct Window {
    pub(crate) raw: ffi::MPI_Win,
    pub(crate) peer: c_int,
    pub(crate) count: c_int,
    pub(crate) slots: Slots,
    pub(crate) local: Buffer,
    /// Displacement of the peer's first slot: an address in a dynamic window, else 0.
    pub(crate) remote: ffi::MPI_Aint,
    pub(crate) partner: ffi::MPI_Group,
    pub(crate) held: Cell<bool>,
    me: c_int,
    exposed: *mut u8,
    /// Keeps the memory of `Create` and `Dynamic`.
    memory: Option<Buffer>,
    make: Make,
}

impl Window {
    /// Makes a window on every rank of a case, towards this rank's peer. Collective.
    pub fn open(cx: &Cx<'_>, make: Make, slots: Slots) -> Result<Window> {
        let comm = cx.fabric::<MpiTeam>()?.comm();
        cx.afford(2 * slots.total())?;
        let parts = ext::count(slots.bytes).and_then(|count| {
            let memory = match make {
                Make::Allocate => None,
                Make::Create | Make::Dynamic => Some(Buffer::zeroed(slots.total())?),
            };
            Ok((count, memory, Buffer::zeroed(slots.total())?))
        });
        let (count, memory, local) = cx.agree(parts)?;
        let (raw, exposed) = make_window(comm, make, &slots, memory.as_ref())?;
        // SAFETY: a constant of the library.
        let no_group = unsafe { ffi::RSMPI_GROUP_EMPTY };
        let mut window = Window {
            raw,
            peer: cx.peer.0 as c_int,
            count,
            slots,
            local,
            remote: 0,
            partner: no_group,
            held: Cell::new(false),
            me: comm.rank().0 as c_int,
            exposed,
            memory,
            make,
        };
        ext::guard_win(raw)?;
        window.partner = group_of(comm, cx.peer)?;
        if make == Make::Dynamic {
            let mut base = 0;
            // SAFETY: any address may be asked for.
            check("MPI_Get_address", unsafe { ffi::MPI_Get_address(exposed.cast::<c_void>(), &raw mut base) })?;
            let all = comm.all_gather(&(base as i64).to_ne_bytes())?;
            let theirs = &all[cx.peer.0 as usize * 8..][..8];
            window.remote = i64::from_ne_bytes(theirs.try_into().unwrap_or_default()) as ffi::MPI_Aint;
        }
        cx.agree(window.base_is_ours())?;
        Ok(window)
    }

    /// MPICH 4.0.2 over UCX gives a wrong base for some sizes; sizes are multiples of 64 here, and the base is checked.
    fn base_is_ours(&self) -> Result<()> {
        if self.make == Make::Dynamic {
            return Ok(());
        }
        let (mut base, mut found): (*mut c_void, c_int) = (ptr::null_mut(), 0);
        // SAFETY: MPI_WIN_BASE stores a pointer through the attribute argument.
        check("MPI_Win_get_attr", unsafe {
            ffi::MPI_Win_get_attr(self.raw, ffi::MPI_WIN_BASE as c_int, (&raw mut base).cast(), &raw mut found)
        })?;
        if found != 0 && base.cast() == self.exposed {
            return Ok(());
        }
        Err(Error::fabric("the window does not start where the MPI library said: its one-sided calls cannot be trusted"))
    }

    /// The shape of its memory.
    pub fn slots(&self) -> Slots {
        self.slots
    }

    /// The origin's own buffer and this rank's exposed memory, while no operation is under way; inside an exclusive lock of
    /// its own, so that the window's public copy agrees (MPI 4.1, 12.7).
    pub fn memories<R>(&mut self, look: impl FnOnce(&mut [u8], &mut [u8]) -> R) -> Result<R> {
        // SAFETY: a live window outside any epoch of this rank; the memory has the slots' length and belongs to us.
        unsafe {
            check("MPI_Win_lock", ffi::MPI_Win_lock(ffi::MPI_LOCK_EXCLUSIVE as c_int, self.me, 0, self.raw))?;
            let exposed = std::slice::from_raw_parts_mut(self.exposed, self.slots.total() as usize);
            let result = look(self.local.bytes_mut(), exposed);
            check("MPI_Win_unlock", ffi::MPI_Win_unlock(self.me, self.raw))?;
            Ok(result)
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let _ = self.release();
        // SAFETY: live handles, freed once; memory is detached before it goes.
        unsafe {
            if self.make == Make::Dynamic {
                ffi::MPI_Win_detach(self.raw, self.exposed.cast::<c_void>());
            }
            ffi::MPI_Group_free(&raw mut self.partner);
            ffi::MPI_Win_free(&raw mut self.raw);
        }
        self.memory = None;
    }
}

fn make_window(comm: &Comm, make: Make, slots: &Slots, memory: Option<&Buffer>) -> Result<(ffi::MPI_Win, *mut u8)> {
    let size = slots.total() as ffi::MPI_Aint;
    let mut start: *mut c_void = memory.map_or(ptr::null_mut(), |m| m.start().cast());
    // SAFETY: `start` is null or heads `size` bytes that outlive the window; handles are written by MPI.
    unsafe {
        let (mut raw, none) = (ffi::RSMPI_WIN_NULL, ffi::RSMPI_INFO_NULL);
        match make {
            Make::Allocate => {
                let out = (&raw mut start).cast::<c_void>();
                check("MPI_Win_allocate", ffi::MPI_Win_allocate(size, 1, none, comm.raw(), out, &raw mut raw))?;
                // The pages must be there before anything is timed.
                ptr::write_bytes(start.cast::<u8>(), 0, size as usize);
            }
            Make::Create => {
                check("MPI_Win_create", ffi::MPI_Win_create(start, size, 1, none, comm.raw(), &raw mut raw))?;
            }
            Make::Dynamic => {
                check("MPI_Win_create_dynamic", ffi::MPI_Win_create_dynamic(none, comm.raw(), &raw mut raw))?;
                check("MPI_Win_attach", ffi::MPI_Win_attach(raw, start, size))?;
            }
        }
        Ok((raw, start.cast()))
    }
}

/// The group of one rank of a communicator.
fn group_of(comm: &Comm, rank: Rank) -> Result<ffi::MPI_Group> {
    let member = rank.0 as c_int;
    // SAFETY: live handles; the whole group is freed here, the part by the window.
    unsafe {
        let (mut whole, mut part) = (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL);
        check("MPI_Comm_group", ffi::MPI_Comm_group(comm.raw(), &raw mut whole))?;
        check("MPI_Group_incl", ffi::MPI_Group_incl(whole, 1, &raw const member, &raw mut part))?;
        check("MPI_Group_free", ffi::MPI_Group_free(&raw mut whole))?;
        Ok(part)
    }
}

