//! Judges a node or a cluster: [`check`] says whether the limits of a file are met, [`doctor`] whether the system is ready to measure. This
//! crate gets plain values. It must not know clap and suites, so that the words of users change in `ombx-cli` alone.
//!
//! A check starts `ombx run` for each entry of its file and judges the rows that this prints. The doctor starts ranks that print where they
//! run.

pub mod check;
pub mod doctor;
