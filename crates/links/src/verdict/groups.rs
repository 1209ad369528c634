//! Groups of hosts, such as racks and switches: read from a file, or from the topology of Slurm.
//!
//! A file has a group per line, `rack r1: n[01-16]` or `r1: n[01-16]`, whose hosts may be other groups: `row: @r[1-4]`. The lines of
//! Slurm's `topology.conf` and of `scontrol show topology` are read too.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    str::FromStr,
};

use ombx_host::{host_name::check_host, node_set};
use ombx_record::{result::Run, verdict::Component};
use serde::{Deserialize, Serialize};

/// Option of a run that holds its groups.
const GROUPS: &str = "groups";

/// Groups of hosts, on one level or several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostGroups {
    /// Levels, the lowest first. The groups of a level have no host in common.
    levels: Vec<Vec<Group>>,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// What the group is, such as `switch`.
    pub noun: String,
    /// Its name.
    pub name: String,
    /// Names of its hosts.
    pub hosts: BTreeSet<String>,
}

impl HostGroups {
    /// Returns whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Returns the levels, the lowest first.
    pub fn levels(&self) -> &[Vec<Group>] {
        &self.levels
    }

    /// Returns the groups as one line, which [`HostGroups::of_line`] reads: `switch:s1=n[01-04] switch:s2=n[05-08]`, and `;` between
    /// levels.
    pub fn line(&self) -> String {
        let group = |group: &Group| {
            let hosts = node_set::fold(group.hosts.iter().map(String::as_str));
            format!("{}:{}={hosts}", group.noun, group.name)
        };
        let level = |level: &Vec<Group>| level.iter().map(group).collect::<Vec<_>>().join(" ");
        self.levels.iter().map(level).collect::<Vec<_>>().join(";")
    }

    /// Reads the form of [`HostGroups::line`].
    ///
    /// # Errors
    /// A sentence about a group that has another form.
    pub fn of_line(line: &str) -> Result<HostGroups, String> {
        let group = |text: &str| read_group(text).ok_or_else(|| format!("{text:?} is not a group of hosts"));
        let level = |level: &str| level.split(' ').map(group).collect::<Result<Vec<_>, _>>();
        let levels = line.split(';').filter(|level| !level.is_empty()).map(level);
        Ok(HostGroups { levels: levels.collect::<Result<Vec<_>, _>>()? })
    }

    /// Adds the groups to the options of a run.
    pub(super) fn describe(&self, plan: &mut BTreeMap<String, String>) {
        if !self.is_empty() {
            plan.insert(GROUPS.into(), self.line());
        }
    }

    /// Reads the groups from the options of a run. Other text says nothing.
    pub fn of_plan(plan: &BTreeMap<String, String>) -> HostGroups {
        plan.get(GROUPS).and_then(|line| HostGroups::of_line(line).ok()).unwrap_or_default()
    }
}

/// Reads a group of a line; `None` if it has another form.
fn read_group(text: &str) -> Option<Group> {
    let (noun, rest) = text.split_once(':')?;
    let (name, hosts) = rest.split_once('=')?;
    let hosts = node_set::expand(hosts).ok()?.into_iter().collect();
    Some(Group { noun: noun.to_owned(), name: name.to_owned(), hosts })
}

/// Maximum number of groups.
const MOST_GROUPS: usize = 1 << 16;

/// Group before the groups that it contains are known.
#[derive(Debug, Clone, Default)]
struct Raw {
    noun: String,
    hosts: BTreeSet<String>,
    /// Names of groups that it contains.
    children: BTreeSet<String>,
}

type Checked<T> = Result<T, String>;

impl FromStr for HostGroups {
    type Err = String;

    fn from_str(text: &str) -> Checked<HostGroups> {
        let mut raw: BTreeMap<String, Raw> = BTreeMap::new();
        // A backslash continues a line, as in the files of Slurm.
        for (number, line) in (1..).zip(text.replace("\\\n", "  ").lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                read_line(line, &mut raw).map_err(|why| format!("line {number}: {why}"))?;
            }
        }
        if raw.len() > MOST_GROUPS {
            return Err(format!("there are more than {MOST_GROUPS} groups"));
        }
        let levels = levels(&raw)?;
        if levels.is_empty() { Err("no group has a host".into()) } else { Ok(HostGroups { levels }) }
    }
}

/// Adds the group of a line.
fn read_line(line: &str, raw: &mut BTreeMap<String, Raw>) -> Checked<()> {
    if line.split_whitespace().next().is_some_and(|first| first.contains('=')) {
        return read_slurm(line, raw);
    }
    let form = || format!("{line:?} is not a group. Write it as r1: n[01-16] or rack r1: n[01-16]");
    let (head, members) = line.split_once(':').ok_or_else(form)?;
    let (noun, name) = match head.split_whitespace().collect::<Vec<_>>()[..] {
        [name] => ("group", name),
        [noun, name] => (noun, name),
        _ => return Err(form()),
    };
    for name in [noun, name] {
        check_name(name)?;
    }
    let group = raw.entry(name.to_owned()).or_default();
    noun.clone_into(&mut group.noun);
    for words in members.split_whitespace() {
        let mut list = Vec::new();
        for element in node_set::elements(words).filter(|element| !element.is_empty()) {
            match element.strip_prefix('@') {
                Some(groups) => group.children.extend(names(groups)?),
                None => list.push(element),
            }
        }
        if !list.is_empty() {
            group.hosts.extend(host_names(&list.join(","))?);
        }
    }
    Ok(())
}

/// Adds the switch or block of a line of Slurm.
fn read_slurm(line: &str, raw: &mut BTreeMap<String, Raw>) -> Checked<()> {
    let words: BTreeMap<String, &str> = line
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(key, value)| (key.to_ascii_lowercase(), value))
        .collect();
    let named = [("switch", "switchname"), ("block", "blockname")];
    let Some((noun, list)) = named.iter().find_map(|(noun, key)| Some((*noun, *words.get(*key)?))) else {
        // Other lines of topology.conf, such as BlockSizes.
        return Ok(());
    };
    for name in names(list)? {
        let group = raw.entry(name).or_default();
        noun.clone_into(&mut group.noun);
        if let Some(nodes) = words.get("nodes").filter(|nodes| **nodes != "(null)") {
            group.hosts.extend(host_names(nodes)?);
        }
        if let Some(switches) = words.get("switches").filter(|switches| **switches != "(null)") {
            group.children.extend(names(switches)?);
        }
    }
    Ok(())
}

fn host_names(text: &str) -> Checked<Vec<String>> {
    let host_names = node_set::expand(text).map_err(|e| e.to_string())?;
    host_names.iter().try_for_each(|host| check_host(host).map(|_| ())).map_err(|e| e.to_string())?;
    Ok(host_names)
}

fn names(text: &str) -> Checked<Vec<String>> {
    let names = node_set::expand(text).map_err(|e| e.to_string())?;
    names.iter().try_for_each(|name| check_name(name))?;
    Ok(names)
}

/// Refuses a name that verdicts and result files cannot hold.
fn check_name(name: &str) -> Checked<()> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_plain || !(1..=64).contains(&name.len()) {
        return Err(format!(
            "{name:?} is not the name of a group: use at most 64 letters, digits, '-', '_' and '.'"
        ));
    }
    Ok(())
}

/// Returns the groups by level: a group that contains others is one level above the highest of them.
fn levels(raw: &BTreeMap<String, Raw>) -> Checked<Vec<Vec<Group>>> {
    let mut known: BTreeMap<&str, (usize, BTreeSet<String>)> = BTreeMap::new();
    while known.len() < raw.len() {
        let before = known.len();
        for (name, group) in
            raw.iter().filter(|(name, _)| !known.contains_key(name.as_str())).collect::<Vec<_>>()
        {
            let children: Option<Vec<_>> =
                group.children.iter().map(|child| known.get(child.as_str())).collect();
            let Some(children) = children else { continue };
            let level = children.iter().map(|(level, _)| level + 1).max().unwrap_or(0);
            let mut host_names = group.hosts.clone();
            children.iter().for_each(|(_, of_child)| host_names.extend(of_child.iter().cloned()));
            known.insert(name, (level, host_names));
        }
        if known.len() == before {
            let name = raw.keys().find(|name| !known.contains_key(name.as_str()));
            let name = name.map_or("", String::as_str);
            return Err(format!("group {name} contains a group that is not there, or itself"));
        }
    }
    let mut levels: Vec<Vec<Group>> = Vec::new();
    for (name, (level, host_names)) in known.into_iter().filter(|(_, (_, host_names))| !host_names.is_empty())
    {
        levels.resize_with(levels.len().max(level + 1), Vec::new);
        let noun = raw.get(name).map(|group| group.noun.clone()).unwrap_or_default();
        levels[level].push(Group { noun, name: name.to_owned(), hosts: host_names });
    }
    if let Some((host, [one, other])) = levels.first().and_then(|lowest| shared(lowest)) {
        return Err(format!("host {host} is in {one} and in {other}: leave it in one of them"));
    }
    // The switches above several spines share their host_names, so that they cannot be compared.
    levels.retain(|level| !level.is_empty() && shared(level).is_none());
    Ok(levels)
}

/// Returns a host in two groups of a level.
fn shared(level: &[Group]) -> Option<(&str, [&str; 2])> {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for group in level {
        for host in &group.hosts {
            if let Some(other) = known.insert(host, &group.name) {
                return Some((host, [other, &group.name]));
            }
        }
    }
    None
}

/// Host of each rank. Hosts are numbered from 0 in the order in which they first appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Level {
    /// Number of the group of each host.
    of_host: Vec<u32>,
    /// Noun and name of each group, such as `switch` and `s1`.
    names: Vec<(String, String)>,
}

/// Groups of a level by the names of their hosts, with and without domains.
struct GroupsByName<'a> {
    level: &'a [Group],
    names: HashMap<&'a str, usize>,
    /// Names without domain, of hosts that have one.
    short: HashMap<&'a str, usize>,
}

impl<'a> GroupsByName<'a> {
    fn new(level: &'a [Group]) -> GroupsByName<'a> {
        let mut all = GroupsByName { level, names: HashMap::new(), short: HashMap::new() };
        for (at, group) in level.iter().enumerate() {
            for host in &group.hosts {
                all.names.entry(host).or_insert(at);
                if let Some((short, _)) = host.split_once('.') {
                    all.short.entry(short).or_insert(at);
                }
            }
        }
        all
    }

    /// Returns the first group of a host. A name without its domain matches too.
    fn group(&self, host: &str) -> Option<&'a Group> {
        let short = host.split('.').next().unwrap_or(host);
        let without_domain = self.short.get(host).filter(|_| !host.contains('.'));
        let found = [self.names.get(host), self.names.get(short), without_domain];
        found.into_iter().flatten().min().map(|at| &self.level[*at])
    }
}

impl Hosts {
    /// Returns whether a link belongs to a component.
    pub fn has_link(&self, component: &Component, [from, to]: [u32; 2]) -> bool {
        let (on_from, on_to) = (self.number(from), self.number(to));
        let ends = |level: usize| [self.unit(level + 1, from), self.unit(level + 1, to)];
        match *component {
            Component::GroupBetween(level, group) => {
                let [a, b] = ends(level);
                a != b && [a, b].contains(&group)
            }
            Component::GroupWithin(level, group) => {
                ends(level) == [group; 2] && self.distance(from, to) == level + 1
            }
            Component::HostBetween(host) => on_from != on_to && [on_from, on_to].contains(&host),
            Component::HostWithin(host) => on_from == host && on_to == host,
            Component::Rank(rank) => [from, to].contains(&rank),
            Component::Link(a, b) => [(a, b), (b, a)].contains(&(from, to)),
            // Without directed traffic no component has this form.
            Component::OneWay(a, b) => (from, to) == (a, b),
        }
    }

    /// Returns whether a rank is on the host or in the group of a component; false for a rank or link.
    pub fn has_rank(&self, component: &Component, rank: u32) -> bool {
        match *component {
            Component::GroupBetween(level, group) | Component::GroupWithin(level, group) => {
                self.unit(level + 1, rank) == group
            }
            Component::HostBetween(host) | Component::HostWithin(host) => self.number(rank) == host,
            _ => false,
        }
    }

    /// Builds the map from the host name of every rank.
    pub fn new<'a>(ranks: impl IntoIterator<Item = &'a str>) -> Hosts {
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
        let hosts = Hosts::new(run.places.iter().map(|place| place.host.as_str()));
        hosts.grouped(&HostGroups::of_plan(&run.plan))
    }

    /// Puts the hosts into groups. A level with a single group, or with a group for each host, says nothing and is left out.
    #[must_use]
    pub fn grouped(self, groups: &HostGroups) -> Hosts {
        let mut levels: Vec<Level> = Vec::new();
        for level in groups.levels() {
            let mut found = Level::default();
            let mut numbers: BTreeMap<(String, String), u32> = BTreeMap::new();
            let names = GroupsByName::new(level);
            for host in &self.names {
                let name = names
                    .group(host)
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

#[cfg(test)]
mod tests;
