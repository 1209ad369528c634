//! Slow parts of few units (hosts, ranks or groups of hosts), found by [`search`].

use std::collections::BTreeMap;

use ombx_core::unit::Bytes;

use super::{
    Component, Hosts, Link, LinkTimes, MIN_UNITS, MISSED, plural,
    relative::{RelativeLink, Retested, Scope, median, relative_links},
    search::{self, Explanation, PairTime, Part},
};

/// Slow parts of few units.
pub(super) struct FewUnits {
    found: Explanation,
    /// Whether the units are ranks: each host has one rank, or there is one host.
    pub(super) by_rank: bool,
    scope: Scope,
}

impl FewUnits {
    /// Returns `None` if these links are too few or too many for a search. Links of `known` components are left out.
    pub(super) fn of(
        times: &LinkTimes,
        hosts: &Hosts,
        scope: Scope,
        sizes: usize,
        known: &[(Component, f64)],
    ) -> Option<FewUnits> {
        let one_each = hosts.count() == hosts.ranks() as usize;
        let units = if scope.inside { hosts.ranks() as usize } else { hosts.unit_count(scope.level) };
        if units > search::MAX_UNITS || scope.inside && (hosts.count() > 1 || scope.level > 0) {
            return None;
        }
        let is_known = |l: &&Link| known.iter().any(|(part, _)| part.contains([l.from, l.to], hosts));
        let links: Vec<Link> = times.sweep.iter().filter(|l| !is_known(l)).copied().collect();
        let (pairs, offsets) = pair_times(&links, hosts, scope);
        let found = search::explain(&pairs, sizes, times.row_error, offsets)?;
        Some(FewUnits { found, by_rank: scope.inside || one_each && scope.level == 0, scope })
    }

    /// Returns the logarithm of the smallest factor that is named in 95 of 100 runs.
    pub(super) fn nameable(&self) -> f64 {
        self.found.nameable
    }

    /// Returns the slow parts. Without a repeat of all links, the links that were measured again must confirm them.
    pub(super) fn confirmed(
        &self,
        times: &LinkTimes,
        hosts: &Hosts,
        again: &Retested,
    ) -> Vec<(Component, f64)> {
        let best = relative_links(&times.shortest, hosts);
        let ends = |l: &RelativeLink| unit_ends([l.from, l.to], hosts, self.scope);
        let confirmed = |(part, log): &(Part, f64)| {
            let own = || best.iter().filter(|l| self.scope.has(l.distance) && part.contains(ends(l)));
            let spread = if matches!(part, Part::Link(_)) { self.found.spread } else { 0.0 };
            let log = if times.is_repeated {
                *log
            } else {
                again.confirms(own(), *log, spread * times.shortest_spreads())?
            };
            Some(match part {
                Part::Unit(rank) if self.scope.inside => (Component::Rank(*rank), log),
                Part::Unit(unit) => (self.scope.component(*unit), log),
                // Between units with several ranks, the links of ranks are tested one by one.
                Part::Link(_) if !self.by_rank => return None,
                Part::Link([a, b]) => {
                    let mut ways: Vec<&RelativeLink> = own().collect();
                    ways.sort_by(|a, b| b.log.total_cmp(&a.log));
                    // The part has the mean of both directions.
                    match ways[..] {
                        [slow, other] if slow.log - other.log > log => {
                            (Component::OneWay(slow.from, slow.to), log + 0.5 * (slow.log - other.log))
                        }
                        _ => {
                            let ranks = ways.first().map_or((*a, *b), |l| (l.from, l.to));
                            (Component::Link(ranks.0.min(ranks.1), ranks.0.max(ranks.1)), log)
                        }
                    }
                }
            })
        };
        self.found.slow.iter().filter_map(confirmed).collect()
    }
}

/// Returns the units of the two ends, or the ranks inside the only host; the lower first.
fn unit_ends([from, to]: [u32; 2], hosts: &Hosts, scope: Scope) -> [u32; 2] {
    let unit = |rank: u32| if scope.inside { rank } else { hosts.unit(scope.level, rank) };
    let [a, b] = [unit(from), unit(to)];
    [a.min(b), a.max(b)]
}

/// Returns the median time between every two units, and the number of offsets that were estimated from the times.
///
/// Links over several distances are made comparable first: an offset brings the lower quartiles of all distances together. What is
/// slow makes times longer, so that the lower quartile is that of ordinary links.
fn pair_times(links: &[Link], hosts: &Hosts, scope: Scope) -> (Vec<PairTime>, usize) {
    let mut of_distance: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let distance = |l: &Link| hosts.distance(l.from, l.to);
    let links: Vec<&Link> = links.iter().filter(|l| scope.has(distance(l))).collect();
    for l in &links {
        of_distance.entry(distance(l)).or_default().push(f64::from(l.ns).ln());
    }
    let offsets = of_distance.len().saturating_sub(1);
    let quartiles: BTreeMap<usize, f64> =
        of_distance.into_iter().map(|(distance, logs)| (distance, lower_quartile(logs))).collect();
    let offset = |l: &Link| if offsets > 0 { quartiles[&distance(l)] } else { 0.0 };
    let mut logs: BTreeMap<[u32; 2], Vec<f64>> = BTreeMap::new();
    for l in links {
        logs.entry(unit_ends([l.from, l.to], hosts, scope))
            .or_default()
            .push(f64::from(l.ns).ln() - offset(l));
    }
    let pairs = logs.into_iter().map(|(ends, logs)| PairTime { ends, log: median(&logs) });
    (with_partners(pairs.collect()), offsets)
}

fn lower_quartile(mut logs: Vec<f64>) -> f64 {
    logs.sort_by(f64::total_cmp);
    logs.get(logs.len() / 4).copied().unwrap_or(0.0)
}

/// Leaves out units that keep fewer partners than a comparison takes, since their links belong to a slow group, if enough others
/// are left.
fn with_partners(pairs: Vec<PairTime>) -> Vec<PairTime> {
    let mut partners: BTreeMap<u32, usize> = BTreeMap::new();
    pairs.iter().flat_map(|pair| pair.ends).for_each(|unit| *partners.entry(unit).or_default() += 1);
    let has_few = |unit: &u32| partners[unit] < MIN_UNITS - 1;
    let units = partners.len();
    let few = partners.keys().filter(|unit| has_few(unit)).count();
    if few == 0 || units - few < MIN_UNITS {
        return pairs;
    }
    with_partners(pairs.into_iter().filter(|pair| !pair.ends.iter().any(has_few)).collect())
}

/// Largest factor of a slow link that may go unnoticed in a run with the verdict that nothing is slow.
const MAX_NAMEABLE: f64 = 3.0;

/// Returns the power_clause on the smallest slow link and the smallest slow groups that would have been named. `of_groups` has a factor for
/// each level of groups; `None` if they cannot be compared.
pub(super) fn power_clause(
    power: &[(u64, Option<f64>)],
    of_groups: &[(u64, Vec<Option<f64>>)],
    hosts: &Hosts,
) -> Option<String> {
    let known: Vec<(u64, f64)> = power.iter().filter_map(|(bytes, x)| Some((*bytes, (*x)?))).collect();
    let links = (!known.is_empty()).then(|| {
        format!(
            "{} would have been named with a probability of {:.0} %",
            slower("link", &known),
            100.0 * (1.0 - MISSED)
        )
    });
    let groups = (0..hosts.levels()).map(|level| {
        let known: Vec<(u64, f64)> =
            of_groups.iter().filter_map(|(bytes, levels)| Some((*bytes, (*levels.get(level)?)?))).collect();
        match known.is_empty() {
            true => format!(
                "{} {} cannot be compared: at least {MIN_UNITS} are needed",
                hosts.unit_count(level + 1),
                plural(hosts.noun(level))
            ),
            false => format!("so would {}", slower(hosts.noun(level), &known)),
        }
    });
    let all: Vec<String> = links.into_iter().chain(groups).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns why links that scatter too much are no sign that nothing is slow.
pub(super) fn too_coarse(power: &[(u64, Option<f64>)]) -> Option<String> {
    if power.is_empty() {
        return Some("no link was measured".into());
    }
    if let Some((bytes, _)) = power.iter().find(|(_, nameable)| nameable.is_none()) {
        return Some(format!("single links cannot be compared (at {} bytes)", Bytes(*bytes)));
    }
    let (bytes, worst) = power
        .iter()
        .filter_map(|(bytes, x)| Some((*bytes, (*x)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(_, factor)| *factor > MAX_NAMEABLE)?;
    Some(format!(
        "the links differ too much among themselves: only one that is {worst:.1} times slower would be named (at {} bytes)",
        Bytes(bytes)
    ))
}

/// Returns which component would have been named, for each size or as a range.
fn slower(what: &str, known: &[(u64, f64)]) -> String {
    let one = |(bytes, factor): &(u64, f64)| format!("{factor:.2} times slower at {} bytes", Bytes(*bytes));
    if known.len() <= 3 {
        return format!("a {what} {}", known.iter().map(one).collect::<Vec<_>>().join(", or "));
    }
    let factors = known.iter().map(|(_, factor)| *factor);
    let (low, high) = factors.fold((f64::MAX, 0f64), |(low, high), x| (low.min(x), high.max(x)));
    format!("a {what} {low:.2} to {high:.2} times slower, depending on the size,")
}
