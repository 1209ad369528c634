//! Derived datatypes of messages whose payload is in blocks with gaps between them.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{
    benchmark::payload::{Blocks, Datatype, STRUCT_BYTES, Slots},
    error::{Error, Result},
};

use super::{
    constants::BYTE,
    datatype::count,
    error::{self, check, check_freed},
};

/// A committed datatype, freed when it is dropped.
#[derive(Debug)]
pub(crate) struct DerivedDatatype {
    pub(crate) raw: ffi::MPI_Datatype,
    /// How many elements of the datatype a message has.
    pub(crate) elements: u64,
}

impl DerivedDatatype {
    /// Returns the datatype of messages with `bytes` bytes of payload: a vector or the list of all blocks, or a struct of which a message
    /// has one for each block.
    ///
    /// # Errors
    /// The payload is not a whole number of blocks, or too long.
    pub(crate) fn of(blocks: Blocks, bytes: u64) -> Result<DerivedDatatype> {
        DerivedDatatype::of_elements(blocks, bytes, Element { raw: BYTE, width: 1 })
    }

    /// Returns the datatype of messages whose blocks hold elements of one type. A struct has types of its own.
    ///
    /// # Errors
    /// As [`DerivedDatatype::of`], and a block is not a whole number of elements.
    pub(crate) fn of_elements(blocks: Blocks, bytes: u64, element: Element) -> Result<DerivedDatatype> {
        let of_message = blocks.count(bytes)?;
        let (mut raw, elements) = match blocks.datatype {
            Datatype::Struct => (structure(blocks)?, of_message),
            Datatype::Indexed => (indexed(blocks, bytes, element)?, 1),
            Datatype::Contiguous | Datatype::Vector => (vector(blocks, of_message, element)?, 1),
        };
        commit(&mut raw)?;
        Ok(DerivedDatatype { raw, elements })
    }

    /// Returns the datatype of messages that lie one after the other: like [`DerivedDatatype::of`], but an element extends to where the
    /// next one begins.
    ///
    /// # Errors
    /// The payload is not a whole number of blocks, or too long.
    pub(crate) fn adjacent(blocks: Blocks, bytes: u64) -> Result<DerivedDatatype> {
        let made = DerivedDatatype::of(blocks, bytes)?;
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
pub(crate) struct Element {
    pub(crate) raw: ffi::MPI_Datatype,
    pub(crate) width: u64,
}

impl Element {
    /// Converts bytes to elements.
    ///
    /// # Errors
    /// They are not a whole number of elements, or too many.
    fn count(self, bytes: u64) -> Result<c_int> {
        match bytes.is_multiple_of(self.width) {
            true => count(bytes / self.width),
            false => Err(Error::unsupported(format!(
                "{bytes} bytes are not a whole number of elements of {} bytes: choose another --block-length and --stride",
                self.width
            ))),
        }
    }
}

/// Datatype and number of elements of a message, whose counts are `int`.
#[derive(Debug)]
pub(crate) struct MessageType {
    pub(crate) raw: ffi::MPI_Datatype,
    pub(crate) count: c_int,
    /// Keeps a derived datatype alive.
    _derived: Option<DerivedDatatype>,
}

impl MessageType {
    /// Returns the type of the messages of some slots: bytes, or a derived datatype.
    ///
    /// # Errors
    /// The message is too long, or its payload is not a whole number of blocks.
    pub(crate) fn of(slots: Slots) -> Result<MessageType> {
        let derived = slots.blocks.map(|blocks| DerivedDatatype::of(blocks, slots.bytes)).transpose()?;
        let (raw, elements) = derived.as_ref().map_or((BYTE, slots.bytes), |made| (made.raw, made.elements));
        Ok(MessageType { raw, count: count(elements)?, _derived: derived })
    }
}

impl Drop for DerivedDatatype {
    fn drop(&mut self) {
        if error::may_free() {
            // SAFETY: the datatype exists until here. MPI keeps it for operations that are not complete.
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
