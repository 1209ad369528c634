//! Windows: exposed memory, and the local buffers of the operations on it.

use std::{
    cell::{Cell, UnsafeCell},
    ffi::{c_int, c_void},
    ptr,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, memory::BufferMemory, payload::Slots},
    error::{Error, Result},
    unit::Rank,
};

use crate::{
    Buffer, Comm, Handles, MpiTeam,
    collective::operation,
    sys::{
        datatype::MessageType,
        error::{self, check},
    },
    window::{Hints, Info, WindowKind, WindowMemory, WindowOptions},
};

/// Maximum number of local buffers.
const LOCALS: usize = 3;

/// Locks that a rank holds during all iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// No lock.
    Nothing,
    /// That of the peer.
    Peer,
    /// Those of all ranks.
    All,
}

/// A window of equal slots towards one peer, with local buffers of the same slots. It owns all its memory, so that none is
/// freed during a transfer. Dropping it is collective.
pub struct Window {
    pub(crate) raw: ffi::MPI_Win,
    pub(crate) peer: c_int,
    pub(crate) slots: Slots,
    pub(crate) local_slots: u32,
    /// Address of each local buffer, or null.
    pub(crate) local: [*mut u8; LOCALS],
    /// Datatype and number of a slot's elements.
    pub(crate) message: MessageType,
    /// Operation of accumulates.
    pub(crate) op: ffi::MPI_Op,
    /// One request per slot, for operations that return requests.
    pub(crate) requests: UnsafeCell<Vec<ffi::MPI_Request>>,
    locals: Vec<Buffer>,
    /// Displacement of the peer's first slot in the copy that calls use: an address in a dynamic window, otherwise an offset.
    pub(crate) remote: ffi::MPI_Aint,
    /// Offset of the copy that calls use, and of the last one.
    at: usize,
    last: usize,
    /// The group of the peer alone.
    pub(crate) peer_group: ffi::MPI_Group,
    /// Ranks that this rank accesses, if there may be several.
    pub(crate) targets: Vec<c_int>,
    /// The locks that this rank holds during all iterations.
    pub(crate) held: Cell<Held>,
    comm: ffi::MPI_Comm,
    rank: c_int,
    /// Address of this rank's exposed memory.
    exposed: *mut u8,
    /// The exposed memory, unless the library frees it with the window.
    memory: Option<WindowMemory>,
    kind: WindowKind,
}

impl Window {
    /// Creates a window on every rank of a case, towards this rank's peer. Collective.
    ///
    /// # Errors
    /// The memory is not available, the ranks cannot share memory as `kind` requires, a slot is not a whole number of elements, or
    /// the library's window is unusable.
    pub fn open(cx: &Context<'_>, options: WindowOptions) -> Result<Window> {
        let WindowOptions { kind, slots, local_slots, locals, hints, op } = options;
        let local = Slots { count: local_slots, ..slots };
        let team: &MpiTeam = cx.fabric()?;
        let comm = team.comm();
        slots.blocks.map(|blocks| blocks.count(slots.bytes)).transpose()?;
        cx.afford(slots.reserved() + locals as u64 * local.reserved() + slots.extra_bytes())?;
        if kind == WindowKind::Shared && !comm.is_on_one_host()? {
            return Err(Error::unsupported("shared windows need all ranks on one host"));
        }
        let parts = MessageType::new(slots).and_then(|message| {
            let op = operation::predefined(op)
                .ok_or_else(|| Error::unsupported("MPI allows predefined operations only in accumulates"))?;
            let memory = WindowMemory::new(cx, kind, slots.reserved(), hints)?;
            let locals =
                (0..locals).map(|_| Buffer::from_slots(local)?.placed(cx)).collect::<Result<Vec<_>>>()?;
            Ok((message, op, memory, locals))
        });
        let (message, op, memory, locals) = cx.agree(parts)?;
        let (raw, exposed) = if cx.get::<BufferMemory>().is_host() {
            create(comm, kind, &slots, memory.as_ref(), hints, check)?
        } else {
            // A library may refuse memory of devices. A rank on which it does not keeps its window.
            let created = || create(comm, kind, &slots, memory.as_ref(), hints, error::accept);
            cx.agree(error::returning(comm.raw(), created))?
        };
        // SAFETY: these statics of mpi-sys are never written.
        let (no_group, no_request) = unsafe { (ffi::RSMPI_GROUP_EMPTY, ffi::RSMPI_REQUEST_NULL) };
        let mut window = Window {
            raw,
            peer: cx.peer.0 as c_int,
            slots,
            local_slots,
            local: std::array::from_fn(|at| locals.get(at).map_or(ptr::null_mut(), Buffer::start)),
            message,
            op,
            requests: UnsafeCell::new(vec![no_request; slots.count as usize]),
            locals,
            remote: 0,
            at: 0,
            last: (slots.reserved() - slots.total()) as usize,
            peer_group: no_group,
            targets: Vec::new(),
            held: Cell::new(Held::Nothing),
            comm: comm.raw(),
            rank: comm.rank().0 as c_int,
            exposed,
            memory,
            kind,
        };
        error::guard_win(raw)?;
        window.peer_group = group_of(comm, cx.peer)?;
        if kind == WindowKind::Dynamic {
            let mut base = 0;
            // SAFETY: MPI_Get_address accepts any pointer, and `base` outlives the call.
            check("MPI_Get_address", unsafe {
                ffi::MPI_Get_address(exposed.cast::<c_void>(), &raw mut base)
            })?;
            let all = comm.all_gather(&[base as u64])?;
            window.remote = all[cx.peer.0 as usize] as ffi::MPI_Aint;
        }
        cx.agree(window.check_base())?;
        team.lend(|handles| window.describe(handles));
        Ok(window)
    }

    /// Creates a window whose slots are accessed on several ranks, by [`Epoch::put_to`](crate::Epoch::put_to) and
    /// [`Epoch::get_from`](crate::Epoch::get_from). Collective.
    ///
    /// # Errors
    /// As [`Window::open`], and the window is dynamic: each rank's memory has another address then.
    pub fn open_towards(cx: &Context<'_>, options: WindowOptions, targets: &[Rank]) -> Result<Window> {
        if options.kind == WindowKind::Dynamic {
            return Err(Error::unsupported("a dynamic window has one target"));
        }
        let mut window = Window::open(cx, options)?;
        window.targets = targets.iter().map(|target| target.0 as c_int).collect();
        let team: &MpiTeam = cx.fabric()?;
        team.lend(|handles| window.describe(handles));
        Ok(window)
    }

    /// Writes what the calls of an epoch take.
    fn describe(&mut self, handles: &mut Handles) {
        handles.window = self.raw;
        handles.group = self.peer_group;
        (handles.datatype, handles.elements) = (self.message.raw, self.message.count);
        handles.op = self.op;
        handles.remote = self.remote;
        [handles.outgoing, handles.incoming, handles.compare] = self.local.map(|start| start.cast());
        handles.requests = self.requests.get_mut().as_mut_ptr();
        handles.describe_slots(self.slots);
        handles.peer = self.peer;
        handles.partners = self.targets.as_ptr();
        handles.partner_count = self.targets.len() as c_int;
    }

    /// Refuses a window whose base is not the address that its creation returned. MPICH 4.0.2 over UCX reports a wrong base for
    /// some sizes, which is why slots are multiples of 64 bytes.
    fn check_base(&self) -> Result<()> {
        if self.kind == WindowKind::Dynamic {
            return Ok(());
        }
        let (mut base, mut found): (*mut c_void, c_int) = (ptr::null_mut(), 0);
        // SAFETY: the window is valid, and MPI stores the attribute MPI_WIN_BASE as a pointer into `base`.
        check("MPI_Win_get_attr", unsafe {
            ffi::MPI_Win_get_attr(
                self.raw,
                ffi::MPI_WIN_BASE as c_int,
                (&raw mut base).cast(),
                &raw mut found,
            )
        })?;
        if found != 0 && base.cast() == self.exposed {
            return Ok(());
        }
        Err(Error::fabric(
            "the MPI library reports a wrong window base, so its one-sided calls cannot be trusted; use another --win",
        ))
    }

    /// Returns the slots of the exposed memory and of each local buffer.
    pub fn slots(&self) -> Slots {
        self.slots
    }

    /// Calls `MPI_Iprobe`, so that a library without asynchronous progress serves accesses by other ranks.
    pub fn make_progress(&self) -> Result<()> {
        let mut flag = 0;
        // SAFETY: the communicator is valid: its team outlives the case. A probe receives nothing.
        check("MPI_Iprobe", unsafe {
            let (any, tag) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG);
            ffi::MPI_Iprobe(any, tag, self.comm, &raw mut flag, ffi::RSMPI_STATUS_IGNORE)
        })
    }

    /// Calls `access` with this rank's local buffers and exposed memory. No operation on them may be in progress.
    ///
    /// It holds an exclusive lock on this rank meanwhile, so that public and private copy of the window agree (MPI 4.1, 12.7).
    pub fn with_memory<R>(&mut self, access: impl FnOnce(&mut [Buffer], &mut [u8]) -> R) -> Result<R> {
        // SAFETY: the window is valid and this rank has no epoch open. The exposed memory has a copy of `slots.total()` bytes at every
        // offset that `move_to` gets, and the exclusive lock keeps other ranks from accessing it while the slice exists.
        unsafe {
            check(
                "MPI_Win_lock",
                ffi::MPI_Win_lock(ffi::MPI_LOCK_EXCLUSIVE as c_int, self.rank, 0, self.raw),
            )?;
            let total = self.slots.total() as usize;
            let exposed = match &mut self.memory {
                Some(WindowMemory::Mapped(buffer)) => &mut buffer.bytes_mut()[self.at..][..total],
                _ => std::slice::from_raw_parts_mut(self.exposed.add(self.at), total),
            };
            let result = access(&mut self.locals, exposed);
            check("MPI_Win_unlock", ffi::MPI_Win_unlock(self.rank, self.raw))?;
            Ok(result)
        }
    }

    /// Makes the copies at an offset, in the local buffers and in the memory of the peer, those of the next calls.
    #[inline(always)]
    pub fn move_to(&mut self, offset: usize) {
        let offset = offset.min(self.last);
        for (address, buffer) in self.local.iter_mut().zip(&mut self.locals) {
            buffer.move_to(offset);
            *address = buffer.start();
        }
        self.remote += offset as ffi::MPI_Aint - self.at as ffi::MPI_Aint;
        self.at = offset;
    }

    /// Unlocks the peer, which this rank has locked.
    #[inline(always)]
    pub(super) fn unlock(&self) -> Result<()> {
        // SAFETY: the window is valid, and every caller has locked the peer before.
        check("MPI_Win_unlock", unsafe { ffi::MPI_Win_unlock(self.peer, self.raw) })
    }

    /// Releases the locks that this rank holds.
    pub(super) fn unlock_held(&self) -> Result<()> {
        match self.held.replace(Held::Nothing) {
            Held::Nothing => Ok(()),
            Held::Peer => self.unlock(),
            // SAFETY: the window is valid, and `hold_all` has locked all ranks.
            Held::All => check("MPI_Win_unlock_all", unsafe { ffi::MPI_Win_unlock_all(self.raw) }),
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if !error::may_free() {
            // Other ranks may still access this memory.
            std::mem::forget(self.memory.take());
            return;
        }
        let _ = self.unlock_held();
        // SAFETY: `self` owns both handles, and only `drop` frees them. Attached memory is detached before the window is freed
        // and unmapped after it.
        unsafe {
            if self.kind == WindowKind::Dynamic {
                let code = ffi::MPI_Win_detach(self.raw, self.exposed.cast::<c_void>());
                error::check_freed(c"MPI_Win_detach", code);
            }
            ffi::MPI_Group_free(&raw mut self.peer_group);
            error::check_freed(c"MPI_Win_free", ffi::MPI_Win_free(&raw mut self.raw));
        }
        self.memory = None;
    }
}

/// Creates a window of the given kind and returns its handle and address. Its memory is zero, and resident once it is written.
fn create(
    comm: &Comm,
    kind: WindowKind,
    slots: &Slots,
    memory: Option<&WindowMemory>,
    hints: Hints,
    check: fn(&'static str, c_int) -> Result<()>,
) -> Result<(ffi::MPI_Win, *mut u8)> {
    let size = slots.reserved() as ffi::MPI_Aint;
    let mut start: *mut c_void = memory.map_or(ptr::null_mut(), |memory| memory.start().cast());
    let info = Info::new(hints)?;
    // SAFETY: `start` is the address of `size` bytes that the caller keeps until the window is freed, or MPI replaces it by
    // such an address. Results outlive the calls that write them. Other ranks access the memory only after
    // the agreement at the end of `Window::open`.
    unsafe {
        let (mut raw, none) = (ffi::RSMPI_WIN_NULL, ffi::RSMPI_INFO_NULL);
        let (out, win) = ((&raw mut start).cast::<c_void>(), &raw mut raw);
        match kind {
            WindowKind::Allocate => {
                check("MPI_Win_allocate", ffi::MPI_Win_allocate(size, 1, info.raw(), comm.raw(), out, win))?
            }
            WindowKind::Shared => {
                let rc = ffi::MPI_Win_allocate_shared(size, 1, none, comm.raw(), out, win);
                check("MPI_Win_allocate_shared", rc)?;
            }
            WindowKind::Create | WindowKind::AllocMem => {
                check("MPI_Win_create", ffi::MPI_Win_create(start, size, 1, none, comm.raw(), win))?
            }
            WindowKind::Dynamic => {
                check("MPI_Win_create_dynamic", ffi::MPI_Win_create_dynamic(none, comm.raw(), win))?;
                check("MPI_Win_attach", ffi::MPI_Win_attach(raw, start, size))?;
            }
        }
        if kind == WindowKind::AllocMem {
            // The library may reuse memory. That of the other kinds is new from the kernel.
            ptr::write_bytes(start.cast::<u8>(), 0, size as usize);
        }
        Ok((raw, start.cast()))
    }
}

/// Creates the group of one rank of a communicator. The caller frees it.
fn group_of(comm: &Comm, rank: Rank) -> Result<ffi::MPI_Group> {
    let member = rank.0 as c_int;
    // SAFETY: the communicator is valid, `member` is the one element that MPI reads, and the whole group is freed once.
    unsafe {
        let (mut whole, mut part) = (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL);
        check("MPI_Comm_group", ffi::MPI_Comm_group(comm.raw(), &raw mut whole))?;
        check("MPI_Group_incl", ffi::MPI_Group_incl(whole, 1, &raw const member, &raw mut part))?;
        check("MPI_Group_free", ffi::MPI_Group_free(&raw mut whole))?;
        Ok(part)
    }
}
