//! Statistical evaluation of a comparison: difference, interval, adjusted p value and verdict of each case.
//!
//! The unit is the launch. Values are logarithms of times, so that a difference is a ratio and swapping the sides only changes its
//! sign.

use ombx_core::stats::median;

use super::{
    comparison::{
        CaseComparison, Change, LaunchMedians, MIN_LAUNCHES, Power, Reason, SIGNIFICANCE, Settings,
        VERDICT_SIGNIFICANCE, Verdict,
    },
    machine_state::MachineState,
    permutation::{self, Adjusted, Values},
    power,
    shift::{Ranks, Shifts},
    side::{Launch, Row},
};

/// Difference of p values that are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// Evaluates all cases of two sides with these numbers of launches.
pub(super) fn evaluate(
    pairs: &[(&Row, &Row)],
    launches: [usize; 2],
    state: &MachineState,
    settings: Settings,
) -> Vec<CaseComparison> {
    let cases: Vec<Case<'_>> = pairs.iter().map(|(base, new)| Case::of(base, new, state)).collect();
    let tested: Vec<usize> = (0..cases.len()).filter(|at| cases[*at].excluded.is_none()).collect();
    let values: Vec<Values> = tested.iter().map(|at| cases[*at].values(launches)).collect();
    let Adjusted { p, smallest } = permutation::test(&values, launches[0], settings.design);
    let judge = Judge {
        edge: settings.margin.ln_1p(),
        level: smallest.clamp(VERDICT_SIGNIFICANCE, SIGNIFICANCE) + ROUNDING,
    };
    let mut p_adjusted = vec![None; cases.len()];
    tested.iter().zip(p).for_each(|(at, p)| p_adjusted[*at] = Some(p));
    let mut ranks = Ranks::default();
    let compared = cases.into_iter().zip(pairs).zip(p_adjusted);
    compared.map(|((case, pair), p)| case.compared(*pair, p, judge, &mut ranks)).collect()
}

/// Launches of one case that count.
struct Case<'r> {
    sides: [Vec<&'r Launch>; 2],
    /// Why the case cannot have a verdict.
    excluded: Option<Reason>,
}

impl<'r> Case<'r> {
    /// Leaves out launches that a mark makes invalid, and those of another state of the machine. If too few others remain, all count
    /// and there is no verdict.
    fn of(base: &'r Row, new: &'r Row, state: &MachineState) -> Case<'r> {
        let all = [base, new].map(|row| row.launches.iter().collect::<Vec<_>>());
        let valid = all.each_ref().map(|side| {
            let counts = |launch: &&Launch| launch.invalid.is_none() && state.admits(launch.core_to_core_ns);
            let valid = side.iter().copied().filter(counts);
            valid.collect::<Vec<_>>()
        });
        let enough = |sides: &[Vec<&Launch>; 2]| sides.iter().all(|side| side.len() >= MIN_LAUNCHES);
        if enough(&valid) && *state == MachineState::Different {
            return Case { sides: valid, excluded: Some(Reason::MachineChanged) };
        }
        if enough(&valid) {
            return Case { sides: valid, excluded: None };
        }
        let mark = all.iter().flatten().find_map(|launch| launch.invalid.clone());
        let excluded = match mark.filter(|_| enough(&all)) {
            Some(mark) => Reason::Marked(mark),
            None if enough(&all) => Reason::MachineChanged,
            None => Reason::FewLaunches,
        };
        Case { sides: all, excluded: Some(excluded) }
    }

    /// Returns the value of every launch of both sides.
    fn values(&self, [base, new]: [usize; 2]) -> Values {
        let mut values = vec![None; base + new];
        for (side, first) in self.sides.iter().zip([0, base]) {
            side.iter().for_each(|launch| values[first + launch.run] = Some(launch.log_time));
        }
        values
    }

    fn compared(
        self,
        (base, new): (&Row, &Row),
        p_adjusted: Option<f64>,
        judge: Judge,
        ranks: &mut Ranks,
    ) -> CaseComparison {
        let [a, b] = self.sides.each_ref().map(|side| side.iter().map(|l| l.log_time).collect::<Vec<f64>>());
        let shifts = Shifts::of(&a, &b);
        let shift = shifts.estimate().unwrap_or(f64::NAN);
        let enough = a.len().min(b.len()) >= MIN_LAUNCHES;
        let interval = shifts.interval(ranks.of(a.len(), b.len())).filter(|_| enough);
        let Judge { edge, .. } = judge;
        let power = power::pooled_deviation(&a, &b).and_then(|deviation| {
            Some(Power {
                detectable: power::detectable(deviation, a.len(), b.len())?.exp_m1(),
                launches_for_margin: power::launches_for(deviation, edge),
                launches_to_decide: power::launches_for(deviation, (shift.abs() - edge).abs()),
            })
        });
        let verdict = match (self.excluded, interval, p_adjusted) {
            (Some(reason), ..) => Verdict::Inconclusive(reason),
            (None, Some(interval), Some(p)) => judge.verdict(interval, p),
            (None, ..) => Verdict::Inconclusive(Reason::FewLaunches),
        };
        CaseComparison {
            id: base.id.clone(),
            base: medians(&self.sides[0], base),
            new: medians(&self.sides[1], new),
            change: Change { estimate: shift.exp_m1(), ci90: interval.map(|ends| ends.map(f64::exp_m1)) },
            p_adjusted,
            power,
            verdict,
        }
    }
}

/// What verdicts need.
#[derive(Debug, Clone, Copy)]
struct Judge {
    /// Margin, as a logarithm.
    edge: f64,
    /// Largest adjusted p value of a verdict "worse" or "better".
    level: f64,
}

impl Judge {
    /// Judges an interval of the difference, as logarithms.
    fn verdict(self, [low, high]: [f64; 2], p_adjusted: f64) -> Verdict {
        let Judge { edge, level } = self;
        match () {
            () if low > -edge && high < edge => Verdict::Same,
            () if low > edge && p_adjusted <= level => Verdict::Worse,
            () if high < -edge && p_adjusted <= level => Verdict::Better,
            () if p_adjusted < SIGNIFICANCE => Verdict::Inconclusive(Reason::SizeUnknown),
            () if low > edge || high < -edge => Verdict::Inconclusive(Reason::Chance),
            () => Verdict::Inconclusive(Reason::Scatter),
        }
    }
}

fn medians(counted: &[&Launch], row: &Row) -> LaunchMedians {
    let launches: Vec<f64> = counted.iter().map(|launch| launch.median).collect();
    LaunchMedians {
        median: median(&launches).unwrap_or(f64::NAN),
        launches,
        marks: row.launches.iter().flat_map(|launch| launch.marks.iter().cloned()).collect(),
    }
}
