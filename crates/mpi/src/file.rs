//! MPI-IO: files that ranks open together, and the calls that move data between them and memory.

mod handle;
mod opening;

pub use self::{
    handle::{
        Call, Direction, File, FileOptions, Iread, IreadAll, IreadAt, IreadAtAll, IreadShared, Iwrite,
        IwriteAll, IwriteAt, IwriteAtAll, IwriteShared, Order, Read, ReadAll, ReadAllBegin, ReadAt,
        ReadAtAll, ReadAtAllBegin, ReadOrdered, ReadOrderedBegin, ReadShared, Started, Write, WriteAll,
        WriteAllBegin, WriteAt, WriteAtAll, WriteAtAllBegin, WriteOrdered, WriteOrderedBegin, WriteShared,
    },
    opening::{FILES_VARIABLE, Files, Opening, files_of},
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
