//! Hosts of ranks, and the groups that hosts belong to.

use std::collections::BTreeMap;

use ombx_core::{result::Run, system::node_set};

use super::Groups;

/// Host of each rank. Hosts are numbered from 0 in the order in which they first appear.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    names: Vec<String>,
    of_rank: Vec<u32>,
    /// Number of lower ranks on the host of each rank.
    positions: Vec<u32>,
    /// By distance: the logarithm to base 2 of how many times as many links the most frequent distance has.
    rarity: Vec<u32>,
    /// Levels of groups, the lowest first.
    levels: Vec<Level>,
}

/// Groups of one level. A host that belongs to none is a group by itself.
#[derive(Debug, Clone, Default)]
struct Level {
    /// Number of the group of each host.
    of_host: Vec<u32>,
    /// Noun and name of each group, such as `switch` and `s1`.
    names: Vec<(String, String)>,
}

impl Hosts {
    /// Builds the map from the host name of every rank.
    pub fn of<'a>(ranks: impl IntoIterator<Item = &'a str>) -> Hosts {
        let mut hosts = Hosts::default();
        let mut known: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for name in ranks {
            let (at, ranks) = known.entry(name.to_owned()).or_insert_with(|| {
                hosts.names.push(name.to_owned());
                (hosts.names.len() as u32 - 1, 0)
            });
            hosts.of_rank.push(*at);
            hosts.positions.push(*ranks);
            *ranks += 1;
        }
        hosts.rarity = hosts.rarities();
        hosts
    }

    /// Builds the map from the places of a run, with the groups that its options name.
    pub fn of_run(run: &Run) -> Hosts {
        let hosts = Hosts::of(run.places.iter().map(|place| place.host.as_str()));
        hosts.grouped(&Groups::of_plan(&run.plan))
    }

    /// Puts the hosts into groups. A level with a single group, or with a group for each host, says nothing and is left out.
    #[must_use]
    pub fn grouped(self, groups: &Groups) -> Hosts {
        let mut levels: Vec<Level> = Vec::new();
        for level in groups.levels() {
            let mut found = Level::default();
            let mut numbers: BTreeMap<(String, String), u32> = BTreeMap::new();
            for host in &self.names {
                let group = level.iter().find(|group| group.has(host));
                let name = group
                    .map_or((String::new(), host.clone()), |group| (group.noun.clone(), group.name.clone()));
                let number = *numbers.entry(name.clone()).or_insert_with(|| {
                    found.names.push(name);
                    found.names.len() as u32 - 1
                });
                found.of_host.push(number);
            }
            let count = found.names.len();
            let is_known = levels.iter().any(|level: &Level| level.of_host == found.of_host);
            if count > 1 && count < self.names.len() && !is_known {
                levels.push(found);
            }
        }
        let mut hosts = Hosts { levels, ..self };
        hosts.rarity = hosts.rarities();
        hosts
    }

    /// Returns for each distance how much rarer its links are than those of the most frequent one, as a logarithm to base 2.
    fn rarities(&self) -> Vec<u32> {
        let pairs = |ranks: u64| ranks * ranks.saturating_sub(1) / 2;
        let within = |level: usize| {
            let mut ranks: BTreeMap<u32, u64> = BTreeMap::new();
            (0..self.ranks()).for_each(|rank| *ranks.entry(self.unit(level, rank)).or_default() += 1);
            ranks.into_values().map(pairs).sum::<u64>()
        };
        let all = (0..=self.levels()).map(within).chain([pairs(self.ranks().into())]);
        // The links within a unit include those within its parts.
        let mut below = 0;
        let links: Vec<u64> = all.map(|all| all.saturating_sub(std::mem::replace(&mut below, all))).collect();
        let most = links.iter().copied().max().unwrap_or(0);
        links
            .into_iter()
            .map(|links| most.checked_div(links).and_then(u64::checked_ilog2).unwrap_or(0))
            .collect()
    }

    /// Returns the level of a sample for a link, where `level` is that of the most frequent distance. The links of a rare distance
    /// are sampled less, so that few links inside hosts or groups are all in the sample.
    pub(super) fn sample_level(&self, level: u32, from: u32, to: u32) -> u32 {
        let rarity = if level == 0 { None } else { self.rarity.get(self.distance(from, to)) };
        level.saturating_sub(rarity.copied().unwrap_or(0))
    }

    /// Returns the number of a rank's host, or 0 for an unknown rank.
    pub fn number(&self, rank: u32) -> u32 {
        self.of_rank.get(rank as usize).copied().unwrap_or(0)
    }

    /// Returns the name of a rank's host.
    pub fn name(&self, rank: u32) -> &str {
        self.name_of(self.number(rank))
    }

    /// Returns the name of a host by its number.
    pub fn name_of(&self, host: u32) -> &str {
        self.names.get(host as usize).map_or("?", String::as_str)
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.of_rank.len() as u32
    }

    /// Returns the number of hosts.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Returns the name of a rank in a link: its host, its number, or both, whichever distinguishes the ranks.
    pub fn label(&self, rank: u32) -> String {
        match (self.count(), self.ranks() as usize) {
            (1, _) => format!("rank {rank}"),
            (hosts, ranks) if hosts == ranks => self.name(rank).to_owned(),
            _ => format!("{}:{rank}", self.name(rank)),
        }
    }

    /// Returns the number of lower ranks on the host of a rank.
    pub fn position(&self, rank: u32) -> u32 {
        self.positions.get(rank as usize).copied().unwrap_or(0)
    }

    /// Returns whether two ranks share a host. Links inside hosts are compared with each other only.
    pub fn same_host(&self, a: u32, b: u32) -> bool {
        self.number(a) == self.number(b)
    }

    /// Returns the number of levels of groups.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns the distance of two ranks: 0 on one host, n in one group of level n but not of a lower one, else one more than
    /// there are levels. Links over the same distance are compared with each other.
    pub fn distance(&self, a: u32, b: u32) -> usize {
        (0..=self.levels())
            .find(|level| self.unit(*level, a) == self.unit(*level, b))
            .unwrap_or(self.levels() + 1)
    }

    /// Returns the number of a rank's host (level 0) or group (levels from 1).
    pub(super) fn unit(&self, level: usize, rank: u32) -> u32 {
        let host = self.number(rank);
        match level.checked_sub(1).and_then(|level| self.levels.get(level)) {
            None => host,
            Some(level) => level.of_host.get(host as usize).copied().unwrap_or(0),
        }
    }

    /// Returns the number of hosts (level 0) or groups (levels from 1).
    pub(super) fn unit_count(&self, level: usize) -> usize {
        level
            .checked_sub(1)
            .and_then(|level| self.levels.get(level))
            .map_or(self.count(), |level| level.names.len())
    }

    /// Returns the hosts of a group. Levels are numbered from 0.
    pub fn of_group(&self, level: usize, group: u32) -> Vec<&str> {
        let of_host = self.levels.get(level).map_or(&[][..], |level| &level.of_host);
        of_host
            .iter()
            .zip(&self.names)
            .filter(|(of, _)| **of == group)
            .map(|(_, name)| name.as_str())
            .collect()
    }

    /// Returns the noun and the name of a group. Levels are numbered from 0.
    pub fn group_name(&self, level: usize, group: u32) -> (&str, &str) {
        let name = self.levels.get(level).and_then(|level| level.names.get(group as usize));
        name.map_or(("group", "?"), |(noun, name)| (noun, name))
    }

    /// Returns the noun of the groups of a level.
    pub fn noun(&self, level: usize) -> &str {
        let mut nouns =
            self.levels.get(level).into_iter().flat_map(|level| &level.names).map(|(noun, _)| noun);
        nouns.find(|noun| !noun.is_empty()).map_or("group", String::as_str)
    }

    /// Returns a group with its hosts, such as `switch s1 (n[01-04])`.
    pub(super) fn group_label(&self, level: usize, group: u32) -> String {
        let (noun, name) = self.group_name(level, group);
        format!("{noun} {name} ({})", node_set::fold(self.of_group(level, group)))
    }
}
