//! Search for the simplest explanation of the times between few units: hosts, ranks or groups of hosts.
//!
//! With few hosts, two slow parts mask each other in medians: two slow hosts of five touch seven of ten links. The search fits
//! every set of at most two slow parts, each a unit or a link. It takes the smallest set to which no part can be added that
//! improves the fit significantly. Each part of a set must also be significant by itself.

use std::collections::{BTreeMap, BTreeSet};

use super::{MIN_FACTOR, MIN_SPREAD, MIN_UNITS, MISSED, outlying};

/// Largest number of units for which all sets are tried.
pub(super) const MAX_UNITS: usize = 8;
/// Probability of a false verdict on a healthy machine with normally distributed times. With six links, a lower one names
/// nothing that is real.
const LEVEL: f64 = 0.02;
/// Maximum number of slow parts.
const MAX_PARTS: usize = 2;
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
pub(super) enum Part {
    /// All links of a unit.
    Unit(u32),
    /// One link; the lower end first.
    Link([u32; 2]),
}

impl Part {
    pub(super) fn contains(self, ends: [u32; 2]) -> bool {
        match self {
            Part::Unit(unit) => ends.contains(&unit),
            Part::Link(link) => link == ends,
        }
    }
}

/// Slow parts with the logarithms of their factors, and the links that are left.
#[derive(Debug, Clone)]
pub(super) struct Explanation {
    pub(super) slow: Vec<(Part, f64)>,
    /// Standard deviation of the logarithm of an ordinary link.
    pub(super) spread: f64,
    /// Logarithm of the factor at which one more slow link is named with the probability 1 - [`MISSED`].
    pub(super) nameable: f64,
}

/// Least-squares fit of one set of slow parts.
struct Fit {
    /// Parts with the logarithms of their factors and their numbers of links.
    slow: Vec<(Part, f64, f64)>,
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
/// fewer than three partners. `sizes` is the number of message sizes that are tested; `row_error` is the standard error by
/// which the rows of a link disagree, below which no scatter is believed; `offsets` is the number of offsets that the times were
/// corrected by, each estimated from them.
pub(super) fn explain(
    pairs: &[PairTime],
    sizes: usize,
    row_error: f64,
    offsets: usize,
) -> Option<Explanation> {
    // Relative to the mean, so that sums of squares lose no digits.
    let mean = pairs.iter().map(|pair| pair.log).sum::<f64>() / pairs.len().max(1) as f64;
    let pairs: &[PairTime] =
        &pairs.iter().map(|pair| PairTime { log: pair.log - mean, ..*pair }).collect::<Vec<_>>();
    let units: BTreeSet<u32> = pairs.iter().flat_map(|pair| pair.ends).collect();
    let partners = |unit: u32| pairs.iter().filter(|pair| pair.ends.contains(&unit)).count();
    if units.len() < MIN_UNITS || units.iter().any(|unit| partners(*unit) < MIN_UNITS - 1) {
        return None;
    }
    let links = pairs.iter().map(|pair| Part::Link(pair.ends));
    let parts: Vec<Part> = units.iter().copied().map(Part::Unit).chain(links).collect();
    let limit = |df: usize, sets: usize| outlying::upper_quantile(df, LEVEL / (sizes.max(1) * sets) as f64);
    let least = MIN_SPREAD.max(row_error);
    let fit = |set: &[Part]| fit(pairs, set, least, offsets);
    let mut best = fit(&[])?;
    let mut sets: Vec<Vec<Part>> = vec![vec![]];
    for _ in 0..MAX_PARTS {
        let longer = |set: &Vec<Part>| {
            let from = set.last().and_then(|last| parts.iter().position(|part| part == last));
            let set = set.clone();
            parts[from.map_or(0, |at| at + 1)..].iter().map(move |next| [&set[..], &[*next]].concat())
        };
        sets = sets.iter().flat_map(longer).collect();
        let mut limits: BTreeMap<usize, f64> = BTreeMap::new();
        let mut of = |df| *limits.entry(df).or_insert_with(|| limit(df, sets.len()));
        let fits = sets.iter().filter_map(|set| fit(set));
        let mut significant: Vec<Fit> =
            fits.filter(|fit| fit.is_significant(pairs, of(fit.freedom))).collect();
        significant.sort_by(|a, b| a.squares.total_cmp(&b.squares));
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
    let limit = (limit(freedom, parts.len()) * error).max(MIN_FACTOR.ln());
    Some(Explanation {
        nameable: limit + outlying::upper_quantile(freedom, MISSED) * error,
        spread: best.spread,
        slow: best.slow.into_iter().map(|(part, log, _)| (part, log)).collect(),
    })
}

/// Fits a common level of ordinary links and a level of each slow part. The link between two slow hosts may have any time.
/// Returns `None` if too few links are left, or if a link is named beside its host.
fn fit(pairs: &[PairTime], parts: &[Part], least: f64, offsets: usize) -> Option<Fit> {
    let mut of_part = [Sums::default(); MAX_PARTS];
    let mut ordinary = Sums::default();
    let mut parameters = 1 + parts.len();
    for pair in pairs {
        let mut containing = (0..parts.len()).filter(|at| parts[*at].contains(pair.ends));
        match (containing.next(), containing.next()) {
            (None, _) => ordinary.add(pair.log),
            (Some(part), None) => of_part[part].add(pair.log),
            (Some(one), Some(other)) => {
                if [one, other].iter().any(|at| matches!(parts[*at], Part::Link(_))) {
                    return None;
                }
                parameters += 1;
            }
        }
    }
    let freedom = pairs.len().checked_sub(parameters + offsets).filter(|df| *df >= 2)?;
    if ordinary.n < MIN_ORDINARY {
        return None;
    }
    let level = ordinary.mean();
    let squares = of_part.iter().map(|of| of.deviations()).sum::<f64>() + ordinary.deviations();
    let slow = parts.iter().zip(of_part).map(|(part, of)| (*part, of.mean() - level, of.n)).collect();
    let spread = (squares / freedom as f64).sqrt().max(least);
    Some(Fit { slow, level, squares, parameters, ordinary: ordinary.n, freedom, spread })
}

impl Fit {
    /// Returns whether every part is slower by at least `limit` standard errors and by the smallest factor with a verdict,
    /// and whether every link of a slow unit is slow.
    fn is_significant(&self, pairs: &[PairTime], limit: f64) -> bool {
        self.slow.iter().all(|(part, excess, n)| {
            let variance = match part {
                Part::Link(_) => 1.0,
                // Half of the variance of healthy links may come from their hosts, and is then common to all links of one.
                Part::Unit(_) => 0.5 + 0.5 / n,
            };
            let error = self.spread * (variance + 1.0 / self.ordinary).sqrt();
            let mut own = pairs.iter().filter(|pair| part.contains(pair.ends));
            *excess >= MIN_FACTOR.ln().max(limit * error)
                && own.all(|pair| pair.log - self.level >= 0.5 * excess)
        })
    }
}
