//! Link verdicts: which host, rank or link of a machine is slow.
//!
//! Links inside a host and links between hosts are two kinds. All tests compare logarithms of median times within a kind.
//! Hosts are tested first, then ranks, then the single links that remain. Each test is corrected for multiple testing.

mod detection;
mod retest;
mod sweep;
mod times;

pub use self::{
    detection::find_slow,
    retest::{Retest, retest_candidates, slowest},
    sweep::LinkSweep,
    times::{Hosts, Link, LinkTimes, TimesBySize},
};
use crate::file::RunWithRows;
use ombx_core::unit::Bytes;

/// Benchmark name of the rows of `ombx links`.
pub const BENCH: &str = "links";
/// Axis of rows that were measured again. Its values are [`ALONE`] and [`REFERENCE`].
pub const RETEST: &str = "retest";
/// Value of [`RETEST`] for a slow link that was measured again.
pub const ALONE: &str = "alone";
/// Value of [`RETEST`] for an ordinary link that was measured again for comparison.
pub const REFERENCE: &str = "reference";

/// Returns whether a run is a sweep over links.
pub fn is_sweep(run: &RunWithRows) -> bool {
    !run.rows.is_empty() && run.rows.iter().all(|row| row.bench == BENCH)
}

/// Part of a machine that can be slow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// Links from a host to other hosts.
    HostBetween(u32),
    /// Links inside a host.
    HostWithin(u32),
    /// Links of one rank, whose host as a whole is not slow.
    Rank(u32),
    /// Both directions of a link.
    Link(u32, u32),
    /// One direction of a link.
    OneWay(u32, u32),
}

/// Slow component.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowComponent {
    /// The component.
    pub component: Component,
    /// Ratio of the time of the component to the time of comparable ones.
    pub factor: f64,
    /// Message size with the largest factor.
    pub bytes: u64,
}

/// Returns the reason against a verdict if a row has a mark of shared CPUs: such times include waiting for the scheduler.
pub fn no_verdict_reason<'a>(codes: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let code = codes.into_iter().find(|code| ["oversubscribed", "shared_cpu"].contains(code))?;
    Some(format!("ranks share CPUs ({code}), and their times include waiting for a CPU"))
}

impl SlowComponent {
    /// Returns a sentence that names the component, its factor and the message size.
    pub fn sentence(&self, hosts: &Hosts) -> String {
        let at = |rank: u32| format!("rank {rank} on {}", hosts.name(rank));
        let (subject, others) = match self.component {
            Component::HostBetween(host) => (
                format!("host {} is slow: its links to other hosts take", hosts.name_of(host)),
                "those of other hosts",
            ),
            Component::HostWithin(host) => (
                format!("host {} is slow inside: links between its ranks take", hosts.name_of(host)),
                "those inside other hosts",
            ),
            Component::Rank(rank) => {
                (format!("{} is slow: its links take", at(rank)), "those of other ranks")
            }
            Component::Link(a, b) => {
                (format!("the link between {} and {} is slow: it takes", at(a), at(b)), "comparable links")
            }
            Component::OneWay(from, to) => {
                (format!("the link from {} to {} is slow: it takes", at(from), at(to)), "comparable links")
            }
        };
        format!("{subject} {:.2} times as long as {others} (at {} bytes)", self.factor, Bytes(self.bytes))
    }
}
