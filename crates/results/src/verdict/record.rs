//! Verdicts as data, for result files and programs.

use super::{Component, Hosts, SlowComponent, SlowPart, Verdict, VerdictRecord};

impl SlowComponent {
    /// Describes the component for programs.
    pub fn part(&self, hosts: &Hosts) -> SlowPart {
        let group = |level: usize, group: u32| {
            let (noun, name) = hosts.group_name(level, group);
            (Some(format!("{noun} {name}")), hosts.of_group(level, group))
        };
        let on = |ranks: &[u32]| (None, ranks.iter().map(|rank| hosts.name(*rank)).collect::<Vec<_>>());
        let (part, (name, of), ranks) = match self.component {
            Component::GroupBetween(level, number) => ("group", group(level, number), vec![]),
            Component::GroupWithin(level, number) => ("group_inside", group(level, number), vec![]),
            Component::HostBetween(host) => ("host", (None, vec![hosts.name_of(host)]), vec![]),
            Component::HostWithin(host) => ("host_inside", (None, vec![hosts.name_of(host)]), vec![]),
            Component::Rank(rank) => ("rank", on(&[rank]), vec![rank]),
            Component::Link(a, b) => ("link", on(&[a, b]), vec![a, b]),
            Component::OneWay(from, to) => ("direction", on(&[from, to]), vec![from, to]),
        };
        let hosts = of.into_iter().map(str::to_owned).collect();
        let SlowComponent { factor, bytes, .. } = *self;
        SlowPart { part: part.into(), name, hosts, ranks, factor, bytes }
    }
}

impl Verdict {
    /// Returns the verdict as data.
    pub fn record(&self, hosts: &Hosts) -> VerdictRecord {
        VerdictRecord {
            conclusion: self.conclusion(),
            sentences: self.sentences(hosts),
            slow: self.slow.iter().map(|slow| slow.part(hosts)).collect(),
            nameable: self.nameable.clone(),
        }
    }
}
