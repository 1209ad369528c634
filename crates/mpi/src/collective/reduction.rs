//! Datatype and operation of a reduction, as MPI takes them.

use std::{
    ffi::{c_int, c_void},
    ops::Add,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{ElementType, ReductionOp},
    error::Result,
};

use crate::sys::{
    constants::{NO_OP, REPLACE},
    error::{self, check},
};

/// Returns MPI's handle of a predefined operation; `None` for the operation of ombx.
pub(crate) fn predefined(op: ReductionOp) -> Option<ffi::MPI_Op> {
    // SAFETY: these statics of mpi-sys are never written.
    unsafe {
        Some(match op {
            ReductionOp::Sum => ffi::RSMPI_SUM,
            ReductionOp::Prod => ffi::RSMPI_PROD,
            ReductionOp::Min => ffi::RSMPI_MIN,
            ReductionOp::Max => ffi::RSMPI_MAX,
            ReductionOp::LogicalAnd => ffi::RSMPI_LAND,
            ReductionOp::LogicalOr => ffi::RSMPI_LOR,
            ReductionOp::LogicalXor => ffi::RSMPI_LXOR,
            ReductionOp::BitwiseAnd => ffi::RSMPI_BAND,
            ReductionOp::BitwiseOr => ffi::RSMPI_BOR,
            ReductionOp::BitwiseXor => ffi::RSMPI_BXOR,
            ReductionOp::Replace => REPLACE,
            ReductionOp::NoOp => NO_OP,
            ReductionOp::User => return None,
        })
    }
}

/// An operation handle, which is freed if ombx has created it.
#[derive(Debug)]
pub(super) struct OpHandle {
    raw: ffi::MPI_Op,
    created: bool,
}

impl OpHandle {
    /// Returns the handle of an operation on elements of a type.
    pub(super) fn of(element: ElementType, op: ReductionOp) -> Result<OpHandle> {
        if let Some(raw) = predefined(op) {
            return Ok(OpHandle { raw, created: false });
        }
        // SAFETY: the static is never written. MPI stores a handle in `raw`, which outlives the call, and calls the function with
        // buffers of the datatype of the reduction only.
        unsafe {
            let mut raw = ffi::RSMPI_SUM;
            check("MPI_Op_create", ffi::MPI_Op_create(Some(sum(element)), COMMUTES, &raw mut raw))?;
            Ok(OpHandle { raw, created: true })
        }
    }

    pub(super) fn raw(&self) -> ffi::MPI_Op {
        self.raw
    }
}

impl Drop for OpHandle {
    fn drop(&mut self) {
        if self.created && error::may_free() {
            // SAFETY: `self` owns the handle, and its owner has completed or freed every request before.
            error::check_freed(c"MPI_Op_free", unsafe { ffi::MPI_Op_free(&raw mut self.raw) });
        }
    }
}

const COMMUTES: c_int = 1;

/// Function of a user-defined operation.
type Combine = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut ffi::MPI_Datatype);

/// Returns the function that adds elements of a type.
fn sum(element: ElementType) -> Combine {
    match element {
        ElementType::Byte | ElementType::Char | ElementType::Uint8 | ElementType::Widest => {
            add::<std::num::Wrapping<u8>, 1>
        }
        ElementType::Int16 | ElementType::Uint16 => add::<std::num::Wrapping<u16>, 1>,
        ElementType::Int32 | ElementType::Uint32 => add::<std::num::Wrapping<u32>, 1>,
        ElementType::Int64 | ElementType::Uint64 => add::<std::num::Wrapping<u64>, 1>,
        ElementType::Float => add::<f32, 1>,
        ElementType::Double => add::<f64, 1>,
        ElementType::FloatComplex => add::<f32, 2>,
        ElementType::DoubleComplex => add::<f64, 2>,
    }
}

/// Adds `count` elements of `PARTS` numbers each.
///
/// # Safety
/// Both buffers hold that many elements and do not overlap (MPI 4.1, 6.9.5).
unsafe extern "C" fn add<T: Copy + Add<Output = T>, const PARTS: usize>(
    from: *mut c_void,
    to: *mut c_void,
    count: *mut c_int,
    _: *mut ffi::MPI_Datatype,
) {
    // SAFETY: the caller fulfils the contract above, and MPI aligns the buffers for the datatype.
    unsafe {
        let numbers = *count as usize * PARTS;
        let (from, to) = (from.cast::<T>(), to.cast::<T>());
        for at in 0..numbers {
            let sum = to.add(at).read_unaligned() + from.add(at).read_unaligned();
            to.add(at).write_unaligned(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operation_of_ombx_adds_numbers_of_every_type() {
        for (element, one, other, expected) in [
            (ElementType::Char, vec![1, 2], vec![0xff, 3], vec![0, 5]),
            (
                ElementType::Float,
                1.5f32.to_le_bytes().to_vec(),
                2f32.to_le_bytes().to_vec(),
                3.5f32.to_le_bytes().to_vec(),
            ),
            (
                ElementType::FloatComplex,
                [1f32, 2.0].map(f32::to_le_bytes).concat(),
                [3f32, 5.0].map(f32::to_le_bytes).concat(),
                [4f32, 7.0].map(f32::to_le_bytes).concat(),
            ),
        ] {
            let (mut from, mut to) = (one, other);
            let mut count = (from.len() as u64 / element.width()) as c_int;
            let mut datatype = crate::sys::datatype::handle(element);
            // SAFETY: both buffers hold `count` elements.
            unsafe {
                sum(element)(
                    from.as_mut_ptr().cast(),
                    to.as_mut_ptr().cast(),
                    &raw mut count,
                    &raw mut datatype,
                );
            }
            assert_eq!(to, expected, "{element:?}");
        }
    }
}
