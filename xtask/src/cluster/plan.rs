//! What is measured in which order: pairs of hosts, disjoint in each round, then all together with one rank a host, then several.

use ombx_links::schedule::Schedule;

use super::inventory::{Host, file_name};
use crate::failure::{Failure, Result};

/// Which pairs of hosts are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    All,
    Ring,
    List(Vec<String>),
}

/// Part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Two hosts, one rank each.
    Pairs,
    /// Suspects and a few ordinary pairs once more, with nothing else under way.
    Again,
    /// All hosts, one rank each.
    Together,
    /// All hosts, as many ranks as they have slots.
    Crowded,
}

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) stage: Stage,
    /// Numbers of hosts.
    pub(super) hosts: Vec<usize>,
    pub(super) per_host: u32,
}

impl Stage {
    pub(super) fn name(self) -> &'static str {
        match self {
            Stage::Pairs => "pairs",
            Stage::Again => "again",
            Stage::Together => "together",
            Stage::Crowded => "crowded",
        }
    }
}

impl Pairs {
    pub(super) fn parse(text: &str) -> Self {
        match text {
            "all" => Pairs::All,
            "ring" => Pairs::Ring,
            list => Pairs::List(list.split(',').map(str::to_owned).collect()),
        }
    }
}

impl Job {
    pub(super) fn pair(stage: Stage, hosts: &[Host], [a, b]: [usize; 2]) -> Self {
        let [one, other] = [a, b].map(|host| file_name(&hosts[host].name));
        let mut name = format!("{}-{one}-{other}", stage.name());
        // Names with hyphens may say the same of two pairs: a and b-c, a-b and c.
        if hosts.iter().any(|host| file_name(&host.name).starts_with(&format!("{one}-"))) {
            name = format!("{}-{one}+{other}", stage.name());
        }
        Self { name, stage, hosts: vec![a, b], per_host: 1 }
    }

    pub(super) fn ranks(&self) -> u32 {
        self.hosts.len() as u32 * self.per_host
    }
}

/// Rounds of jobs; those of one round have no host in common.
pub(super) fn rounds(hosts: &[Host], pairs: &Pairs, seed: u64) -> Result<Vec<Vec<Job>>> {
    let count = hosts.len();
    let mut rounds: Vec<Vec<[usize; 2]>> = match pairs {
        _ if count < 2 => Vec::new(),
        Pairs::All => {
            let schedule = Schedule::all_pairs(count as u32).shuffled(seed);
            let of_round = |round| (0..schedule.pairs()).map(move |turn| schedule.pair(round, turn));
            (0..schedule.rounds())
                .map(|round| of_round(round).map(|(a, b)| [a.0 as usize, b.0 as usize]).collect())
                .collect()
        }
        Pairs::Ring if count == 2 => vec![vec![[0, 1]]],
        Pairs::Ring => disjoint((0..count).map(|a| [a, (a + 1) % count])),
        Pairs::List(list) => {
            let named = list.iter().map(|pair| find_pair(hosts, pair)).collect::<Result<Vec<_>>>()?;
            disjoint(named.into_iter())
        }
    };
    rounds.iter_mut().flatten().for_each(|pair| pair.sort_unstable());
    let jobs =
        |round: Vec<[usize; 2]>| round.into_iter().map(|pair| Job::pair(Stage::Pairs, hosts, pair)).collect();
    let mut rounds: Vec<Vec<Job>> = rounds.into_iter().map(jobs).collect();
    let all: Vec<usize> = (0..count).collect();
    if count >= 2 {
        rounds.push(vec![Job {
            name: "together".into(),
            stage: Stage::Together,
            hosts: all.clone(),
            per_host: 1,
        }]);
    }
    let slots = hosts.iter().map(|host| host.slots).min().unwrap_or(1);
    if slots >= 2 {
        rounds.push(vec![Job { name: "crowded".into(), stage: Stage::Crowded, hosts: all, per_host: slots }]);
    }
    Ok(rounds)
}

/// Names of suites end up in a command line and in file names.
pub(super) fn suite(text: &str) -> std::result::Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(good) {
        true => Ok(text.to_owned()),
        false => Err("not the name of a suite".into()),
    }
}

/// Puts each pair into the first round in which neither of its hosts is busy.
fn disjoint(pairs: impl Iterator<Item = [usize; 2]>) -> Vec<Vec<[usize; 2]>> {
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

/// `a-b`, where the names of hosts may have hyphens too.
fn find_pair(hosts: &[Host], text: &str) -> Result<[usize; 2]> {
    let number = |name: &str| hosts.iter().position(|host| host.name == name);
    let cuts = text.match_indices('-').map(|(at, _)| (number(&text[..at]), number(&text[at + 1..])));
    cuts.filter_map(|(a, b)| Some([a?, b?])).find(|[a, b]| a != b).ok_or_else(|| {
        Failure::Usage(format!("--pairs is all, ring or a list such as a-b,c-d of hosts of the inventory; {text:?} is no such pair"))
    })
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
    fn pairs_come_first_and_once_and_are_disjoint() {
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
    fn one_machine_is_measured_inside() {
        let plan = rounds(&hosts(&["me"]), &Pairs::All, 1).unwrap();
        assert_eq!(plan.len(), 1);
        assert_eq!((plan[0][0].stage, plan[0][0].ranks()), (Stage::Crowded, 2));
    }
}
