//! Plan of a run: rounds of jobs. Pairs of hosts come first, then all hosts with one rank each, then with several.

use ombx_record::error::{Error, Result};
use ombx_sweep::schedule::Mode;

use crate::inventory::{Host, file_name};

/// Pairs of hosts to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// Every host with every other host.
    All,
    /// Every host with the next one of the inventory, the last with the first.
    Ring,
    /// Pairs of names, such as `n01-n02`.
    List(Vec<String>),
}

impl Pairs {
    /// Parses `all`, `ring` or a list such as `n01-n02,n01-n03`.
    pub fn parse(text: &str) -> Self {
        match text {
            "all" => Pairs::All,
            "ring" => Pairs::Ring,
            list => Pairs::List(list.split(',').map(str::to_owned).collect()),
        }
    }
}

/// Returns rounds of jobs. The jobs of a round have no host in common; `seed` sets the order of the rounds of all pairs.
///
/// # Errors
/// A pair of [`Pairs::List`] is not two hosts of `hosts`.
pub fn rounds(hosts: &[Host], pairs: &Pairs, seed: u64) -> Result<Vec<Vec<Job>>> {
    let count = hosts.len();
    let mut pairs: Vec<Vec<[usize; 2]>> = match pairs {
        Pairs::List(list) => {
            disjoint(list.iter().map(|pair| find_pair(hosts, pair)).collect::<Result<Vec<_>>>()?)
        }
        _ if count < 2 => Vec::new(),
        Pairs::All => {
            let schedule = Mode::Parallel.schedule(count as u32, Some(seed));
            let of_round = |round| (0..schedule.pairs()).map(move |turn| schedule.pair(round, turn));
            (0..schedule.rounds())
                .map(|round| of_round(round).map(|(a, b)| [a.0 as usize, b.0 as usize]).collect())
                .collect()
        }
        Pairs::Ring if count == 2 => vec![vec![[0, 1]]],
        Pairs::Ring => disjoint((0..count).map(|a| [a, (a + 1) % count])),
    };
    pairs.iter_mut().flatten().for_each(|pair| pair.sort_unstable());
    let jobs =
        |round: Vec<[usize; 2]>| round.into_iter().map(|pair| Job::pair(Stage::Pairs, hosts, pair)).collect();
    let mut rounds: Vec<Vec<Job>> = pairs.into_iter().map(jobs).collect();
    if count >= 2 {
        rounds.push(vec![Job::all(Stage::Together, hosts, 1)]);
    }
    let slots = hosts.iter().map(|host| host.slots).min().unwrap_or(1);
    if slots >= 2 {
        rounds.push(vec![Job::all(Stage::Crowded, hosts, slots)]);
    }
    Ok(rounds)
}

/// Parses the name of a suite, which becomes a part of a command line and of file names.
pub(crate) fn suite(text: &str) -> std::result::Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(good) {
        Ok(text.to_owned())
    } else {
        Err("must be `links` or the name of a suite".into())
    }
}

/// Puts each pair into the first round that uses neither of its hosts.
fn disjoint(pairs: impl IntoIterator<Item = [usize; 2]>) -> Vec<Vec<[usize; 2]>> {
    let mut rounds: Vec<Vec<[usize; 2]>> = Vec::new();
    for pair in pairs {
        let free = |round: &&mut Vec<[usize; 2]>| round.iter().flatten().all(|host| !pair.contains(host));
        match rounds.iter_mut().find(free) {
            Some(round) => round.push(pair),
            None => rounds.push(vec![pair]),
        }
    }
    rounds
}

/// Parses `a-b`. Names of hosts may contain hyphens, so that every hyphen is tried.
fn find_pair(hosts: &[Host], text: &str) -> Result<[usize; 2]> {
    let index = |name: &str| hosts.iter().position(|host| host.name == name);
    let splits = text.match_indices('-').map(|(at, _)| (index(&text[..at]), index(&text[at + 1..])));
    splits.filter_map(|(a, b)| Some([a?, b?])).find(|[a, b]| a != b).ok_or_else(|| {
        Error::usage(format!(
            "--pairs: {text:?} is not a pair of hosts of the inventory. Use all, ring or a list such as a-b,c-d."
        ))
    })
}

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

    fn all(stage: Stage, hosts: &[Host], ranks_per_host: u32) -> Self {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn hosts(names: &[&str]) -> Vec<Host> {
        let host = |name: &&str| Host { name: (*name).into(), address: None, interface: None, slots: 2 };
        names.iter().map(host).collect()
    }

    #[test]
    fn pairs_come_first_and_are_disjoint() {
        let hosts = hosts(&["a", "b", "c", "d", "e"]);
        let plan = rounds(&hosts, &Pairs::All, 7).unwrap();
        let pairs: Vec<&Job> = plan.iter().flatten().filter(|job| job.stage == Stage::Pairs).collect();
        let names: BTreeSet<&str> = pairs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!((pairs.len(), names.len()), (10, 10));
        for round in &plan[..5] {
            let busy: Vec<usize> = round.iter().flat_map(|job| job.hosts.clone()).collect();
            assert_eq!(busy.len(), busy.iter().collect::<BTreeSet<_>>().len());
        }
        let last: Vec<(Stage, u32)> =
            plan[5..].iter().flatten().map(|job| (job.stage, job.ranks())).collect();
        assert_eq!(last, [(Stage::Together, 5), (Stage::Crowded, 10)]);
        assert_eq!(rounds(&hosts, &Pairs::All, 7).unwrap(), plan);
    }

    #[test]
    fn a_ring_and_a_list_are_disjoint_too() {
        let hosts = hosts(&["n-1", "n-2", "n-3"]);
        let pairs = |pairs| {
            let plan = rounds(&hosts, &pairs, 1).unwrap();
            plan.into_iter()
                .flatten()
                .filter(|job| job.stage == Stage::Pairs)
                .map(|job| job.hosts)
                .collect::<Vec<_>>()
        };
        assert_eq!(pairs(Pairs::Ring), [[0, 1], [1, 2], [0, 2]]);
        assert_eq!(pairs(Pairs::parse("n-3-n-1")), [[0, 2]]);
        for list in ["n-1-n-1", "x-y", "n-1", "", "; touch x"] {
            rounds(&hosts, &Pairs::parse(list), 1).unwrap_err();
            rounds(&hosts[..1], &Pairs::parse(list), 1).unwrap_err();
        }
    }

    #[test]
    fn jobs_of_two_pairs_never_have_one_name() {
        let hosts = hosts(&["a", "a-b", "b-c", "c", "b"]);
        let plan = rounds(&hosts, &Pairs::All, 1).unwrap();
        let names: Vec<&str> = plan.iter().flatten().map(|job| job.name.as_str()).collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{names:?}");
    }

    #[test]
    fn one_host_has_no_pairs() {
        let plan = rounds(&hosts(&["me"]), &Pairs::All, 1).unwrap();
        assert_eq!(plan.len(), 1);
        assert_eq!((plan[0][0].stage, plan[0][0].ranks()), (Stage::Crowded, 2));
    }
}
