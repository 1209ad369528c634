//! Links: connections between two ranks that carry the payload of a case.

pub(crate) mod buffer;
pub(crate) mod connect;
pub(crate) mod datagrams;
pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;
mod zero_copy;

#[cfg(test)]
mod tests;
