//! Judgement of rows: what each limit says about each row, and what two measurements say together.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use ombx_estimate::{
    baseline::{Baseline, Missing, Reference, Standing, disturbance, standing, state_of},
    number::{self, Decimals},
    state::is_same,
};
use ombx_host::{
    environment::{hostname, timestamp},
    node_set,
};
use ombx_launch::result_file::KnownRuns;
use ombx_record::{
    error::{Error, Exit, Result},
    file::ENDING,
    regular_file,
    result::{Check, Measurement, Outcome, Run},
    runs::hosts,
    unit::counted,
};
use ombx_show::monitoring::Status;

use crate::check::{expectations::Entry, measurement::Measured};

/// Result of a limit, in ascending order of importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Met,
    /// The limit is inside the interval, or the measurements contradict each other.
    Undecided,
    /// Every limit is met, but a host counted more errors than others.
    Errors,
    /// The host was busy.
    Busy,
    /// Nothing was measured, or there is nothing to compare with.
    NoVerdict,
    Missed,
    /// The launcher, MPI or a connection failed, or a rank died.
    Broken,
    /// Data arrived wrong.
    Wrong,
}

impl State {
    /// Each state with its exit code in all formats except that of monitoring, its status there, and its name.
    pub(super) const TABLE: [(State, Exit, Status, &str); 8] = [
        (State::Met, Exit::Success, Status::Ok, "met"),
        (State::Undecided, Exit::Undecided, Status::Warning, "undecided"),
        (State::Errors, Exit::Errors, Status::Warning, "errors"),
        (State::Busy, Exit::Busy, Status::Unknown, "busy"),
        (State::NoVerdict, Exit::NoVerdict, Status::Unknown, "no verdict"),
        (State::Missed, Exit::Slow, Status::Critical, "missed"),
        (State::Broken, Exit::Fabric, Status::Critical, "broken"),
        (State::Wrong, Exit::WrongData, Status::Critical, "wrong data"),
    ];

    pub(super) const fn exit_code(self) -> u8 {
        State::TABLE[self as usize].1.code()
    }

    pub(super) const fn status(self) -> Status {
        State::TABLE[self as usize].2
    }

    pub(super) const fn name(self) -> &'static str {
        State::TABLE[self as usize].3
    }
}

/// Good days, and the number of limits that follow from them in this check.
#[derive(Debug, Clone, Copy)]
pub(super) struct GoodDays<'g> {
    pub(super) baseline: &'g Baseline,
    pub(super) limits: usize,
}

/// What one limit says about one row, or why there is no row.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    /// Benchmark with its axes and hosts; of an entry without rows, what it runs.
    pub(super) name: String,
    /// Run of the last measurement of the row.
    pub(super) run: Option<Run>,
    /// The last measurement of the row.
    pub(super) row: Option<Measurement>,
    pub(super) limit: Option<Limit>,
    pub(super) state: State,
    /// How often the row was measured.
    pub(super) measured: u32,
    /// Nanoseconds between two cores in the state of the machine in which the row was measured; `None` if it is unknown.
    pub(super) core_to_core_ns: Option<f64>,
    /// The states of two measurements that both missed the limit, if they differ.
    pub(super) two_states: Option<[f64; 2]>,
    /// Why the state is what it is, if figure and limit do not say it.
    pub(super) why: Option<String>,
}

/// A limit of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Limit {
    /// As the user knows it: `<5us`, or `within 20 % of 4.1 us (5 good days)`.
    pub(super) text: String,
    /// In the unit of the row's headline.
    pub(super) value: f64,
    /// Whether it follows from good days.
    pub(super) is_relative: bool,
    /// Whether fewer than seven good days stand behind it.
    pub(super) is_thin: bool,
}

/// Judges all rows of a measurement of an entry. Without good days only absolute limits are judged.
pub(super) fn judge(entry: &Entry, measured: &Measured, good: Option<GoodDays<'_>>) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        measured.rows.iter().flat_map(|(run, row)| of_row(entry, run, row, good)).collect();
    if let Some(failure) = &measured.failure {
        // Rows of a job that broke are not judged: it lacks launches.
        findings.retain(|finding| finding.state > State::Missed);
        let state = if failure.is_broken { State::Broken } else { State::NoVerdict };
        findings.push(Finding::without_row(entry.shown(), state, failure.why.clone()));
    }
    findings
}

fn of_row(entry: &Entry, run: &Run, row: &Measurement, good: Option<GoodDays<'_>>) -> Vec<Finding> {
    if let Some((state, why)) = without_figure(row) {
        return vec![Finding::from_row(run, row, None, state, Some(why))];
    }
    let mut findings = Vec::new();
    if let Some(expectation) = &entry.limits.absolute {
        let value = expectation.most_us().or(expectation.least_mb_per_s()).unwrap_or_default();
        let text = expectation.to_string();
        let text = text.trim_start_matches(|c: char| c.is_ascii_alphabetic()).to_owned();
        let limit = Limit { text, value, is_relative: false, is_thin: false };
        let (state, why) = against(row, &limit);
        findings.push(Finding::from_row(run, row, Some(limit), state, why));
    }
    if let (Some(within), Some(GoodDays { baseline, limits })) = (entry.limits.within, good) {
        let limit = baseline
            .reference(run, row, limits)
            .and_then(|good| relative(row, &good, within).ok_or(Missing::Case));
        findings.push(match limit {
            Ok(limit) => {
                let (state, why) = against(row, &limit);
                Finding::from_row(run, row, Some(limit), state, why)
            }
            Err(missing) => {
                Finding::from_row(run, row, None, State::NoVerdict, Some(without_good_day(missing)))
            }
        });
    }
    findings
}

/// Returns the state of a row that has no figure, and why.
fn without_figure(row: &Measurement) -> Option<(State, String)> {
    match (&row.outcome, &row.check) {
        (_, Check::Failed(why)) => Some((State::Wrong, format!("data arrived wrong: {why}"))),
        (Outcome::Failed(why), _) => Some((State::Broken, why.clone())),
        (Outcome::Skipped(why), _) => Some((State::NoVerdict, format!("skipped: {why}"))),
        _ if row.headline().is_none() => Some((State::NoVerdict, "the row has no figure".to_owned())),
        _ => None,
    }
}

/// Returns why a row has no limit.
fn without_good_day(missing: Missing) -> String {
    match missing {
        Missing::Case => "the baseline has no such row of these hosts: learn it with --learn".into(),
        Missing::State(ns) => format!(
            "no good day was measured in this state of the machine (cores {ns:.0} ns apart): learn one with --learn"
        ),
        Missing::UnknownState => {
            "the state of the machine is unknown, and good days were measured in several: repeat the check"
                .into()
        }
    }
}

/// Returns the state of a row and why, if a limit does not say it.
fn against(row: &Measurement, limit: &Limit) -> (State, Option<String>) {
    match standing(row, limit.value) {
        Some(Standing::Met) => (State::Met, None),
        Some(Standing::Missed) if limit.is_thin => (
            State::Undecided,
            Some("slower than the few good days, which do not show how much days vary".into()),
        ),
        Some(Standing::Missed) => (State::Missed, None),
        _ => {
            let why = match disturbance(row) {
                Some(mark) => format!("disturbed: {}", mark.short),
                None if row.headline().is_some_and(|headline| headline.ci95.is_none()) => {
                    "the row has no interval".to_owned()
                }
                None => "the limit is inside the interval".to_owned(),
            };
            (State::Undecided, Some(why))
        }
    }
}

/// Returns the limit that follows from good days.
fn relative(row: &Measurement, good: &Reference, within: f64) -> Option<Limit> {
    let tolerance = good.tolerance(within);
    let value = row.in_unit(tolerance.limit_ns)?;
    let median = number::figure(row.in_unit(good.median_ns)?);
    let days = counted(good.days, "good day");
    let mut text =
        format!("within {:.0} % of {median} {} ({days})", tolerance.part * 100.0, row.metric.unit());
    if tolerance.is_variation {
        text += &format!(", which may vary by more than {:.0} %", within * 100.0);
    }
    if good.is_thin() {
        text += "; thin baseline";
    }
    Some(Limit { text, value, is_relative: true, is_thin: good.is_thin() })
}

/// Returns what a first and a second measurement of the same entry say together. A limit is missed only if both miss it.
pub(super) fn combine(first: &[Finding], second: Vec<Finding>) -> Vec<Finding> {
    second.into_iter().map(|again| with_first(first, again)).collect()
}

/// Returns a finding of a second measurement together with that of the first one.
fn with_first(first: &[Finding], mut again: Finding) -> Finding {
    // A limit from good days of another state of the machine has another text.
    let same = |finding: &&Finding| finding.id() == again.id();
    let Some(before) = first.iter().find(same) else { return again };
    again.measured = before.measured + 1;
    if [before.state, again.state] == [State::Missed; 2] {
        let states = before.core_to_core_ns.zip(again.core_to_core_ns);
        again.two_states =
            states.filter(|(one, other)| !is_same(*one, *other)).map(|(one, other)| [one, other]);
    }
    let limits = [before.state, again.state];
    if limits.contains(&State::Missed) && limits.contains(&State::Undecided) {
        again.state = State::Undecided;
        again.why = again.why.or(before.why.clone());
    }
    again
}

impl Finding {
    /// Returns the finding of a row that was measured once.
    fn from_row(
        run: &Run,
        row: &Measurement,
        limit: Option<Limit>,
        state: State,
        why: Option<String>,
    ) -> Finding {
        Finding {
            run: Some(run.clone()),
            row: Some(row.clone()),
            limit,
            measured: 1,
            core_to_core_ns: state_of(run, row),
            why,
            ..Finding::without_row(name(run, row), state, String::new())
        }
    }

    pub(super) fn without_row(name: String, state: State, why: String) -> Finding {
        Finding {
            name,
            run: None,
            row: None,
            limit: None,
            state,
            measured: 0,
            core_to_core_ns: None,
            two_states: None,
            why: Some(why),
        }
    }

    /// Returns whether a second measurement could change the state.
    pub(super) fn wants_another(&self) -> bool {
        matches!(self.state, State::Missed | State::Undecided)
    }

    /// Turns a limit that was missed once into one that is undecided.
    pub(super) fn leave_undecided(&mut self, why: &str) {
        if self.state == State::Missed {
            (self.state, self.why) = (State::Undecided, Some(why.to_owned()));
        }
    }

    /// Identifies row and kind of limit over two measurements.
    fn id(&self) -> (&str, Option<&str>, Option<&str>) {
        let key = self.row.as_ref().map(|row| row.key.as_str());
        (
            &self.name,
            key,
            self.limit.as_ref().map(|limit| if limit.is_relative { "" } else { limit.text.as_str() }),
        )
    }

    /// Returns the figure with its interval and unit.
    pub(super) fn figure(&self) -> Option<String> {
        let row = self.row.as_ref()?;
        let headline = row.headline()?;
        let decimals = Decimals::new(headline.value, headline.ci95);
        let format = |value| decimals.format_at_most_figure(value);
        let ends = match headline.ci95 {
            Some([low, high]) => format!(" ({} .. {})", format(low), format(high)),
            None => " (no interval)".into(),
        };
        Some(format!("{} {}{ends}", format(headline.value), row.metric.unit()))
    }
}

/// Returns the benchmark, the values of its axes, and the hosts unless this is the only one.
fn name(run: &Run, row: &Measurement) -> String {
    let axes: String = row.axes.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let place = match hosts(run)[..] {
        [] => String::new(),
        [host] if host == hostname() => String::new(),
        [from, to] => format!(" {from}-{to}"),
        ref all => format!(" {}", node_set::fold(all.iter().copied())),
    };
    format!("{}{axes}{place}", row.bench)
}

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
        let text = regular_file::read_found(&path, regular_file::LONGEST_TEXT).unwrap_or_default();
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
        if self.has_changed {
            regular_file::replace_found(&self.path, self.text().as_bytes())
        } else {
            Ok(())
        }
    }

    fn text(&self) -> String {
        format!("{:#}\n", serde_json::json!(self.dates))
    }
}

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
    use ombx_record::{
        result::{Metric, Mismatch},
        unit::Rank,
    };

    use super::*;

    fn finding(state: State) -> Finding {
        let limit = Limit { text: "<5us".into(), value: 5.0, is_relative: false, is_thin: false };
        Finding {
            limit: Some(limit),
            measured: 1,
            why: None,
            ..Finding::without_row("b".into(), state, String::new())
        }
    }

    fn together(first: State, second: State) -> (State, u32) {
        let both = combine(&[finding(first)], vec![finding(second)]);
        (both[0].state, both[0].measured)
    }

    #[test]
    fn a_limit_is_missed_only_twice() {
        use State::{Broken, Met, Missed, Undecided};
        for (first, second, both) in [
            (Missed, Missed, Missed),
            (Missed, Met, Met),
            (Missed, Undecided, Undecided),
            (Undecided, Missed, Undecided),
            (Undecided, Met, Met),
            (Undecided, Undecided, Undecided),
            (Missed, Broken, Broken),
        ] {
            assert_eq!(together(first, second), (both, 2), "{first:?} {second:?}");
        }
        let mut late = finding(Missed);
        late.leave_undecided("no time");
        assert_eq!((late.state, late.why.as_deref()), (Undecided, Some("no time")));
    }

    #[test]
    fn a_second_measurement_without_rows_replaces_the_first() {
        let failure = Finding::without_row("b".into(), State::Broken, "rank 1 died".into());
        let both = combine(&[finding(State::Missed)], vec![failure]);
        assert_eq!((both.len(), both[0].state), (1, State::Broken));
    }

    #[test]
    fn wrong_data_and_ended_ranks_are_told_apart() {
        let row = |outcome, check| Measurement {
            outcome,
            check,
            ..Measurement::new("b", "b/", Metric::Latency, 2)
        };
        let mismatch = Mismatch { rank: Rank(1), slot: 0, byte: 42, expected: 0, actual: 1 };
        let failed = || Outcome::Failed("x".into());
        let state = |row: &Measurement| without_figure(row).map(|(state, _)| state);
        assert_eq!(state(&row(failed(), Check::Failed(mismatch))), Some(State::Wrong));
        assert_eq!(state(&row(failed(), Check::Off)), Some(State::Broken));
        assert_eq!(state(&row(Outcome::Skipped("x".into()), Check::Off)), Some(State::NoVerdict));
    }

    #[test]
    fn exit_codes_and_status_follow_the_importance() {
        let all = State::TABLE.map(|(state, ..)| state);
        assert!((0..).zip(all).all(|(at, state)| at == state as usize));
        assert_eq!(all.map(State::exit_code), [0, 8, 13, 11, 10, 9, 6, 5]);
        assert_eq!(all.map(|state| state.status().code()), [0, 1, 1, 3, 3, 2, 2, 2]);
    }

    #[test]
    fn few_good_days_are_no_proof() {
        let good =
            Reference { results: 2, days: 1, median_ns: 1000.0, slowest_ns: 1300.0, predicted_ns: None };
        let row = Measurement::new("b", "b/", Metric::Latency, 2);
        let limit = relative(&row, &good, 0.2).unwrap();
        assert_eq!(
            limit.text,
            "within 30 % of 1.000 us (1 good day), which may vary by more than 20 %; thin baseline"
        );
        assert!(limit.is_thin && (limit.value - 1.3).abs() < 1e-12, "{limit:?}");
        let many = Reference { days: 7, predicted_ns: Some(1100.0), slowest_ns: 1050.0, ..good };
        assert_eq!(relative(&row, &many, 0.2).unwrap().text, "within 20 % of 1.000 us (7 good days)");
    }

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

    const RUN: &str = include_str!("../../../record/tests/golden/one_launch.jsonl");

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
