//! Windows: memory exposed to the peers of a communicator, and the origin's buffer beside it.

use std::{
    cell::{Cell, UnsafeCell},
    ffi::{c_int, c_void},
    ptr,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{context::Context, payload::Slots},
    error::{Error, Result},
    unit::Rank,
};

use crate::{
    Buffer, Comm, Epochs as _, MpiTeam,
    ext::{self, check},
};

ombx_core::axis! {
    /// How the window is made
    pub enum WindowKind: "win", Always, default Allocate {
        /// MPI_Win_allocate: the library chooses the memory
        Allocate = "allocate",
        /// MPI_Win_create: memory of ombx
        Create = "create",
        /// MPI_Win_create_dynamic and MPI_Win_attach; absolute addresses
        Dynamic = "dynamic",
        /// MPI_Win_allocate_shared: ranks of one host only
        Shared = "shared",
    }
}

/// What a window is made for.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// How it comes by its memory.
    pub kind: WindowKind,
    /// The memory that is exposed, and each local buffer.
    pub slots: Slots,
    /// Local buffers that operations use: 1 for the origin, 2 with one for results, 3 with one to compare with.
    pub locals: usize,
    /// Whether the library gets hints (`alloc_shm`) for memory that it allocates.
    pub hints: Hints,
}

ombx_core::axis! {
    /// Hints (alloc_shm) for windows that the library allocates
    pub enum Hints: "hints", IfChosen, default On {
        /// alloc_shm is true
        On = "on",
        /// No info object
        Off = "off",
    }
}

/// The most local buffers that an operation uses.
const LOCALS: usize = 3;

/// A window over equal slots, with local buffers of the same shape for the origin. It owns all memories, so that none is
/// freed under a transfer, and is freed collectively when dropped.
pub struct Window {
    pub(crate) raw: ffi::MPI_Win,
    pub(crate) peer: c_int,
    pub(crate) count: c_int,
    pub(crate) slots: Slots,
    /// Start of each local buffer.
    pub(crate) local: [*mut u8; LOCALS],
    /// Type and number of a slot's elements in reductions.
    pub(crate) element: (ffi::MPI_Datatype, c_int),
    /// One for each slot, of operations that have requests.
    pub(crate) requests: UnsafeCell<Vec<ffi::MPI_Request>>,
    width: usize,
    locals: Vec<Buffer>,
    /// Displacement of the peer's first slot: an address in a dynamic window, else 0.
    pub(crate) remote: ffi::MPI_Aint,
    pub(crate) partner: ffi::MPI_Group,
    pub(crate) held: Cell<bool>,
    comm: ffi::MPI_Comm,
    me: c_int,
    exposed: *mut u8,
    /// Keeps the memory of `Create` and `Dynamic`.
    memory: Option<Buffer>,
    kind: WindowKind,
}

impl Window {
    /// Makes a window on every rank of a case, towards this rank's peer. Collective.
    pub fn open(cx: &Context<'_>, shape: Shape) -> Result<Window> {
        let Shape { kind, slots, locals, hints } = shape;
        let comm = cx.fabric::<MpiTeam>()?.comm();
        cx.afford((1 + locals as u64) * slots.total())?;
        if kind == WindowKind::Shared && !comm.is_on_one_host()? {
            return Err(Error::unsupported("shared windows need all ranks on one host"));
        }
        let parts = ext::count(slots.bytes).and_then(|count| {
            let memory = match kind {
                WindowKind::Allocate | WindowKind::Shared => None,
                WindowKind::Create | WindowKind::Dynamic => Some(Buffer::zeroed(slots.total())?),
            };
            let locals = (0..locals).map(|_| Buffer::zeroed(slots.total())).collect::<Result<Vec<_>>>()?;
            Ok((count, memory, locals))
        });
        let (count, memory, locals) = cx.agree(parts)?;
        let (raw, exposed) = make_window(comm, kind, &slots, memory.as_ref(), hints)?;
        let (datatype, width) = ext::element(slots.bytes);
        // SAFETY: constants of the library.
        let (no_group, no_request) = unsafe { (ffi::RSMPI_GROUP_EMPTY, ffi::RSMPI_REQUEST_NULL) };
        let mut window = Window {
            raw,
            peer: cx.peer.0 as c_int,
            count,
            slots,
            local: std::array::from_fn(|at| locals.get(at).map_or(ptr::null_mut(), Buffer::start)),
            element: (datatype, (slots.bytes / width) as c_int),
            requests: UnsafeCell::new(vec![no_request; slots.count as usize]),
            width: width as usize,
            locals,
            remote: 0,
            partner: no_group,
            held: Cell::new(false),
            comm: comm.raw(),
            me: comm.rank().0 as c_int,
            exposed,
            memory,
            kind,
        };
        ext::guard_win(raw)?;
        window.partner = group_of(comm, cx.peer)?;
        if kind == WindowKind::Dynamic {
            let mut base = 0;
            // SAFETY: any address may be asked for.
            check("MPI_Get_address", unsafe {
                ffi::MPI_Get_address(exposed.cast::<c_void>(), &raw mut base)
            })?;
            let all = comm.all_gather(&base.to_ne_bytes())?;
            let theirs =
                &all[cx.peer.0 as usize * size_of::<ffi::MPI_Aint>()..][..size_of::<ffi::MPI_Aint>()];
            window.remote = ffi::MPI_Aint::from_ne_bytes(theirs.try_into().unwrap_or_default());
        }
        cx.agree(window.base_is_ours())?;
        Ok(window)
    }

    /// MPICH 4.0.2 over UCX gives a wrong base for some sizes; sizes are multiples of 64 here, and the base is checked.
    fn base_is_ours(&self) -> Result<()> {
        if self.kind == WindowKind::Dynamic {
            return Ok(());
        }
        let (mut base, mut found): (*mut c_void, c_int) = (ptr::null_mut(), 0);
        // SAFETY: MPI_WIN_BASE stores a pointer through the attribute argument.
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
            "the window does not start where the MPI library said: its one-sided calls cannot be trusted",
        ))
    }

    /// The shape of its memory.
    pub fn slots(&self) -> Slots {
        self.slots
    }

    /// A call to MPI that does nothing, `MPI_Iprobe`: the moment in which a library without passive progress serves accesses.
    pub fn poke(&self) -> Result<()> {
        let mut flag = 0;
        // SAFETY: a live communicator; nothing is received.
        check("MPI_Iprobe", unsafe {
            let (any, tag) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG);
            ffi::MPI_Iprobe(any, tag, self.comm, &raw mut flag, ffi::RSMPI_STATUS_IGNORE)
        })
    }

    /// Bytes of an element in reductions.
    pub fn width(&self) -> usize {
        self.width
    }

    /// This rank's local buffers and exposed memory, while no operation is under way; inside an exclusive lock of its own,
    /// so that the window's public copy agrees (MPI 4.1, 12.7).
    pub fn memories<R>(&mut self, look: impl FnOnce(&mut [Buffer], &mut [u8]) -> R) -> Result<R> {
        // SAFETY: a live window outside any epoch of this rank; the memory has the slots' length and belongs to us.
        unsafe {
            check("MPI_Win_lock", ffi::MPI_Win_lock(ffi::MPI_LOCK_EXCLUSIVE as c_int, self.me, 0, self.raw))?;
            let exposed = std::slice::from_raw_parts_mut(self.exposed, self.slots.total() as usize);
            let result = look(&mut self.locals, exposed);
            check("MPI_Win_unlock", ffi::MPI_Win_unlock(self.me, self.raw))?;
            Ok(result)
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if !ext::may_free() {
            // Others may still write to it.
            std::mem::forget(self.memory.take());
            return;
        }
        let _ = self.release();
        // SAFETY: live handles, freed once; memory is detached before it goes.
        unsafe {
            if self.kind == WindowKind::Dynamic {
                let code = ffi::MPI_Win_detach(self.raw, self.exposed.cast::<c_void>());
                ext::freed(c"MPI_Win_detach", code);
            }
            ffi::MPI_Group_free(&raw mut self.partner);
            ext::freed(c"MPI_Win_free", ffi::MPI_Win_free(&raw mut self.raw));
        }
        self.memory = None;
    }
}

fn make_window(
    comm: &Comm,
    kind: WindowKind,
    slots: &Slots,
    memory: Option<&Buffer>,
    hints: Hints,
) -> Result<(ffi::MPI_Win, *mut u8)> {
    let size = slots.total() as ffi::MPI_Aint;
    let mut start: *mut c_void = memory.map_or(ptr::null_mut(), |m| m.start().cast());
    let info = Info::of(hints)?;
    // SAFETY: `start` is null or heads `size` bytes that outlive the window; handles are written by MPI.
    unsafe {
        let (mut raw, none) = (ffi::RSMPI_WIN_NULL, ffi::RSMPI_INFO_NULL);
        let (out, win) = ((&raw mut start).cast::<c_void>(), &raw mut raw);
        match kind {
            WindowKind::Allocate => {
                check("MPI_Win_allocate", ffi::MPI_Win_allocate(size, 1, info.0, comm.raw(), out, win))?
            }
            WindowKind::Shared => {
                let rc = ffi::MPI_Win_allocate_shared(size, 1, none, comm.raw(), out, win);
                check("MPI_Win_allocate_shared", rc)?;
            }
            WindowKind::Create => {
                check("MPI_Win_create", ffi::MPI_Win_create(start, size, 1, none, comm.raw(), win))?
            }
            WindowKind::Dynamic => {
                check("MPI_Win_create_dynamic", ffi::MPI_Win_create_dynamic(none, comm.raw(), win))?;
                check("MPI_Win_attach", ffi::MPI_Win_attach(raw, start, size))?;
            }
        }
        // The library's pages must be there before anything is timed.
        ptr::write_bytes(start.cast::<u8>(), 0, size as usize);
        Ok((raw, start.cast()))
    }
}

/// Hints for a window, freed when dropped.
struct Info(ffi::MPI_Info);

impl Info {
    fn of(hints: Hints) -> Result<Info> {
        // SAFETY: the handle is written by MPI; key and value end with a zero.
        unsafe {
            let mut info = Info(ffi::RSMPI_INFO_NULL);
            if hints == Hints::On {
                check("MPI_Info_create", ffi::MPI_Info_create(&raw mut info.0))?;
                let (key, value) = (c"alloc_shm".as_ptr(), c"true".as_ptr());
                check("MPI_Info_set", ffi::MPI_Info_set(info.0, key, value))?;
            }
            Ok(info)
        }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: owned, freed once, and only if there is one.
        unsafe {
            if self.0 != ffi::RSMPI_INFO_NULL {
                ffi::MPI_Info_free(&raw mut self.0);
            }
        }
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
