//! The arguments of a rank's collective calls, as MPI takes them.

use std::{
    ffi::{c_int, c_void},
    ops::Range,
};

use mpi::ffi;
use ombx_core::error::Result;

use super::{
    data_flow::{Blocks, DataFlow, Participants, Share},
    part::{Part, Role},
};
use crate::{
    Buffer, Handles,
    sys::{constants::IN_PLACE, datatype, derived::DerivedDatatype},
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
    /// The blocks that this rank sends, and those that it receives, where the call takes arrays.
    pub(super) outgoing: Vectors,
    pub(super) incoming: Vectors,
}

/// Arrays of counts, displacements and datatypes of blocks.
#[derive(Debug)]
pub(super) struct Vectors {
    counts: Vec<c_int>,
    /// In elements of the datatype.
    displacements: Vec<c_int>,
    /// In bytes, of the call whose blocks have each a datatype.
    starts: Vec<c_int>,
    byte_displacements: Vec<ffi::MPI_Aint>,
    datatypes: Vec<ffi::MPI_Datatype>,
}

impl Vectors {
    /// Returns the arrays of blocks of elements of `width` bytes.
    fn of(blocks: &[Range<u64>], datatype: ffi::MPI_Datatype, width: u64) -> Result<Vectors> {
        let ends = blocks.iter().map(|block| block.end).max().unwrap_or(0);
        // The largest displacement must fit an int.
        datatype::byte_count(ends)?;
        Ok(Vectors {
            counts: blocks.iter().map(|block| ((block.end - block.start) / width) as c_int).collect(),
            displacements: blocks.iter().map(|block| (block.start / width) as c_int).collect(),
            starts: blocks.iter().map(|block| block.start as c_int).collect(),
            byte_displacements: blocks.iter().map(|block| block.start as ffi::MPI_Aint).collect(),
            datatypes: vec![datatype; blocks.len()],
        })
    }

    pub(super) fn counts(&self) -> *const c_int {
        self.counts.as_ptr()
    }

    pub(super) fn displacements(&self) -> *const c_int {
        self.displacements.as_ptr()
    }

    pub(super) fn starts(&self) -> *const c_int {
        self.starts.as_ptr()
    }

    pub(super) fn byte_displacements(&self) -> *const ffi::MPI_Aint {
        self.byte_displacements.as_ptr()
    }

    pub(super) fn datatypes(&self) -> *const ffi::MPI_Datatype {
        self.datatypes.as_ptr()
    }
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
    /// Returns the arguments of a part, whose blocks have a derived datatype if there is one.
    pub(super) fn of(part: &Part, derived: Option<&DerivedDatatype>) -> Result<Arguments> {
        let (datatype, width) = match derived {
            Some(derived) => (derived.raw, (part.bytes / derived.elements.max(1)).max(1)),
            None => (datatype::handle(part.element), part.element.width()),
        };
        let portions = || (0..part.ranks).map(|rank| part.portion(rank)).collect();
        let [outgoing, incoming] = match part.flow {
            DataFlow { vector: false, .. } => Default::default(),
            DataFlow { receives: Share { blocks: Blocks::Portion, .. }, .. } => [Vec::new(), portions()],
            _ => [part.outgoing(), part.incoming()],
        };
        // The block that a rank has alone. Where it has several, they are equal or the call takes arrays.
        let alone = [&outgoing, &incoming].into_iter().find(|blocks| blocks.len() == 1);
        let bytes = match alone.filter(|_| part.flow.vector) {
            Some(blocks) => blocks[0].end,
            None => part.bytes,
        };
        let count = match derived {
            Some(derived) => derived.elements,
            None => datatype::elements(bytes, part.element)?,
        };
        // Parts of unequal blocks are whole elements, but the sizes of blocks are those of the user.
        if derived.is_none() {
            datatype::elements(part.bytes, part.element)?;
        }
        // SAFETY: these statics of mpi-sys are never written.
        let (none, op) = unsafe { (ffi::RSMPI_COMM_NULL, ffi::RSMPI_SUM) };
        Ok(Arguments {
            comm: none,
            from: std::ptr::null(),
            to: std::ptr::null_mut(),
            count: datatype::count(count)?,
            datatype,
            op,
            root: part.root.first().0 as c_int,
            outgoing: Vectors::of(&outgoing, datatype, width)?,
            incoming: Vectors::of(&incoming, datatype, width)?,
        })
    }

    /// Writes what the calls take.
    pub(super) fn describe(&self, handles: &mut Handles) {
        handles.comm = self.comm;
        (handles.outgoing, handles.incoming) = (self.from.cast_mut(), self.to);
        (handles.datatype, handles.op, handles.elements) = (self.datatype, self.op, self.count);
        // The arrays of a loop in C are for equal blocks, of which it sends as many as it receives.
        let blocks = if self.incoming.counts.len() > 1 { &self.incoming } else { &self.outgoing };
        handles.counts = blocks.counts();
        handles.displacements = blocks.displacements();
        handles.byte_displacements = blocks.byte_displacements();
        handles.datatypes = blocks.datatypes();
    }

    /// Sets the addresses of a role.
    #[inline(always)]
    pub(super) fn set_addresses(&mut self, addresses: Addresses) {
        (self.from, self.to) = (addresses.from, addresses.to);
    }
}
