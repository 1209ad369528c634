//! Permutation test of all cases together: the step-down maximum statistic of Westfall and Young.
//!
//! Whole launches are relabelled, and every case of a launch with it. What the cases of a launch share therefore stays
//! together, and no assumption about the distribution of launches is needed. If the machine had several states, labels are exchanged
//! between launches of the same state only.

use std::collections::BTreeMap;

/// Maximum number of relabellings that are enumerated. Otherwise [`DRAWS`] are drawn.
const ENUMERATED: f64 = 1000.0;
const DRAWS: usize = 9999;
const SEED: u64 = 1;
/// Standard error that is added to that of each case, as a logarithm: the maximum must not belong to rows that hardly vary.
const FLOOR: f64 = 0.01;
/// Part of a statistic by which two count as equal.
const ROUNDING: f64 = 1e-9;

/// How labels may be exchanged between launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Design {
    /// Any launch could have been of either side.
    #[default]
    Independent,
    /// The i-th launches of both sides are a turn. Labels are exchanged within turns.
    Turns,
}

/// Value of one case in each launch: those of the base, then those of the new side. `None` if a launch did not measure it.
pub(super) type Values = Vec<Option<f64>>;

/// Result of the test.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Adjusted {
    /// P value of each case, adjusted for all cases.
    pub(super) p: Vec<f64>,
    /// P value of sides of equal size that are far apart: the smallest that is possible.
    pub(super) smallest: f64,
}

/// Tests all cases. The first `base` launches belong to the base; `states` has the state of the machine in each launch.
pub(super) fn test(cases: &[Values], base: usize, states: &[Option<usize>], design: Design) -> Adjusted {
    let Some(launches) = cases.first().map(Vec::len) else { return Adjusted::default() };
    let strata = Strata::of(states);
    let labels: Vec<bool> = (0..launches).map(|launch| launch >= base).collect();
    let as_measured: Vec<usize> = (base..launches).collect();
    let observed: Vec<f64> =
        Block::all_of(cases.iter(), &strata).iter().flat_map(|b| b.statistics(&as_measured)).collect();
    let mut smallest_first: Vec<usize> = (0..cases.len()).collect();
    smallest_first.sort_by(|a, b| observed[*a].total_cmp(&observed[*b]));
    let blocks = Block::all_of(smallest_first.iter().map(|case| &cases[*case]), &strata);
    let levels: Vec<f64> = smallest_first.iter().map(|case| observed[*case] * (1.0 - ROUNDING)).collect();
    let (mut reached, mut all) = (vec![0usize; cases.len()], 0usize);
    let mut new = Vec::with_capacity(launches);
    each_relabelling(labels, base, &strata, design, |labels| {
        all += 1;
        new.clear();
        new.extend((0..launches).filter(|launch| labels[*launch]));
        let mut largest = 0.0_f64;
        let mut cases = reached.iter_mut().zip(&levels);
        for block in &blocks {
            for (statistic, (reached, level)) in block.statistics(&new).zip(&mut cases) {
                largest = largest.max(statistic);
                *reached += usize::from(largest >= *level);
            }
        }
    });
    let (mut p, mut least) = (vec![1.0; cases.len()], 0.0_f64);
    for (case, reached) in smallest_first.into_iter().zip(reached).rev() {
        least = least.max(reached as f64 / all as f64);
        p[case] = least;
    }
    Adjusted { p, smallest: 2.0 / all as f64 }
}

/// Launches of each state of the machine. Those of an unknown state are not compared, and keep their labels.
struct Strata(Vec<Vec<usize>>);

impl Strata {
    fn of(states: &[Option<usize>]) -> Strata {
        let mut strata = BTreeMap::<usize, Vec<usize>>::new();
        let known = states.iter().enumerate().filter_map(|(launch, state)| Some((launch, (*state)?)));
        known.for_each(|(launch, state)| strata.entry(state).or_default().push(launch));
        Strata(strata.into_values().collect())
    }

    /// Returns the deviation of each launch from the mean of all of its state. 0 for a launch without a value.
    fn deviations(&self, values: &Values) -> Vec<f64> {
        let mut deviations = vec![0.0; values.len()];
        for launches in &self.0 {
            let known = || launches.iter().filter_map(|at| Some((*at, values[*at]?)));
            let mean = known().map(|(_, value)| value).sum::<f64>() / known().count() as f64;
            known().for_each(|(at, value)| deviations[at] = value - mean);
        }
        deviations
    }

    /// Returns the number of ways to exchange labels within the states.
    fn ways(&self, labels: &[bool]) -> f64 {
        let of_one =
            |launches: &Vec<usize>| ways(launches.len(), launches.iter().filter(|at| labels[**at]).count());
        self.0.iter().map(of_one).product()
    }
}

/// Maximum number of cases in a block: what the statistic needs of them fits into the cache of a core.
const BLOCK: usize = 256;

/// Values of some cases as the statistic needs them. Each list has an entry for each case, so that a CPU computes several at a time.
struct Block {
    /// Deviations from the mean of the case in the state of the machine, by launch. 0 where a launch has no value.
    deviations: Vec<Vec<f64>>,
    /// 1 where a launch has a value, else 0, by launch.
    present: Vec<Vec<i32>>,
    /// Sums of the squares of the deviations.
    squares: Vec<f64>,
    /// Numbers of values. 0 for a case that has too few of them for a statistic.
    counts: Vec<f64>,
}

impl Block {
    fn all_of<'v>(cases: impl Iterator<Item = &'v Values>, strata: &Strata) -> Vec<Block> {
        let cases: Vec<&Values> = cases.collect();
        cases.chunks(BLOCK).map(|cases| Block::of(cases, strata)).collect()
    }

    fn of(cases: &[&Values], strata: &Strata) -> Block {
        let launches = cases.first().map_or(0, |values| values.len());
        let mut block = Block {
            deviations: vec![Vec::with_capacity(cases.len()); launches],
            present: vec![Vec::with_capacity(cases.len()); launches],
            squares: Vec::new(),
            counts: Vec::new(),
        };
        for values in cases {
            let count = values.iter().flatten().count();
            let deviations = strata.deviations(values);
            block.squares.push(deviations.iter().map(|x| x * x).sum());
            block.counts.push(if count < 3 { 0.0 } else { count as f64 });
            block.deviations.iter_mut().zip(deviations).for_each(|(of_launch, x)| of_launch.push(x));
            let present = values.iter().map(|value| i32::from(value.is_some()));
            block.present.iter_mut().zip(present).for_each(|(of_launch, one)| of_launch.push(one));
        }
        block
    }

    /// Returns the statistic of each case: the square of the difference of the means over its standard error, or 0 if a side has no
    /// value.
    fn statistics(&self, new: &[usize]) -> impl Iterator<Item = f64> {
        let (mut sums, mut present) = ([0.0; BLOCK], [0; BLOCK]);
        for launch in new {
            sums.iter_mut().zip(&self.deviations[*launch]).for_each(|(sum, x)| *sum += x);
            present.iter_mut().zip(&self.present[*launch]).for_each(|(n, one)| *n += one);
        }
        // A loop of its own, in which no case waits for the one before.
        let mut statistics = sums;
        let of_cases = self.squares.iter().zip(&self.counts).zip(&present);
        for (value, ((squares, count), n)) in statistics.iter_mut().zip(of_cases) {
            let (sum, n) = (*value, f64::from(*n));
            // The deviations of all launches add up to 0: those of the base are the opposite of those of the new side.
            let weight = n * (count - n) / count;
            let between = sum * sum / weight;
            let within = (squares - between).max(0.0) / (count - 2.0);
            let statistic = between / (within + FLOOR * FLOOR * weight);
            *value = if weight > 0.0 { statistic } else { 0.0 };
        }
        statistics.into_iter().take(self.squares.len())
    }
}

/// Calls `visit` with every relabelling if there are few, else with the given one and random others.
fn each_relabelling(
    mut labels: Vec<bool>,
    base: usize,
    strata: &Strata,
    design: Design,
    mut visit: impl FnMut(&[bool]),
) {
    let launches = labels.len();
    match design {
        Design::Turns if 2.0_f64.powi(base as i32) <= ENUMERATED => {
            for flips in 0u32..1 << base {
                (0..launches).for_each(|at| labels[at] = (at >= base) != (flips >> (at % base) & 1 == 1));
                visit(&labels);
            }
        }
        // Labels are in lexical order within a state, the first arrangement, which follows the last.
        Design::Independent if strata.ways(&labels) <= ENUMERATED => loop {
            visit(&labels);
            if !strata.0.iter().any(|launches| next_arrangement(&mut labels, launches)) {
                break;
            }
        },
        _ => {
            visit(&labels);
            let mut random = Random(SEED);
            for _ in 0..DRAWS {
                match design {
                    Design::Turns => (0..base).for_each(|turn| {
                        let new_first = random.next() >> 63 == 1;
                        (labels[turn], labels[base + turn]) = (new_first, !new_first);
                    }),
                    Design::Independent => strata.0.iter().for_each(|launches| {
                        (1..launches.len()).for_each(|at| {
                            labels.swap(launches[at], launches[(random.next() % (at as u64 + 1)) as usize]);
                        });
                    }),
                }
                visit(&labels);
            }
        }
    }
}

/// Gives these launches the next arrangement of their labels in lexical order, or the first after the last. Returns whether there
/// was a next one.
fn next_arrangement(labels: &mut [bool], launches: &[usize]) -> bool {
    let mut own: Vec<bool> = launches.iter().map(|at| labels[*at]).collect();
    // The last `false` before a `true` becomes `true`.
    let step = (1..own.len()).rev().find(|at| !own[at - 1] && own[*at]);
    if let Some(at) = step {
        own[at - 1..].sort_unstable();
        let first = at - 1 + own[at - 1..].iter().take_while(|label| !**label).count();
        own.swap(at - 1, first);
    } else {
        own.sort_unstable();
    }
    launches.iter().zip(own).for_each(|(at, label)| labels[*at] = label);
    step.is_some()
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

    fn relabellings(base: usize, new: usize, design: Design) -> Vec<Vec<bool>> {
        relabelled(base, &vec![Some(0); base + new], design)
    }

    fn relabelled(base: usize, states: &[Option<usize>], design: Design) -> Vec<Vec<bool>> {
        let mut all = Vec::new();
        let labels = (0..states.len()).map(|at| at >= base).collect();
        each_relabelling(labels, base, &Strata::of(states), design, |labels| all.push(labels.to_vec()));
        all
    }

    #[test]
    fn few_relabellings_are_enumerated_and_many_are_drawn() {
        for (base, new, design, count) in [
            (4, 4, Design::Independent, 70),
            (3, 6, Design::Independent, 84),
            (6, 6, Design::Independent, 924),
            (6, 6, Design::Turns, 64),
            (9, 9, Design::Turns, 512),
        ] {
            let all = relabellings(base, new, design);
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), count, "{base} {new} {design:?}");
            assert_eq!(all.len(), count);
            assert!(all.iter().all(|labels| labels.iter().filter(|label| **label).count() == new));
        }
        for (launches, design) in [(7, Design::Independent), (10, Design::Turns)] {
            let all = relabellings(launches, launches, design);
            assert_eq!(all.len(), DRAWS + 1);
            let ones: usize = all.iter().filter(|labels| labels[0]).count();
            assert!((4700..5300).contains(&ones), "{ones}");
            assert!(all.iter().all(|labels| labels.iter().filter(|label| **label).count() == launches));
        }
    }

    #[test]
    fn labels_stay_within_a_state() {
        // Base: two fast launches and a slow one, new: one fast and three slow ones.
        let states = [0, 0, 1, 0, 1, 1, 1];
        let all = relabelled(3, &states.map(Some), Design::Independent);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 3 * 4);
        assert_eq!(all.len(), 3 * 4);
        let slow = |labels: &Vec<bool>| [2, 4, 5, 6].iter().filter(|at| labels[**at]).count();
        assert!(all.iter().all(|labels| slow(labels) == 3));
        // A launch of an unknown state does not change the smallest possible p value.
        let mut unknown = states.map(Some).to_vec();
        (unknown[0], unknown[3]) = (None, None);
        assert_eq!(relabelled(3, &unknown, Design::Independent).len(), 4);
        // Launches differ by their state alone, though most of the new side's were slow.
        let values = |slower: f64| -> Values {
            let value = |at: usize| f64::from(u8::from(states_of(at))) + 0.01 * (at * 7 % 5) as f64;
            (0..18).map(|at| Some(value(at) + if at >= 9 { slower } else { 0.0 })).collect()
        };
        let states: Vec<Option<usize>> = (0..18).map(|at| Some(usize::from(states_of(at)))).collect();
        let p = |slower| super::test(&[values(slower)], 9, &states, Design::Independent).p[0];
        assert!(p(0.0) > 0.1 && p(0.5) < 0.005, "{} {}", p(0.0), p(0.5));
        assert!(super::test(&[values(0.0)], 9, &[Some(0); 18], Design::Independent).p[0] < 0.05);
    }

    /// Whether the machine was slow: in two launches of the base, and in all but one of the new side.
    fn states_of(launch: usize) -> bool {
        (7..9).contains(&launch) || launch > 9
    }

    fn test(cases: &[Values], base: usize, design: Design) -> Adjusted {
        let launches = cases.first().map_or(0, Vec::len);
        super::test(cases, base, &vec![Some(0); launches], design)
    }

    fn p(cases: &[Values], base: usize, design: Design) -> Vec<f64> {
        test(cases, base, design).p
    }

    fn apart(step: f64, launches: usize) -> Values {
        let value = |at: usize| (at % launches * 7 % launches) as f64 * 0.01;
        (0..2 * launches).map(|at| Some(value(at) + if at >= launches { step } else { 0.0 })).collect()
    }

    #[test]
    fn sides_that_are_apart_have_the_smallest_p_value() {
        assert_eq!(p(&[apart(0.5, 4)], 4, Design::Independent), [2.0 / 70.0]);
        assert_eq!(p(&[apart(-0.5, 6)], 6, Design::Turns), [2.0 / 64.0]);
        assert_eq!(test(&[apart(0.0, 4)], 4, Design::Independent).smallest, 2.0 / 70.0);
        let drawn = p(&[apart(0.5, 8)], 8, Design::Independent)[0];
        assert!((1e-4..0.001).contains(&drawn), "{drawn}");
        assert!(p(&[apart(0.0, 6)], 6, Design::Independent)[0] > 0.9);
        assert!(p(&[], 0, Design::Independent).is_empty());
    }

    #[test]
    fn more_cases_raise_the_p_value_and_order_does_not_matter() {
        let one = p(&[apart(0.03, 6)], 6, Design::Independent)[0];
        let noise = |seed: u64| -> Values {
            let mut random = Random(seed);
            (0..12).map(|_| Some((random.next() >> 40) as f64 / 1e8)).collect()
        };
        let mut cases: Vec<Values> = (0..20).map(noise).collect();
        cases.push(apart(0.03, 6));
        let several = p(&cases, 6, Design::Independent);
        assert!(several[20] > one, "{} {one}", several[20]);
        cases.rotate_left(7);
        let mut rotated = several.clone();
        rotated.rotate_left(7);
        assert_eq!(p(&cases, 6, Design::Independent), rotated);
    }

    #[test]
    fn missing_and_constant_values_are_no_error() {
        let mut gaps = apart(0.5, 6);
        (gaps[0], gaps[7]) = (None, None);
        let constant = vec![Some(1.0); 12];
        let none = vec![None; 12];
        let found = p(&[gaps, constant, none], 6, Design::Independent);
        assert!(found[0] < 0.05 && found[1] == 1.0 && found[2] == 1.0, "{found:?}");
    }
}
