//! One-sided communication: windows, their synchronisation, and the operations inside an access epoch.

pub(crate) mod epoch;
pub(crate) mod handle;
mod memory;
pub(crate) mod options;
pub(crate) mod synchronization;
