//! Names of rows in few bits, for plans that every rank gets as an argument.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// 64 bits that identify the key of a row: the rest of a plan is an argument of every rank. Method: FNV-1a.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RowName(u64);

impl RowName {
    /// Returns the name of the row with this key.
    pub fn new(key: &str) -> RowName {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        RowName(key.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }
}

/// Iterations per sample by row. All launches of a run take them from its first launch, because figures of different batches
/// differ by the cost of the clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KnownBatches(BTreeMap<u32, u64>);

impl KnownBatches {
    /// Sets the batch of the row with this key.
    pub fn insert(&mut self, key: &str, batch: u64) {
        self.0.insert(hash(key), batch);
    }

    /// Returns the batch of the row with this key; `None` if no launch has measured it.
    pub fn get(&self, key: &str) -> Option<u64> {
        // The client of a server may send any number.
        self.0.get(&hash(key)).copied().filter(|batch| *batch > 0)
    }
}

/// Returns 32 bits that identify a key: the list is an argument of every rank. Method: FNV-1a. Two keys with the same bits would
/// share a batch, which is then unusual but not wrong.
fn hash(key: &str) -> u32 {
    key.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_found_by_the_keys_of_rows() {
        let mut batches = KnownBatches::default();
        batches.insert("p2p.latency/bytes=8", 25);
        batches.insert("p2p.bw/bytes=8,depth=64", 1);
        let found = ["p2p.latency/bytes=8", "p2p.latency/bytes=16"].map(|key| batches.get(key));
        assert_eq!(found, [Some(25), None]);
    }
}
