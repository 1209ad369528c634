//! `MPI_Reduce_local`: a rank combines two of its own buffers, without communication.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, ElementType, ReductionOp, payload::Slots},
    error::Result,
};

use super::reduction::OpHandle;
use crate::{
    Buffer, MpiTeam,
    runtime::device_support,
    sys::{datatype, error::check},
};

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
