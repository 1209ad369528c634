//! Comparison of two sides of runs: the difference of each case, its interval, and a verdict; results over time, and models.
//!
//! The crate knows rows over launches, but neither tables nor pages. Its verdicts have their error probability from simulations.
//!
//! | module | contents |
//! |---|---|
//! | [`history`] | reads a directory of result files as series over time, and finds changes |
//! | [`model`] | parameters of LogGP, and sizes at which the protocol switches |

mod comparison;
mod evaluation;
pub mod history;
mod links;
pub mod model;
mod shift;
mod side;

use std::collections::HashSet;

use crate::side::Units;

pub use self::links::HOST;
pub(crate) use self::{
    comparison::is_of_setup,
    shift::{Ranks, Shifts},
};
pub use self::{
    comparison::{
        CaseComparison, CaseId, Change, Comparison, Counts, DecidedBy, INSTRUCTIONS_MARGIN, Note,
        OutlyingTurn, Power, Reason, Settings, Side, SideInfo, StateOfSides, Turn, Unit, UnitMedians,
        Unmatched, Verdict, has_same_options,
    },
    side::SideResults,
};

#[cfg(test)]
mod tests;

/// Evaluates all cases by their times, and those whose instructions were counted also by these.
fn evaluated(
    measured: &[(&side::Row, &side::Row)],
    sides: [&SideResults; 2],
    units: &Units,
    settings: Settings,
) -> Vec<CaseComparison> {
    let mut cases = evaluation::evaluate(measured, units, settings);
    let of_instructions =
        |(base, new): &(&side::Row, &side::Row)| base.of_instructions().zip(new.of_instructions());
    let counted: Vec<(usize, (side::Row, side::Row))> =
        (0..).zip(measured).filter_map(|(at, pair)| Some((at, of_instructions(pair)?))).collect();
    let pairs: Vec<(&side::Row, &side::Row)> = counted.iter().map(|(_, (base, new))| (base, new)).collect();
    let units = Units::of_any_state(sides);
    let by_instructions = evaluation::evaluate(&pairs, &units, Settings { margin: INSTRUCTIONS_MARGIN });
    for ((at, _), case) in counted.iter().zip(by_instructions) {
        cases[*at].instructions = Some(Box::new(case));
    }
    cases
}

/// Returns why instructions of some cases are not compared although a side was to count them.
fn without_instructions(base: &SideResults, new: &SideResults, cases: &[CaseComparison]) -> Option<Note> {
    let why = base.no_instructions.as_ref().or(new.no_instructions.as_ref())?;
    let without = cases.iter().filter(|case| case.instructions.is_none()).count();
    let of =
        if without < cases.len() { format!(" in {without} of {} cases", cases.len()) } else { String::new() };
    Some(Note { code: "instructions", text: format!("instructions are not compared{of}: {why}") })
}

impl Comparison {
    /// Compares two sides.
    pub fn new(base: &SideResults, new: &SideResults, settings: Settings) -> Comparison {
        let mut measured: Vec<_> =
            base.rows.iter().filter_map(|row| Some((row, new.row(&row.id.key)?))).collect();
        measured.retain(|(a, b)| a.measured() && b.measured());
        measured.sort_by_cached_key(|(row, _)| row.id.sort_key());
        let units = Units::new([base, new]);
        let took_turns = units.unit == Unit::Turn || comparison::overlap(base, new);
        let lost = |from: &SideResults, other: &SideResults, only| -> Vec<Unmatched> {
            let unmatched = |row: &side::Row| {
                let why = match other.row(&row.id.key) {
                    None => "not there".to_owned(),
                    Some(there) if !there.measured() => there.missing.clone().unwrap_or_default(),
                    Some(_) => return None,
                };
                Some(Unmatched { key: row.id.key.clone(), only, why })
            };
            from.rows.iter().filter(|row| row.measured()).filter_map(unmatched).collect()
        };
        let unmatched = [lost(base, new, Side::Base), lost(new, base, Side::New)].concat();
        let sound = |key: &str| base.row(key).is_none_or(|row| row.failed.is_none());
        let broken = new.rows.iter().filter_map(|row| Some((row.id.key.clone(), row.failed.clone()?)));
        let cases = evaluated(&measured, [base, new], &units, settings);
        Comparison {
            base: base.info("base"),
            new: new.info("new"),
            margin: settings.margin,
            unit: units.unit,
            state: units.state,
            unmatched,
            broken: broken.filter(|(key, _)| sound(key)).collect(),
            notes: comparison::notes(base, new)
                .into_iter()
                .chain(comparison::without_turns(base, new).filter(|_| !took_turns))
                .chain(units.note())
                .chain(without_instructions(base, new, &cases))
                .collect(),
            cases,
        }
    }

    /// Returns the numbers of cases of each verdict.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for case in &self.cases {
            *match case.verdict {
                Verdict::Worse => &mut counts.worse,
                Verdict::Better => &mut counts.better,
                Verdict::Same => &mut counts.same,
                Verdict::Undecided(_) => &mut counts.undecided,
            } += 1;
        }
        counts
    }

    /// Returns the cases that are not shown to be slower by at most the margin, except those that are worse.
    pub fn undecided(&self) -> impl Iterator<Item = &CaseComparison> {
        self.cases.iter().filter(|case| {
            let decided = match case.verdict {
                Verdict::Worse | Verdict::Better | Verdict::Same => true,
                Verdict::Undecided(_) => case.is_not_slower,
            };
            !decided
        })
    }

    /// Returns the cases that only one side measured, except those that are broken.
    pub fn lost(&self) -> impl Iterator<Item = &Unmatched> {
        let broken: HashSet<&str> = self.broken.iter().map(|(key, _)| key.as_str()).collect();
        self.unmatched.iter().filter(move |case| !broken.contains(case.key.as_str()))
    }

    /// Returns whether more runs or turns could decide a case that is not decided.
    pub fn more_could_decide(&self) -> bool {
        let open = |reason: &Reason| !matches!(reason, Reason::Marked(_) | Reason::OtherLinks);
        self.cases.iter().any(|case| matches!(&case.verdict, Verdict::Undecided(reason) if open(reason)))
    }
}
