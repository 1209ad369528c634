//! Times of links, and the hosts of ranks.

use std::collections::BTreeMap;

use ombx_core::result::{Measurement, Run};

use super::{ALONE, RETEST};

/// Time of one direction of a link at one message size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Timed rank.
    pub from: u32,
    /// Rank that answers.
    pub to: u32,
    /// Median time in nanoseconds.
    pub ns: f32,
}

/// Times of all links at one message size: 12 bytes per link.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkTimes {
    /// Message size.
    pub bytes: u64,
    /// Times from the sweep over all pairs.
    pub sweep: Vec<Link>,
    /// Slow links, measured again while all other ranks sleep.
    pub alone: Vec<Link>,
    /// Ordinary links, measured again for comparison with `alone`.
    pub reference: Vec<Link>,
}

/// Times of all links of a run, one entry per message size in the order of rows.
#[derive(Debug, Clone, Default)]
pub struct TimesBySize(pub Vec<LinkTimes>);

impl TimesBySize {
    /// Adds the row of a link. Other rows, and rows without a summary, are ignored.
    pub fn add(&mut self, row: &Measurement) {
        let rank = |axis: &str| row.axes.get(axis).and_then(|rank| rank.parse().ok());
        let (Some(from), Some(to), Some(bytes), Some(summary)) =
            (rank("from"), rank("to"), row.bytes, row.summary.as_ref())
        else {
            return;
        };
        let at = self.0.iter().position(|t| t.bytes == bytes).unwrap_or_else(|| {
            self.0.push(LinkTimes { bytes, ..LinkTimes::default() });
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

/// Host of each rank. Hosts are numbered from 0 in the order in which they first appear.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    names: Vec<String>,
    of_rank: Vec<u32>,
}

impl Hosts {
    /// Builds the map from the host name of every rank.
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

    /// Builds the map from the places of a run.
    pub fn of_run(run: &Run) -> Hosts {
        Hosts::of(run.places.iter().map(|place| place.host.as_str()))
    }

    /// Returns the number of a rank's host, or 0 for an unknown rank.
    pub fn number(&self, rank: u32) -> u32 {
        self.of_rank.get(rank as usize).copied().unwrap_or(0)
    }

    /// Returns the name of a rank's host.
    pub fn name(&self, rank: u32) -> &str {
        self.name_of(self.number(rank))
    }

    /// Returns the name of a host by its number.
    pub(super) fn name_of(&self, host: u32) -> &str {
        self.names.get(host as usize).map_or("?", String::as_str)
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.of_rank.len() as u32
    }

    /// Returns the number of hosts.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Returns whether two ranks share a host. Links inside hosts are compared with each other only.
    pub fn same_host(&self, a: u32, b: u32) -> bool {
        self.number(a) == self.number(b)
    }
}
