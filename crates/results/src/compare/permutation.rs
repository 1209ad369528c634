//! Test of all cases together by random signs: the step-down maximum statistic of Westfall and Young.
//!
//! The deviations of whole runs from the mean of their side, or the differences of whole turns, change their signs, and every case of
//! them. What the cases of a run share therefore stays together, and each side keeps its own scatter: relabelling runs would mix a side that
//! scatters widely with one that does not, and then calls too many equal sides different. A margin is tested by shifting the new side by it.

use super::comparison::Unit;

/// Maximum number of choices of signs that are enumerated. Otherwise [`DRAWS`] are drawn.
const ENUMERATED: f64 = 1000.0;
const DRAWS: usize = 1999;
const SEED: u64 = 1;
/// Standard error that is added to that of each case, as a logarithm: the maximum must not belong to rows that hardly vary.
const FLOOR: f64 = 0.01;
/// Part of a statistic by which two count as equal.
const ROUNDING: f64 = 1e-9;

/// Value of one case in each run or turn: those of the base, then those of the new side. `None` if it was not measured there.
pub(super) type Values = Vec<Option<f64>>;

/// Direction of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The new side is above the base by more than the shift.
    Above,
    /// The new side is below the base by more than the shift.
    Below,
    /// Either.
    Both,
}

/// Returns the p value of each case, adjusted for all cases, of the hypothesis that the new side is not above the base by more than
/// `shift`, not below it by more, or equal to it (then without a shift). The first `base` values belong to the base.
pub(super) fn test(cases: &[Values], base: usize, unit: Unit, side: Side, shift: f64) -> Vec<f64> {
    let sign = if side == Side::Below { -1.0 } else { 1.0 };
    let shift = if side == Side::Both { 0.0 } else { shift };
    let moved = |(at, value): (usize, &Option<f64>)| {
        value.map(|value| sign * value - if at >= base { shift } else { 0.0 })
    };
    let moved: Vec<Values> =
        cases.iter().map(|values| values.iter().enumerate().map(moved).collect()).collect();
    let sided = |statistic: f64| if side == Side::Both { statistic.abs() } else { statistic };
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

/// Returns adjusted p values. `each` visits the statistics of all cases, first as measured, then for every choice of signs.
fn adjusted(cases: usize, sided: impl Fn(f64) -> f64, each: impl FnOnce(&mut dyn FnMut(&[f64]))) -> Vec<f64> {
    let (mut observed, mut order): (Vec<f64>, Vec<usize>) = (Vec::new(), (0..cases).collect());
    let (mut reached, mut all) = (vec![0usize; cases], 0usize);
    each(&mut |statistics| {
        if observed.is_empty() {
            observed = statistics.iter().map(|statistic| sided(*statistic)).collect();
            order.sort_by(|a, b| observed[*a].total_cmp(&observed[*b]));
        }
        all += 1;
        let mut largest = f64::NEG_INFINITY;
        for case in &order {
            largest = largest.max(sided(statistics[*case]));
            let level = observed[*case];
            reached[*case] += usize::from(largest >= level - level.abs() * ROUNDING);
        }
    });
    let (mut p, mut least) = (vec![1.0; cases], 0.0_f64);
    for case in order.into_iter().rev() {
        least = least.max(reached[case] as f64 / all.max(1) as f64);
        p[case] = least;
    }
    p
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
        let of = |side: usize, case: usize| {
            let (sum, n) = (sums[side][case], self.counts[side][case]);
            let variance = (self.squares[side][case] - sum * sum / n).max(0.0) / (n - 1.0);
            (sum / n, variance / n)
        };
        let statistic = |case: usize| {
            if self.counts.iter().any(|counts| counts[case] < 2.0) {
                return f64::NEG_INFINITY;
            }
            let ((a, of_a), (b, of_b)) = (of(0, case), of(1, case));
            (b - a) / (of_a + of_b + FLOOR * FLOOR).sqrt()
        };
        (0..self.observed.len()).map(statistic).collect()
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
        let statistic = |((sum, squares), count): ((&f64, &f64), &f64)| {
            if *count < 2.0 {
                return f64::NEG_INFINITY;
            }
            let mean = sum / count;
            let variance = (squares / count - mean * mean).max(0.0) / (count - 1.0);
            mean / (variance + FLOOR * FLOOR).sqrt()
        };
        sums.iter().zip(&self.squares).zip(&self.counts).map(statistic).collect()
    }
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
    let mut random = Random(SEED);
    for _ in 0..DRAWS {
        exchanged.iter_mut().for_each(|is| *is = random.next() >> 63 == 1);
        visit(&exchanged);
    }
}

/// `SplitMix64` (Steele, Lea and Flood).
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Returns 64 random bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn p(cases: &[Values], base: usize, unit: Unit, side: Side, shift: f64) -> Vec<f64> {
        test(cases, base, unit, side, shift)
    }

    #[test]
    fn sides_that_are_apart_have_the_smallest_p_value() {
        // All choices of signs, and the values as measured.
        assert_eq!(p(&[apart(0.5, 4)], 4, Unit::Run, Side::Both, 0.0), [1.0 / 257.0]);
        assert_eq!(p(&[apart(0.5, 4)], 4, Unit::Run, Side::Above, 0.05), [1.0 / 257.0]);
        assert_eq!(p(&[apart(-0.5, 4)], 4, Unit::Run, Side::Below, 0.05), [1.0 / 257.0]);
        assert_eq!(p(&[apart(-0.5, 6)], 6, Unit::Turn, Side::Below, 0.05), [1.0 / 64.0]);
        assert!(p(&[apart(0.5, 6)], 6, Unit::Turn, Side::Below, 0.05)[0] > 0.9);
        let drawn = p(&[apart(0.5, 8)], 8, Unit::Run, Side::Above, 0.05)[0];
        assert!(drawn <= 1.0 / f64::from(DRAWS as u32), "{drawn}");
        assert!(p(&[], 0, Unit::Run, Side::Both, 0.0).is_empty());
    }

    #[test]
    fn a_difference_that_is_the_margin_is_not_beyond_it() {
        let noise = |seed: u64| -> Values {
            let mut random = Random(seed);
            let value = |at: usize| 0.05 * f64::from(u8::from(at >= 6)) + (random.next() >> 40) as f64 / 5e8;
            (0..12).map(value).map(Some).collect()
        };
        let seldom = |unit: Unit| {
            (0..200).filter(|seed| p(&[noise(*seed)], 6, unit, Side::Above, 0.05)[0] <= 0.05).count()
        };
        // 10 of 200 are expected, with a standard deviation of 3.1.
        for unit in [Unit::Run, Unit::Turn] {
            assert!((2..=20).contains(&seldom(unit)), "{unit:?}: {}", seldom(unit));
        }
    }

    #[test]
    fn more_cases_raise_the_p_value_and_order_does_not_matter() {
        let one = p(&[apart(0.03, 6)], 6, Unit::Run, Side::Both, 0.0)[0];
        let noise = |seed: u64| -> Values {
            let mut random = Random(seed);
            (0..12).map(|_| Some((random.next() >> 40) as f64 / 1e8)).collect()
        };
        let mut cases: Vec<Values> = (0..20).map(noise).collect();
        cases.push(apart(0.03, 6));
        let several = p(&cases, 6, Unit::Run, Side::Both, 0.0);
        assert!(several[20] > one, "{} {one}", several[20]);
        cases.rotate_left(7);
        let mut rotated = several.clone();
        rotated.rotate_left(7);
        assert_eq!(p(&cases, 6, Unit::Run, Side::Both, 0.0), rotated);
    }

    #[test]
    fn missing_and_constant_values_are_no_error() {
        let mut gaps = apart(0.5, 6);
        (gaps[0], gaps[7]) = (None, None);
        let constant = vec![Some(1.0); 12];
        let none = vec![None; 12];
        for unit in [Unit::Run, Unit::Turn] {
            let found = p(&[gaps.clone(), constant.clone(), none.clone()], 6, unit, Side::Above, 0.0);
            assert!(found[0] < 0.08 && found[1] == 1.0 && found[2] == 1.0, "{found:?}");
        }
    }
}
