//! Places of ranks.

use std::{collections::BTreeSet, fmt};

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
    /// CPUs that the control groups of the rank allow it, with all other processes in them; `None` without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<CpuQuota>,
}

/// Quota of CPU time of a control group: the number of CPUs that its processes may use all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "f64", into = "f64")]
pub struct CpuQuota {
    thousandths: u32,
}

impl CpuQuota {
    /// Returns the quota of a group that may use this CPU time in each period; `None` if one of them is 0.
    pub fn new(quota_us: u64, period_us: u64) -> Option<CpuQuota> {
        let thousandths = u128::from(quota_us) * 1000 / u128::from(period_us).max(1);
        let thousandths = u32::try_from(thousandths).unwrap_or(u32::MAX).max(1);
        (quota_us > 0 && period_us > 0).then_some(CpuQuota { thousandths })
    }

    /// Returns whether this number of CPUs, all of them busy, would use up the quota.
    pub fn is_below(self, cpus: u32) -> bool {
        u64::from(self.thousandths) < 1000 * u64::from(cpus)
    }

    /// Returns the number of whole CPUs that can be busy all the time, at least 1.
    pub fn whole(self) -> u32 {
        (self.thousandths / 1000).max(1)
    }

    /// Returns the number of CPUs, with at most three decimals.
    pub fn number(self) -> f64 {
        f64::from(self.thousandths) / 1e3
    }
}

impl fmt::Display for CpuQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.thousandths == 1000 { "CPU" } else { "CPUs" };
        write!(f, "{} {noun}", self.number())
    }
}

impl From<f64> for CpuQuota {
    fn from(cpus: f64) -> CpuQuota {
        CpuQuota { thousandths: (cpus * 1e3).round().max(1.0) as u32 }
    }
}

impl From<CpuQuota> for f64 {
    fn from(quota: CpuQuota) -> f64 {
        quota.number()
    }
}

impl Place {
    /// Returns the numbers of the CPUs.
    pub fn cpu_numbers(&self) -> Vec<u32> {
        parse_cpus(&self.cpus)
    }

    /// Returns the number of CPUs that the rank may use, and that the host has and its control groups allow to be busy all the time.
    pub fn usable_cpus(&self) -> u32 {
        let cpus = u32::try_from(self.cpu_numbers().len()).unwrap_or(u32::MAX).clamp(1, self.online.max(1));
        self.quota.map_or(cpus, |quota| cpus.min(quota.whole()))
    }

    /// Encodes the place for the gather to rank 0.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(&(&self.host, &self.cpus, self.online, &self.governor, self.quota))
    }

    /// Decodes what [`Place::to_bytes`] wrote; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Place> {
        let (host, cpus, online, governor, quota) = codec::decode(bytes)?;
        Some(Place { host, cpus, online, governor, quota })
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

    #[test]
    fn a_quota_is_a_number_of_cpus() {
        let quota = |us| CpuQuota::new(us, 100_000);
        let texts = [150_000, 100_000, 33_333, 1].map(|us| quota(us).unwrap().to_string());
        assert_eq!(texts, ["1.5 CPUs", "1 CPU", "0.333 CPUs", "0.001 CPUs"]);
        assert_eq!((quota(0), CpuQuota::new(1, 0)), (None, None));
        let half = quota(150_000).unwrap();
        assert_eq!(([1, 2].map(|cpus| half.is_below(cpus)), half.whole()), ([false, true], 1));
        assert!(!quota(200_000).unwrap().is_below(2) && quota(u64::MAX).unwrap().whole() > 4_000_000);
        let json = serde_json::to_string(&half).unwrap();
        assert_eq!((json.as_str(), serde_json::from_str(&json).ok()), ("1.5", Some(half)));
    }

    #[test]
    fn a_place_has_the_cpus_that_mask_host_and_quota_allow() {
        let place = |cpus: &str, quota: Option<u64>| {
            let quota = quota.and_then(|quota| CpuQuota::new(quota, 2));
            let place = Place { host: "a".into(), cpus: cpus.into(), online: 8, governor: None, quota };
            assert_eq!(Place::from_bytes(&place.to_bytes()).as_ref(), Some(&place));
            place.usable_cpus()
        };
        assert_eq!([place("0-7", None), place("2-3", None), place("", None)], [8, 2, 1]);
        assert_eq!([place("0-7", Some(3)), place("2", Some(9)), place("0-3", Some(1))], [1, 1, 1]);
    }

    fn classify(hosts: &str) -> Placement {
        let place = |host: char| Place {
            host: host.into(),
            cpus: String::new(),
            online: 1,
            governor: None,
            quota: None,
        };
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
