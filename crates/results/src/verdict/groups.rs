//! Groups of hosts, such as racks and switches: read from a file, or from the topology of Slurm.
//!
//! A file has a group per line, `rack r1: n[01-16]` or `r1: n[01-16]`, whose hosts may be other groups: `row: @r[1-4]`. The lines of
//! Slurm's `topology.conf` and of `scontrol show topology` are read too.

mod read;

use std::collections::{BTreeMap, BTreeSet};

use ombx_core::system::node_set;

/// Option of a run that holds its groups.
const GROUPS: &str = "groups";

/// Groups of hosts, on one level or several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// Levels, the lowest first. The groups of a level have no host in common.
    levels: Vec<Vec<Group>>,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What the group is, such as `switch`.
    pub noun: String,
    /// Its name.
    pub name: String,
    /// Names of its hosts.
    pub hosts: BTreeSet<String>,
}

impl Group {
    /// Returns whether a host belongs to the group. A name without its domain matches too.
    pub fn has(&self, host: &str) -> bool {
        let short = |name: &str| name.split('.').next().map(str::to_owned).unwrap_or_default();
        self.hosts.contains(host)
            || self.hosts.contains(&short(host))
            || (!host.contains('.') && self.hosts.iter().any(|own| own.contains('.') && short(own) == host))
    }
}

impl Groups {
    /// Returns whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Returns the levels, the lowest first.
    pub fn levels(&self) -> &[Vec<Group>] {
        &self.levels
    }

    /// Returns the groups as one line, which [`Groups::of_line`] reads: `switch:s1=n[01-04] switch:s2=n[05-08]`, and `;` between
    /// levels.
    pub fn line(&self) -> String {
        let group = |group: &Group| {
            let hosts = node_set::fold(group.hosts.iter().map(String::as_str));
            format!("{}:{}={hosts}", group.noun, group.name)
        };
        let level = |level: &Vec<Group>| level.iter().map(group).collect::<Vec<_>>().join(" ");
        self.levels.iter().map(level).collect::<Vec<_>>().join(";")
    }

    /// Reads the form of [`Groups::line`].
    ///
    /// # Errors
    /// A sentence about a group that has another form.
    pub fn of_line(line: &str) -> Result<Groups, String> {
        let group = |text: &str| {
            let (noun, rest) = text.split_once(':')?;
            let (name, hosts) = rest.split_once('=')?;
            let hosts = node_set::expand(hosts).ok()?.into_iter().collect();
            Some(Group { noun: noun.to_owned(), name: name.to_owned(), hosts })
        };
        let group = |text: &str| group(text).ok_or_else(|| format!("{text:?} is not a group of hosts"));
        let level = |level: &str| level.split(' ').map(group).collect::<Result<Vec<_>, _>>();
        let levels = line.split(';').filter(|level| !level.is_empty()).map(level);
        Ok(Groups { levels: levels.collect::<Result<Vec<_>, _>>()? })
    }

    /// Adds the groups to the options of a run.
    pub(super) fn describe(&self, plan: &mut BTreeMap<String, String>) {
        if !self.is_empty() {
            plan.insert(GROUPS.into(), self.line());
        }
    }

    /// Reads the groups from the options of a run. Other text says nothing.
    pub fn of_plan(plan: &BTreeMap<String, String>) -> Groups {
        plan.get(GROUPS).and_then(|line| Groups::of_line(line).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
