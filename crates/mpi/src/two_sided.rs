//! Two-sided traffic: one file per way of sending.

pub(crate) mod channel;
pub(crate) mod counting;
pub(crate) mod halo;
pub(crate) mod mode;
pub(crate) mod neighbour;
pub(crate) mod partitioned;
pub(crate) mod persistent;
pub(crate) mod ready;
pub(crate) mod request;
pub(crate) mod rounds;
pub(crate) mod staged;
pub(crate) mod star;
pub(crate) mod threaded;
