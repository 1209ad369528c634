//! Counters of devices that grew while a row was measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How much one counter of a host grew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    /// Host.
    pub host: String,
    /// Device or protocol: `eth0`, `mlx5_0 port 1`, `Tcp` or `cpu`.
    pub device: String,
    /// Name of the counter in the kernel, or of a sum of several.
    pub counter: String,
    /// Increase.
    pub by: u64,
}

impl Growth {
    /// Returns the sums of equal counters, in order.
    pub fn summed(all: impl IntoIterator<Item = Growth>) -> Vec<Growth> {
        let mut sums = BTreeMap::new();
        for Growth { host, device, counter, by } in all {
            let sum: &mut u64 = sums.entry((host, device, counter)).or_default();
            *sum = sum.saturating_add(by);
        }
        sums.into_iter().map(|((host, device, counter), by)| Growth { host, device, counter, by }).collect()
    }
}

impl std::fmt::Display for Growth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} +{}", self.device, self.counter, self.by)
    }
}
