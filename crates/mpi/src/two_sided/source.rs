//! Source argument of receives.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{benchmark::Context, unit::Rank};

ombx_core::parameter! {
    /// Source argument of receives
    pub enum Source: "receive-from", IfChosen, default Specific {
        /// The rank that sends
        Specific = "specific",
        /// MPI_ANY_SOURCE
        Any = "any",
    }
}

impl Source {
    /// Returns the source that the receives from `rank` name in this case.
    pub(crate) fn of(cx: &Context<'_>, rank: Rank) -> c_int {
        match cx.get() {
            Source::Specific => rank.0 as c_int,
            // SAFETY: this static of mpi-sys is never written.
            Source::Any => unsafe { ffi::RSMPI_ANY_SOURCE },
        }
    }
}
