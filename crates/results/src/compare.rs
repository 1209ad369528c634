//! Comparison of two sides of runs: the difference of each case, its interval, and a verdict.

mod comparison;
mod evaluation;
mod shift;
mod side;

use std::collections::HashSet;

use crate::compare::side::Units;

pub(crate) use self::{
    comparison::EXPECTED_OPTIONS,
    shift::{Ranks, Shifts},
};
pub use self::{
    comparison::{
        CaseComparison, CaseId, Change, Comparison, Counts, Note, Power, Reason, Settings, Side, SideInfo,
        StateOfSides, Turn, Unit, UnitMedians, Unmatched, Verdict,
    },
    side::SideResults,
};

#[cfg(test)]
mod tests;

impl Comparison {
    /// Compares two sides.
    pub fn of(base: &SideResults, new: &SideResults, settings: Settings) -> Comparison {
        let mut measured: Vec<_> = base.rows().filter_map(|row| Some((row, new.row(&row.id.key)?))).collect();
        measured.retain(|(a, b)| a.measured() && b.measured());
        measured.sort_by_cached_key(|(row, _)| row.id.sort_key());
        let units = Units::of([base, new]);
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
            from.rows().filter(|row| row.measured()).filter_map(unmatched).collect()
        };
        let unmatched = [lost(base, new, Side::Base), lost(new, base, Side::New)].concat();
        let sound = |key: &str| base.row(key).is_none_or(|row| row.failed.is_none());
        let broken = new.rows().filter_map(|row| Some((row.id.key.clone(), row.failed.clone()?)));
        Comparison {
            base: base.info("base"),
            new: new.info("new"),
            margin: settings.margin,
            cases: evaluation::evaluate(&measured, &units, settings),
            unit: units.unit,
            state: units.state,
            unmatched,
            broken: broken.filter(|(key, _)| sound(key)).collect(),
            notes: comparison::notes(base, new, took_turns).into_iter().chain(units.note()).collect(),
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
        let open = |reason: &Reason| !matches!(reason, Reason::Marked(_));
        self.cases.iter().any(|case| matches!(&case.verdict, Verdict::Undecided(reason) if open(reason)))
    }
}
