//! The arguments of a rank's collective calls, as MPI takes them.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::error::Result;

use super::{
    data_flow::{Participants, ReductionScope},
    part::{Part, Role},
    reduction,
};
use crate::{
    Buffer, Handles,
    sys::{
        constants::{BYTE, IN_PLACE},
        datatype,
    },
};

/// The arguments of a collective call. The caller keeps the buffers and the communicator alive.
#[derive(Debug)]
pub struct Arguments {
    pub(super) comm: ffi::MPI_Comm,
    pub(super) from: *const c_void,
    pub(super) to: *mut c_void,
    pub(super) count: c_int,
    pub(super) datatype: ffi::MPI_Datatype,
    pub(super) op: ffi::MPI_Op,
    pub(super) root: c_int,
    counts: Vec<c_int>,
    displacements: Vec<c_int>,
    byte_displacements: Vec<ffi::MPI_Aint>,
    datatypes: Vec<ffi::MPI_Datatype>,
}

/// Send and receive address of a rank in a role.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    from: *const c_void,
    to: *mut c_void,
}

impl Addresses {
    pub(super) fn of(part: &Part, role: Role, from: &Buffer, to: &Buffer) -> Addresses {
        let (from, to) = (from.start().cast::<c_void>(), to.start().cast::<c_void>());
        let (sends, receives) = (part.flow.sends.who, part.flow.receives.who);
        match (part.is_in_place(role), sends) {
            (true, Participants::Root) => Addresses { from, to: IN_PLACE },
            (true, _) => Addresses { from: IN_PLACE, to },
            // A broadcast uses one address. On the root it is that of the send buffer.
            (false, _) if receives == Participants::Others && role == Role::Root => {
                Addresses { from, to: from }
            }
            (false, _) => Addresses { from, to },
        }
    }
}

impl Addresses {
    /// Returns the addresses of the copies at an offset. The address of an empty buffer, which no call uses, may be invalid.
    #[inline(always)]
    pub(super) fn moved(self, offset: usize) -> Addresses {
        let from =
            if self.from == IN_PLACE.cast_const() { self.from } else { self.from.wrapping_byte_add(offset) };
        let to = if self.to == IN_PLACE { self.to } else { self.to.wrapping_byte_add(offset) };
        Addresses { from, to }
    }
}

impl Arguments {
    pub(super) fn of(part: &Part) -> Result<Arguments> {
        let Part { ranks, bytes, neighbours, .. } = part;
        let (datatype, width) = match part.flow.reduces {
            ReductionScope::Nothing => (BYTE, 1),
            _ => (reduction::datatype(part.element), part.element.width()),
        };
        let blocks = match (part.flow.vector, part.flow.has_neighbours()) {
            (false, _) => 0,
            (true, false) => u64::from(*ranks),
            (true, true) => neighbours.sources.len().max(neighbours.destinations.len()) as u64,
        };
        let reduces = part.flow.reduces != ReductionScope::Nothing;
        let count = match reduces {
            true => reduction::elements(*bytes, part.element)?,
            false => datatype::count(*bytes)?,
        };
        // The largest displacement must fit an int.
        datatype::count(if reduces { *bytes } else { blocks * bytes })?;
        let counts = (0..blocks).map(|block| match reduces {
            true => {
                let portion = part.portion(block as u32);
                ((portion.end - portion.start) / width) as c_int
            }
            false => count,
        });
        // SAFETY: these statics of mpi-sys are never written.
        let (none, op) = unsafe { (ffi::RSMPI_COMM_NULL, ffi::RSMPI_SUM) };
        Ok(Arguments {
            comm: none,
            from: std::ptr::null(),
            to: std::ptr::null_mut(),
            count,
            datatype,
            op,
            root: part.root.first().0 as c_int,
            counts: counts.collect(),
            displacements: (0..blocks).map(|block| (block * bytes) as c_int).collect(),
            byte_displacements: (0..blocks).map(|block| (block * bytes) as ffi::MPI_Aint).collect(),
            datatypes: vec![datatype; blocks as usize],
        })
    }

    /// Writes what the calls take.
    pub(super) fn describe(&self, handles: &mut Handles) {
        handles.comm = self.comm;
        (handles.outgoing, handles.incoming) = (self.from.cast_mut(), self.to);
        (handles.datatype, handles.op, handles.elements) = (self.datatype, self.op, self.count);
        handles.counts = self.counts();
        handles.displacements = self.displacements();
        handles.byte_displacements = self.byte_displacements();
        handles.datatypes = self.datatypes();
    }

    /// Sets the addresses of a role.
    #[inline(always)]
    pub(super) fn set_addresses(&mut self, addresses: Addresses) {
        (self.from, self.to) = (addresses.from, addresses.to);
    }

    pub(super) fn counts(&self) -> *const c_int {
        self.counts.as_ptr()
    }

    pub(super) fn displacements(&self) -> *const c_int {
        self.displacements.as_ptr()
    }

    pub(super) fn byte_displacements(&self) -> *const ffi::MPI_Aint {
        self.byte_displacements.as_ptr()
    }

    pub(super) fn datatypes(&self) -> *const ffi::MPI_Datatype {
        self.datatypes.as_ptr()
    }
}
