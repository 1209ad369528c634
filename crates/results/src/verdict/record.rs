//! Verdicts as data, for result files and programs.

use super::{Component, Conclusion, Hosts, Sentence, SlowComponent, Verdict};

/// Verdict of a sweep, as a result file holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictRecord {
    /// What is concluded.
    pub conclusion: Conclusion,
    /// Sentences with their evidence.
    pub sentences: Vec<Sentence>,
    /// Slow parts, the slowest first.
    pub slow: Vec<SlowPart>,
    /// Message sizes, and the factor of the fastest slow link that would have been named.
    pub nameable: Vec<(u64, f64)>,
}

/// Slow part of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowPart {
    /// Kind of the part: `group`, `group_inside`, `host`, `host_inside`, `rank`, `link` or `direction`.
    pub part: String,
    /// Noun and name of a group, such as `switch s1`.
    pub name: Option<String>,
    /// Names of its hosts; of a link, those of its two ends.
    pub hosts: Vec<String>,
    /// Its ranks; of a link, its two ends. None of a host or a group.
    pub ranks: Vec<u32>,
    /// Ratio of its time to the time of comparable parts.
    pub factor: f64,
    /// Message size with the largest factor.
    pub bytes: u64,
}

impl SlowPart {
    /// Describes a slow component.
    pub fn of(slow: &SlowComponent, hosts: &Hosts) -> SlowPart {
        let group = |level: usize, group: u32| {
            let (noun, name) = hosts.group_name(level, group);
            (Some(format!("{noun} {name}")), hosts.of_group(level, group))
        };
        let on = |ranks: &[u32]| (None, ranks.iter().map(|rank| hosts.name(*rank)).collect::<Vec<_>>());
        let (part, (name, of), ranks) = match slow.component {
            Component::GroupBetween(level, number) => ("group", group(level, number), vec![]),
            Component::GroupWithin(level, number) => ("group_inside", group(level, number), vec![]),
            Component::HostBetween(host) => ("host", (None, vec![hosts.name_of(host)]), vec![]),
            Component::HostWithin(host) => ("host_inside", (None, vec![hosts.name_of(host)]), vec![]),
            Component::Rank(rank) => ("rank", on(&[rank]), vec![rank]),
            Component::Link(a, b) => ("link", on(&[a, b]), vec![a, b]),
            Component::OneWay(from, to) => ("direction", on(&[from, to]), vec![from, to]),
        };
        let hosts = of.into_iter().map(str::to_owned).collect();
        let SlowComponent { factor, bytes, .. } = *slow;
        SlowPart { part: part.into(), name, hosts, ranks, factor, bytes }
    }
}

impl Verdict {
    /// Returns the verdict as data.
    pub fn record(&self, hosts: &Hosts) -> VerdictRecord {
        VerdictRecord {
            conclusion: self.conclusion(),
            sentences: self.sentences(hosts),
            slow: self.slow.iter().map(|slow| SlowPart::of(slow, hosts)).collect(),
            nameable: self.nameable.clone(),
        }
    }
}
