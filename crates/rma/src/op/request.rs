//! `MPI_Rput` and `MPI_Rget`: operations with requests, which the origin waits for before the synchronisation.

use super::{Check, Epoch, Fill, Memory, Operation, Result, get::Get, put::Put};
use crate::entry::{FLUSH, bandwidth, latency};

/// Declares the form of an operation that returns a request.
macro_rules! requested {
    ($(#[$doc:meta])* $name:ident, $plain:ident, $call:ident, $function:literal) => {
        $(#[$doc])*
        pub enum $name {}

        impl Operation for $name {
            const CALLS: &'static [&'static str] = &[$function, "MPI_Waitall"];
            const HAS_REQUESTS: bool = true;

            #[inline(always)]
            fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> { epoch.$call(slot) }

            #[inline(always)]
            fn issued(epoch: &Epoch<'_>) -> Result<()> { epoch.wait_all() }

            fn fill(memory: &mut Memory<'_>, fill: Fill) { $plain::fill(memory, fill); }

            fn check(memory: &mut Memory<'_>, fill: Fill) -> Check { $plain::check(memory, fill) }
        }
    };
}
requested!(/// Completes at the origin when its request does.
    Rput, Put, rput, "MPI_Rput");
requested!(/// Completes when its request does.
    Rget, Get, rget, "MPI_Rget");

ombx_core::inventory::submit! { latency::<Rput>("rma.rput_latency", "one put with a request, the wait for it and its synchronisation").usually(FLUSH) }
ombx_core::inventory::submit! { bandwidth::<Rput>("rma.rput_bw", "many puts with requests, one wait and one synchronisation").usually(FLUSH) }
ombx_core::inventory::submit! { latency::<Rget>("rma.rget_latency", "one get with a request, the wait for it and its synchronisation").usually(FLUSH) }
ombx_core::inventory::submit! { bandwidth::<Rget>("rma.rget_bw", "many gets with requests, one wait and one synchronisation").usually(FLUSH) }
