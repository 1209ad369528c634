//! Element types, derived datatypes, and message lengths as MPI-3 calls take them.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{
    benchmark::{
        ElementType,
        payload::{Blocks, Datatype, STRUCT_BYTES, Slots},
    },
    error::{Error, Result},
};

use super::{
    BYTE, SIGNED_CHAR,
    error::{self, check, check_freed},
};

/// Converts a number of elements to the `int` of MPI-3 calls. It is inlined because timed loops call it.
#[inline(always)]
pub(crate) fn count(elements: u64) -> Result<c_int> {
    c_int::try_from(elements).map_err(|_| uncountable(elements))
}

#[cold]
#[inline(never)]
fn uncountable(elements: u64) -> Error {
    Error::unsupported(format!(
        "messages of {elements} elements need large-count calls; this benchmark has less than 2^31 \
         elements: choose a longer --type, such as double, or smaller --sizes"
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
        "messages, or buffers of calls with displacements, of {bytes} bytes need large-count calls; this \
         benchmark has less than 2 GiB: choose smaller --sizes"
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
    if bytes.is_multiple_of(width) {
        Ok(bytes / width)
    } else {
        Err(Error::unsupported(format!(
            "a message of {bytes} bytes is not a whole number of {} elements of {width} bytes: choose a \
             multiple of {width} with --sizes, or another --type",
            element.name()
        )))
    }
}

/// A committed datatype, freed when it is dropped.
#[derive(Debug)]
pub(crate) struct DerivedDatatype {
    pub(crate) raw: ffi::MPI_Datatype,
    /// How many elements of the datatype a message has.
    pub(crate) elements: u64,
}

impl DerivedDatatype {
    /// Returns the datatype of messages with `bytes` bytes of payload: a vector or the list of all blocks, whose blocks hold elements of
    /// one type, or a struct of which a message has one for each block. A struct has types of its own.
    ///
    /// # Errors
    /// The payload is not a whole number of blocks, or a block not a whole number of elements, or the payload is too long.
    pub(crate) fn new(blocks: Blocks, bytes: u64, element: ElementType) -> Result<DerivedDatatype> {
        let element = Element { raw: handle(element), width: element.width() };
        let of_message = blocks.count(bytes)?;
        let (mut raw, elements) = match blocks.datatype {
            Datatype::Struct => (structure(blocks)?, of_message),
            Datatype::Indexed => (indexed(blocks, bytes, element)?, 1),
            Datatype::Contiguous | Datatype::Vector => (vector(blocks, of_message, element)?, 1),
        };
        commit(&mut raw)?;
        Ok(DerivedDatatype { raw, elements })
    }

    /// Returns the datatype of messages that lie one after the other: like [`DerivedDatatype::new`], but an element extends to where the
    /// next one begins.
    ///
    /// # Errors
    /// As [`DerivedDatatype::new`].
    pub(crate) fn adjacent(blocks: Blocks, bytes: u64, element: ElementType) -> Result<DerivedDatatype> {
        let made = DerivedDatatype::new(blocks, bytes, element)?;
        if blocks.datatype == Datatype::Struct {
            return Ok(made);
        }
        let mut raw = extended(made.raw, blocks.span(bytes))?;
        commit(&mut raw)?;
        Ok(DerivedDatatype { raw, elements: made.elements })
    }
}

/// A predefined datatype and its bytes.
#[derive(Debug, Clone, Copy)]
struct Element {
    raw: ffi::MPI_Datatype,
    width: u64,
}

impl Element {
    /// Converts bytes to elements.
    ///
    /// # Errors
    /// They are not a whole number of elements, or too many.
    fn count(self, bytes: u64) -> Result<c_int> {
        if bytes.is_multiple_of(self.width) {
            count(bytes / self.width)
        } else {
            Err(Error::unsupported(format!(
                "{bytes} bytes are not a whole number of elements of {} bytes: choose another \
                 --block-length and --stride",
                self.width
            )))
        }
    }
}

/// Datatype of a message and its number of elements, as the calls take it.
#[derive(Debug)]
pub(crate) struct MessageType<N = c_int> {
    pub(crate) raw: ffi::MPI_Datatype,
    pub(crate) count: N,
    /// Keeps a derived datatype alive.
    _derived: Option<DerivedDatatype>,
}

impl MessageType {
    /// Returns the type of the messages of some slots for calls whose counts are `int`: that of their elements, or a derived datatype.
    ///
    /// # Errors
    /// Those of [`MessageType::counted`], and the number of elements does not fit.
    pub(crate) fn new(slots: Slots) -> Result<MessageType> {
        MessageType::counted(slots, count)
    }
}

impl<N> MessageType<N> {
    /// Returns the type of the messages of some slots for calls with another type of counts.
    ///
    /// # Errors
    /// The message is not a whole number of elements, or its payload not a whole number of blocks, or too long.
    pub(crate) fn counted(slots: Slots, count: impl FnOnce(u64) -> Result<N>) -> Result<MessageType<N>> {
        let derived = |blocks| DerivedDatatype::new(blocks, slots.bytes, slots.element);
        let derived = slots.blocks.map(derived).transpose()?;
        let (raw, elements) = match &derived {
            Some(made) => (made.raw, made.elements),
            None => (handle(slots.element), elements(slots.bytes, slots.element)?),
        };
        Ok(MessageType { raw, count: count(elements)?, _derived: derived })
    }
}

impl Drop for DerivedDatatype {
    fn drop(&mut self) {
        if error::may_free() {
            // SAFETY: the datatype exists until here. MPI keeps it for operations that are not complete, and for the views of files.
            check_freed(c"MPI_Type_free", unsafe { ffi::MPI_Type_free(&raw mut self.raw) });
        }
    }
}

/// Returns `MPI_BYTE`, as the place of a result.
fn no_type() -> ffi::MPI_Datatype {
    BYTE
}

fn commit(made: &mut ffi::MPI_Datatype) -> Result<()> {
    // SAFETY: the datatype was made before, and the address is valid for the call.
    check("MPI_Type_commit", unsafe { ffi::MPI_Type_commit(made) })
}

/// Returns a datatype whose elements are `extent` bytes apart.
fn extended(from: ffi::MPI_Datatype, extent: u64) -> Result<ffi::MPI_Datatype> {
    let mut made = no_type();
    // SAFETY: the datatype exists, and the result is valid for the call.
    check("MPI_Type_create_resized", unsafe {
        ffi::MPI_Type_create_resized(from, 0, extent as ffi::MPI_Aint, &raw mut made)
    })?;
    Ok(made)
}

fn vector(blocks: Blocks, of_message: u64, element: Element) -> Result<ffi::MPI_Datatype> {
    let of_message = count(of_message);
    let [length, stride] = [blocks.length, blocks.stride].map(|bytes| element.count(bytes));
    let mut made = no_type();
    // SAFETY: the result is valid for the call.
    check("MPI_Type_vector", unsafe {
        ffi::MPI_Type_vector(of_message?, length?, stride?, element.raw, &raw mut made)
    })?;
    Ok(made)
}

fn indexed(blocks: Blocks, bytes: u64, element: Element) -> Result<ffi::MPI_Datatype> {
    let mut lengths = Vec::new();
    let mut displacements = Vec::new();
    for place in blocks.places(bytes) {
        lengths.push(element.count(place.end - place.start)?);
        displacements.push(place.start as ffi::MPI_Aint);
    }
    let (n, mut made) = (count(lengths.len() as u64)?, no_type());
    // SAFETY: both lists have `n` elements, and they and the result are valid for the call.
    check("MPI_Type_create_hindexed", unsafe {
        ffi::MPI_Type_create_hindexed(n, lengths.as_ptr(), displacements.as_ptr(), element.raw, &raw mut made)
    })?;
    Ok(made)
}

fn structure(blocks: Blocks) -> Result<ffi::MPI_Datatype> {
    // SAFETY: these statics of mpi-sys are never written.
    let types = unsafe { [ffi::RSMPI_INT32_T, ffi::RSMPI_DOUBLE, BYTE] };
    let (mut lengths, mut displacements): ([c_int; 3], [ffi::MPI_Aint; 3]) = ([1; 3], [0; 3]);
    for (member, place) in blocks.places(blocks.length).enumerate().take(types.len()) {
        displacements[member] = place.start as ffi::MPI_Aint;
        if place.start == STRUCT_BYTES {
            lengths[member] = count(place.end - place.start)?;
        }
    }
    let mut members = no_type();
    // SAFETY: all lists have three elements, and they and the result are valid for the call.
    check("MPI_Type_create_struct", unsafe {
        ffi::MPI_Type_create_struct(
            3,
            lengths.as_ptr(),
            displacements.as_ptr(),
            types.as_ptr(),
            &raw mut members,
        )
    })?;
    let made = extended(members, blocks.stride)?;
    // SAFETY: the datatype exists, and the one that was made of it does not need it.
    check("MPI_Type_free", unsafe { ffi::MPI_Type_free(&raw mut members) })?;
    Ok(made)
}
