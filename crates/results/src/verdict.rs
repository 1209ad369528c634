//! From the times of all links to sentences: which host, which rank or which link is slow, and of most machines nothing.
//!
//! All figures are logarithms of medians, compared within their kind: links inside a host, and links between hosts. First hosts
//! are tested, then ranks, then single links that belong to neither; each test allows for how many there are.

mod judge;
mod suspects;

use std::collections::BTreeMap;

pub use self::{
    judge::judge,
    suspects::{Again, slowest, suspects},
};
use ombx_core::{result::Measurement, unit::Bytes};

/// Benchmark name of the rows of a sweep over links.
pub const BENCH: &str = "links";

/// One direction of a link at one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The timed rank.
    pub from: u32,
    /// The one that answers.
    pub to: u32,
    /// Median time, in nanoseconds.
    pub ns: f32,
}

/// Every link at one size: 12 bytes each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Times {
    /// Message size.
    pub bytes: u64,
    /// From the sweep.
    pub sweep: Vec<Link>,
    /// The slowest, measured again with nothing else under way.
    pub alone: Vec<Link>,
    /// Ordinary links, measured again for comparison.
    pub reference: Vec<Link>,
}

/// The axis of rows that were measured again, and its values.
pub const RETEST: &str = "retest";
/// A suspect.
pub const ALONE: &str = "alone";
/// An ordinary link for comparison.
pub const REFERENCE: &str = "reference";

/// What is slow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Most links of a host to others.
    HostBetween(u32),
    /// Most links inside a host.
    HostWithin(u32),
    /// Most links of a rank, whose host as a whole is not slow.
    Rank(u32),
    /// Both directions.
    Link(u32, u32),
    /// One direction.
    OneWay(u32, u32),
}

/// One finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow {
    /// What.
    pub what: What,
    /// How many times as long as what it is compared with.
    pub factor: f64,
    /// At which size that is worst.
    pub bytes: u64,
}

/// Why times say nothing of links where rows have these notices: ranks that take turns on a CPU wait for the scheduler.
pub fn hindrance<'a>(codes: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let code = codes.into_iter().find(|code| ["oversubscribed", "shared_cpu"].contains(code))?;
    Some(format!("ranks share CPUs ({code}), so that times tell more of them than of links"))
}

/// Which host each rank is on, by number.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    names: Vec<String>,
    of_rank: Vec<u32>,
}

impl Hosts {
    /// From the host of every rank.
    pub fn of<'a>(ranks: impl IntoIterator<Item = &'a str>) -> Hosts {
        let mut hosts = Hosts::default();
        let mut known = BTreeMap::new();
        for name in ranks {
            let at = *known.entry(name.to_owned()).or_insert_with(|| {
                hosts.names.push(name.to_owned());
                hosts.names.len() as u32 - 1
            });
            hosts.of_rank.push(at);
        }
        hosts
    }

    /// The number of a rank's host.
    pub fn number(&self, rank: u32) -> u32 {
        self.of_rank.get(rank as usize).copied().unwrap_or(0)
    }

    /// Its name.
    pub fn name(&self, rank: u32) -> &str {
        self.names.get(self.number(rank) as usize).map_or("?", String::as_str)
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.of_rank.len() as u32
    }

    /// How many hosts there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Whether two ranks share a host: links of that kind are compared with each other only.
    pub fn share(&self, a: u32, b: u32) -> bool {
        self.number(a) == self.number(b)
    }
}

/// The times of a run, size by size, as its rows come.
#[derive(Debug, Clone, Default)]
pub struct Collected(pub Vec<Times>);

impl Collected {
    /// Adds the row of a link; others, and rows without a figure, are left out.
    pub fn add(&mut self, row: &Measurement) {
        let rank = |axis: &str| row.axes.get(axis).and_then(|rank| rank.parse().ok());
        let (Some(from), Some(to), Some(bytes), Some(summary)) =
            (rank("from"), rank("to"), row.bytes, row.summary.as_ref())
        else {
            return;
        };
        let at = self.0.iter().position(|t| t.bytes == bytes).unwrap_or_else(|| {
            self.0.push(Times { bytes, ..Times::default() });
            self.0.len() - 1
        });
        let link = Link { from, to, ns: summary.median as f32 };
        let times = &mut self.0[at];
        match row.axes.get(RETEST).map(String::as_str) {
            None => times.sweep.push(link),
            Some(ALONE) => times.alone.push(link),
            Some(_) => times.reference.push(link),
        }
    }
}

impl Slow {
    /// A sentence that names it.
    pub fn sentence(&self, hosts: &Hosts) -> String {
        let at = |rank: u32| format!("rank {rank} on {}", hosts.name(rank));
        let host = |number: u32| hosts.names.get(number as usize).map_or("?", String::as_str);
        let (factor, bytes) = (self.factor, Bytes(self.bytes));
        match self.what {
            What::HostBetween(h) => format!(
                "host {} is slow: its links to other hosts take {factor:.2} times as long as those of others (at {bytes} bytes)",
                host(h)
            ),
            What::HostWithin(h) => format!(
                "host {} is slow inside: its ranks take {factor:.2} times as long to reach each other as those of other hosts (at {bytes} bytes)",
                host(h)
            ),
            What::Rank(rank) => format!(
                "{} is slow: its links take {factor:.2} times as long as those of others (at {bytes} bytes)",
                at(rank)
            ),
            What::Link(a, b) => format!(
                "the link between {} and {} is slow: it takes {factor:.2} times as long as others of its kind (at {bytes} bytes)",
                at(a),
                at(b)
            ),
            What::OneWay(from, to) => format!(
                "the link from {} to {} is slow: it takes {factor:.2} times as long as others of its kind (at {bytes} bytes)",
                at(from),
                at(to)
            ),
        }
    }
}
