//! One-sided communication: windows, their synchronisation, and the operations inside an access epoch.

pub(crate) mod epoch;
pub(crate) mod handle;
pub(crate) mod lifetime;
mod memory;
pub(crate) mod options;
pub(crate) mod synchronization;
