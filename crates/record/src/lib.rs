//! What a measurement is: its run, its rows with raw samples and marks, the verdict on links, what happens while it runs, and the file
//! that keeps it.
//!
//! Programs that read result files need this crate alone. It knows no benchmark, measures nothing and judges nothing, so that neither a
//! change of how something is measured nor one of how it is shown reaches the other side through it.
//!
//! # Read a result file
//!
//! ```
//! # fn main() -> Result<(), ombx_record::file::ReadError> {
//! let file = ombx_record::file::open("tests/golden/one_launch.jsonl")?;
//! let row = &file.runs[0].rows[0];
//! let median_ns = row.summary.as_ref().map(|summary| summary.median);
//! assert_eq!((row.key.as_str(), median_ns), ("p2p.latency/bytes=8", Some(357.6875)));
//! # Ok(())
//! # }
//! ```

pub mod codec;
pub mod cpu_list;
pub mod error;
pub mod event;
pub mod fact;
pub mod file;
pub mod link;
pub mod named;
pub mod order;
pub mod random;
pub mod regular_file;
pub mod result;
pub mod runs;
pub mod stats;
pub mod unit;
pub mod verdict;
