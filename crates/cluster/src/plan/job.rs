//! Job: one launch of ombx on some of the hosts.

use crate::inventory::{Host, file_name};

/// Stage of the plan that a job belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Two hosts with one rank each.
    Pairs,
    /// A suspect pair, or a normal pair for comparison, measured again while no other job runs.
    Again,
    /// All hosts with one rank each.
    Together,
    /// All hosts with as many ranks per host as the smallest number of slots.
    Crowded,
}

/// One launch of ombx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Unique name; also the name of the directory of the job.
    pub name: String,
    /// Stage of the plan.
    pub stage: Stage,
    /// Indices of the hosts in the inventory.
    pub hosts: Vec<usize>,
    /// Ranks per host.
    pub ranks_per_host: u32,
}

impl Stage {
    /// Returns the name in job names and result files.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Pairs => "pairs",
            Stage::Again => "again",
            Stage::Together => "together",
            Stage::Crowded => "crowded",
        }
    }
}

impl Job {
    pub(crate) fn pair(stage: Stage, hosts: &[Host], pair: [usize; 2]) -> Self {
        let [one, other] = pair.map(|host| file_name(&hosts[host].name));
        // With "-" alone, the pairs (a, b-c) and (a-b, c) would have the same name.
        let ambiguous = hosts.iter().any(|host| file_name(&host.name).starts_with(&format!("{one}-")));
        let separator = if ambiguous { '+' } else { '-' };
        let name = format!("{}-{one}{separator}{other}", stage.name());
        Self { name, stage, hosts: pair.to_vec(), ranks_per_host: 1 }
    }

    pub(super) fn all(stage: Stage, hosts: &[Host], ranks_per_host: u32) -> Self {
        Self { name: stage.name().into(), stage, hosts: (0..hosts.len()).collect(), ranks_per_host }
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.hosts.len() as u32 * self.ranks_per_host
    }

    /// Returns whether the job measures two hosts with one rank each.
    pub(crate) fn is_pair(&self) -> bool {
        matches!(self.stage, Stage::Pairs | Stage::Again)
    }
}
