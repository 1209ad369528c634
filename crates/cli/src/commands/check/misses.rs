//! Limits from good days that checks of this host have missed, each with the day of its first miss. A limit is missed on two days: the
//! machine can be slow for a whole day, and both measurements of a check see the same hour.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use ombx_core::system::{environment::hostname, file};

use super::judgement::{Finding, State};

/// Misses of earlier checks, in a file of the directory of good days.
pub(super) struct Misses {
    path: PathBuf,
    /// Date in UTC of the first miss since the limit was met last, by row.
    dates: BTreeMap<String, String>,
    has_changed: bool,
}

impl Misses {
    /// Reads the misses of a directory. A file that cannot be read has none.
    pub(super) fn read(directory: &Path) -> Misses {
        let path = directory.join(format!("missed-{}.json", hostname()));
        let text = file::read_found(&path, file::LONGEST_TEXT).unwrap_or_default();
        Misses { path, dates: serde_json::from_slice(&text).unwrap_or_default(), has_changed: false }
    }

    /// Judges a row that missed its limit today: it is missed if it was on an earlier day too, or if it is in two states of the machine,
    /// of which neither is then the cause. Forgets a row that meets its limit.
    pub(super) fn judge(&mut self, finding: &mut Finding, today: &str) {
        let Some(row) =
            finding.row.as_ref().filter(|_| finding.limit.as_ref().is_some_and(|limit| limit.is_relative))
        else {
            return;
        };
        let id = format!("{} {}", finding.name, row.key);
        match finding.state {
            State::Met => self.has_changed |= self.dates.remove(&id).is_some(),
            State::Missed => {
                let first = self.dates.get(&id).cloned();
                if first.is_none() {
                    self.dates.insert(id, today.to_owned());
                    self.has_changed = true;
                }
                let earlier = first.filter(|first| first.as_str() < today);
                (finding.state, finding.why) = match (earlier, finding.two_states) {
                    (Some(first), _) => (State::Missed, Some(format!("missed since {first}"))),
                    (None, Some([one, other])) => {
                        let why = format!(
                            "missed in two states of the machine (cores {one:.0} and {other:.0} ns apart)"
                        );
                        (State::Missed, Some(why))
                    }
                    (None, None) => {
                        let why =
                            "missed today for the first time: a limit from good days is missed on two days";
                        (State::Undecided, Some(why.to_owned()))
                    }
                };
            }
            _ => {}
        }
    }

    /// Writes the file if something has changed.
    pub(super) fn write(&self) -> io::Result<()> {
        if self.has_changed { file::replace_found(&self.path, self.text().as_bytes()) } else { Ok(()) }
    }

    fn text(&self) -> String {
        format!("{:#}\n", serde_json::json!(self.dates))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::check::judgement::Limit;
    use ombx_core::{benchmark::Metric, result::Measurement};

    fn judged(
        misses: &mut Misses,
        state: State,
        two_states: Option<[f64; 2]>,
        today: &str,
    ) -> (State, String) {
        let limit = Limit { text: "l".into(), value: 5.0, is_relative: true, is_thin: false };
        let row = Some(Measurement::new("b", "b/", Metric::Latency, 2));
        let none = Finding::without_row("b".into(), state, String::new());
        let mut finding = Finding { row, limit: Some(limit), why: None, two_states, ..none };
        misses.judge(&mut finding, today);
        (finding.state, finding.why.unwrap_or_default())
    }

    #[test]
    fn a_limit_from_good_days_is_missed_on_two_days_or_in_two_states() {
        let directory = tempfile::tempdir().unwrap();
        let mut day = Misses::read(directory.path());
        assert_eq!(judged(&mut day, State::Missed, None, "2026-03-01").0, State::Undecided);
        assert_eq!(judged(&mut day, State::Missed, None, "2026-03-01").0, State::Undecided, "the same day");
        day.write().unwrap();
        let mut next = Misses::read(directory.path());
        let (state, why) = judged(&mut next, State::Missed, None, "2026-03-02");
        assert_eq!((state, why.as_str()), (State::Missed, "missed since 2026-03-01"));
        assert_eq!(judged(&mut next, State::Undecided, None, "2026-03-03").0, State::Undecided);
        assert_eq!(judged(&mut next, State::Met, None, "2026-03-04").0, State::Met);
        next.write().unwrap();
        let mut later = Misses::read(directory.path());
        assert_eq!(judged(&mut later, State::Missed, None, "2026-03-05").0, State::Undecided, "met between");
        let mut two = Misses::read(directory.path());
        let (state, why) = judged(&mut two, State::Missed, Some([51.0, 250.0]), "2026-03-05");
        assert!(state == State::Missed && why.contains("cores 51 and 250 ns apart"), "{why}");
    }
}
