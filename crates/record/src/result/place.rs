//! Places of ranks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{codec, cpu_list::parse_cpus};

/// Place of a rank: its host and its CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Host name.
    pub host: String,
    /// CPUs that the rank may use, as a list of the kernel: `0`, `0-3,8`.
    pub cpus: String,
    /// Number of online CPUs of the host.
    pub online: u32,
    /// Frequency governor of the first of these CPUs; `None` if the kernel has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
}

impl Place {
    /// Returns the numbers of the CPUs.
    pub fn cpu_numbers(&self) -> Vec<u32> {
        parse_cpus(&self.cpus)
    }

    /// Encodes the place for the gather to rank 0.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(&(&self.host, &self.cpus, self.online, &self.governor))
    }

    /// Decodes what [`Place::to_bytes`] wrote; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Place> {
        let (host, cpus, online, governor) = codec::decode(bytes)?;
        Some(Place { host, cpus, online, governor })
    }
}

crate::named! {
    /// How consecutive ranks are placed on hosts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Placement {
        /// All ranks on one host.
        OneHost = "one host",
        /// Each host has consecutive ranks. Includes one rank per host.
        Block = "block",
        /// Consecutive ranks are on consecutive hosts, round robin.
        Cyclic = "cyclic",
        /// Any other placement.
        Mixed = "mixed",
    }
}

impl Placement {
    /// Classifies the places of ranks 0, 1, ...
    pub fn from_places(places: &[Place]) -> Placement {
        let hosts: Vec<&str> = places.iter().map(|p| p.host.as_str()).collect();
        let different = hosts.iter().collect::<BTreeSet<_>>().len();
        let changes = hosts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if different <= 1 {
            Placement::OneHost
        } else if changes + 1 == different {
            Placement::Block
        } else if hosts[..different].iter().collect::<BTreeSet<_>>().len() == different
            && hosts
                .iter()
                .zip(hosts.iter().cycle().skip(different))
                .take(hosts.len() - different)
                .all(|(a, b)| a == b)
        {
            Placement::Cyclic
        } else {
            Placement::Mixed
        }
    }

    /// Returns whether there are several hosts, of which at least one has several ranks.
    pub fn is_worth_reporting(self, places: &[Place]) -> bool {
        let hosts: BTreeSet<&str> = places.iter().map(|p| p.host.as_str()).collect();
        self != Placement::OneHost && hosts.len() < places.len()
    }
}

#[cfg(test)]
mod placement_tests {
    use super::*;

    fn classify(hosts: &str) -> Placement {
        let place = |host: char| Place { host: host.into(), cpus: String::new(), online: 1, governor: None };
        Placement::from_places(&hosts.chars().map(place).collect::<Vec<_>>())
    }

    #[test]
    fn placement_follows_from_places() {
        for (hosts, placement) in [
            ("", Placement::OneHost),
            ("aaaa", Placement::OneHost),
            ("aabb", Placement::Block),
            ("aaab", Placement::Block),
            ("abc", Placement::Block),
            ("abab", Placement::Cyclic),
            ("abcab", Placement::Cyclic),
            ("abba", Placement::Mixed),
            ("aabab", Placement::Mixed),
            ("abcb", Placement::Mixed),
        ] {
            assert_eq!(classify(hosts), placement, "{hosts}");
        }
    }
}
