//! The arguments of a rank's collective calls, in the form in which MPI wants them.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::error::Result;

use super::{
    part::{Part, Place, Role},
    shape::{Reduces, Who},
};
use crate::{
    Buffer,
    ext::{self, BYTE, IN_PLACE},
};

/// What calls are made with. Pointers are to buffers that whoever makes the calls keeps alive.
#[derive(Debug)]
pub struct Arguments {
    pub(super) comm: ffi::MPI_Comm,
    pub(super) from: *const c_void,
    pub(super) to: *mut c_void,
    pub(super) count: c_int,
    pub(super) kind: ffi::MPI_Datatype,
    pub(super) sum: ffi::MPI_Op,
    pub(super) root: c_int,
    counts: Vec<c_int>,
    starts: Vec<c_int>,
    offsets: Vec<ffi::MPI_Aint>,
    kinds: Vec<ffi::MPI_Datatype>,
}

/// Where a rank sends from and receives to in a role.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    from: *const c_void,
    to: *mut c_void,
}

impl Ends {
    pub(super) fn of(part: &Part, role: Role, from: &Buffer, to: &Buffer) -> Ends {
        let (from, to) = (from.start().cast::<c_void>(), to.start().cast::<c_void>());
        let (sends, receives) = (part.shape.sends.who, part.shape.receives.who);
        match (part.is_in_place(role), sends) {
            (true, Who::Root) => Ends { from, to: IN_PLACE },
            (true, _) => Ends { from: IN_PLACE, to },
            // A broadcast has one buffer: the root's is the one to send from.
            (false, _) if receives == Who::Others && role == Role::Root => Ends { from, to: from },
            (false, _) => Ends { from, to },
        }
    }
}

impl Arguments {
    pub(super) fn of(part: &Part) -> Result<Arguments> {
        let Place { ranks, bytes, neighbours, .. } = &part.place;
        let (kind, width) = match part.shape.reduces {
            Reduces::Nothing => (BYTE, 1),
            _ => ext::element(*bytes),
        };
        let blocks = match (part.shape.listed, part.shape.has_neighbours()) {
            (false, _) => 0,
            (true, false) => u64::from(*ranks),
            (true, true) => neighbours.sources.len().max(neighbours.destinations.len()) as u64,
        };
        let reduces = part.shape.reduces != Reduces::Nothing;
        // The last place must be one that an int can tell.
        ext::count(if reduces { *bytes } else { blocks * bytes })?;
        let count = ext::count(bytes / width)?;
        let counts = (0..blocks).map(|block| match reduces {
            true => {
                let portion = part.portion(block as u32);
                ((portion.end - portion.start) / width) as c_int
            }
            false => count,
        });
        // SAFETY: constants of the library.
        let (none, sum) = unsafe { (ffi::RSMPI_COMM_NULL, ffi::RSMPI_SUM) };
        Ok(Arguments {
            comm: none,
            from: std::ptr::null(),
            to: std::ptr::null_mut(),
            count,
            kind,
            sum,
            root: part.place.root.first().0 as c_int,
            counts: counts.collect(),
            starts: (0..blocks).map(|block| (block * bytes) as c_int).collect(),
            offsets: (0..blocks).map(|block| (block * bytes) as ffi::MPI_Aint).collect(),
            kinds: vec![kind; blocks as usize],
        })
    }

    /// Takes the ends of a role.
    #[inline(always)]
    pub(super) fn take(&mut self, ends: Ends) {
        (self.from, self.to) = (ends.from, ends.to);
    }

    pub(super) fn counts(&self) -> *const c_int {
        self.counts.as_ptr()
    }

    pub(super) fn starts(&self) -> *const c_int {
        self.starts.as_ptr()
    }

    pub(super) fn offsets(&self) -> *const ffi::MPI_Aint {
        self.offsets.as_ptr()
    }

    pub(super) fn kinds(&self) -> *const ffi::MPI_Datatype {
        self.kinds.as_ptr()
    }
}
