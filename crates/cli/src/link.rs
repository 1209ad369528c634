//! Names every family of benchmarks, because a crate that nobody names is not linked and its benchmarks are not there.

#[cfg(feature = "collective")]
use ombx_collective as _;
#[cfg(feature = "p2p")]
use ombx_p2p as _;
#[cfg(feature = "rma")]
use ombx_rma as _;
#[cfg(feature = "sockets")]
use ombx_sockets as _;
