//! Collective operations: the data flow and the three calls of each, and a rank's buffers and arguments for them.

mod arguments;
mod call;
mod data_flow;
pub(crate) mod operation;
mod topology;

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_accelerator::{Copies, Pinned, device};
use ombx_core::{
    benchmark::{Context, ElementType, ReductionOp, memory::BufferMemory, payload::Slots},
    error::{Error, Result},
    unit::Rank,
};

use crate::collective::operation::OpHandle;
use crate::{
    Buffer, MpiTeam,
    runtime::device_support,
    sys::{datatype, error::check},
    two_sided::staged::copied,
};

pub use self::{
    call::*,
    data_flow::{Blocks, DataFlow, Participants, ReductionScope, Share},
    operation::{Operation, Options, Requests},
    topology::{Neighbours, neighbours},
};
pub use crate::collective::arguments::{Gaps, Part};

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

/// A local reduction that is ready to be called. It owns its buffers.
#[derive(Debug)]
pub struct LocalReduction {
    count: c_int,
    datatype: ffi::MPI_Datatype,
    op: OpHandle,
    operand: Buffer,
    memory: Buffer,
}

impl LocalReduction {
    /// Allocates two buffers of one message each. Collective.
    ///
    /// # Errors
    /// The message is not a whole number of elements, or the memory is not available.
    pub fn open(
        cx: &Context<'_>,
        slots: Slots,
        element: ElementType,
        op: ReductionOp,
    ) -> Result<LocalReduction> {
        let team: &MpiTeam = cx.fabric()?;
        device_support::combining_works(cx, "MPI_Reduce_local")?;
        let size = slots.total();
        cx.afford(2 * size)?;
        let parts = datatype::elements(slots.bytes, element).and_then(datatype::count).and_then(|count| {
            Ok((count, Buffer::zeroed(size)?.placed(cx)?, Buffer::zeroed(size)?.placed(cx)?))
        });
        let (count, operand, memory) = cx.agree(parts)?;
        let (datatype, op) = (datatype::handle(element), OpHandle::of(element, op)?);
        let local = LocalReduction { count, datatype, op, operand, memory };
        team.lend(|handles| {
            (handles.datatype, handles.op, handles.elements) = (local.datatype, local.op.raw(), local.count);
            handles.outgoing = local.operand.start().cast();
            handles.incoming = local.memory.start().cast();
            handles.describe_slots(slots);
        });
        Ok(local)
    }

    /// Combines the operand with the memory.
    #[inline(always)]
    pub fn call(&mut self) -> Result<()> {
        let (operand, memory) = (self.operand.start().cast::<c_void>(), self.memory.start().cast::<c_void>());
        // SAFETY: `self` owns both buffers, which do not overlap and have `count` elements of the datatype.
        check("MPI_Reduce_local", unsafe {
            ffi::MPI_Reduce_local(operand, memory, self.count, self.datatype, self.op.raw())
        })
    }

    /// Returns the buffer that is combined with the memory.
    pub fn operand(&mut self) -> &mut [u8] {
        self.operand.bytes_mut()
    }

    /// Returns the buffer that gets the result.
    pub fn memory(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

/// A buffer on a device, and the one of the host that MPI uses.
#[derive(Debug)]
struct Staging {
    buffer: Buffer,
    copies: Copies,
    host: *mut c_void,
    bytes: usize,
    _pinned: Option<Pinned>,
}

impl Staging {
    /// Allocates the buffer on the device, and pins that of the host. No bytes are copied for an empty buffer.
    ///
    /// # Errors
    /// The device has too little memory.
    ///
    /// # Safety
    /// The buffer of the host exists until the result is dropped.
    unsafe fn open(cx: &Context<'_>, host: &mut Buffer, bytes: u64) -> Result<Staging> {
        let place = cx.get::<BufferMemory>().place(cx.role);
        let host = host.bytes_mut();
        let buffer = Buffer::reserved(host.len() as u64)?.on(place)?;
        let refused = || Error::unsupported("--staged needs the memory of a device");
        let (there, api) = buffer.on_device().zip(place.api()).ok_or_else(refused)?;
        let (copies, start, bytes) = (there.copies(), host.as_mut_ptr(), bytes as usize);
        let pinned = match bytes {
            0 => None,
            // SAFETY: the caller promises that the memory exists.
            _ => Some(unsafe { Pinned::new(device(api)?, start, host.len()) }?),
        };
        Ok(Staging { buffer, copies, host: start.cast(), bytes, _pinned: pinned })
    }

    #[inline(always)]
    fn to_host(&self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: both buffers have the bytes and exist as long as `self`.
        copied(unsafe { self.copies.to_host(self.host, 0, self.bytes) })
    }

    #[inline(always)]
    fn to_device(&self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: as above.
        copied(unsafe { self.copies.to_device(0, self.host, self.bytes) })
    }
}
