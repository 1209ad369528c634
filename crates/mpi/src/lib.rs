//! Safe MPI for benchmarks: communicators, channels, windows and collectives.
//!
//! This is the only crate that calls MPI and needs `unsafe` for it. Handles own what MPI needs to stay alive, such as buffers
//! of requests and windows, so the public functions are safe. Calls in timed loops are thin and inlined: the MPI call
//! and one comparison of its return code.
//!
//! | module | content |
//! |---|---|
//! | `runtime` | the library: [`Mpi`] initialises it; family, version, known defects |
//! | `communicator` | [`MpiTeam`], the engine's view of the ranks of a [`Comm`]; [`Mesh`] |
//! | `two_sided` | [`Channel`] and its variants: persistent, partitioned, several partners, several threads |
//! | `threads` | [`OnThread`]: objects that several threads use |
//! | `window` | [`Window`], its synchronisation ([`Epochs`]) and the operations in an [`Epoch`] |
//! | [`collective`] | the table of collective operations |
//! | [`mod@file`] | files that ranks open together, and the data access calls of MPI-IO |
//! | `sys` | constants, errors, datatypes, [`Buffer`] |
//!
//! # Example
//! A ping-pong of 8 bytes. Start it with `mpiexec -n 2`.
//! ```no_run
//! use ombx_core::{
//!     benchmark::{Context, Role, Threading, payload::Slots},
//!     error::Result,
//!     team::Team,
//!     two_sided::pattern::Link,
//!     unit::Rank,
//! };
//! use ombx_mpi::{Channel, Int, Mpi};
//!
//! fn main() -> Result<()> {
//!     let mpi = Mpi::start(Threading::Single)?;
//!     let team = mpi.team();
//!     let (role, peer) = match team.rank() {
//!         Rank(0) => (Role::Active, Rank(1)),
//!         _ => (Role::Passive, Rank(0)),
//!     };
//!     let context = Context { role, peer, ..Context::new(team) };
//!     let mut channel = Channel::<Int>::open(&context, Slots::new(8, 1))?;
//!     match role {
//!         Role::Active => {
//!             channel.send()?;
//!             channel.receive()
//!         }
//!         Role::Passive => {
//!             channel.receive()?;
//!             channel.send()
//!         }
//!     }
//! }
//! ```

/// Declares how kernels reach the buffers of a channel, and move to other copies of them.
macro_rules! buffers {
    (copies $($vis:tt)?) => {
        buffers!($($vis)?);

        /// Makes the copies of both buffers at an offset those of the next calls.
        #[inline(always)]
        $($vis)? fn move_to(&mut self, offset: usize) {
            self.outgoing.move_to(offset);
            self.incoming.move_to(offset);
        }
    };
    ($($vis:tt)?) => {
        /// Returns the buffer of the messages that this rank sends.
        $($vis)? fn outgoing(&mut self) -> &mut [u8] {
            self.outgoing.bytes_mut()
        }

        /// Returns the buffer of the messages that this rank receives.
        $($vis)? fn incoming(&mut self) -> &mut [u8] {
            self.incoming.bytes_mut()
        }
    };
}

pub mod collective;

/// MPI-IO: files that ranks open together, and the calls that move data between them and memory.
pub mod file {
    mod handle;
    mod opening;

    pub use self::{
        handle::{
            Call, Direction, File, FileOptions, Iread, IreadAll, IreadAt, IreadAtAll, IreadShared, Iwrite,
            IwriteAll, IwriteAt, IwriteAtAll, IwriteShared, Order, Pointer, Read, ReadAll, ReadAllBegin,
            ReadAt, ReadAtAll, ReadAtAllBegin, ReadOrdered, ReadOrderedBegin, ReadShared, Started, Write,
            WriteAll, WriteAllBegin, WriteAt, WriteAtAll, WriteAtAllBegin, WriteOrdered, WriteOrderedBegin,
            WriteShared,
        },
        opening::{FILES_VARIABLE, Files, Opening, files_of},
    };
}

/// The MPI library of this build, and its start and end on this process.
mod runtime {
    pub(crate) mod device_support;
    pub(crate) mod library;
}

mod communicator;
mod sys;
mod threads;

/// Two-sided traffic: one file per way of sending.
mod two_sided {
    pub(crate) mod channel;
    pub(crate) mod counting;
    pub(crate) mod halo;
    pub(crate) mod mode;
    pub(crate) mod neighbour;
    pub(crate) mod partitioned;
    pub(crate) mod persistent;
    pub(crate) mod request;
    pub(crate) mod rounds;
    pub(crate) mod staged;
    pub(crate) mod star;
}

mod window;

pub use self::{
    collective::Broadcast,
    communicator::{Comm, Handles, Mesh, MpiTeam},
    runtime::{
        device_support::{combining_works, open_devices},
        library::{
            Family, ForkedChild, Mpi, compare_and_swap_works, family, grants, library_file, library_version,
            sessions_exist,
        },
    },
    sys::buffer::Buffer,
    threads::{Holder, OnThread, SharedChannel},
    two_sided::{
        channel::Channel,
        counting::{Counting, Endpoint, Int, Large},
        halo::{Dimensions, HaloChannel},
        mode::{
            Buffered, Mode, ModeChannel, Ready, ReadyChannel, SendCall, SendMode, Source, StartSendCall,
            Synchronous,
        },
        neighbour::NeighbourChannel,
        partitioned::PartitionedChannel,
        persistent::PersistentChannel,
        request::RequestChannel,
        rounds::{RoundsChannel, Step},
        staged::Staged,
        star::StarChannel,
    },
    window::{
        Hints, WindowKind, WindowLifetime, WindowOptions,
        epoch::{Epoch, Epochs, LockKind},
        handle::Window,
    },
};

/// The compiler wrapper of the MPI library that the build has found.
pub const COMPILER: &str = env!("OMBX_MPICC");
