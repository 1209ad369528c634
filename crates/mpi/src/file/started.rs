//! Data access calls of MPI-IO that start an operation and complete it later (MPI 4.0, 14.4), each as a type.

use std::ffi::c_void;

use mpi::ffi;
use ombx_core::error::Result;

use super::{File, Order};
use crate::sys::{constants::BYTE, error::check, requests};

/// An access that a call starts and another one completes.
pub trait Started: 'static {
    /// Name of the function that starts it.
    const START: &'static str;
    /// Order of the blocks in the file.
    const ORDER: Order;

    /// Starts the access of block 0, calls `slice`, then `tests` times `MPI_Test` and `slice`, and waits. Split collectives have no
    /// request to be tested.
    fn overlapped(file: &File, tests: u32, slice: impl FnMut()) -> Result<()>;
}

/// Declares accesses with a request, at a pointer and at an offset.
macro_rules! requests {
    ($buffer:ident: $($Call:ident = $name:ident, $order:ident;)+ @ $($At:ident = $at:ident;)+) => {
        $(requests! { one $buffer, $Call, $name, $order, })+
        $(requests! { one $buffer, $At, $at, Known, offset })+
    };
    (one $buffer:ident, $Call:ident, $name:ident, $order:ident, $($offset:ident)?) => {
        #[doc = concat!("`", stringify!($name), "`.")]
        #[derive(Debug)]
        pub enum $Call {}

        impl Started for $Call {
            const START: &'static str = stringify!($name);
            const ORDER: Order = Order::$order;

            #[inline(always)]
            fn overlapped(file: &File, tests: u32, slice: impl FnMut()) -> Result<()> {
                let memory = file.$buffer(0).cast::<c_void>();
                // SAFETY: the file is open, and its buffer has `count` bytes. Nothing else uses the buffer until the request has
                // completed.
                unsafe {
                    let mut request = ffi::RSMPI_REQUEST_NULL;
                    check(
                        stringify!($name),
                        ffi::$name(file.raw, $(file.$offset(0),)? memory, file.count, BYTE, &raw mut request),
                    )?;
                    requests::overlap(&mut request, tests, slice)
                }
            }
        }
    };
}

requests! {
    written:
    Iwrite = MPI_File_iwrite, Known;
    IwriteAll = MPI_File_iwrite_all, Known;
    IwriteShared = MPI_File_iwrite_shared, Unknown;
    @
    IwriteAt = MPI_File_iwrite_at;
    IwriteAtAll = MPI_File_iwrite_at_all;
}

requests! {
    read:
    Iread = MPI_File_iread, Known;
    IreadAll = MPI_File_iread_all, Known;
    IreadShared = MPI_File_iread_shared, Unknown;
    @
    IreadAt = MPI_File_iread_at;
    IreadAtAll = MPI_File_iread_at_all;
}

/// Declares split collectives: the call that begins and the call that ends them.
macro_rules! split {
    ($buffer:ident: $($Call:ident = $begin:ident, $end:ident $(, $offset:ident)?;)+) => {
        $(
            #[doc = concat!("`", stringify!($begin), "` and `", stringify!($end), "`.")]
            #[derive(Debug)]
            pub enum $Call {}

            impl Started for $Call {
                const START: &'static str = stringify!($begin);
                const ORDER: Order = Order::Known;

                #[inline(always)]
                fn overlapped(file: &File, _: u32, mut slice: impl FnMut()) -> Result<()> {
                    let memory = file.$buffer(0).cast::<c_void>();
                    // SAFETY: the file is open, and its buffer has `count` bytes. Nothing else uses the buffer until the access has
                    // ended.
                    check(stringify!($begin), unsafe {
                        ffi::$begin(file.raw, $(file.$offset(0),)? memory, file.count, BYTE)
                    })?;
                    slice();
                    // SAFETY: the access has begun on this file and buffer.
                    check(stringify!($end), unsafe {
                        ffi::$end(file.raw, memory, ffi::RSMPI_STATUS_IGNORE)
                    })
                }
            }
        )+
    };
}

split! {
    written:
    WriteAllBegin = MPI_File_write_all_begin, MPI_File_write_all_end;
    WriteOrderedBegin = MPI_File_write_ordered_begin, MPI_File_write_ordered_end;
    WriteAtAllBegin = MPI_File_write_at_all_begin, MPI_File_write_at_all_end, offset;
}

split! {
    read:
    ReadAllBegin = MPI_File_read_all_begin, MPI_File_read_all_end;
    ReadOrderedBegin = MPI_File_read_ordered_begin, MPI_File_read_ordered_end;
    ReadAtAllBegin = MPI_File_read_at_all_begin, MPI_File_read_at_all_end, offset;
}
