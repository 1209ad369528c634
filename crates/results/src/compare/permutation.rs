//! Permutation test of all cases together: the step-down maximum statistic of Westfall and Young.
//!
//! Whole runs or turns are relabelled, and every case of them. What the cases of a run share therefore stays together, and no
//! assumption about the distribution of runs is needed. A margin is tested by shifting the new side by it before relabelling.

use super::comparison::Unit;

/// Maximum number of relabellings that are enumerated. Otherwise [`DRAWS`] are drawn.
const ENUMERATED: f64 = 1000.0;
const DRAWS: usize = 9999;
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
            let block = Groups::new(&moved);
            let labels: Vec<bool> = (0..moved.first().map_or(0, Vec::len)).map(|at| at >= base).collect();
            adjusted(cases.len(), sided, |visit| {
                each_arrangement(labels, |labels| visit(&block.statistics(labels)));
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

/// Returns adjusted p values. `each` visits the statistics of all cases for every relabelling, first for the labels as measured.
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

/// Values of all cases by run, for Welch's statistic. Each list has an entry for each case, so that a CPU computes several at a time.
struct Groups {
    /// Deviations from the mean of the case; 0 without a value.
    deviations: Vec<Vec<f64>>,
    /// 1 with a value, else 0.
    present: Vec<Vec<f64>>,
    squares: Vec<f64>,
    counts: Vec<f64>,
}

impl Groups {
    fn new(cases: &[Values]) -> Groups {
        let runs = cases.first().map_or(0, Vec::len);
        let mut all = Groups {
            deviations: vec![Vec::with_capacity(cases.len()); runs],
            present: vec![Vec::with_capacity(cases.len()); runs],
            squares: Vec::new(),
            counts: Vec::new(),
        };
        for values in cases {
            let known = || values.iter().flatten();
            let count = known().count() as f64;
            let mean = known().sum::<f64>() / count.max(1.0);
            all.squares.push(known().map(|value| (value - mean).powi(2)).sum());
            all.counts.push(count);
            for (at, value) in values.iter().enumerate() {
                all.deviations[at].push(value.map_or(0.0, |value| value - mean));
                all.present[at].push(if value.is_some() { 1.0 } else { 0.0 });
            }
        }
        all
    }

    /// Returns the difference of the means of both sides over its standard error, without the assumption that they scatter alike
    /// (Welch); negative infinity for a case of which a side has fewer than two values.
    fn statistics(&self, labels: &[bool]) -> Vec<f64> {
        let cases = self.counts.len();
        let (mut sums, mut squares, mut counts) = (vec![0.0; cases], vec![0.0; cases], vec![0.0; cases]);
        for (at, _) in labels.iter().enumerate().filter(|(_, is_new)| **is_new) {
            let values = self.deviations[at].iter().zip(&self.present[at]);
            for (((sum, square), count), (x, one)) in
                sums.iter_mut().zip(&mut squares).zip(&mut counts).zip(values)
            {
                *sum += x;
                *square += x * x;
                *count += one;
            }
        }
        let of_new = sums.iter().zip(&squares).zip(&counts);
        let all = self.squares.iter().zip(&self.counts);
        let statistic =
            |(((sum, square), count), (all_squares, all_counts)): (((&f64, &f64), &f64), (&f64, &f64))| {
                let others = all_counts - count;
                if count.min(others) < 2.0 {
                    return f64::NEG_INFINITY;
                }
                // The deviations of both sides add up to 0.
                let difference = sum / count + sum / others;
                let error =
                    |square: f64, count: f64| (square - sum * sum / count).max(0.0) / (count - 1.0) / count;
                let variance = error(*square, *count) + error(all_squares - square, others);
                difference / (variance + FLOOR * FLOOR).sqrt()
            };
        of_new.zip(all).map(statistic).collect()
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

/// Calls `visit` with the labels as measured and all other arrangements of them if these are few, else with random ones.
fn each_arrangement(mut labels: Vec<bool>, mut visit: impl FnMut(&[bool])) {
    let new = labels.iter().filter(|label| **label).count();
    if ways(labels.len(), new) <= ENUMERATED {
        // The labels as measured are the first in lexical order.
        loop {
            visit(&labels);
            if !next_arrangement(&mut labels) {
                return;
            }
        }
    }
    visit(&labels);
    let mut random = Random(SEED);
    for _ in 0..DRAWS {
        (1..labels.len()).for_each(|at| labels.swap(at, (random.next() % (at as u64 + 1)) as usize));
        visit(&labels);
    }
}

/// Calls `visit` with which turns are exchanged: none, and all other choices if these are few, else random ones.
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

/// Makes the next arrangement of labels in lexical order. Returns whether there is one.
fn next_arrangement(labels: &mut [bool]) -> bool {
    // The last `false` before a `true` becomes `true`.
    let Some(at) = (1..labels.len()).rev().find(|at| !labels[at - 1] && labels[*at]) else { return false };
    labels[at - 1..].sort_unstable();
    let first = at - 1 + labels[at - 1..].iter().take_while(|label| !**label).count();
    labels.swap(at - 1, first);
    true
}

/// Returns the number of ways to choose `few` of `all`.
fn ways(all: usize, few: usize) -> f64 {
    (0..few).fold(1.0, |ways, i| ways * (all - i) as f64 / (i + 1) as f64)
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
    use std::collections::BTreeSet;

    #[test]
    fn few_relabellings_are_enumerated_and_many_are_drawn() {
        for (base, new, count) in [(4, 4, 70), (3, 6, 84), (6, 6, 924), (7, 7, DRAWS + 1)] {
            let mut all = Vec::new();
            each_arrangement((0..base + new).map(|at| at >= base).collect(), |labels| {
                all.push(labels.to_vec())
            });
            assert!(all.len() == count && all[0][base..].iter().all(|label| *label), "{base} {new}");
            assert!(all.iter().all(|labels| labels.iter().filter(|label| **label).count() == new));
            assert!(count > 1000 || all.iter().collect::<BTreeSet<_>>().len() == count);
        }
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
        assert_eq!(p(&[apart(0.5, 4)], 4, Unit::Run, Side::Both, 0.0), [2.0 / 70.0]);
        assert_eq!(p(&[apart(0.5, 4)], 4, Unit::Run, Side::Above, 0.05), [1.0 / 70.0]);
        assert_eq!(p(&[apart(-0.5, 4)], 4, Unit::Run, Side::Below, 0.05), [1.0 / 70.0]);
        assert_eq!(p(&[apart(-0.5, 6)], 6, Unit::Turn, Side::Below, 0.05), [1.0 / 64.0]);
        assert!(p(&[apart(0.5, 6)], 6, Unit::Turn, Side::Below, 0.05)[0] > 0.9);
        let drawn = p(&[apart(0.5, 8)], 8, Unit::Run, Side::Above, 0.05)[0];
        assert!((1e-4..0.001).contains(&drawn), "{drawn}");
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
