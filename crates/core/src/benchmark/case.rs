//! One case: a size, a depth, and a value on every axis of its benchmark.

use std::fmt::Write as _;

use crate::{
    benchmark::{Axis, AxisValue, Groups, Imbalance, Neighbourhood, Root, Threads},
    unit::Bytes,
};

/// One row to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Message size of one operation.
    pub bytes: Bytes,
    /// Operations in flight; 1 if the benchmark does not stream.
    pub depth: u32,
    /// Pairs of ranks that run at the same time.
    pub pairs: u32,
    /// Ranks that take part.
    pub ranks: u32,
    /// Threads of each rank; `None` for single-threaded benchmarks.
    pub threads: Option<Threads>,
    /// Root of the operation; `None` if it has none.
    pub root: Option<Root>,
    /// Groups of ranks that run the operation at the same time.
    pub groups: Groups,
    /// How unequal the blocks of ranks are.
    pub imbalance: Imbalance,
    /// Neighbours of ranks, where the user describes them.
    pub neighbourhood: Neighbourhood,
    /// Axis and value, for every axis that the row names.
    pub axes: Vec<(&'static str, &'static str)>,
}

impl Case {
    /// Returns the name of the value on an axis; the default if the case names none.
    pub fn axis(&self, axis: &Axis) -> &'static str {
        self.axes.iter().find(|(name, _)| *name == axis.name).map_or(axis.default, |(_, value)| value)
    }

    /// Returns the value on the axis `A`; the default if the case names none.
    pub fn choice<A: AxisValue>(&self) -> A {
        A::parse(self.axis(A::AXIS)).unwrap_or(A::DEFAULT)
    }

    /// Returns the root if it is not the default one.
    pub fn chosen_root(&self) -> Option<Root> {
        self.root.filter(|root| *root != Root::default())
    }

    /// Returns the number of groups if there are several.
    pub fn chosen_groups(&self) -> Option<Groups> {
        Some(self.groups).filter(|groups| !groups.is_one())
    }

    /// Returns the imbalance if blocks are not equal.
    pub fn chosen_imbalance(&self) -> Option<Imbalance> {
        Some(self.imbalance).filter(|imbalance| !imbalance.is_none())
    }

    /// Returns the number of ranks of a group.
    pub fn ranks_of_group(&self) -> u32 {
        self.groups.size_of_each(self.ranks)
    }

    /// Returns the stable name of the row in results: benchmark, axes, size and depth.
    pub fn key(&self, bench: &str, streams: bool) -> String {
        let mut key = format!("{bench}/");
        for (name, value) in &self.axes {
            let _ = write!(key, "{name}={value},");
        }
        let _ = write!(key, "bytes={}", self.bytes.0);
        if streams {
            let _ = write!(key, ",depth={}", self.depth);
        }
        if self.pairs > 1 {
            let _ = write!(key, ",pairs={}", self.pairs);
        }
        if let Some(threads) = self.threads {
            let _ = write!(key, ",threads={threads}");
        }
        if let Some(root) = self.chosen_root() {
            let _ = write!(key, ",root={root}");
        }
        if let Some(groups) = self.chosen_groups() {
            let _ = write!(key, ",groups={groups}");
        }
        if let Some(imbalance) = self.chosen_imbalance() {
            let _ = write!(key, ",imbalance={imbalance}");
        }
        if let Some((name, value)) = self.chosen_neighbourhood() {
            let _ = write!(key, ",{name}={value}");
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_every_choice() {
        let case = Case {
            bytes: Bytes(65536),
            depth: 64,
            pairs: 1,
            ranks: 2,
            threads: None,
            root: None,
            groups: Groups::ONE,
            imbalance: Imbalance::NONE,
            neighbourhood: Neighbourhood::DEFAULT,
            axes: vec![("sync", "pscw"), ("win", "allocate")],
        };
        assert_eq!(case.key("rma.put_bw", true), "rma.put_bw/sync=pscw,win=allocate,bytes=65536,depth=64");
        assert_eq!(
            Case { pairs: 2, axes: vec![], ..case.clone() }.key("p2p.latency", false),
            "p2p.latency/bytes=65536,pairs=2"
        );
        assert_eq!(
            Case { root: Some(Root::Rotating), axes: vec![], ..case.clone() }.key("collective.bcast", false),
            "collective.bcast/bytes=65536,root=rotate"
        );
        assert_eq!(
            Case { groups: Groups::new(2).unwrap(), ranks: 6, axes: vec![], ..case.clone() }
                .key("collective.scan", false),
            "collective.scan/bytes=65536,groups=2"
        );
        assert_eq!(
            Case { imbalance: "50%".parse().unwrap(), axes: vec![], ..case.clone() }
                .key("collective.gatherv", false),
            "collective.gatherv/bytes=65536,imbalance=50%"
        );
        assert_eq!(
            Case { threads: Some(Threads::ByRole { senders: 1, receivers: 2 }), axes: vec![], ..case }
                .key("p2p.latency_mt", false),
            "p2p.latency_mt/bytes=65536,threads=1:2"
        );
    }
}
