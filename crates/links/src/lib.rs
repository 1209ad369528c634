//! Verdicts on links: which group of hosts, host, rank or link is slow, and what may explain it.
//!
//! The crate folds the records of a sweep over links ([`verdict::LinkSweep`]) and judges them. It measures nothing, and what it concludes is
//! kept in the result file as a [`Verdict`](ombx_record::verdict::Verdict), which is all that is shown.
//!
//! | module | contents |
//! |---|---|
//! | [`causes`] | in what hosts differ, and which counters grew |
//! | [`matrix`] | writes the times of links as an array that NumPy reads |
//! | [`verdict`] | finds slow hosts, ranks and links in a sweep over links |

pub mod causes;
pub mod matrix;
pub mod verdict;
