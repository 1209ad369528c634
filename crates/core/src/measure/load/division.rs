//! The division of the ranks of a job into those that are measured and those that are their load.

use std::collections::BTreeMap;

use crate::{
    error::{Error, Result},
    measure::plan::Under,
    team::{Place, Team},
    unit::Rank,
};

/// One of this many ranks is measured, if the benchmark needs no more. GPCNeT has the same share of nodes.
const SHARE: u32 = 5;

/// Ranks of a job in the order of their teams. Neighbours in both lists are on different hosts where there are several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Division {
    /// Ranks that are measured; the first is rank 0, through which rows go.
    pub(super) victims: Vec<Rank>,
    pub(super) congestors: Vec<Rank>,
}

impl Division {
    /// Divides the ranks of a team for a benchmark that needs `needed` ranks. Rank 0 passes the places of all ranks. Collective.
    ///
    /// # Errors
    /// [`Error::unsupported`] if there are too few ranks.
    pub(super) fn of(team: &dyn Team, places: &[Place], needed: u32, seed: u64) -> Result<Division> {
        let (total, least_of_load) = (team.size(), Under::LEAST_RANKS);
        let victims = needed.max(total / SHARE);
        let least = victims.saturating_add(least_of_load);
        if least > total {
            return Err(Error::unsupported(format!(
                "needs {least} ranks, {victims} that are measured and {least_of_load} for the load, has {total}; start it with \
                 -n {least}"
            )));
        }
        let hosts: Vec<&str> = places.iter().map(|place| &*place.host).collect();
        let mut bytes: Vec<u8> =
            in_turns(&hosts, seed).iter().flat_map(|rank| rank.0.to_le_bytes()).collect();
        bytes.resize(4 * total as usize, 0);
        team.broadcast(&mut bytes)?;
        let mut ranks = bytes.as_chunks().0.iter().map(|word| Rank(u32::from_le_bytes(*word)));
        let victims = ranks.by_ref().take(victims as usize).collect();
        Ok(Division { victims, congestors: ranks.collect() })
    }
}

/// Returns all ranks in a random order in which the hosts take turns. The first is rank 0. `hosts` are the hosts of the ranks.
fn in_turns(hosts: &[&str], seed: u64) -> Vec<Rank> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut on_host: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
    for (rank, host) in (0..).map(Rank).zip(hosts) {
        on_host.entry(host).or_default().push(rank);
    }
    let mut by_host: Vec<Vec<Rank>> = on_host.into_values().collect();
    by_host.iter_mut().for_each(|ranks| random.shuffle(ranks));
    random.shuffle(&mut by_host);
    by_host.sort_by_key(|ranks| !ranks.contains(&Rank(0)));
    if let Some(first) = by_host.first_mut() {
        first.sort_by_key(|rank| *rank != Rank(0));
    }
    let most = by_host.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).flat_map(|at| by_host.iter().filter_map(move |ranks| ranks.get(at).copied())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn hosts_take_turns_in_a_random_order() {
        let hosts = ["a", "a", "a", "b", "b", "b", "c", "c", "c"];
        let orders: BTreeSet<Vec<Rank>> = (0..50).map(|seed| in_turns(&hosts, seed)).collect();
        assert!(orders.len() > 30, "{} different orders", orders.len());
        for order in orders {
            assert_eq!(order[0], Rank(0));
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), hosts.len());
            let on = |rank: &Rank| hosts[rank.0 as usize];
            assert!(order.windows(2).all(|pair| on(&pair[0]) != on(&pair[1])), "{order:?}");
        }
        assert_eq!(in_turns(&hosts, 7), in_turns(&hosts, 7));
        assert_eq!(in_turns(&["a", "b", "b"], 1)[..2].len(), 2);
        assert_eq!(in_turns(&[], 1), []);
    }
}
