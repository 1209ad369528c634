//! What a measurement is: its run, its rows with raw samples and marks, and the statistics that both sides of ombx share.
//!
//! Programs that read result files need this crate alone. It knows no benchmark, measures nothing and judges nothing, so that neither a
//! change of how something is measured nor one of how it is shown reaches the other side through it.

pub mod codec;
pub mod cpu_list;
pub mod error;
pub mod fact;
pub mod named;
pub mod order;
pub mod regular_file;
pub mod result;
pub mod stats;
pub mod unit;
