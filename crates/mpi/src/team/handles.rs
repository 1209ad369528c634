//! Handles of the operation that was opened last, for loops in C that repeat its calls.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

use mpi::ffi;
use ombx_core::benchmark::{Context, payload::Slots};

use super::communicator::Comm;
use crate::{Buffer, Source, sys::constants::BYTE};

/// What the calls of an iteration take: communicators, window, requests, buffers and lengths. Fields that an operation does not
/// have are null or 0.
///
/// C code may use the handles while the operation is open. Its header repeats the fields in the same order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Handles {
    /// Communicator of the team.
    pub(crate) team: ffi::MPI_Comm,
    /// Communicator of the operation.
    pub(crate) comm: ffi::MPI_Comm,
    pub(crate) window: ffi::MPI_Win,
    pub(crate) file: ffi::MPI_File,
    /// Group of the peer alone.
    pub(crate) group: ffi::MPI_Group,
    /// Datatype of messages or of reductions.
    pub(crate) datatype: ffi::MPI_Datatype,
    /// Operation of reductions.
    pub(crate) op: ffi::MPI_Op,
    /// Displacement of slot 0 in the peer's window, or offset of the first block in a file.
    pub(crate) remote: ffi::MPI_Aint,
    pub(crate) outgoing: *mut c_void,
    pub(crate) incoming: *mut c_void,
    pub(crate) compare: *mut c_void,
    pub(crate) requests: *mut ffi::MPI_Request,
    pub(crate) counts: *const c_int,
    pub(crate) displacements: *const c_int,
    pub(crate) byte_displacements: *const ffi::MPI_Aint,
    pub(crate) datatypes: *const ffi::MPI_Datatype,
    pub(crate) partners: *const c_int,
    /// Path of a file.
    pub(crate) path: *const c_char,
    /// Bytes from one message to the next.
    pub(crate) stride: usize,
    /// Bytes from the messages of one partner to those of the next, or from one block of a rank in a file to its next one.
    pub(crate) partner_stride: usize,
    pub(crate) bytes: c_int,
    /// Number of elements of `datatype` in a message.
    pub(crate) elements: c_int,
    /// Number of messages.
    pub(crate) depth: c_int,
    pub(crate) rank: c_int,
    pub(crate) ranks: c_int,
    pub(crate) peer: c_int,
    /// Source that receives name.
    pub(crate) source: c_int,
    pub(crate) partner_count: c_int,
}

impl Handles {
    /// Returns the handles of a communicator without an operation.
    pub(crate) fn of(comm: &Comm) -> Handles {
        // SAFETY: these statics of mpi-sys are never written.
        let (window, file, group, datatype, op) = unsafe {
            (
                ffi::RSMPI_WIN_NULL,
                ffi::RSMPI_FILE_NULL,
                ffi::RSMPI_GROUP_NULL,
                ffi::RSMPI_UINT8_T,
                ffi::RSMPI_SUM,
            )
        };
        Handles {
            team: comm.raw(),
            comm: comm.raw(),
            window,
            file,
            group,
            datatype,
            op,
            remote: 0,
            outgoing: ptr::null_mut(),
            incoming: ptr::null_mut(),
            compare: ptr::null_mut(),
            requests: ptr::null_mut(),
            counts: ptr::null(),
            displacements: ptr::null(),
            byte_displacements: ptr::null(),
            datatypes: ptr::null(),
            partners: ptr::null(),
            path: ptr::null(),
            stride: 0,
            partner_stride: 0,
            bytes: 0,
            elements: 0,
            depth: 1,
            rank: comm.rank().0 as c_int,
            ranks: comm.size() as c_int,
            peer: 0,
            source: 0,
            partner_count: 0,
        }
    }

    pub(crate) fn describe_messages(
        &mut self,
        cx: &Context<'_>,
        slots: Slots,
        outgoing: &Buffer,
        incoming: &Buffer,
    ) {
        self.describe_slots(slots);
        (self.datatype, self.elements) = (BYTE, self.bytes);
        (self.peer, self.source) = (cx.peer.0 as c_int, Source::of(cx, cx.peer));
        (self.outgoing, self.incoming) = (outgoing.start().cast(), incoming.start().cast());
    }

    pub(crate) fn describe_slots(&mut self, slots: Slots) {
        // Messages of 2 GiB and more are not repeated by such loops.
        self.bytes = c_int::try_from(slots.bytes).unwrap_or(c_int::MAX);
        (self.depth, self.stride) = (slots.count as c_int, slots.stride as usize);
    }
}
