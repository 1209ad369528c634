//! Hodges-Lehmann estimate of the shift between two groups, and its distribution-free interval. Groups may consist of several
//! strata: values are compared within a stratum only (van Elteren).

use std::{collections::HashMap, f64::consts::FRAC_1_SQRT_2};

use ombx_record::{
    order::{sort, sort_by_value},
    random::SplitMix64,
    stats::median,
};

use crate::comparison::Unit;

/// Probability on each side of a 90 % interval.
pub(crate) const TAIL: f64 = 0.05;
/// Maximum number of pairs for the exact distribution of the rank sum. Larger groups use the normal approximation.
const COUNTED: usize = 10_000;

/// Values of two groups in one stratum.
pub(crate) type Stratum = [Vec<f64>; 2];

/// Differences of all pairs of values in a stratum, from the first group to the second, in ascending order.
pub(crate) struct Shifts(Vec<f64>);

impl Shifts {
    pub(crate) fn new(strata: &[Stratum]) -> Shifts {
        let pairs =
            |[a, b]: &Stratum| a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect::<Vec<_>>();
        let mut all: Vec<f64> = strata.iter().flat_map(pairs).collect();
        sort(&mut all);
        Shifts(all)
    }

    /// Returns the median of the differences; `None` if no stratum has values of both groups.
    pub(crate) fn estimate(&self) -> Option<f64> {
        median(&self.0)
    }

    /// Returns the 90 % interval of the shift, which consists of the shifts that the Mann-Whitney test of all strata together does not
    /// reject. `rank` is that of the sizes of the groups. Returns `None` if the groups are too small.
    pub(crate) fn interval(&self, rank: usize) -> Option<[f64; 2]> {
        (rank > 0).then(|| [self.0[rank - 1], self.0[self.0.len() - rank]])
    }
}

/// Ranks of the ends of intervals, by the sizes of the groups. Most cases of a comparison have the same sizes.
#[derive(Default)]
pub(crate) struct Ranks(HashMap<Vec<[usize; 2]>, usize>);

impl Ranks {
    pub(crate) fn rank(&mut self, strata: &[Stratum]) -> usize {
        let sizes: Vec<_> = strata.iter().map(|stratum| stratum.each_ref().map(Vec::len)).collect();
        *self.0.entry(sizes).or_insert_with_key(|sizes| rank(sizes, TAIL))
    }
}

/// Returns the rank, from 1, of the difference that is the lower end of the interval whose tails have this probability. 0 if there is
/// none.
pub(crate) fn rank(sizes: &[[usize; 2]], tail: f64) -> usize {
    RankSum::of_groups(sizes).rank(tail)
}

/// Distribution of the statistic of a test by ranks without a difference.
pub(crate) enum RankSum {
    /// Probability of at most each count, from 0.
    Exact(Vec<f64>),
    /// Mean and standard deviation of a normal approximation.
    Normal { mean: f64, deviation: f64 },
}

impl RankSum {
    /// Returns the distribution of the Mann-Whitney count of groups in strata: of pairs whose second value is smaller.
    pub(crate) fn of_groups(sizes: &[[usize; 2]]) -> RankSum {
        let pairs: usize = sizes.iter().map(|[a, b]| a * b).sum();
        if pairs > COUNTED {
            let variance: f64 = sizes.iter().map(|[a, b]| (a * b * (a + b + 1)) as f64 / 12.0).sum();
            return RankSum::Normal { mean: pairs as f64 / 2.0, deviation: variance.sqrt() };
        }
        // Number of arrangements for each count: a product of Gaussian binomial coefficients.
        let mut ways = vec![0.0; pairs + 1];
        ways[0] = 1.0;
        for [a, b] in sizes {
            for i in 1..=*a {
                (b + i..=pairs).rev().for_each(|count| ways[count] -= ways[count - b - i]);
                (i..=pairs).for_each(|count| ways[count] += ways[count - i]);
            }
        }
        RankSum::exact(&ways)
    }

    /// Returns the distribution of Wilcoxon's sum of signed ranks of n differences.
    pub(crate) fn of_differences(n: usize) -> RankSum {
        let pairs = n * (n + 1) / 2;
        if pairs > COUNTED {
            let variance = (n * (n + 1) * (2 * n + 1)) as f64 / 24.0;
            return RankSum::Normal { mean: pairs as f64 / 2.0, deviation: variance.sqrt() };
        }
        // Number of choices of ranks for each sum.
        let mut ways = vec![0.0; pairs + 1];
        ways[0] = 1.0;
        for rank in 1..=n {
            (rank..=pairs).rev().for_each(|sum| ways[sum] += ways[sum - rank]);
        }
        RankSum::exact(&ways)
    }

    fn exact(ways: &[f64]) -> RankSum {
        let all: f64 = ways.iter().sum();
        let below = ways.iter().scan(0.0, |below, ways| {
            *below += ways / all;
            Some(*below)
        });
        RankSum::Exact(below.collect())
    }

    /// Returns how many of the first counts have at most the probability `tail` together.
    pub(crate) fn rank(&self, tail: f64) -> usize {
        match self {
            RankSum::Exact(below) => below.iter().take_while(|below| **below <= tail).count(),
            RankSum::Normal { mean, deviation } => {
                (mean - normal_quantile(1.0 - tail) * deviation).floor() as usize
            }
        }
    }

    /// Returns the probability of the first counts, of this number: the tail of the interval from this rank.
    pub(crate) fn tail(&self, rank: usize) -> f64 {
        match self {
            RankSum::Exact(below) => {
                rank.checked_sub(1).and_then(|last| below.get(last)).copied().unwrap_or(0.0)
            }
            RankSum::Normal { mean, deviation } => normal_below((rank as f64 - mean) / deviation),
        }
    }
}

/// Returns the probability of at most x, of a standard normal distribution.
fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// Returns the value below which a standard normal distribution has this probability, by bisection.
fn normal_quantile(probability: f64) -> f64 {
    let [mut low, mut high] = [-40.0, 40.0];
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if normal_below(middle) < probability { low = middle } else { high = middle }
    }
    high
}

impl Shifts {
    /// Returns the smallest tail whose interval lies within +-`edge`; 1 if there is none.
    pub(crate) fn smallest_tail_within(&self, edge: f64, ranks: &RankSum) -> f64 {
        let is_within =
            |rank: &usize| self.interval(*rank).is_some_and(|[low, high]| low > -edge && high < edge);
        (1..=self.0.len().div_ceil(2)).find(is_within).map_or(1.0, |rank| ranks.tail(rank))
    }
}

/// Returns p values that are corrected for their number (Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal
/// of Statistics 6, 1979).
pub(super) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    sort_by_value(&mut order, |at| p[*at]);
    let (mut corrected, mut most) = (vec![1.0; p.len()], 0.0_f64);
    for (done, at) in order.into_iter().enumerate() {
        most = most.max(p[at] * (p.len() - done) as f64).min(1.0);
        corrected[at] = most;
    }
    corrected
}

impl Shifts {
    /// Returns the means of all pairs of differences, each with itself too, in ascending order (Walsh averages).
    pub(crate) fn of_pairs(differences: &[f64]) -> Shifts {
        let pairs = differences
            .iter()
            .enumerate()
            .flat_map(|(at, x)| differences[at..].iter().map(move |y| (x + y) / 2.0));
        let mut all: Vec<f64> = pairs.collect();
        sort(&mut all);
        Shifts(all)
    }
}

/// Quantile of a normal distribution: the chance to find the smallest detectable difference is 81 %.
const POWER: f64 = 0.88;
/// Largest number of runs or turns per side that is suggested.
const MAX_UNITS: usize = 100;

/// Scatter of what is compared, as standard deviations of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scatter {
    /// Of the runs of each side.
    Runs(f64),
    /// Of the differences within turns.
    Turns(f64),
}

impl Scatter {
    /// Returns the scatter of both sides; `None` if it cannot be known.
    pub(super) fn of_runs(sides: [&[f64]; 2]) -> Option<Scatter> {
        let [a, b] = sides.map(squares);
        let freedom = (sides[0].len() + sides[1].len()).checked_sub(2).filter(|freedom| *freedom > 0)?;
        let has_both = sides.iter().all(|side| !side.is_empty());
        has_both.then(|| Scatter::Runs(((a + b) / freedom as f64).sqrt()))
    }

    /// Returns the scatter of differences; `None` for fewer than two.
    pub(super) fn of_turns(differences: &[f64]) -> Option<Scatter> {
        let freedom = differences.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
        Some(Scatter::Turns((squares(differences) / freedom as f64).sqrt()))
    }

    /// Returns the standard error of the difference of the sides with these numbers of runs or turns.
    fn error(self, [a, b]: [usize; 2]) -> f64 {
        match self {
            Scatter::Runs(deviation) => deviation * (1.0 / a as f64 + 1.0 / b as f64).sqrt(),
            Scatter::Turns(deviation) => deviation / (a.min(b) as f64).sqrt(),
        }
    }

    /// Returns how far beyond the margin a difference, a logarithm, must be so that these numbers of runs or turns show it, if a
    /// statistic of `critical` does.
    pub(super) fn shows(self, units: [usize; 2], critical: Critical) -> f64 {
        let Critical { statistic, floor } = critical;
        (statistic + POWER) * self.error(units).hypot(floor)
    }

    /// Returns the smallest number per side, from `least` on, that shows a difference this far beyond the margin, if these numbers have this
    /// critical statistic. `None` if it is above 100.
    pub(super) fn units_for(
        self,
        beyond: f64,
        units: [usize; 2],
        critical: Critical,
        least: usize,
    ) -> Option<usize> {
        let Critical { statistic, floor } = critical;
        // The largest mean by chance, and its scatter, shrink with the square root of the number.
        let now = statistic * self.error(units).hypot(floor) + POWER * self.error(units);
        let shown = |n: usize| match now {
            0.0 => 0.0,
            now => now * (self.error([n; 2]) / self.error(units)),
        };
        (least..=MAX_UNITS).find(|n| shown(*n) <= beyond)
    }
}

/// Statistic that no row of a comparison exceeds by chance, but with the accepted probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Critical {
    /// The statistic.
    pub(super) statistic: f64,
    /// Standard error that is added to that of each row, as a logarithm.
    pub(super) floor: f64,
}

fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Maximum number of choices of signs that are enumerated. Otherwise [`DRAWS`] are drawn.
const ENUMERATED: f64 = 1000.0;
const DRAWS: usize = 1999;
const SEED: u64 = 1;
/// Standard error that is added to that of each case, as a logarithm: the maximum must not belong to rows that hardly vary.
pub(super) const FLOOR: f64 = 0.01;
/// Part of a statistic by which two count as equal.
const ROUNDING: f64 = 1e-9;

/// Value of one case in each run or turn: those of the base, then those of the new side. `None` if it was not measured there.
pub(super) type Values = Vec<Option<f64>>;

/// Alternative hypothesis: direction of the difference that a test looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alternative {
    /// The new side is above the base by more than the shift.
    Above,
    /// The new side is below the base by more than the shift.
    Below,
    /// Either.
    Both,
}

/// Returns the p value of each case, adjusted for all cases, of the hypothesis that the new side is not above the base by more than
/// `shift`, not below it by more, or equal to it (then without a shift). The first `base` values belong to the base.
pub(super) fn permutation_test(
    cases: &[Values],
    base: usize,
    unit: Unit,
    alternative: Alternative,
    shift: f64,
) -> Tested {
    let sign = if alternative == Alternative::Below { -1.0 } else { 1.0 };
    let shift = if alternative == Alternative::Both { 0.0 } else { shift };
    let moved = |(at, value): (usize, &Option<f64>)| {
        value.map(|value| sign * value - if at >= base { shift } else { 0.0 })
    };
    let moved: Vec<Values> =
        cases.iter().map(|values| values.iter().enumerate().map(moved).collect()).collect();
    let sided = |statistic: f64| if alternative == Alternative::Both { statistic.abs() } else { statistic };
    match unit {
        Unit::Run => {
            let block = Deviations::new(&moved, base);
            adjusted(cases.len(), sided, |visit| {
                visit(&block.observed);
                each_exchange(block.by_run.len(), |exchanged| visit(&block.statistics(exchanged)));
            })
        }
        Unit::Turn => {
            let block = Differences::new(&moved, base);
            adjusted(cases.len(), sided, |visit| {
                each_exchange(base, |exchanged| visit(&block.statistics(exchanged)));
            })
        }
    }
}

/// What a permutation test finds.
pub(super) struct Tested {
    /// p value of each case, adjusted for all cases.
    pub(super) p: Vec<f64>,
    /// Largest statistic over all cases for every choice of signs, ascending.
    largest: Vec<f64>,
}

impl Tested {
    /// Returns the statistic that a case must reach for a p value of at most `level`; `None` if the choices of signs are too few.
    pub(super) fn critical(&self, level: f64) -> Option<f64> {
        let reached = (level * self.largest.len() as f64 + ROUNDING) as usize;
        let at = self.largest.len().checked_sub(reached).filter(|_| reached > 0)?;
        Some(self.largest[at]).filter(|statistic| statistic.is_finite())
    }
}

/// Returns adjusted p values. `each` visits the statistics of all cases, first as measured, then for every choice of signs.
fn adjusted(cases: usize, sided: impl Fn(f64) -> f64, each: impl FnOnce(&mut dyn FnMut(&[f64]))) -> Tested {
    let mut maxima = Vec::new();
    let (mut observed, mut order): (Vec<f64>, Vec<usize>) = (Vec::new(), (0..cases).collect());
    let (mut reached, mut all) = (vec![0usize; cases], 0usize);
    each(&mut |statistics| {
        if observed.is_empty() {
            observed = statistics.iter().map(|statistic| sided(*statistic)).collect();
            sort_by_value(&mut order, |case| observed[*case]);
        }
        all += 1;
        let mut largest = f64::NEG_INFINITY;
        for case in &order {
            largest = largest.max(sided(statistics[*case]));
            let level = observed[*case];
            reached[*case] += usize::from(largest >= level - level.abs() * ROUNDING);
        }
        maxima.push(largest);
    });
    sort(&mut maxima);
    let (mut p, mut least) = (vec![1.0; cases], 0.0_f64);
    for case in order.into_iter().rev() {
        least = least.max(reached[case] as f64 / all.max(1) as f64);
        p[case] = least;
    }
    Tested { p, largest: maxima }
}

/// Deviations of all cases from the mean of their side, by run, for Welch's statistic. Each list has an entry for each case, so that a CPU
/// computes several at a time.
struct Deviations {
    /// Multiplied by sqrt(n / (n - 1)), because deviations from a mean of n values are that much smaller; 0 without a value.
    by_run: Vec<Vec<f64>>,
    /// Number of runs of the base.
    base: usize,
    /// Sums of squares, and numbers of values, of both sides.
    squares: [Vec<f64>; 2],
    counts: [Vec<f64>; 2],
    /// Statistics as measured.
    observed: Vec<f64>,
}

impl Deviations {
    fn new(cases: &[Values], base: usize) -> Deviations {
        let runs = cases.first().map_or(0, Vec::len);
        let mut all = Deviations {
            by_run: vec![Vec::with_capacity(cases.len()); runs],
            base,
            squares: [Vec::new(), Vec::new()],
            counts: [Vec::new(), Vec::new()],
            observed: Vec::new(),
        };
        for values in cases {
            let mut means = [0.0; 2];
            for (side, part) in [&values[..base], &values[base..]].into_iter().enumerate() {
                let count = part.iter().flatten().count() as f64;
                let mean = part.iter().flatten().sum::<f64>() / count.max(1.0);
                let widen = (count / (count - 1.0).max(1.0)).sqrt();
                let deviations = part.iter().map(|value| value.map_or(0.0, |value| widen * (value - mean)));
                let deviations: Vec<f64> = deviations.collect();
                all.squares[side].push(deviations.iter().map(|x| x * x).sum());
                all.counts[side].push(count);
                let from = if side == 0 { 0 } else { base };
                all.by_run[from..].iter_mut().zip(deviations).for_each(|(list, x)| list.push(x));
                means[side] = mean;
            }
            let case = all.observed.len();
            let [a, b] = [0, 1].map(|side| {
                let n = all.counts[side][case];
                // Without the factor of the deviations.
                all.squares[side][case] * (n - 1.0) / n / (n - 1.0) / n
            });
            let is_known = all.counts.iter().all(|counts| counts[case] >= 2.0);
            let statistic = (means[1] - means[0]) / (a + b + FLOOR * FLOOR).sqrt();
            all.observed.push(if is_known { statistic } else { f64::NEG_INFINITY });
        }
        all
    }

    /// Returns the difference of the means over its standard error, without the assumption that both sides scatter alike (Welch), if these
    /// runs change their signs; negative infinity for a case of which a side has fewer than two values.
    fn statistics(&self, exchanged: &[bool]) -> Vec<f64> {
        let mut sums = [vec![0.0; self.observed.len()], vec![0.0; self.observed.len()]];
        for (at, (deviations, is_exchanged)) in self.by_run.iter().zip(exchanged).enumerate() {
            let sign = if *is_exchanged { -1.0 } else { 1.0 };
            let sums = &mut sums[usize::from(at >= self.base)];
            sums.iter_mut().zip(deviations).for_each(|(sum, x)| *sum += sign * x);
        }
        (0..self.observed.len()).map(|case| self.statistic(case, &sums)).collect()
    }

    /// Returns the statistic of a case from the sums of the deviations of both sides.
    fn statistic(&self, case: usize, sums: &[Vec<f64>; 2]) -> f64 {
        if self.counts.iter().any(|counts| counts[case] < 2.0) {
            return f64::NEG_INFINITY;
        }
        let of = |side: usize| {
            let (sum, n) = (sums[side][case], self.counts[side][case]);
            let variance = (self.squares[side][case] - sum * sum / n).max(0.0) / (n - 1.0);
            (sum / n, variance / n)
        };
        let ((a, of_a), (b, of_b)) = (of(0), of(1));
        (b - a) / (of_a + of_b + FLOOR * FLOOR).sqrt()
    }
}

/// Differences of all cases by turn. Each list has an entry for each case.
struct Differences {
    /// 0 for a turn in which a side has no value.
    by_turn: Vec<Vec<f64>>,
    squares: Vec<f64>,
    counts: Vec<f64>,
}

impl Differences {
    fn new(cases: &[Values], turns: usize) -> Differences {
        let mut all = Differences {
            by_turn: vec![Vec::with_capacity(cases.len()); turns],
            squares: Vec::new(),
            counts: Vec::new(),
        };
        for values in cases {
            let of = |turn: usize| values[turn].zip(values[turns + turn]).map(|(base, new)| new - base);
            let known = || (0..turns).filter_map(of);
            all.squares.push(known().map(|x| x * x).sum());
            all.counts.push(known().count() as f64);
            all.by_turn.iter_mut().enumerate().for_each(|(turn, list)| list.push(of(turn).unwrap_or(0.0)));
        }
        all
    }

    /// Returns the mean difference over its standard error; negative infinity for a case with fewer than two differences.
    fn statistics(&self, exchanged: &[bool]) -> Vec<f64> {
        let mut sums = vec![0.0; self.counts.len()];
        for (differences, is_exchanged) in self.by_turn.iter().zip(exchanged) {
            let sign = if *is_exchanged { -1.0 } else { 1.0 };
            sums.iter_mut().zip(differences).for_each(|(sum, x)| *sum += sign * x);
        }
        let cases = sums.iter().zip(&self.squares).zip(&self.counts);
        cases.map(|((sum, squares), count)| statistic_of_differences(*sum, *squares, *count)).collect()
    }
}

/// Returns the mean of differences over its standard error; negative infinity for fewer than two.
fn statistic_of_differences(sum: f64, squares: f64, count: f64) -> f64 {
    if count < 2.0 {
        return f64::NEG_INFINITY;
    }
    let mean = sum / count;
    let variance = (squares / count - mean * mean).max(0.0) / (count - 1.0);
    mean / (variance + FLOOR * FLOOR).sqrt()
}

/// Calls `visit` with which runs or turns change their sign: none, and all other choices if these are few, else random ones.
fn each_exchange(turns: usize, mut visit: impl FnMut(&[bool])) {
    let mut exchanged = vec![false; turns];
    if 2.0_f64.powi(turns as i32) <= ENUMERATED {
        for choice in 0u32..1 << turns {
            exchanged.iter_mut().enumerate().for_each(|(turn, is)| *is = choice >> turn & 1 == 1);
            visit(&exchanged);
        }
        return;
    }
    visit(&exchanged);
    let mut random = SplitMix64(SEED);
    for _ in 0..DRAWS {
        exchanged.iter_mut().for_each(|is| *is = random.next_u64() >> 63 == 1);
        visit(&exchanged);
    }
}

#[cfg(test)]
mod permutation_tests {
    use crate::shift::*;

    #[test]
    fn few_choices_of_signs_are_enumerated_and_many_are_drawn() {
        for (turns, count) in [(6, 64), (9, 512), (10, DRAWS + 1)] {
            let mut all = Vec::new();
            each_exchange(turns, |exchanged| all.push(exchanged.to_vec()));
            assert!(all.len() == count && all[0].iter().all(|is| !is));
        }
    }

    fn apart(step: f64, units: usize) -> Values {
        let value = |at: usize| (at % units * 7 % units) as f64 * 0.01;
        (0..2 * units).map(|at| Some(value(at) + if at >= units { step } else { 0.0 })).collect()
    }

    fn p(cases: &[Values], base: usize, unit: Unit, alternative: Alternative, shift: f64) -> Vec<f64> {
        permutation_test(cases, base, unit, alternative, shift).p
    }

    #[test]
    fn sides_that_are_apart_have_the_smallest_p_value() {
        // All choices of signs, and the values as measured.
        assert_eq!(p(&[apart(0.5, 4)], 4, Unit::Run, Alternative::Both, 0.0), [1.0 / 257.0]);
        assert_eq!(p(&[apart(0.5, 4)], 4, Unit::Run, Alternative::Above, 0.05), [1.0 / 257.0]);
        assert_eq!(p(&[apart(-0.5, 4)], 4, Unit::Run, Alternative::Below, 0.05), [1.0 / 257.0]);
        assert_eq!(p(&[apart(-0.5, 6)], 6, Unit::Turn, Alternative::Below, 0.05), [1.0 / 64.0]);
        assert!(p(&[apart(0.5, 6)], 6, Unit::Turn, Alternative::Below, 0.05)[0] > 0.9);
        let drawn = p(&[apart(0.5, 8)], 8, Unit::Run, Alternative::Above, 0.05)[0];
        assert!(drawn <= 1.0 / f64::from(DRAWS as u32), "{drawn}");
        assert!(p(&[], 0, Unit::Run, Alternative::Both, 0.0).is_empty());
    }

    #[test]
    fn a_statistic_that_is_critical_has_the_p_value() {
        let tested = |units: usize| {
            permutation_test(&[apart(0.0, units)], units, Unit::Turn, Alternative::Above, 0.05)
        };
        let Tested { largest, .. } = tested(6);
        assert_eq!(largest.len(), 64);
        // 3 of 64 choices are at most 5 %, and 1 is at most 2.5 %.
        assert_eq!(
            [0.05, 0.025].map(|level| tested(6).critical(level)),
            [Some(largest[61]), Some(largest[63])]
        );
        assert_eq!(tested(4).critical(0.05), None);
    }

    #[test]
    fn a_difference_that_is_the_margin_is_not_beyond_it() {
        let noise = |seed: u64| -> Values {
            let mut random = SplitMix64(seed);
            let value =
                |at: usize| 0.05 * f64::from(u8::from(at >= 6)) + (random.next_u64() >> 40) as f64 / 5e8;
            (0..12).map(value).map(Some).collect()
        };
        let seldom = |unit: Unit| {
            (0..200).filter(|seed| p(&[noise(*seed)], 6, unit, Alternative::Above, 0.05)[0] <= 0.05).count()
        };
        // 10 of 200 are expected, with a standard deviation of 3.1.
        for unit in [Unit::Run, Unit::Turn] {
            assert!((2..=20).contains(&seldom(unit)), "{unit:?}: {}", seldom(unit));
        }
    }

    #[test]
    fn more_cases_raise_the_p_value_and_order_does_not_matter() {
        let one = p(&[apart(0.03, 6)], 6, Unit::Run, Alternative::Both, 0.0)[0];
        let noise = |seed: u64| -> Values {
            let mut random = SplitMix64(seed);
            (0..12).map(|_| Some((random.next_u64() >> 40) as f64 / 1e8)).collect()
        };
        let mut cases: Vec<Values> = (0..20).map(noise).collect();
        cases.push(apart(0.03, 6));
        let several = p(&cases, 6, Unit::Run, Alternative::Both, 0.0);
        assert!(several[20] > one, "{} {one}", several[20]);
        cases.rotate_left(7);
        let mut rotated = several.clone();
        rotated.rotate_left(7);
        assert_eq!(p(&cases, 6, Unit::Run, Alternative::Both, 0.0), rotated);
    }

    #[test]
    fn missing_and_constant_values_are_no_error() {
        let mut gaps = apart(0.5, 6);
        (gaps[0], gaps[7]) = (None, None);
        let constant = vec![Some(1.0); 12];
        let none = vec![None; 12];
        for unit in [Unit::Run, Unit::Turn] {
            let found = p(&[gaps.clone(), constant.clone(), none.clone()], 6, unit, Alternative::Above, 0.0);
            assert!(found[0] < 0.08 && found[1] == 1.0 && found[2] == 1.0, "{found:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::shift::*;

    #[test]
    fn ranks_match_the_table_of_the_test() {
        // Critical values of U, one-sided 5 %, are one smaller: 1, 4, 7, 21, 138, 6; three and two have none.
        for (a, b, expected) in
            [(3, 2, 0), (4, 4, 2), (5, 5, 5), (6, 6, 8), (9, 9, 22), (20, 20, 139), (4, 9, 7)]
        {
            assert_eq!((rank(&[[a, b]], TAIL), rank(&[[b, a]], TAIL)), (expected, expected), "{a} and {b}");
        }
    }

    #[test]
    fn the_count_and_the_normal_approximation_agree() {
        let spread = (2500.0_f64 * 101.0 / 12.0).sqrt();
        let normal = 1250.0 - 1.6449 * spread;
        assert!((rank(&[[50, 50]], TAIL) as f64 - normal).abs() < 2.0);
        assert!((rank(&[[100, 100]], TAIL) as f64 - rank(&[[101, 101]], TAIL) as f64).abs() < 100.0);
    }

    /// Abramowitz and Stegun, tables 26.1 and 26.5; the last two by the asymptotic series 26.2.12.
    #[test]
    fn the_normal_distribution_has_its_known_values() {
        for (x, below) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (1.959_963_984_540_054, 0.975),
            (2.575_829_303_548_901, 0.995),
            (-1.644_853_626_951_473, 0.05),
            (-5.0, 2.866_515_718_791_94e-7),
            (-10.0, 7.619_853_024_160_6e-24),
        ] {
            assert!((normal_below(x) / below - 1.0).abs() < 1e-12, "{x}: {}", normal_below(x));
            assert!((normal_quantile(below) - x).abs() < 1e-12, "{below}: {}", normal_quantile(below));
        }
    }

    #[test]
    fn the_interval_contains_the_estimate() {
        let (a, b) = (vec![1.0, 2.0, 4.0, 8.0], vec![11.0, 12.0, 14.0, 18.0]);
        let all = [[a.clone(), b.clone()]];
        let found = |strata: &[Stratum]| {
            let shifts = Shifts::new(strata);
            (shifts.estimate(), shifts.interval(Ranks::default().rank(strata)))
        };
        // Sorted differences: 3 4 6 7 8 9 10 10 10 10 11 12 13 14 16 17.
        assert_eq!(found(&all), (Some(10.0), Some([4.0, 16.0])));
        assert_eq!(found(&[[a[..2].to_vec(), b[..3].to_vec()]]).1, None);
        assert_eq!(found(&[[vec![], b]]), (None, None));
    }

    #[test]
    fn signed_ranks_match_the_table_of_the_test() {
        // Critical values of the rank sum, one-sided 5 %, are one smaller: 0, 2, 8, 17, 60; four have none.
        for (n, expected) in [(4, 0), (5, 1), (6, 3), (9, 9), (12, 18), (20, 61)] {
            assert_eq!(RankSum::of_differences(n).rank(TAIL), expected, "{n}");
        }
        assert_eq!(RankSum::of_differences(6).rank(0.025), 1);
        let shifts = Shifts::of_pairs(&[1.0, 2.0, 6.0]);
        assert_eq!((shifts.estimate(), shifts.interval(1)), (Some(2.75), Some([1.0, 6.0])));
    }

    #[test]
    fn strata_are_compared_within_themselves() {
        // The second stratum is far above the first, and most of the second group is in it.
        let slow = |values: &[f64]| values.iter().map(|x| x + 100.0).collect::<Vec<f64>>();
        let strata = [
            [vec![1.0, 2.0, 4.0, 8.0, 3.0, 5.0, 7.0], vec![16.0]],
            [slow(&[3.0, 5.0]), slow(&[11.0, 12.0, 14.0, 18.0, 13.0, 15.0])],
        ];
        let shifts = Shifts::new(&strata);
        assert_eq!(shifts.estimate(), Some(10.0));
        let [low, high] = shifts.interval(Ranks::default().rank(&strata)).unwrap();
        assert!(5.0 < low && low < 10.0 && 10.0 < high && high < 15.0, "{low} {high}");
        // 8 and 28 arrangements: the two extreme ones have a probability of 1 in 224 each, below 5 %.
        assert!((1..=4).contains(&rank(&[[7, 1], [2, 6]], TAIL)));
        assert_eq!(rank(&[[4, 4], [0, 3]], TAIL), rank(&[[4, 4]], TAIL));
    }

    #[test]
    fn differences_and_numbers_match_values_computed_by_hand() {
        let scatter = Scatter::of_runs([&[1.0, 2.0, 3.0], &[4.0, 6.0, 8.0]]).unwrap();
        assert_eq!(scatter, Scatter::Runs(2.5_f64.sqrt()));
        assert_eq!((Scatter::of_runs([&[1.0], &[2.0]]), Scatter::of_turns(&[1.0])), (None, None));
        let critical = Critical { statistic: 2.0, floor: 0.0 };
        let runs = Scatter::Runs(0.17).shows([6, 6], critical);
        assert!((runs - 2.88 * 0.17 * (2.0_f64 / 6.0).sqrt()).abs() < 1e-9, "{runs}");
        let turns = Scatter::of_turns(&[-0.1, 0.1]).unwrap();
        assert!(matches!(turns, Scatter::Turns(s) if (s - 0.02_f64.sqrt()).abs() < 1e-12));
        let floored = Scatter::Turns(0.04).shows([16, 16], Critical { floor: 0.01, ..critical });
        assert!((floored - 2.88 * 0.01 * 2.0_f64.sqrt()).abs() < 1e-9, "{floored}");
        let units = |scatter: Scatter, beyond: f64| scatter.units_for(beyond, [9, 9], critical, 6);
        assert_eq!([Scatter::Runs(0.0), Scatter::Turns(0.0)].map(|s| units(s, 0.05)), [Some(6), Some(6)]);
        let n = units(Scatter::Runs(0.05), 0.05).unwrap();
        let shows = |n: usize| Scatter::Runs(0.05).shows([n, n], critical);
        assert!(shows(n) <= 0.05 && shows(n - 1) > 0.05);
        assert_eq!(units(Scatter::Runs(1.0), 0.05), None);
    }

    #[test]
    fn p_values_of_several_are_corrected() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert!(holm(&[]).is_empty());
        let ranks = RankSum::of_differences(6);
        assert_eq!((ranks.tail(0), ranks.tail(1), ranks.tail(3)), (0.0, 1.0 / 64.0, 3.0 / 64.0));
        assert_eq!(ranks.rank(ranks.tail(3)), 3);
        let shifts = Shifts::of_pairs(&[-0.03, -0.02, -0.01, 0.01, 0.02, 0.06]);
        assert_eq!(shifts.smallest_tail_within(0.1, &ranks), 1.0 / 64.0);
        // The largest means are 0.06 and 0.04.
        assert_eq!(shifts.smallest_tail_within(0.05, &ranks), 2.0 / 64.0);
        assert_eq!(shifts.smallest_tail_within(0.0, &ranks), 1.0);
    }
}
