//! Placement of ranks on hosts: block, cyclic or mixed.

use std::collections::BTreeSet;

use crate::team::Place;

/// How consecutive ranks are placed on hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// All ranks on one host.
    OneHost,
    /// Each host has consecutive ranks. Includes one rank per host.
    Block,
    /// Consecutive ranks are on consecutive hosts, round robin.
    Cyclic,
    /// Any other placement.
    Mixed,
}

impl Placement {
    /// Classifies the places of ranks 0, 1, ...
    pub fn of(places: &[Place]) -> Placement {
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

    /// Returns the name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Placement::OneHost => "one host",
            Placement::Block => "block",
            Placement::Cyclic => "cyclic",
            Placement::Mixed => "mixed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(hosts: &str) -> Placement {
        let place = |host: char| Place { host: host.into(), cpus: String::new(), online: 1, governor: None };
        Placement::of(&hosts.chars().map(place).collect::<Vec<_>>())
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
            assert_eq!(of(hosts), placement, "{hosts}");
        }
    }
}
