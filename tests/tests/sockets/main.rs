//! Tests of ranks that are connected by sockets: one case of each data flow, failures, hostile connections, wrong options.
//! `matrices` has their combinations.

mod failures;
mod figures;
mod ipv6;
mod measures;
mod model;
mod pipeline;
mod served;
mod streams;
mod unauthorised;
