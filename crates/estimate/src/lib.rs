//! Estimates: one row per case from the rows of all launches, the states of the machine, and what may be published.
//!
//! The crate reads records and knows neither how they were measured nor how they are shown. Launches of one binary differ by more than
//! the samples of one launch show, so that nearly every figure of ombx passes through here.
//!
//! | module | contents |
//! |---|---|
//! | [`launches`] | one row per case from the rows of all launches, and when there are enough launches |
//! | [`baseline`] | figures of good days, the limits that follow from them, and whether rows meet limits |
//! | [`impact`] | how much rows slow down under load |
//! | [`knee`] | the offered rate from which the latency grows |
//! | [`number`] | numbers in their units |
//! | [`percentiles`] | percentiles of raw samples |
//! | [`publishable`] | says which rows are fit to publish, why launches ended, and what precision they reached |
//! | [`runs`] | where the next run lies, from earlier ones |
//! | [`samples`] | raw samples of each case, launch by launch |
//! | [`state`] | says which launches ran in the same state of the machine |
//! | [`text`] | text of files that is safe to print |

pub mod baseline;
pub mod impact;
pub mod knee;
pub mod launches;
pub mod number;
pub mod percentiles;
pub mod publishable;
pub mod runs;
pub mod samples;
pub mod state;
pub mod text;

/// Documentation of the format. Its example is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../FORMAT.md")]
pub struct FormatDocument;
