//! MPI for benchmarks: the only room with unsafe MPI code.
//!
//! Handles own what MPI needs to stay alive (buffers beside requests and windows), so that everything public is safe. Hot
//! calls are thin and inlined: the MPI call and one comparison. Start-up and finalisation go through the `mpi` crate.

mod broadcast;
mod buffer;
mod channel;
pub mod collective;
mod comm;
mod counting;
mod epoch;
mod ext;
mod library;
mod mesh;
mod partitioned;
mod persistent;
mod sleeper;
mod star;
mod synchronise;
mod team;
mod threaded;
mod window;

pub use self::{
    broadcast::Broadcast,
    buffer::Buffer,
    channel::Channel,
    comm::Comm,
    counting::{Counting, End, Int, Large},
    epoch::{Epoch, Reduction},
    library::{Family, Mpi, compare_and_swap_works, family, library_version},
    mesh::Mesh,
    partitioned::PartitionedChannel,
    persistent::PersistentChannel,
    sleeper::Sleeper,
    star::Star,
    synchronise::{Epochs, LockKind},
    team::MpiTeam,
    threaded::SharedChannel,
    window::{Hints, Shape, Window, WindowKind},
};

/// The compiler wrapper of the MPI that this was built with, as the build found it.
pub const COMPILER: &str = env!("OMBX_MPICC");
