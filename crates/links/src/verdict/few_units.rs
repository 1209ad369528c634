//! Slow parts of few units (hosts, ranks or groups of hosts), found by [`search`].

use std::collections::{BTreeMap, BTreeSet};

use ombx_estimate::percentiles::upper_quantile;
use ombx_record::{
    order::{sort, sort_by_value},
    unit::{Bytes, plural},
    verdict::Component,
};

use crate::verdict::{
    Hosts, Link, LinkTimes, MIN_FACTOR, MIN_SPREAD, MIN_UNITS, MISSED,
    detection::Detected,
    relative::{RelativeLink, Retested, Scope, median, relative_links},
};

/// Slow parts of few units.
pub(super) struct FewUnits {
    pub(super) found: Explanation,
    /// Whether the units are ranks: each host has one rank, or there is one host.
    pub(super) by_rank: bool,
    scope: Scope,
}

impl FewUnits {
    /// Returns `None` if these links are too few or too many for a search. Links of `known` components are left out.
    pub(super) fn new(
        times: &LinkTimes,
        hosts: &Hosts,
        scope: Scope,
        sizes: usize,
        known: &[(Component, f64)],
    ) -> Option<FewUnits> {
        let one_each = hosts.count() == hosts.ranks() as usize;
        let units = if scope.inside { hosts.ranks() as usize } else { hosts.unit_count(scope.level) };
        if units > MAX_UNITS || scope.inside && (hosts.count() > 1 || scope.level > 0) {
            return None;
        }
        let is_known = |l: &&Link| known.iter().any(|(part, _)| hosts.has_link(part, [l.from, l.to]));
        let links: Vec<Link> = times.sweep.iter().filter(|l| !is_known(l)).copied().collect();
        let (pairs, offsets) = pair_times(&links, hosts, scope);
        let errors = RowErrors::of(times);
        let found = explain(&pairs, sizes, errors, offsets)?;
        Some(FewUnits { found, by_rank: scope.inside || one_each && scope.level == 0, scope })
    }

    /// Tests only whether two of the hosts in `suspects` are slow. Returns `None` if they are not, or if the first search could tell.
    pub(super) fn among_suspects(
        times: &LinkTimes,
        hosts: &Hosts,
        sizes: usize,
        suspects: &BTreeSet<u32>,
    ) -> Option<FewUnits> {
        let scope = Scope { level: 0, inside: false };
        if !hides_two_hosts(hosts) {
            return None;
        }
        let (pairs, offsets) = pair_times(&times.sweep, hosts, scope);
        let found = explain_by(&pairs, sizes, RowErrors::of(times), offsets, suspects)?;
        Some(FewUnits { found, by_rank: hosts.count() == hosts.ranks() as usize, scope })
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
        let confirmed = |(part, log): &(SlowPart, f64)| {
            let own = || best.iter().filter(|l| self.scope.has(l.distance) && part.contains(ends(l)));
            let spread = if matches!(part, SlowPart::Link(_)) { self.found.spread } else { 0.0 };
            let log = if times.is_repeated {
                *log
            } else {
                again.confirms(own(), *log, spread * times.shortest_spreads())?
            };
            Some(match part {
                SlowPart::Unit(rank) if self.scope.inside => (Component::Rank(*rank), log),
                SlowPart::Unit(unit) => (self.scope.component(*unit), log),
                // Between units with several ranks, the links of ranks are tested one by one.
                SlowPart::Link(_) if !self.by_rank => return None,
                SlowPart::Link([a, b]) => {
                    let mut ways: Vec<&RelativeLink> = own().collect();
                    sort_by_value(&mut ways, |way| -way.log);
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

/// Returns whether two slow hosts would leave fewer links between the others than a search needs: whether there are just four.
pub(super) fn hides_two_hosts(hosts: &Hosts) -> bool {
    let others = hosts.count().saturating_sub(MAX_PARTS);
    let ordinary = others * others.saturating_sub(1) / 2;
    hosts.count() >= MIN_UNITS && (ordinary as f64) < MIN_ORDINARY
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
    sort(&mut logs);
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
pub(super) const MAX_NAMEABLE: f64 = 3.0;

/// Returns a clause on the smallest slow link and the smallest slow groups that would have been named.
pub(super) fn power_clause(detected: &[Detected], hosts: &Hosts) -> Option<String> {
    let known = of_links(detected);
    let links = (!known.is_empty()).then(|| {
        format!(
            "{} that is slow all the time would have been named with a probability of {:.0} %",
            slower("link", &known),
            100.0 * (1.0 - MISSED)
        )
    });
    let groups = (0..hosts.levels()).map(|level| {
        let of_level = |found: &Detected| Some((found.bytes, (*found.nameable_groups.get(level)?)?));
        let known: Vec<(u64, f64)> = detected.iter().filter_map(of_level).collect();
        if known.is_empty() {
            format!(
                "{} {} cannot be compared: at least {MIN_UNITS} are needed",
                hosts.unit_count(level + 1),
                plural(hosts.noun(level))
            )
        } else {
            format!("so would {}", slower(hosts.noun(level), &known))
        }
    });
    let all: Vec<String> = links.into_iter().chain(groups).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns the sizes and the factors at which a slow link would have been named.
fn of_links(detected: &[Detected]) -> Vec<(u64, f64)> {
    detected.iter().filter_map(|found| Some((found.bytes, found.nameable?))).collect()
}

/// Returns why links that scatter too much are no sign that nothing is slow.
pub(super) fn too_coarse(detected: &[Detected]) -> Option<String> {
    if detected.is_empty() {
        return Some("no link was measured".into());
    }
    if let Some(found) = detected.iter().find(|found| found.nameable.is_none()) {
        return Some(format!("single links cannot be compared (at {} bytes)", Bytes(found.bytes)));
    }
    let worst = of_links(detected).into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (bytes, worst) = worst.filter(|(_, factor)| *factor > MAX_NAMEABLE)?;
    Some(format!(
        "the links differ too much among themselves: only one that is {worst:.1} times slower would be \
         named (at {} bytes)",
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

/// Largest number of units for which all sets are tried.
pub(super) const MAX_UNITS: usize = 8;
/// Probability of a false verdict on a healthy machine with normally distributed times. With six links, a lower one names
/// nothing that is real.
const LEVEL: f64 = 0.02;
/// Maximum number of slow parts.
pub(super) const MAX_PARTS: usize = 2;
/// Minimum number of links that a set leaves as ordinary.
const MIN_ORDINARY: f64 = 3.0;

/// Logarithm of the time between two units.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairTime {
    pub(super) ends: [u32; 2],
    pub(super) log: f64,
}

/// Part that can be slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlowPart {
    /// All links of a unit.
    Unit(u32),
    /// One link; the lower end first.
    Link([u32; 2]),
}

impl SlowPart {
    pub(super) fn contains(self, ends: [u32; 2]) -> bool {
        match self {
            SlowPart::Unit(unit) => ends.contains(&unit),
            SlowPart::Link(link) => link == ends,
        }
    }
}

/// Slow parts with the logarithms of their factors, and the links that are left.
#[derive(Debug, Clone)]
pub(super) struct Explanation {
    pub(super) slow: Vec<(SlowPart, f64)>,
    /// Standard deviation of the logarithm of an ordinary link.
    pub(super) spread: f64,
    /// Logarithm of the factor at which one more slow link is named with the probability 1 - [`MISSED`].
    pub(super) nameable: f64,
}

/// Errors of rows, as logarithms.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowErrors {
    /// Standard error by which the rows of a link disagree, below which no scatter is believed.
    random: f64,
    /// What waiting for a CPU may have added to a row, see [`LinkTimes::decisive`].
    delay: f64,
}

impl RowErrors {
    fn of(times: &LinkTimes) -> RowErrors {
        RowErrors { random: times.row_error, delay: times.delay }
    }
}

/// Least-squares fit of one set of slow parts.
struct Fit {
    /// Parts with the logarithms of their factors and their numbers of links.
    slow: Vec<(SlowPart, f64, f64)>,
    /// Level of ordinary links.
    level: f64,
    squares: f64,
    parameters: usize,
    ordinary: f64,
    freedom: usize,
    spread: f64,
}

/// Number, sum and sum of squares of some values.
#[derive(Clone, Copy, Default)]
struct Sums {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, x: f64) {
        self.n += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    fn mean(self) -> f64 {
        self.sum / self.n.max(1.0)
    }

    /// Returns the sum of squared deviations from the mean.
    fn deviations(self) -> f64 {
        (self.squares - self.sum * self.mean()).max(0.0)
    }
}

/// Returns the simplest explanation, or `None` if the pairs cannot be compared: fewer than four units, or a unit with
/// fewer than three partners. `sizes` is the number of message sizes that are tested; `offsets` is the number of offsets that the times were
/// corrected by, each estimated from them.
pub(super) fn explain(
    pairs: &[PairTime],
    sizes: usize,
    errors: RowErrors,
    offsets: usize,
) -> Option<Explanation> {
    let pairs = &centred(pairs)[..];
    let units: BTreeSet<u32> = pairs.iter().flat_map(|pair| pair.ends).collect();
    let partners = |unit: u32| pairs.iter().filter(|pair| pair.ends.contains(&unit)).count();
    if units.len() < MIN_UNITS || units.iter().any(|unit| partners(*unit) < MIN_UNITS - 1) {
        return None;
    }
    let links = pairs.iter().map(|pair| SlowPart::Link(pair.ends));
    let parts: Vec<SlowPart> = units.iter().copied().map(SlowPart::Unit).chain(links).collect();
    let limit = |df: usize, sets: usize| upper_quantile(df, LEVEL / (sizes.max(1) * sets) as f64);
    let least = MIN_SPREAD.max(errors.random);
    let fit = |set: &[SlowPart]| fit(pairs, set, least, offsets, MIN_ORDINARY);
    let mut best = fit(&[])?;
    let mut sets: Vec<Vec<SlowPart>> = vec![vec![]];
    for _ in 0..MAX_PARTS {
        let longer = |set: &Vec<SlowPart>| {
            let from = set.last().and_then(|last| parts.iter().position(|part| part == last));
            let set = set.clone();
            parts[from.map_or(0, |at| at + 1)..].iter().map(move |next| [&set[..], &[*next]].concat())
        };
        sets = sets.iter().flat_map(longer).collect();
        let mut limits: BTreeMap<usize, f64> = BTreeMap::new();
        let mut of = |df| *limits.entry(df).or_insert_with(|| limit(df, sets.len()));
        let fits = sets.iter().filter_map(|set| fit(set));
        let mut significant: Vec<Fit> =
            fits.filter(|fit| fit.is_significant(pairs, of(fit.freedom), errors.delay)).collect();
        sort_by_value(&mut significant, |model| model.squares);
        if let Some(next) = significant.into_iter().next() {
            let more = next.parameters.saturating_sub(best.parameters).max(1) as f64;
            let improvement = (best.squares - next.squares) / (more * next.spread * next.spread);
            if improvement >= of(next.freedom).powi(2) {
                best = next;
            }
        }
    }
    // The slow link takes a degree of freedom, and no longer tells what is ordinary. Its own error is as large as that of the others,
    // which is estimated: hence a quantile of Student's t.
    let freedom = best.freedom.saturating_sub(1).max(1);
    let error = best.spread * (1.0 + 1.0 / (best.ordinary - 1.0).max(1.0)).sqrt();
    let limit = errors.delay + (limit(freedom, parts.len()) * error).max(MIN_FACTOR.ln());
    Some(Explanation {
        nameable: limit + upper_quantile(freedom, MISSED) * error,
        spread: best.spread,
        slow: best.slow.into_iter().map(|(part, log, _)| (part, log)).collect(),
    })
}

/// Returns the times relative to their mean, so that sums of squares lose no digits.
fn centred(pairs: &[PairTime]) -> Vec<PairTime> {
    let mean = pairs.iter().map(|pair| pair.log).sum::<f64>() / pairs.len().max(1) as f64;
    pairs.iter().map(|pair| PairTime { log: pair.log - mean, ..*pair }).collect()
}

/// Returns the explanation by two slow units of these, which were chosen before the times were looked at: one ordinary link is enough to
/// compare them with. It has a false verdict as often as [`explain`], because both share [`LEVEL`] among the sets that they try: the caller
/// counts each size twice. `None` if the times are no such case.
fn explain_by(
    pairs: &[PairTime],
    sizes: usize,
    errors: RowErrors,
    offsets: usize,
    suspects: &BTreeSet<u32>,
) -> Option<Explanation> {
    let pairs = &centred(pairs)[..];
    let suspects: Vec<u32> = suspects.iter().copied().collect();
    let sets = (0..suspects.len()).flat_map(|one| (one + 1..suspects.len()).map(move |other| [one, other]));
    let sets: Vec<[SlowPart; MAX_PARTS]> =
        sets.map(|set| set.map(|at| SlowPart::Unit(suspects[at]))).collect();
    let level = LEVEL / (sizes.max(1) * sets.len().max(1) * MAX_PARTS) as f64;
    let fits = sets.iter().filter_map(|set| fit(pairs, set, MIN_SPREAD.max(errors.random), offsets, 1.0));
    let significant =
        fits.filter(|fit| fit.is_significant(pairs, upper_quantile(fit.freedom, level), errors.delay));
    let best = significant.min_by(|a, b| a.squares.total_cmp(&b.squares))?;
    let slow = best.slow.into_iter().map(|(part, log, _)| (part, log)).collect();
    Some(Explanation { slow, spread: best.spread, nameable: f64::INFINITY })
}

/// Fits a common level of ordinary links and a level of each slow part. The link between two slow hosts may have any time.
/// Returns `None` if fewer than `min_ordinary` links are left, or if a link is named beside its host.
fn fit(pairs: &[PairTime], parts: &[SlowPart], least: f64, offsets: usize, min_ordinary: f64) -> Option<Fit> {
    let mut of_part = [Sums::default(); MAX_PARTS];
    let mut ordinary = Sums::default();
    let mut parameters = 1 + parts.len();
    for pair in pairs {
        let mut containing = (0..parts.len()).filter(|at| parts[*at].contains(pair.ends));
        match (containing.next(), containing.next()) {
            (None, _) => ordinary.add(pair.log),
            (Some(part), None) => of_part[part].add(pair.log),
            (Some(one), Some(other)) => {
                if [one, other].iter().any(|at| matches!(parts[*at], SlowPart::Link(_))) {
                    return None;
                }
                parameters += 1;
            }
        }
    }
    let freedom = pairs.len().checked_sub(parameters + offsets).filter(|df| *df >= 2)?;
    if ordinary.n < min_ordinary {
        return None;
    }
    let level = ordinary.mean();
    let squares = of_part.iter().map(|of| of.deviations()).sum::<f64>() + ordinary.deviations();
    let slow = parts.iter().zip(of_part).map(|(part, of)| (*part, of.mean() - level, of.n)).collect();
    let spread = (squares / freedom as f64).sqrt().max(least);
    Some(Fit { slow, level, squares, parameters, ordinary: ordinary.n, freedom, spread })
}

impl Fit {
    /// Returns whether every part is slower, by more than the logarithm `delay`, by at least `limit` standard errors and by the smallest
    /// factor with a verdict, and whether every link of a slow unit is slow.
    fn is_significant(&self, pairs: &[PairTime], limit: f64, delay: f64) -> bool {
        self.slow.iter().all(|(part, excess, n)| {
            let variance = match part {
                SlowPart::Link(_) => 1.0,
                // Half of the variance of healthy links may come from their hosts, and is then common to all links of one.
                SlowPart::Unit(_) => 0.5 + 0.5 / n,
            };
            let error = self.spread * (variance + 1.0 / self.ordinary).sqrt();
            let mut own = pairs.iter().filter(|pair| part.contains(pair.ends));
            excess - delay >= MIN_FACTOR.ln().max(limit * error)
                && own.all(|pair| pair.log - self.level >= 0.5 * excess)
        })
    }
}
