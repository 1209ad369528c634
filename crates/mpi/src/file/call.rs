//! The data access calls of MPI-IO (MPI 4.0, 14.4), each as a type, so that a timed loop contains the call and no branch.

use std::ffi::c_void;

use mpi::ffi;
use ombx_core::error::Result;

use super::File;
use crate::sys::{constants::BYTE, error::check};

/// Where data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From memory to the file.
    Write,
    /// From the file to memory.
    Read,
}

/// Order of the blocks in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Each block of a rank has a place of its own.
    Known,
    /// Each call takes the next place that is free, as those of ranks that share a pointer and call by themselves.
    Unknown,
}

/// A data access call.
pub trait Call: 'static {
    /// Name of the function.
    const NAME: &'static str;
    /// Where data goes.
    const DIRECTION: Direction;
    /// Order of the blocks in the file.
    const ORDER: Order;

    /// Makes the call for the block of this number. A call at a pointer takes place at the pointer, whatever the number.
    fn call(file: &File, block: u32) -> Result<()>;
}

/// Declares calls at a pointer, and calls at an offset.
macro_rules! calls {
    ($buffer:ident, $direction:ident: $($Call:ident = $name:ident, $order:ident;)+ @ $($At:ident = $at:ident;)+) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            #[derive(Debug)]
            pub enum $Call {}

            impl Call for $Call {
                const NAME: &'static str = stringify!($name);
                const DIRECTION: Direction = Direction::$direction;
                const ORDER: Order = Order::$order;

                #[inline(always)]
                fn call(file: &File, block: u32) -> Result<()> {
                    let memory = file.$buffer(block).cast::<c_void>();
                    // SAFETY: the file is open until it is dropped, and its buffer has `count` bytes for each block.
                    check(stringify!($name), unsafe {
                        ffi::$name(file.raw, memory, file.count, BYTE, ffi::RSMPI_STATUS_IGNORE)
                    })
                }
            }
        )+
        $(
            #[doc = concat!("`", stringify!($at), "`.")]
            #[derive(Debug)]
            pub enum $At {}

            impl Call for $At {
                const NAME: &'static str = stringify!($at);
                const DIRECTION: Direction = Direction::$direction;
                const ORDER: Order = Order::Known;

                #[inline(always)]
                fn call(file: &File, block: u32) -> Result<()> {
                    let memory = file.$buffer(block).cast::<c_void>();
                    // SAFETY: as in the calls at a pointer.
                    check(stringify!($at), unsafe {
                        ffi::$at(file.raw, file.offset(block), memory, file.count, BYTE, ffi::RSMPI_STATUS_IGNORE)
                    })
                }
            }
        )+
    };
}

calls! {
    written, Write:
    Write = MPI_File_write, Known;
    WriteAll = MPI_File_write_all, Known;
    WriteShared = MPI_File_write_shared, Unknown;
    WriteOrdered = MPI_File_write_ordered, Known;
    @
    WriteAt = MPI_File_write_at;
    WriteAtAll = MPI_File_write_at_all;
}

calls! {
    read, Read:
    Read = MPI_File_read, Known;
    ReadAll = MPI_File_read_all, Known;
    ReadShared = MPI_File_read_shared, Unknown;
    ReadOrdered = MPI_File_read_ordered, Known;
    @
    ReadAt = MPI_File_read_at;
    ReadAtAll = MPI_File_read_at_all;
}
