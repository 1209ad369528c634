//! Iterations per sample that one launch calibrated and the next ones repeat.

use std::{collections::BTreeMap, fmt, str::FromStr};

use crate::error::{Error, Result};

/// Iterations per sample by row. All launches of a run take them from its first launch, because figures of different batches
/// differ by the cost of the clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownBatches(BTreeMap<u32, u64>);

impl KnownBatches {
    /// Sets the batch of the row with this key.
    pub fn insert(&mut self, key: &str, batch: u64) {
        self.0.insert(hash(key), batch);
    }

    /// Returns the batch of the row with this key; `None` if no launch has measured it.
    pub fn get(&self, key: &str) -> Option<u64> {
        self.0.get(&hash(key)).copied()
    }

    /// Returns whether no row has a batch.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns 32 bits that identify a key: the list is an argument of every rank. Method: FNV-1a. Two keys with the same bits would
/// share a batch, which is then unusual but not wrong.
fn hash(key: &str) -> u32 {
    key.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Writes `hash:batch` for each row, separated by commas, in hexadecimal digits.
impl fmt::Display for KnownBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, (key, batch))| {
            let separator = if at == 0 { "" } else { "," };
            write!(f, "{separator}{key:x}:{batch:x}")
        })
    }
}

impl FromStr for KnownBatches {
    type Err = Error;

    fn from_str(text: &str) -> Result<KnownBatches> {
        let one = |pair: &str| {
            let (key, batch) = pair.split_once(':')?;
            let batch = u64::from_str_radix(batch, 16).ok().filter(|batch| *batch > 0)?;
            Some((u32::from_str_radix(key, 16).ok()?, batch))
        };
        let all = text.split(',').map(one).collect::<Option<BTreeMap<_, _>>>();
        all.map(KnownBatches).ok_or_else(|| Error::usage(format!("batches {text:?} are not hash:batch,..")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_printed_and_parsed() {
        let mut batches = KnownBatches::default();
        batches.insert("p2p.latency/bytes=8", 25);
        batches.insert("p2p.bw/bytes=8,depth=64", 1);
        let read: KnownBatches = batches.to_string().parse().unwrap();
        assert_eq!(read, batches);
        assert_eq!((read.get("p2p.latency/bytes=8"), read.get("p2p.latency/bytes=16")), (Some(25), None));
        for text in ["", "x", "1:0", "1:2:3", "1"] {
            assert!(text.parse::<KnownBatches>().is_err(), "{text}");
        }
    }
}
