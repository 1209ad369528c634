//! Links: connections between two ranks that carry the payload of a case.

pub(crate) mod connect;
pub(crate) mod connections;
pub(crate) mod datagrams;
pub(crate) mod paced;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod streams;
mod tcp_info;
mod zero_copy;

#[cfg(test)]
mod tests;
