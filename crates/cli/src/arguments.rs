//! Arguments that several commands share.

pub(crate) mod argv;

pub(crate) mod launches;
pub(crate) mod output;
pub(crate) mod parameters;
pub(crate) mod role;
pub(crate) mod start;
pub(crate) mod values;
