//! Arguments that several commands share.

pub(crate) mod argv;

pub(crate) mod connect;
pub(crate) mod effort;
pub(crate) mod given;
pub(crate) mod launches;
pub(crate) mod listed_file;
pub(crate) mod mistake;
pub(crate) mod output;
pub(crate) mod parameters;
pub(crate) mod role;
pub(crate) mod rows;
pub(crate) mod shown;
pub(crate) mod start;
pub(crate) mod values;
