//! Links every family of benchmarks. The linker drops a crate that no code names, and its benchmarks with it.

#[cfg(feature = "collective")]
use ombx_collective as _;
#[cfg(feature = "p2p")]
use ombx_p2p as _;
#[cfg(feature = "rma")]
use ombx_rma as _;
#[cfg(feature = "sockets")]
use ombx_sockets as _;
