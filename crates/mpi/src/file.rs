//! MPI-IO: files that ranks open together, and the calls that move data between them and memory.

mod handle;
mod opening;
mod started;

pub use self::{
    handle::{File, FileOptions},
    opening::Opening,
    started::{
        Iread, IreadAll, IreadAt, IreadAtAll, IreadShared, Iwrite, IwriteAll, IwriteAt, IwriteAtAll,
        IwriteShared, ReadAllBegin, ReadAtAllBegin, ReadOrderedBegin, Started, WriteAllBegin,
        WriteAtAllBegin, WriteOrderedBegin,
    },
};
pub use crate::file::handle::{
    Call, Direction, Order, Read, ReadAll, ReadAt, ReadAtAll, ReadOrdered, ReadShared, Write, WriteAll,
    WriteAt, WriteAtAll, WriteOrdered, WriteShared,
};
pub use crate::file::opening::{FILES_VARIABLE, Files, files_of};

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
