//! MPI-IO: files that ranks open together, and the calls that move data between them and memory.

mod call;
mod handle;
mod named;
mod opening;
mod started;
mod view;

pub use self::{
    call::{
        Call, Direction, Order, Read, ReadAll, ReadAt, ReadAtAll, ReadOrdered, ReadShared, Write, WriteAll,
        WriteAt, WriteAtAll, WriteOrdered, WriteShared,
    },
    handle::{File, FileOptions},
    named::{FILES_VARIABLE, Files, files_of},
    opening::Opening,
    started::{
        Iread, IreadAll, IreadAt, IreadAtAll, IreadShared, Iwrite, IwriteAll, IwriteAt, IwriteAtAll,
        IwriteShared, ReadAllBegin, ReadAtAllBegin, ReadOrderedBegin, Started, WriteAllBegin,
        WriteAtAllBegin, WriteOrderedBegin,
    },
};

ombx_core::parameter! {
    /// Where in the file a block is written or read
    pub enum Pointer: "pointer", Always, default Individual {
        /// At the pointer that each rank has
        Individual = "individual",
        /// At an offset that the call gives
        Explicit = "explicit",
        /// At the pointer that all ranks share
        Shared = "shared",
    }
}
