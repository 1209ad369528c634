//! What is done with measured rows: result files, comparison of runs, verdicts on links, and every format that people and
//! programs read.

pub mod compare;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod log_axis;
pub mod render;
pub mod verdict;
pub mod wire;
