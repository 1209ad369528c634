//! MPI-IO: files that ranks open together, and the calls that move data between them and memory.

mod call;
mod handle;
mod view;

pub use self::{
    call::{Call, Direction, Read, ReadAll, ReadAt, ReadAtAll, Write, WriteAll, WriteAt, WriteAtAll},
    handle::{File, FileOptions, Files},
};

ombx_core::axis! {
    /// Where in the file a block is written or read
    pub enum Pointer: "pointer", Always, default Individual {
        /// At the pointer that each rank has
        Individual = "individual",
        /// At an offset that the call gives
        Explicit = "explicit",
    }
}
