//! Limits from good days that checks of this host have missed, each with the day of its first miss. A limit is missed on two days: the
//! machine can be slow for a whole day, and both measurements of a check see the same hour.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use ombx_core::{
    error::{Error, Result},
    system::{
        environment::{hostname, timestamp},
        file,
    },
};
use ombx_results::baseline::Baseline;

use super::judgement::{Finding, State};
use crate::result_file::KnownRuns;

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

/// Ending of result files.
const ENDING: &str = "jsonl";

/// Reads the good days of a directory. Returns `None` if it has none.
pub(super) fn read(directory: &Path) -> Result<Option<Baseline>> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(None) };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == ENDING)).collect();
    paths.sort();
    let (mut baseline, mut known) = (Baseline::default(), KnownRuns::default());
    for path in &paths {
        baseline.add(&known.read_found(path)?.runs);
    }
    Ok((!paths.is_empty()).then_some(baseline))
}

/// Creates a directory, unless it exists.
pub(super) fn create(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(|e| unwritable(directory, &e))
}

/// Writes a new file of a directory, named after time and host, and returns its path.
pub(super) fn add(directory: &Path, contents: &[u8]) -> Result<PathBuf> {
    let failed = |e: std::io::Error| unwritable(directory, &e);
    let mut file = tempfile::Builder::new().prefix(".ombx-").tempfile_in(directory).map_err(failed)?;
    file.write_all(contents).map_err(failed)?;
    let stem = format!("{}-{}", timestamp().replace(':', ""), hostname());
    for number in 1.. {
        let name = if number == 1 { format!("{stem}.{ENDING}") } else { format!("{stem}-{number}.{ENDING}") };
        let path = directory.join(name);
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(path),
            Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => file = e.file,
            Err(e) => return Err(failed(e.error)),
        }
    }
    unreachable!("some name is free")
}

fn unwritable(directory: &Path, why: &std::io::Error) -> Error {
    Error::storage(format!("cannot write into the directory {}: {why}", directory.display()))
}

#[cfg(test)]
mod tests {
    use ombx_core::{benchmark::Metric, result::Measurement};

    use super::*;
    use crate::commands::check::judgement::Limit;

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

    const RUN: &str = include_str!("../../../../results/tests/golden/one_launch.jsonl");

    #[test]
    fn files_of_a_second_have_different_names() {
        let directory = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..3).map(|_| add(directory.path(), b"x").unwrap()).collect();
        assert!(paths[0] != paths[1] && paths[1] != paths[2] && paths.iter().all(|path| path.exists()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "no temporary file is left");
        assert!(add(&directory.path().join("none"), b"x").is_err());
    }

    #[test]
    fn a_directory_without_results_is_no_baseline() {
        let directory = tempfile::tempdir().unwrap();
        assert!(read(&directory.path().join("none")).unwrap().is_none());
        fs::write(directory.path().join("notes.txt"), "x").unwrap();
        assert!(read(directory.path()).unwrap().is_none());
        add(directory.path(), RUN.as_bytes()).unwrap();
        assert!(read(directory.path()).unwrap().is_some());
        // A copy of a day is no further day.
        add(directory.path(), RUN.as_bytes()).unwrap();
        assert!(read(directory.path()).is_err());
    }
}
