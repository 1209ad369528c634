//! The sweep over all pairs of ranks: [`schedule`] says which pairs meet in which round, [`sweep`] measures them.

pub mod schedule;
pub mod sweep;
