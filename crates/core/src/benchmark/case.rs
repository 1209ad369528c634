//! One case: a size, and a value of every parameter of its benchmark.

use std::fmt::Write as _;

use ombx_record::unit::Bytes;

use crate::benchmark::{CaseValues, Depth, Groups, Named, Parameter, ParameterValue};

/// One row to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Message size of one operation.
    pub bytes: Bytes,
    /// Pairs of ranks that run at the same time.
    pub pairs: u32,
    /// Ranks that take part.
    pub ranks: u32,
    /// Values of the parameters that the benchmark has.
    pub values: CaseValues,
}

impl Case {
    /// Returns the case of a message size on a pair of ranks, without values.
    pub fn of_pair(bytes: u64) -> Case {
        Case { bytes: Bytes(bytes), pairs: 1, ranks: 2, values: CaseValues::default() }
    }

    /// Returns the case with another value.
    #[must_use]
    pub fn with<V: ParameterValue>(mut self, value: V) -> Case {
        self.values = self.values.with(V::PARAMETER, value.text());
        self
    }

    /// Returns the value of a parameter; the default of its type if the case has none.
    pub fn get<V: ParameterValue>(&self) -> V {
        self.values.get()
    }

    /// Returns the value of a parameter; its default if the case has none.
    pub fn text(&self, parameter: &Parameter) -> Option<&str> {
        self.values.text(parameter).or(parameter.default)
    }

    /// Returns the operations in flight; 1 if the benchmark does not stream.
    pub fn depth(&self) -> u32 {
        self.get::<Depth>().0
    }

    /// Returns the operations in flight if the benchmark streams.
    pub fn window(&self) -> Option<u32> {
        self.values.text(Depth::PARAMETER).map(|_| self.depth())
    }

    /// Returns the number of ranks of a group.
    pub fn ranks_of_group(&self) -> u32 {
        self.get::<Groups>().size_of_each(self.ranks)
    }

    /// Returns what the row names before everything else, before the size, and after it: parameters and their values.
    fn parts(&self) -> [Vec<(&'static str, String)>; 3] {
        let mut parts = [Vec::new(), Vec::new(), Vec::new()];
        for parameter in self.values.parameters() {
            let at = match parameter.named {
                Named::First(_) => 0,
                Named::Always | Named::IfChosen => 1,
                Named::AfterSize(_) | Named::Never => 2,
            };
            parts[at].extend(parameter.shown(&self.values, self.bytes).map(|shown| (parameter.name, shown)));
        }
        parts
    }

    /// Returns what the row names: parameters and their values.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.parts().into_iter().flatten()
    }

    /// Returns the stable name of the row in results: benchmark, load, values and size.
    pub fn key(&self, bench: &str, under: Option<&str>) -> String {
        let [first, before, after] = self.parts();
        let mut key = format!("{bench}/");
        if let Some(under) = under {
            let _ = write!(key, "under={under},");
        }
        for (name, value) in first.iter().chain(&before) {
            let _ = write!(key, "{name}={value},");
        }
        let _ = write!(key, "bytes={}", self.bytes.0);
        if let Some(depth) = self.window() {
            let _ = write!(key, ",depth={depth}");
        }
        if self.pairs > 1 {
            let _ = write!(key, ",pairs={}", self.pairs);
        }
        for (name, value) in after {
            let _ = write!(key, ",{name}={value}");
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::{
        Imbalance, Pairing, Root, SHARED_THREADS,
        memory::{Api, BufferMemory, Place},
    };

    #[test]
    fn a_key_names_every_choice() {
        let key = |case: Case, bench: &str| case.key(bench, None);
        let case = Case::of_pair(65536);
        let chosen = case
            .clone()
            .with(BufferMemory::both(Place::Device(Api::Cuda)))
            .with(Pairing::Block)
            .with(Depth(64));
        assert_eq!(key(chosen.clone(), "rma.put_bw"), "rma.put_bw/memory=cuda,bytes=65536,depth=64");
        assert_eq!(
            chosen.key("rma.put_bw", Some("p2p.bw:4K")),
            "rma.put_bw/under=p2p.bw:4K,memory=cuda,bytes=65536,depth=64"
        );
        assert_eq!(key(Case { pairs: 2, ..case.clone() }, "p2p.latency"), "p2p.latency/bytes=65536,pairs=2");
        assert_eq!(
            key(case.clone().with(Root::Rotating), "collective.bcast"),
            "collective.bcast/bytes=65536,root=rotate"
        );
        assert_eq!(
            key(case.clone().with(Groups::new(2).unwrap()), "collective.scan"),
            "collective.scan/bytes=65536,groups=2"
        );
        assert_eq!(
            key(case.clone().with(Imbalance::parse("50").unwrap()), "collective.gatherv"),
            "collective.gatherv/bytes=65536,imbalance=50%"
        );
        let values = case.values.with(SHARED_THREADS, "1:2");
        let threaded = Case { values, ..case };
        assert_eq!(key(threaded, "p2p.latency_mt"), "p2p.latency_mt/bytes=65536,threads=1:2");
    }

    #[test]
    fn defaults_are_not_named() {
        let case = Case::of_pair(8).with(Root::DEFAULT).with(Groups::ONE).with(Imbalance::DEFAULT);
        assert_eq!(case.key("x.y", None), "x.y/bytes=8");
        assert_eq!((case.depth(), case.window()), (1, None));
    }
}
