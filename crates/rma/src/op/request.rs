//! `MPI_Rput` and `MPI_Rget`: operations with requests, waited for before the synchronisation; for passive targets.

use super::{Check, Epoch, Fill, Get, Memory, Op, Put, Result};
use crate::entry::{FLUSH, bandwidth, latency};

/// The form of an operation that has a request.
macro_rules! requested {
    ($(#[$doc:meta])* $name:ident, $plain:ident, $call:ident) => {
        $(#[$doc])*
        pub enum $name {}

        impl Op for $name {
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
requested!(/// A put, complete at the origin when its request is.
    Rput, Put, rput);
requested!(/// A get, complete when its request is.
    Rget, Get, rget);

ombx_core::inventory::submit! { latency::<Rput>("rma.rput_latency", "one put with a request, its wait and its synchronisation").usually(FLUSH) }
ombx_core::inventory::submit! { bandwidth::<Rput>("rma.rput_bw", "many puts with requests, waited for at once").usually(FLUSH) }
ombx_core::inventory::submit! { latency::<Rget>("rma.rget_latency", "one get with a request, its wait and its synchronisation").usually(FLUSH) }
ombx_core::inventory::submit! { bandwidth::<Rget>("rma.rget_bw", "many gets with requests, waited for at once").usually(FLUSH) }
