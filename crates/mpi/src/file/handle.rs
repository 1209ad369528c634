//! An open file with the buffers of a rank. Blocks of the ranks alternate in a file of all ranks.

use std::{
    ffi::{c_int, c_void},
    path::Path,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::{Error, Result},
    team::Team,
    unit::Rank,
};

use crate::{
    Buffer, MpiTeam,
    file::opening::{Created, Files, Named, View, tile},
    sys::{
        self, BYTE,
        error::{self, check, check_freed},
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

/// What a file is opened for.
#[derive(Debug, Clone, Copy)]
pub struct FileOptions<'o> {
    /// Existing directory in which the file is created.
    pub directory: &'o Path,
    /// Whether all ranks have one file.
    pub files: Files,
    /// Where operations take place.
    pub pointer: Pointer,
    /// Blocks of a rank, and their places in its buffers.
    pub slots: Slots,
}

/// A file that this rank has opened, alone or with the others, and closes when it is dropped, which is collective.
///
/// The file has no name any more: it is removed when the last rank closes it, however the rank ends.
#[derive(Debug)]
pub struct File {
    pub(super) raw: ffi::MPI_File,
    /// Bytes of a block.
    pub(super) count: c_int,
    places: Places,
    slots: Slots,
    pointer: Pointer,
    own_view: View,
    outgoing: Buffer,
    incoming: Buffer,
    named: Named,
}

/// Places of the blocks of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    bytes: u64,
    /// Number of the rank among those that have opened the file, and their number.
    rank: Rank,
    ranks: u32,
}

impl Places {
    /// Returns the bytes from one block of a rank to its next one.
    fn step(self) -> u64 {
        self.bytes * u64::from(self.ranks)
    }

    /// Returns the offset of a block of a rank.
    fn offset(self, rank: Rank, block: u32) -> ffi::MPI_Offset {
        (self.step() * u64::from(block) + self.bytes * u64::from(rank.0)) as ffi::MPI_Offset
    }

    /// Returns the next rank, which has written what this rank reads.
    fn neighbour(self) -> Rank {
        Rank((self.rank.0 + 1) % self.ranks)
    }
}

impl File {
    /// Creates a file and opens it on all ranks, or one on each. Collective.
    ///
    /// # Errors
    /// The file cannot be created, blocks are too long, or the memory is not available.
    pub fn open(cx: &Context<'_>, options: FileOptions<'_>) -> Result<File> {
        let team: &MpiTeam = cx.fabric()?;
        let FileOptions { directory, files, pointer, slots } = options;
        let Created { count, outgoing, incoming, named, raw } = Created::new(cx, directory, files, slots)?;
        let places = Places { bytes: slots.bytes, rank: named.comm.rank(), ranks: named.comm.size() };
        let (first, step) = (places.offset(places.rank, 0), places.step());
        let mut file =
            File { raw, count, places, slots, pointer, own_view: View::Whole, outgoing, incoming, named };
        let shared = if pointer == Pointer::Shared { file.use_shared_pointer() } else { Ok(()) };
        // Every rank has opened the file. Without a name, nothing is left of it when its ranks have ended.
        team.barrier()?;
        let removed = file.named.remove();
        cx.agree(shared.and(removed))?;
        if pointer == Pointer::Individual && count > 0 && places.ranks > 1 {
            let tile = cx.agree(tile(count, step as ffi::MPI_Aint))?;
            file.own_view = View::Blocks { first, tile };
        }
        cx.agree(file.own_view.set(raw))?;
        team.lend(|handles| {
            (handles.file, handles.remote) = (file.raw, first as ffi::MPI_Aint);
            (handles.outgoing, handles.incoming) =
                (file.outgoing.start().cast(), file.incoming.start().cast());
            handles.describe_slots(slots);
            handles.partner_stride = step as usize;
        });
        Ok(file)
    }

    /// Returns the memory from which a block is written.
    #[inline(always)]
    pub(super) fn written(&self, block: u32) -> *mut u8 {
        // The offset is inside the buffer, which has all blocks.
        self.outgoing.start().wrapping_add(self.slots.offset(block))
    }

    /// Returns the memory to which a block is read.
    #[inline(always)]
    pub(super) fn read(&self, block: u32) -> *mut u8 {
        self.incoming.start().wrapping_add(self.slots.offset(block))
    }

    /// Returns the offset of a block of this rank in the file.
    #[inline(always)]
    pub(super) fn offset(&self, block: u32) -> ffi::MPI_Offset {
        self.places.offset(self.places.rank, block)
    }

    /// Moves the pointer to the first block. Collective if ranks share the pointer.
    pub fn rewind(&self) -> Result<()> {
        let start = ffi::MPI_SEEK_SET as c_int;
        match self.pointer {
            Pointer::Explicit => Ok(()),
            // SAFETY: the file is open.
            Pointer::Individual => check("MPI_File_seek", unsafe { ffi::MPI_File_seek(self.raw, 0, start) }),
            Pointer::Shared => {
                // ROMIO moves the pointer before it synchronises the ranks, so that one of them may still use it.
                self.named.comm.barrier()?;
                // SAFETY: the file is open, and every rank that has opened it makes the call.
                check("MPI_File_seek_shared", unsafe { ffi::MPI_File_seek_shared(self.raw, 0, start) })
            }
        }
    }

    /// Reads the pointer that ranks share. The first call on a rank makes ROMIO open its hidden file.
    fn use_shared_pointer(&self) -> Result<()> {
        let mut position = 0;
        // SAFETY: the file is open, and the result is valid for the call.
        let code = unsafe { ffi::MPI_File_get_position_shared(self.raw, &raw mut position) };
        if code == ffi::MPI_SUCCESS as c_int {
            Ok(())
        } else {
            Err(Error::unsupported(format!("no shared pointer of this file: {}", error::text(code))))
        }
    }

    /// Passes what was written to the storage device, and makes it visible to other ranks. Collective.
    #[inline(always)]
    pub fn sync(&self) -> Result<()> {
        // SAFETY: the file is open.
        check("MPI_File_sync", unsafe { ffi::MPI_File_sync(self.raw) })
    }

    /// Returns the buffer of blocks that are written.
    pub fn outgoing(&mut self) -> &mut [u8] {
        self.outgoing.bytes_mut()
    }

    /// Returns the buffer of blocks that are read.
    pub fn incoming(&mut self) -> &mut [u8] {
        self.incoming.bytes_mut()
    }

    /// Returns the number of this rank among those that have opened the file.
    pub fn rank(&self) -> Rank {
        self.places.rank
    }

    /// Returns the number of ranks that have opened the file.
    pub fn ranks(&self) -> u32 {
        self.places.ranks
    }

    /// Returns the rank of the team whose blocks [`File::read_back`] reads, if every rank has blocks of its own in the file.
    pub fn neighbour(&self, team: &dyn Team) -> Rank {
        if self.places.ranks == team.size() { self.places.neighbour() } else { team.rank() }
    }

    /// Writes the blocks of this rank. Collective, untimed.
    pub fn write_all(&self) -> Result<()> {
        View::Whole.set(self.raw)?;
        for block in 0..self.slots.count {
            let (offset, memory) = (self.offset(block), self.written(block).cast());
            // SAFETY: as in the timed calls.
            check("MPI_File_write_at", unsafe {
                ffi::MPI_File_write_at(self.raw, offset, memory, self.count, BYTE, ffi::RSMPI_STATUS_IGNORE)
            })?;
        }
        self.publish()?;
        self.own_view.set(self.raw)
    }

    /// Reads the blocks that the next rank has written. Collective, untimed.
    pub fn read_back(&self) -> Result<()> {
        self.read_places_of(self.places.neighbour())
    }

    /// Reads the blocks at this rank's places, whichever rank has written them. Collective, untimed.
    pub fn read_places(&self) -> Result<()> {
        self.read_places_of(self.places.rank)
    }

    fn read_places_of(&self, rank: Rank) -> Result<()> {
        self.publish()?;
        View::Whole.set(self.raw)?;
        (0..self.slots.count).try_for_each(|block| self.read_at(rank, block, block))?;
        self.own_view.set(self.raw)
    }

    /// Reads the block at a place of a rank to the start of the buffer. Untimed, of a file whose ranks share the pointer.
    pub fn read_place(&self, rank: Rank, block: u32) -> Result<()> {
        debug_assert!(matches!(self.own_view, View::Whole));
        self.read_at(rank, block, 0)
    }

    fn read_at(&self, rank: Rank, block: u32, to: u32) -> Result<()> {
        let (offset, memory) = (self.places.offset(rank, block), self.read(to).cast());
        // SAFETY: as in the timed calls.
        check("MPI_File_read_at", unsafe {
            ffi::MPI_File_read_at(self.raw, offset, memory, self.count, BYTE, ffi::RSMPI_STATUS_IGNORE)
        })
    }

    /// Returns the numbers of all ranks that have opened the file, in rank order. Each passes as many. Collective, untimed.
    pub fn gather(&self, mine: &[u64]) -> Result<Vec<u64>> {
        self.named.comm.all_gather(mine)
    }

    /// Makes what every rank has written visible to all of them (MPI 4.0, 14.6.1). Collective.
    fn publish(&self) -> Result<()> {
        self.sync()?;
        self.named.comm.barrier()?;
        self.sync()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if error::may_free() {
            // SAFETY: the file is open until here, and every rank that has opened it drops it.
            check_freed(c"MPI_File_close", unsafe { ffi::MPI_File_close(&raw mut self.raw) });
        }
    }
}

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
    /// Where data goes.
    const DIRECTION: Direction;
    /// Order of the blocks in the file.
    const ORDER: Order;

    /// Makes the call for the block of this number. A call at a pointer takes place at the pointer, whatever the number.
    fn call(file: &File, block: u32) -> Result<()>;
}

/// Declares calls at a pointer, and calls at an `offset`.
macro_rules! calls {
    ($buffer:ident, $direction:ident: $($Call:ident = $name:ident, $order:ident $(, $offset:ident)?;)+) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            #[derive(Debug)]
            pub enum $Call {}

            impl Call for $Call {
                const DIRECTION: Direction = Direction::$direction;
                const ORDER: Order = Order::$order;

                #[inline(always)]
                fn call(file: &File, block: u32) -> Result<()> {
                    let memory = file.$buffer(block).cast::<c_void>();
                    // SAFETY: the file is open until it is dropped, and its buffer has `count` bytes for each block.
                    check(stringify!($name), unsafe {
                        ffi::$name(
                            file.raw, $(file.$offset(block),)? memory, file.count, BYTE, ffi::RSMPI_STATUS_IGNORE,
                        )
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
    WriteAt = MPI_File_write_at, Known, offset;
    WriteAtAll = MPI_File_write_at_all, Known, offset;
}

calls! {
    read, Read:
    Read = MPI_File_read, Known;
    ReadAll = MPI_File_read_all, Known;
    ReadShared = MPI_File_read_shared, Unknown;
    ReadOrdered = MPI_File_read_ordered, Known;
    ReadAt = MPI_File_read_at, Known, offset;
    ReadAtAll = MPI_File_read_at_all, Known, offset;
}

/// An access that a call starts and another one completes.
pub trait Started: 'static {
    /// Where data goes.
    const DIRECTION: Direction;
    /// Order of the blocks in the file.
    const ORDER: Order;

    /// Starts the access of block 0, calls `slice`, then `tests` times `MPI_Test` and `slice`, and waits. Split collectives have no
    /// request to be tested.
    fn overlapped(file: &File, tests: u32, slice: impl FnMut()) -> Result<()>;
}

/// Declares accesses with a request, at a pointer and at an `offset`.
macro_rules! requests {
    ($buffer:ident, $direction:ident: $($Call:ident = $name:ident, $order:ident $(, $offset:ident)?;)+) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            #[derive(Debug)]
            pub enum $Call {}

            impl Started for $Call {
                const DIRECTION: Direction = Direction::$direction;
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
                        sys::overlap(&mut request, tests, slice)
                    }
                }
            }
        )+
    };
}

requests! {
    written, Write:
    Iwrite = MPI_File_iwrite, Known;
    IwriteAll = MPI_File_iwrite_all, Known;
    IwriteShared = MPI_File_iwrite_shared, Unknown;
    IwriteAt = MPI_File_iwrite_at, Known, offset;
    IwriteAtAll = MPI_File_iwrite_at_all, Known, offset;
}

requests! {
    read, Read:
    Iread = MPI_File_iread, Known;
    IreadAll = MPI_File_iread_all, Known;
    IreadShared = MPI_File_iread_shared, Unknown;
    IreadAt = MPI_File_iread_at, Known, offset;
    IreadAtAll = MPI_File_iread_at_all, Known, offset;
}

/// Declares split collectives: the call that begins and the call that ends them.
macro_rules! split {
    ($buffer:ident, $direction:ident: $($Call:ident = $begin:ident, $end:ident $(, $offset:ident)?;)+) => {
        $(
            #[doc = concat!("`", stringify!($begin), "` and `", stringify!($end), "`.")]
            #[derive(Debug)]
            pub enum $Call {}

            impl Started for $Call {
                const DIRECTION: Direction = Direction::$direction;
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
    written, Write:
    WriteAllBegin = MPI_File_write_all_begin, MPI_File_write_all_end;
    WriteOrderedBegin = MPI_File_write_ordered_begin, MPI_File_write_ordered_end;
    WriteAtAllBegin = MPI_File_write_at_all_begin, MPI_File_write_at_all_end, offset;
}

split! {
    read, Read:
    ReadAllBegin = MPI_File_read_all_begin, MPI_File_read_all_end;
    ReadOrderedBegin = MPI_File_read_ordered_begin, MPI_File_read_ordered_end;
    ReadAtAllBegin = MPI_File_read_at_all_begin, MPI_File_read_at_all_end, offset;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_the_ranks_alternate() {
        let of = |rank| Places { bytes: 10, rank: Rank(rank), ranks: 3 };
        let offsets = |rank: u32| [0, 1, 2].map(|block| of(rank).offset(Rank(rank), block));
        assert_eq!([0, 1, 2].map(offsets), [[0, 30, 60], [10, 40, 70], [20, 50, 80]]);
        assert_eq!([0, 1, 2].map(|rank| of(rank).neighbour().0), [1, 2, 0]);
        assert_eq!(Places { bytes: 10, rank: Rank(0), ranks: 1 }.offset(Rank(0), 3), 30);
    }
}
