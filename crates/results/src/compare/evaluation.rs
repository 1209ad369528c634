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
    machine_state::MachineStates,
    permutation::{self, Adjusted, Design, Values},
    power,
    shift::{Ranks, Shifts, Stratum},
    side::{Launch, Row},
};

/// Difference of p values that are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// Evaluates all cases of two sides with these numbers of launches. Differences below `of_machine`, a fraction, may be the machine's.
pub(super) fn evaluate(
    pairs: &[(&Row, &Row)],
    launches: [usize; 2],
    states: &MachineStates,
    of_machine: f64,
    settings: Settings,
) -> Vec<CaseComparison> {
    let cases: Vec<Case<'_>> =
        pairs.iter().map(|(base, new)| Case::of(base, new, states, settings.design)).collect();
    let tested: Vec<usize> = (0..cases.len()).filter(|at| cases[*at].excluded.is_none()).collect();
    let values: Vec<Values> = tested.iter().map(|at| cases[*at].values(launches)).collect();
    let of_side = |side: usize| (0..launches[side]).map(move |launch| states.of_launch(side, launch));
    let of_all: Vec<Option<usize>> = of_side(0).chain(of_side(1)).collect();
    let Adjusted { p, smallest } = permutation::test(&values, launches[0], &of_all, settings.design);
    // Launches in a mixture of states are not quite exchangeable.
    let of_verdict = if states.is_mixture() { VERDICT_SIGNIFICANCE / 2.0 } else { VERDICT_SIGNIFICANCE };
    let judge = Judge {
        edge: settings.margin.ln_1p(),
        least: of_machine.ln_1p(),
        level: smallest.clamp(of_verdict, SIGNIFICANCE) + ROUNDING,
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
    /// Logarithms of their times, for each state of the machine.
    strata: Vec<Stratum>,
    /// Why the case cannot have a verdict.
    excluded: Option<Reason>,
}

impl<'r> Case<'r> {
    /// Leaves out launches that a mark makes invalid, and those in a state of the machine that the other side did not meet. If too few
    /// others remain, all count and there is no verdict.
    fn of(base: &'r Row, new: &'r Row, states: &MachineStates, design: Design) -> Case<'r> {
        let all = [base, new].map(|row| row.launches.iter().collect::<Vec<_>>());
        let valid = all
            .each_ref()
            .map(|side| side.iter().copied().filter(|launch| launch.invalid.is_none()).collect::<Vec<_>>());
        let counted = [0, 1].map(|side| {
            let other = &valid[1 - side];
            let shared = |launch: &&Launch| {
                let state = states.of_launch(side, launch.run);
                let partner = |other: &&Launch| design == Design::Independent || other.run == launch.run;
                let meets =
                    |other: &&Launch| states.of_launch(1 - side, other.run) == state && partner(other);
                state.is_some() && (states.groups() == 1 || other.iter().any(meets))
            };
            valid[side].iter().copied().filter(shared).collect::<Vec<_>>()
        });
        let enough = |sides: &[Vec<&Launch>; 2]| sides.iter().all(|side| side.len() >= MIN_LAUNCHES);
        let mark = all.iter().flatten().find_map(|launch| launch.invalid.clone());
        let excluded = match mark.filter(|_| enough(&all)) {
            _ if enough(&counted) => None,
            _ if enough(&valid) => Some(Reason::MachineChanged),
            Some(mark) => Some(Reason::Marked(mark)),
            None => Some(Reason::FewLaunches),
        };
        let sides = match &excluded {
            None => counted,
            Some(Reason::MachineChanged) => valid,
            Some(_) => all,
        };
        let strata = if excluded.is_none() { states.groups() } else { 1 };
        let in_state = |side: usize, state: usize| {
            let is_in = |launch: &&&Launch| strata == 1 || states.of_launch(side, launch.run) == Some(state);
            sides[side].iter().filter(is_in).map(|launch| launch.log_time).collect::<Vec<f64>>()
        };
        let strata = (0..strata).map(|state| [in_state(0, state), in_state(1, state)]).collect();
        Case { sides, strata, excluded }
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
        let [a, b] = self.sides.each_ref().map(Vec::len);
        let shifts = Shifts::of(&self.strata);
        let shift = shifts.estimate().unwrap_or(f64::NAN);
        let interval = shifts.interval(ranks.of(&self.strata)).filter(|_| a.min(b) >= MIN_LAUNCHES);
        let edge = judge.edge;
        let power = power::pooled_deviation(&self.strata).and_then(|deviation| {
            Some(Power {
                detectable: power::detectable(deviation, a, b)?.exp_m1(),
                launches_for_margin: power::launches_for(deviation, edge),
                launches_to_decide: power::launches_for(deviation, (shift.abs() - edge).abs()),
            })
        });
        let verdict = match (self.excluded, interval, p_adjusted) {
            (Some(reason), ..) => Verdict::Inconclusive(reason),
            (None, Some(interval), Some(p)) => judge.verdict(shift, interval, p),
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
    /// Smallest difference of a verdict "worse" or "better", as a logarithm.
    least: f64,
    /// Largest adjusted p value of a verdict "worse" or "better".
    level: f64,
}

impl Judge {
    /// Judges a difference and its interval, as logarithms.
    fn verdict(self, shift: f64, [low, high]: [f64; 2], p_adjusted: f64) -> Verdict {
        let Judge { edge, least, level } = self;
        match () {
            () if low > -edge && high < edge => Verdict::Same,
            () if (low > edge || high < -edge) && shift.abs() < least => {
                Verdict::Inconclusive(Reason::MachineChanged)
            }
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
