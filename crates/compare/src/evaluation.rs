//! Statistical evaluation of a comparison: difference, interval, adjusted p values and verdict of each case.
//!
//! The unit is the run, or the turn of `ombx ab`, in one state of the machine. Values are logarithms of times, so that a difference is a
//! ratio and swapping the sides only changes its sign.

use ombx_record::{result::Metric, stats::median};

use crate::{
    comparison::{
        CaseComparison, Change, Power, Reason, SIGNIFICANCE, SIGNIFICANCE_OF_LOOK, Settings, Unit,
        UnitMedians, Verdict,
    },
    links::LinkSet,
    shift::{self, Alternative, Scatter, Shifts, TAIL, Values, rank, signed_rank},
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
    let p_of = |alternative: Alternative| {
        let mut all = vec![None; cases.len()];
        let found = shift::permutation_test(&values, base, units.unit, alternative, edge * scale);
        tested.iter().zip(found).for_each(|(at, p)| all[*at] = Some(p));
        all
    };
    let p = [Alternative::Both, Alternative::Above, Alternative::Below].map(p_of);
    let level = if units.is_looked_at { SIGNIFICANCE_OF_LOOK } else { SIGNIFICANCE };
    let judge = Judge { edge, level, unit: units.unit };
    let compared = cases.into_iter().zip(pairs).enumerate();
    compared.map(|(at, (case, pair))| case.compared(*pair, [p[0][at], p[1][at], p[2][at]], judge)).collect()
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
        let counted = |side: usize| {
            let units = units.sides[side].iter();
            units.flat_map(|launches| unit_launches(rows[side], launches, &is_valid)).collect::<Vec<_>>()
        };
        let sides = if excluded.is_none() { [counted(0), counted(1)] } else { all };
        CaseValues { sides, units: valid, excluded }
    }

    fn compared(
        self,
        (base, new): (&Row, &Row),
        [p_adjusted, p_above, p_below]: [Option<f64>; 3],
        judge: Judge,
    ) -> CaseComparison {
        let known = |side: usize| self.units[side].iter().flatten().copied().collect::<Vec<f64>>();
        let pairs = self.units[0].iter().zip(&self.units[1]);
        let differences: Vec<f64> = pairs.filter_map(|(a, b)| Some((*b)? - (*a)?)).collect();
        let sides = match &self.excluded {
            None => [known(0), known(1)],
            Some(_) => self.sides.each_ref().map(|side| side.iter().map(|launch| launch.log_time).collect()),
        };
        let has_verdict = self.excluded.is_none();
        let [a, b] = sides.each_ref().map(Vec::len);
        let (shifts, ranks, scatter, number) = match judge.unit {
            Unit::Turn if has_verdict => {
                let n = differences.len();
                let ranks = [TAIL, judge.level].map(|tail| signed_rank(n, tail));
                (Shifts::of_pairs(&differences), ranks, Scatter::of_turns(&differences), [n, n])
            }
            Unit::Run | Unit::Turn => {
                let ranks = [TAIL, judge.level].map(|tail| rank(&[[a, b]], tail));
                let scatter = Scatter::of_runs([&sides[0], &sides[1]]);
                (Shifts::new(std::slice::from_ref(&sides)), ranks, scatter, [a, b])
            }
        };
        let shift = shifts.estimate().unwrap_or(f64::NAN);
        let [shown, decisive] = ranks.map(|rank| shifts.interval(rank).filter(|_| has_verdict));
        let edge = judge.edge;
        let is_not_slower = has_verdict && decisive.is_some_and(|[_, high]| high < edge);
        let verdict = match (self.excluded.clone(), p_adjusted.zip(p_above).zip(p_below)) {
            (Some(reason), _) => Verdict::Undecided(reason),
            (None, Some(((p, above), below))) => judge.verdict(decisive, p, above, below),
            (None, None) => Verdict::Undecided(Reason::FewUnits(judge.unit)),
        };
        let power = scatter.filter(|_| has_verdict).and_then(|scatter| {
            let detectable = (edge + scatter.shows(number)?).exp_m1();
            // A difference that was shown could be shown.
            let is_shown = matches!(verdict, Verdict::Worse | Verdict::Better);
            let most = if is_shown { shift.abs().exp_m1() } else { f64::INFINITY };
            Some(Power {
                detectable: detectable.min(most),
                units_to_decide: scatter.units_for((shift.abs() - edge).abs()),
            })
        });
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
            verdict,
            instructions: None,
        }
    }
}

/// Returns the median logarithm of the times of the launches that count, for each run or turn of both sides.
fn unit_values(rows: [&Row; 2], units: &Units, counts: &dyn Fn(&Launch) -> bool) -> [Values; 2] {
    [0, 1].map(|side| {
        let value = |launches: &Vec<usize>| {
            let launches = unit_launches(rows[side], launches, counts);
            median(&launches.iter().map(|launch| launch.log_time).collect::<Vec<f64>>())
        };
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
}

impl Judge {
    /// Judges a difference by its interval, a logarithm, and by adjusted p values: of a difference, and of one above or below the margin.
    fn verdict(self, interval: Option<[f64; 2]>, p: f64, above: f64, below: f64) -> Verdict {
        let Judge { edge, level, .. } = self;
        let is_small = |p: f64| p <= level + ROUNDING;
        let is_within = interval.is_some_and(|[low, high]| low > -edge && high < edge);
        let is_beyond = interval.is_some_and(|[low, high]| low > edge || high < -edge);
        match () {
            () if is_small(above) => Verdict::Worse,
            () if is_small(below) => Verdict::Better,
            () if is_within => Verdict::Same,
            () if p < SIGNIFICANCE => Verdict::Undecided(Reason::SizeUnknown),
            () if is_beyond => Verdict::Undecided(Reason::Chance),
            () => Verdict::Undecided(Reason::Scatter),
        }
    }
}

/// Returns the figures of a side, in the unit of its headline: of units, which exist with a verdict, else of launches.
fn medians(launches: &[&Launch], units: Option<&[Option<f64>]>, row: &Row) -> UnitMedians {
    let values: Vec<f64> = match units {
        Some(units) => units.iter().flatten().map(|log_time| headline(*log_time, row.id.metric)).collect(),
        None => launches.iter().map(|launch| launch.median).collect(),
    };
    UnitMedians {
        median: median(&values).unwrap_or(f64::NAN),
        values,
        marks: row.launches.iter().flat_map(|launch| launch.marks.iter().cloned()).collect(),
    }
}

/// Converts the logarithm of a time, which has the sign of a latency, to the unit of the headline.
fn headline(log_time: f64, metric: Metric) -> f64 {
    if metric == Metric::Latency { log_time.exp() } else { (-log_time).exp() }
}
