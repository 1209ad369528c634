//! Statistical evaluation of a comparison: difference, interval, adjusted p values and verdict of each case.
//!
//! The unit is the run, or the turn of `ombx ab`, in one state of the machine. Values are logarithms of times, so that a difference is a
//! ratio and swapping the sides only changes its sign.

use ombx_estimate::launches::total;
use ombx_record::{result::Metric, stats::median};

use crate::{
    comparison::{
        CaseComparison, Change, OutlyingTurn, Power, Reason, SIGNIFICANCE, SIGNIFICANCE_OF_LOOK, Settings,
        Unit, UnitMedians, Verdict,
    },
    links::LinkSet,
    shift::{self, Alternative, Critical, FLOOR, RankSum, Scatter, Shifts, TAIL, Values},
    side::{Launch, Row, Units},
};

/// Difference of p values that are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// Evaluates all cases of two sides.
pub(super) fn evaluate(pairs: &[(&Row, &Row)], units: &Units, settings: Settings) -> Vec<CaseComparison> {
    let cases: Vec<CaseValues<'_>> =
        pairs.iter().map(|(base, new)| CaseValues::new(base, new, units)).collect();
    let tested: Vec<usize> = (0..cases.len()).filter(|at| cases[*at].excluded.is_none()).collect();
    let (base, edge) = (units.sides[0].len(), settings.margin.ln_1p());
    // The test takes rows that hardly vary as if they varied by a fifth of the usual margin. A smaller margin needs a smaller part.
    let scale = (Settings::default().margin.ln_1p() / edge).max(1.0);
    let scaled = |value: Option<f64>| value.map(|value| value * scale);
    let values = tested.iter().map(|at| cases[*at].units.concat().into_iter().map(scaled).collect());
    let values: Vec<Values> = values.collect();
    let level = if units.is_looked_at { SIGNIFICANCE_OF_LOOK } else { SIGNIFICANCE };
    let test = |alternative: Alternative| {
        shift::permutation_test(&values, base, units.unit, alternative, edge * scale)
    };
    let [both, above, below] = [Alternative::Both, Alternative::Above, Alternative::Below].map(test);
    // Rows that scatter little reach most where they are moved by the margin, others where they are not.
    let needed: Option<Vec<f64>> =
        [&both, &above, &below].map(|tested| tested.critical(level)).into_iter().collect();
    let statistic = needed.map(|needed| needed.into_iter().fold(0.0, f64::max));
    let critical = statistic.map(|statistic| Critical { statistic, floor: FLOOR / scale });
    let of_cases = |p: &[f64]| {
        let mut all = vec![None; cases.len()];
        tested.iter().zip(p).for_each(|(at, p)| all[*at] = Some(*p));
        all
    };
    let [p_adjusted, p_above, p_below] = [&both, &above, &below].map(|tested| of_cases(&tested.p));
    let judge = Judge { edge, level, unit: units.unit, tested: tested.len(), critical };
    let differences: Vec<Difference> = cases.iter().map(|case| Difference::new(case, units.unit)).collect();
    let p_within: Vec<f64> = tested.iter().map(|at| differences[*at].p_within(edge)).collect();
    let p_same = of_cases(&shift::holm(&p_within));
    let compared = cases.into_iter().zip(pairs).zip(&differences).enumerate();
    compared
        .map(|(at, ((case, pair), difference))| {
            let evidence = Evidence {
                p_adjusted: p_adjusted[at],
                p_above: p_above[at],
                p_below: p_below[at],
                p_same: p_same[at],
            };
            case.compared(*pair, difference, &evidence, judge, &units.turns)
        })
        .collect()
}

/// p values of a case, corrected for all cases; `None` for a case that cannot have a verdict.
struct Evidence {
    /// Of a difference.
    p_adjusted: Option<f64>,
    /// Of one above the margin.
    p_above: Option<f64>,
    /// Of one below it.
    p_below: Option<f64>,
    /// Of none within it.
    p_same: Option<f64>,
}

/// Difference of the sides in one case, as a logarithm, and what it is judged by.
struct Difference {
    shifts: Shifts,
    ranks: RankSum,
    scatter: Option<Scatter>,
    /// Number of runs or turns of each side.
    units: [usize; 2],
    /// Difference in each turn, with the place of the turn; none of runs.
    by_turn: Vec<(usize, f64)>,
}

impl Difference {
    fn new(case: &CaseValues<'_>, unit: Unit) -> Difference {
        let known = |side: usize| case.units[side].iter().flatten().copied().collect::<Vec<f64>>();
        match unit {
            Unit::Turn => {
                let pairs = case.units[0].iter().zip(&case.units[1]).enumerate();
                let by_turn: Vec<(usize, f64)> =
                    pairs.filter_map(|(at, (a, b))| Some((at, (*b)? - (*a)?))).collect();
                let differences: Vec<f64> = by_turn.iter().map(|(_, difference)| *difference).collect();
                let n = differences.len();
                Difference {
                    shifts: Shifts::of_pairs(&differences),
                    ranks: RankSum::of_differences(n),
                    scatter: Scatter::of_turns(&differences),
                    units: [n, n],
                    by_turn,
                }
            }
            Unit::Run => {
                let sides = [known(0), known(1)];
                let units = sides.each_ref().map(Vec::len);
                Difference {
                    shifts: Shifts::new(std::slice::from_ref(&sides)),
                    ranks: RankSum::of_groups(&[units]),
                    scatter: Scatter::of_runs([&sides[0], &sides[1]]),
                    units,
                    by_turn: Vec::new(),
                }
            }
        }
    }

    /// Returns the smallest tail whose interval lies within the margin.
    fn p_within(&self, edge: f64) -> f64 {
        self.shifts.smallest_tail_within(edge, &self.ranks)
    }

    /// Returns the turn without which the case would be decided: the one farthest from the median difference.
    fn outlying_turn(&self, judge: Judge, turns: &[u32]) -> Option<OutlyingTurn> {
        let middle = median(&self.by_turn.iter().map(|(_, difference)| *difference).collect::<Vec<f64>>())?;
        let away = |(_, difference): &(usize, f64)| (difference - middle).abs();
        let (at, difference) = self.by_turn.iter().max_by(|a, b| away(a).total_cmp(&away(b)))?;
        let others: Vec<f64> =
            self.by_turn.iter().filter(|(other, _)| other != at).map(|(_, d)| *d).collect();
        let (shifts, ranks) = (Shifts::of_pairs(&others), RankSum::of_differences(others.len()));
        let is_within = shifts.smallest_tail_within(judge.edge, &ranks) * judge.tested as f64 <= judge.level;
        let is_decided = is_within || judge.is_beyond(shifts.interval(ranks.rank(judge.level)));
        let number = turns.get(*at).copied().filter(|_| others.len() >= Unit::Turn.least() && is_decided)?;
        Some(OutlyingTurn { number, slower: difference.exp() })
    }
}

/// Values of one case that count.
struct CaseValues<'r> {
    /// Launches of both sides that count.
    sides: [Vec<&'r Launch>; 2],
    /// Logarithm of the time in each run or turn of both sides.
    units: [Values; 2],
    /// Why the case cannot have a verdict.
    excluded: Option<Reason>,
}

impl<'r> CaseValues<'r> {
    /// Leaves out launches that a mark makes invalid, and those that measured other links than most. If too few runs or turns remain, all
    /// launches count and there is no verdict.
    fn new(base: &'r Row, new: &'r Row, units: &Units) -> CaseValues<'r> {
        let rows = [base, new];
        let all = rows.map(|row| row.launches.iter().collect::<Vec<_>>());
        let links = common_links(rows);
        let has_same_links = |launch: &Launch| launch.links == links;
        let is_valid = |launch: &Launch| launch.invalid.is_none() && has_same_links(launch);
        let values = |counts: &dyn Fn(&Launch) -> bool| unit_values(rows, units, counts);
        let valid = values(&is_valid);
        let is_enough =
            |values: &[Values; 2]| counts(values, units.unit).iter().all(|n| *n >= units.unit.least());
        let mark = all.iter().flatten().find_map(|launch| launch.invalid.clone());
        let excluded = match (&units.excluded, mark) {
            (Some(reason), _) => Some(reason.clone()),
            (None, _) if is_enough(&valid) => None,
            (None, Some(mark)) if is_enough(&values(&has_same_links)) => Some(Reason::Marked(mark)),
            (None, _) if links.is_some() && is_enough(&values(&|_| true)) => Some(Reason::OtherLinks),
            (None, _) => Some(Reason::FewUnits(units.unit)),
        };
        let counted = |side: usize, counts: &dyn Fn(&Launch) -> bool| {
            let units = units.sides[side].iter();
            units.flat_map(|launches| unit_launches(rows[side], launches, counts)).collect::<Vec<_>>()
        };
        let sides = [0, 1].map(|side| match excluded {
            None => counted(side, &is_valid),
            // The row may have no launch in the state that is shown.
            Some(_) => {
                Some(counted(side, &|_| true)).filter(|some| !some.is_empty()).unwrap_or(all[side].clone())
            }
        });
        CaseValues { sides, units: valid, excluded }
    }

    fn compared(
        self,
        (base, new): (&Row, &Row),
        difference: &Difference,
        evidence: &Evidence,
        judge: Judge,
        turns: &[u32],
    ) -> CaseComparison {
        let Difference { shifts, ranks, scatter, units, .. } = difference;
        let Evidence { p_adjusted, p_above, p_below, p_same } = *evidence;
        let has_verdict = self.excluded.is_none();
        let edge = judge.edge;
        let shift = shifts.estimate().filter(|_| has_verdict).unwrap_or_else(|| self.ratio_of_figures());
        let [shown, decisive] =
            [TAIL, judge.level].map(|tail| shifts.interval(ranks.rank(tail)).filter(|_| has_verdict));
        let is_not_slower = has_verdict && decisive.is_some_and(|[_, high]| high < edge);
        let verdict = match (self.excluded.clone(), p_adjusted.zip(p_above).zip(p_below).zip(p_same)) {
            (Some(reason), _) => Verdict::Undecided(reason),
            (None, Some((((p, above), below), same))) => judge.verdict(decisive, p, above, below, same),
            (None, None) => Verdict::Undecided(Reason::FewUnits(judge.unit)),
        };
        let power = scatter.zip(judge.critical).filter(|_| has_verdict).map(|(scatter, critical)| {
            let detectable = (edge + scatter.shows(*units, critical)).exp_m1();
            // A difference that was shown could be shown.
            let is_shown = matches!(verdict, Verdict::Worse | Verdict::Better);
            let most = if is_shown { shift.abs().exp_m1() } else { f64::INFINITY };
            let least = if shift.abs() < edge { judge.least_for_same() } else { judge.unit.least() };
            Power {
                detectable: detectable.min(most),
                units_to_decide: scatter.units_for((shift.abs() - edge).abs(), *units, critical, least),
            }
        });
        let is_open = has_verdict && matches!(verdict, Verdict::Undecided(_));
        let counted = self.units.each_ref().map(|units| has_verdict.then_some(units.as_slice()));
        CaseComparison {
            id: base.id.clone(),
            base: medians(&self.sides[0], counted[0], base),
            new: medians(&self.sides[1], counted[1], new),
            change: Change { estimate: shift.exp_m1(), ci90: shown.map(|ends| ends.map(f64::exp_m1)) },
            p_adjusted,
            p_beyond: if shift < 0.0 { p_below } else { p_above },
            is_not_slower,
            power,
            outlying_turn: difference.outlying_turn(judge, turns).filter(|_| is_open),
            verdict,
            instructions: None,
        }
    }

    /// Returns the logarithm of the ratio of the figures of a case without a verdict.
    fn ratio_of_figures(&self) -> f64 {
        let [a, b] = self.sides.each_ref().map(|launches| log_time(launches).unwrap_or(f64::NAN));
        b - a
    }
}

/// Returns the logarithm of the time of launches, as a run has it: their median, or total time over total work. `None` without launches.
fn log_time(launches: &[&Launch]) -> Option<f64> {
    let logs: Vec<f64> = launches.iter().map(|launch| launch.log_time).collect();
    match launches.iter().map(|launch| launch.weight).collect::<Option<Vec<f64>>>() {
        Some(weights) => {
            total(&logs.iter().map(|log| log.exp()).collect::<Vec<f64>>(), &weights).map(f64::ln)
        }
        None => median(&logs),
    }
}

/// Returns the logarithm of the time of the launches that count, for each run or turn of both sides.
fn unit_values(rows: [&Row; 2], units: &Units, counts: &dyn Fn(&Launch) -> bool) -> [Values; 2] {
    [0, 1].map(|side| {
        let value = |launches: &Vec<usize>| log_time(&unit_launches(rows[side], launches, counts));
        units.sides[side].iter().map(value).collect::<Values>()
    })
}

/// Returns the launches of a run or turn, by their numbers, that count.
fn unit_launches<'r>(row: &'r Row, numbers: &[usize], counts: &dyn Fn(&Launch) -> bool) -> Vec<&'r Launch> {
    row.launches.iter().filter(|launch| numbers.contains(&launch.run) && counts(launch)).collect()
}

/// Returns the links of a host that most launches of both sides measured; `None` for a case that is no host.
fn common_links([base, new]: [&Row; 2]) -> Option<LinkSet> {
    let first = base.launches.first()?.links?;
    let count =
        |row: &Row, links: LinkSet| row.launches.iter().filter(|launch| launch.links == Some(links)).count();
    let common = |links: &LinkSet| count(base, *links).min(count(new, *links));
    Some(base.launches.iter().filter_map(|launch| launch.links).max_by_key(common).unwrap_or(first))
}

/// Returns how many runs of each side have a value, or how many turns have both.
fn counts([base, new]: &[Values; 2], unit: Unit) -> [usize; 2] {
    match unit {
        Unit::Run => [base, new].map(|side| side.iter().flatten().count()),
        Unit::Turn => [base.iter().zip(new).filter(|(a, b)| a.is_some() && b.is_some()).count(); 2],
    }
}

/// What verdicts need.
#[derive(Debug, Clone, Copy)]
struct Judge {
    /// Margin, as a logarithm.
    edge: f64,
    /// Accepted probability of a wrong verdict.
    level: f64,
    unit: Unit,
    /// Number of cases that can have a verdict.
    tested: usize,
    /// `None` if the runs or turns are too few for a verdict.
    critical: Option<Critical>,
}

impl Judge {
    /// Judges a difference by its interval, a logarithm, and by adjusted p values: of a difference, of one above or below the margin, and of
    /// none within it.
    fn verdict(self, interval: Option<[f64; 2]>, p: f64, above: f64, below: f64, same: f64) -> Verdict {
        let is_small = |p: f64| p <= self.level + ROUNDING;
        match () {
            () if is_small(above) => Verdict::Worse,
            () if is_small(below) => Verdict::Better,
            () if is_small(same) => Verdict::Same,
            () if p < SIGNIFICANCE => Verdict::Undecided(Reason::SizeUnknown),
            () if self.is_beyond(interval) => Verdict::Undecided(Reason::Chance),
            () => Verdict::Undecided(Reason::Scatter),
        }
    }

    /// Returns whether an interval lies beyond the margin.
    fn is_beyond(self, interval: Option<[f64; 2]>) -> bool {
        interval.is_some_and(|[low, high]| low > self.edge || high < -self.edge)
    }

    /// Returns the fewest runs a side or turns of which every case can be the same: the widest interval has a tail that is small enough.
    fn least_for_same(self) -> usize {
        let smallest = |n: usize| match self.unit {
            Unit::Run => RankSum::of_groups(&[[n, n]]).tail(1),
            Unit::Turn => RankSum::of_differences(n).tail(1),
        };
        let is_enough = |n: &usize| smallest(*n) * self.tested as f64 <= self.level + ROUNDING;
        (self.unit.least()..MOST_LEAST).find(is_enough).unwrap_or(MOST_LEAST)
    }
}

/// Runs a side or turns whose smallest tail is below 10^-9, which is enough for any number of cases.
const MOST_LEAST: usize = 30;

/// Returns the figures of a side, in the unit of its headline: of units, which exist with a verdict, else of launches.
/// Without a verdict, the ratio of the sides is that of these figures.
fn medians(launches: &[&Launch], units: Option<&[Option<f64>]>, row: &Row) -> UnitMedians {
    let values: Vec<f64> = match units {
        Some(units) => units.iter().flatten().map(|log_time| headline(*log_time, row.id.metric)).collect(),
        None => launches.iter().map(|launch| launch.median).collect(),
    };
    UnitMedians {
        median: match units {
            Some(_) => median(&values).unwrap_or(f64::NAN),
            None => headline(log_time(launches).unwrap_or(f64::NAN), row.id.metric),
        },
        values,
        marks: row.launches.iter().flat_map(|launch| launch.marks.iter().cloned()).collect(),
    }
}

/// Converts the logarithm of a time, which has the sign of a latency, to the unit of the headline.
fn headline(log_time: f64, metric: Metric) -> f64 {
    if metric == Metric::Latency { log_time.exp() } else { (-log_time).exp() }
}
