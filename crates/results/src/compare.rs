//! Comparison of two sides of runs: the difference of each case, its interval, and a verdict.

mod comparison;
mod evaluation;
pub mod holm;
pub mod rank_sum;
mod setup;
mod side;
pub mod student;
#[cfg(test)]
mod tests;

pub use self::{
    comparison::{
        CaseComparison, CaseId, Change, Comparison, Evidence, LaunchMedians, Method, Note, Side, SideInfo,
        Unmatched, Verdict,
    },
    evaluation::{SIGNIFICANCE, launches_needed},
    side::SideResults,
};

impl Comparison {
    /// Compares two sides.
    pub fn of(base: &SideResults, new: &SideResults) -> Comparison {
        let mut measured: Vec<_> = base.rows().filter_map(|row| Some((row, new.row(&row.id.key)?))).collect();
        measured.retain(|(a, b)| a.measured() && b.measured());
        measured.sort_by(|(a, _), (b, _)| a.id.sort_key().cmp(&b.id.sort_key()));
        let (cases, mut notes) = evaluation::evaluate(&measured, setup::order(base, new));
        notes.splice(0..0, setup::notes(base, new));
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
            base: base.info(),
            new: new.info(),
            cases,
            unmatched,
            broken: broken.filter(|(key, _)| sound(key)).collect(),
            notes,
        }
    }

    /// Returns the cases that are worse by more than `beyond`, a fraction.
    pub fn regressions(&self, beyond: f64) -> impl Iterator<Item = &CaseComparison> {
        self.cases
            .iter()
            .filter(move |case| case.verdict == Verdict::Worse && case.change.median.abs() > beyond)
    }

    /// Returns the numbers of worse, better and unresolved cases.
    pub fn verdict_counts(&self) -> [usize; 3] {
        ["worse", "better", "unresolved"]
            .map(|name| self.cases.iter().filter(|case| case.verdict.name() == name).count())
    }

    /// Returns the cases that are better or worse.
    pub fn resolved(&self) -> impl Iterator<Item = &CaseComparison> {
        self.cases.iter().filter(|case| !matches!(case.verdict, Verdict::Unresolved(_)))
    }
}
