//! Element types and message lengths as MPI-3 calls take them.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{
    benchmark::ElementType,
    error::{Error, Result},
};

use crate::sys::{BYTE, SIGNED_CHAR};

/// Converts a number of elements to the `int` of MPI-3 calls. It is inlined because timed loops call it.
#[inline(always)]
pub(crate) fn count(elements: u64) -> Result<c_int> {
    c_int::try_from(elements).map_err(|_| uncountable(elements))
}

#[cold]
#[inline(never)]
fn uncountable(elements: u64) -> Error {
    Error::unsupported(format!(
        "messages of {elements} elements need large-count calls; this benchmark has less than 2^31 elements: choose a longer --type, \
         such as double, or smaller --sizes"
    ))
}

/// Converts a length of bytes to the `int` of MPI-3 calls. It is inlined because timed loops call it.
#[inline(always)]
pub(crate) fn byte_count(bytes: u64) -> Result<c_int> {
    c_int::try_from(bytes).map_err(|_| too_long(bytes))
}

#[cold]
#[inline(never)]
fn too_long(bytes: u64) -> Error {
    Error::unsupported(format!(
        "messages, or buffers of calls with displacements, of {bytes} bytes need large-count calls; this benchmark has less than 2 GiB: \
         choose smaller --sizes"
    ))
}

/// Returns MPI's handle of an element type.
pub(crate) fn handle(element: ElementType) -> ffi::MPI_Datatype {
    // SAFETY: these statics of mpi-sys are never written.
    unsafe {
        match element {
            ElementType::Byte => BYTE,
            ElementType::Char => SIGNED_CHAR,
            ElementType::Int16 => ffi::RSMPI_INT16_T,
            ElementType::Int32 => ffi::RSMPI_INT32_T,
            ElementType::Int64 => ffi::RSMPI_INT64_T,
            ElementType::Uint8 | ElementType::Widest => ffi::RSMPI_UINT8_T,
            ElementType::Uint16 => ffi::RSMPI_UINT16_T,
            ElementType::Uint32 => ffi::RSMPI_UINT32_T,
            ElementType::Uint64 => ffi::RSMPI_UINT64_T,
            ElementType::Float => ffi::RSMPI_FLOAT,
            ElementType::Double => ffi::RSMPI_DOUBLE,
            ElementType::FloatComplex => ffi::RSMPI_FLOAT_COMPLEX,
            ElementType::DoubleComplex => ffi::RSMPI_DOUBLE_COMPLEX,
        }
    }
}

/// Returns how many elements of a type a message has.
///
/// # Errors
/// The message is not a whole number of elements.
pub(crate) fn elements(bytes: u64, element: ElementType) -> Result<u64> {
    let width = element.width();
    match bytes.is_multiple_of(width) {
        true => Ok(bytes / width),
        false => Err(Error::unsupported(format!(
            "a message of {bytes} bytes is not a whole number of {} elements of {width} bytes: choose a multiple of {width} with \
             --sizes, or another --type",
            element.name()
        ))),
    }
}
