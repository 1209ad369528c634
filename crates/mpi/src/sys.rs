//! The layer below every other module: constants, error handling, datatypes and message memory.

pub(crate) mod buffer;
pub(crate) mod constants;
pub(crate) mod datatype;
pub(crate) mod derived;
pub(crate) mod error;
pub(crate) mod on_device;
pub(crate) mod requests;
pub(crate) mod session;
