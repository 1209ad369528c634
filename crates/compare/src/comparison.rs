//! Result of a comparison: cases, differences, evidence and verdicts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use ombx_estimate::{number::Units, state, text::named_values};
use ombx_host::node_set;
use ombx_record::{
    fact::Fact,
    link::{BENCH, MOST_RANKS},
    result::{LoadedFile, MarkCode, Metric, Placement, Run},
    runs::{hosts, library},
};
use serde::Serialize;

use crate::{links::HOST, side::SideResults};

/// Accepted probability that a verdict is wrong for any case.
pub(super) const SIGNIFICANCE: f64 = 0.05;
/// The same at each look of `ab`, which ends when two looks in a row agree. Simulated: the whole comparison is then wrong in at most 4.9
/// of 100 cases whose difference is the margin.
pub(super) const SIGNIFICANCE_OF_LOOK: f64 = 0.025;

/// What is compared: the values of both sides are medians of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Runs, each the launches of one command.
    Run,
    /// Turns of `ombx ab`.
    Turn,
}

impl Unit {
    /// Returns the minimum number on each side for a verdict. The smallest p value of 4 runs a side is 0.4 %,
    /// that of 6 turns 1.6 %.
    pub const fn least(self) -> usize {
        match self {
            Unit::Run => 4,
            Unit::Turn => 6,
        }
    }

    /// Returns the word for several.
    pub const fn plural(self) -> &'static str {
        match self {
            Unit::Run => "runs",
            Unit::Turn => "turns",
        }
    }
}

/// State of the machine in which two sides are compared.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StateOfSides {
    /// Time of a cache line between two cores, in nanoseconds; `None` without a verdict, and if it is unknown or does not matter.
    pub core_to_core_ns: Option<f64>,
    /// Runs or turns of both sides in this state.
    pub units: [usize; 2],
    /// All runs or turns of both sides.
    pub of: [usize; 2],
}

/// How two sides are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Differences up to this fraction do not matter.
    pub margin: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { margin: 0.05 }
    }
}

/// Comparison of a new side with a base.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Reference side.
    pub base: SideInfo,
    /// Side that is compared with the base.
    pub new: SideInfo,
    /// Differences up to this fraction do not matter.
    pub margin: f64,
    /// What is compared.
    pub unit: Unit,
    /// State of the machine in which it is compared.
    pub state: StateOfSides,
    /// Cases that both sides measured, in the order of benchmark, axes, depth and size.
    pub cases: Vec<CaseComparison>,
    /// Cases that only one side measured.
    pub unmatched: Vec<Unmatched>,
    /// Key and reason of cases that failed on the new side and never on the base.
    pub broken: Vec<(String, String)>,
    /// Differences between the setups of the sides, and limits of the comparison.
    pub notes: Vec<Note>,
}

/// Description of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideInfo {
    /// Short name in titles: `base` and `new`, or what the user chose.
    pub label: String,
    /// Description, usually the names of the files.
    pub name: String,
    /// Identifiers of the runs of this side.
    pub runs: Vec<String>,
    /// Number of launches. A launch with several media has a run for each.
    pub launches: usize,
    /// Number of commands that started them.
    pub commands: usize,
    /// MPI libraries of the runs, without build details.
    pub libraries: BTreeSet<String>,
}

/// Identity of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseId {
    /// Benchmark.
    pub bench: String,
    /// Key of the row. Both sides use the same key for the same case.
    pub key: String,
    /// Metric of the headline figure.
    pub metric: Metric,
    /// Unit of the headline figure: `us`, `MB/s` or `messages/s`.
    pub unit: &'static str,
    /// Message size.
    pub bytes: Option<u64>,
    /// Number of operations in flight.
    pub depth: Option<u32>,
    /// Number of pairs of ranks that communicate at the same time.
    pub pairs: u32,
    /// Chosen value of each axis.
    pub axes: BTreeMap<String, String>,
}

impl CaseId {
    /// Returns the key by which cases are sorted.
    /// Returns the order of cases. Hosts of a sweep follow each other.
    pub(super) fn sort_key(&self) -> impl Ord {
        let axes = self.axes.iter().filter(|(name, _)| self.host().is_none() || *name != HOST);
        let axes: Vec<(&str, &str)> = axes.map(|(k, v)| (k.as_str(), v.as_str())).collect();
        (self.bench.as_str(), axes, self.depth, self.pairs, self.host(), self.bytes)
    }

    /// Returns the host, if the value is the median of its links.
    pub fn host(&self) -> Option<&str> {
        self.axes.get(HOST).filter(|_| self.bench == BENCH).map(String::as_str)
    }
}

/// Comparison of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseComparison {
    /// The case.
    pub id: CaseId,
    /// Figures of the base.
    pub base: UnitMedians,
    /// Figures of the new side.
    pub new: UnitMedians,
    /// Difference of the sides.
    pub change: Change,
    /// Probability of a difference of this size in any case of equal sides. `None` for a case that cannot have a verdict.
    pub p_adjusted: Option<f64>,
    /// Probability of a difference so far beyond the margin in any case, if the true difference is the margin. `None` likewise.
    pub p_beyond: Option<f64>,
    /// Whether the new side is shown to be slower by less than the margin, or faster.
    pub is_not_slower: bool,
    /// What the runs or turns of this case can show. `None` for too few.
    pub power: Option<Power>,
    /// Turn without which an undecided case would be decided.
    pub outlying_turn: Option<OutlyingTurn>,
    /// Conclusion.
    pub verdict: Verdict,
    /// The same case compared by the instructions of a rank per operation, with a margin of [`INSTRUCTIONS_MARGIN`]; `None` if they were not
    /// counted in every launch.
    pub instructions: Option<Box<CaseComparison>>,
}

impl CaseComparison {
    /// Returns what decides the case: its instructions if they are decided and its times are not.
    pub fn decided_by(&self) -> Option<DecidedBy> {
        let is_open = |case: &CaseComparison| matches!(case.verdict, Verdict::Undecided(_));
        let by_instructions =
            self.instructions.as_deref().filter(|_| is_open(self)).filter(|case| !is_open(case));
        match by_instructions {
            Some(_) => Some(DecidedBy::Instructions),
            None => (!is_open(self)).then_some(DecidedBy::Time),
        }
    }
}

impl Comparison {
    /// Returns the comparison with times and bandwidths in chosen units.
    #[must_use]
    pub fn in_units(mut self, units: Units) -> Comparison {
        // Message rates have no other unit.
        for case in self.cases.iter_mut().filter(|case| case.id.unit == case.id.metric.unit()) {
            let metric = case.id.metric;
            case.id.unit = units.name(metric);
            for side in [&mut case.base, &mut case.new] {
                side.median = units.convert(metric, side.median);
                side.values.iter_mut().for_each(|value| *value = units.convert(metric, *value));
            }
        }
        self
    }
}

/// What decides a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DecidedBy {
    /// Its times.
    Time,
    /// The instructions of its ranks. A rank that polls executes more of them the longer it waits.
    Instructions,
}

/// Differences of instructions up to this fraction do not matter: half of the 1 % that is to be seen.
pub const INSTRUCTIONS_MARGIN: f64 = 0.005;

/// Headline figures of a case on one side.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitMedians {
    /// Median of the values.
    pub median: f64,
    /// Median of each run or turn that counts; of each launch if there are too few of them for a verdict.
    pub values: Vec<f64>,
    /// Codes of the marks that any launch has.
    pub marks: BTreeSet<MarkCode>,
}

impl UnitMedians {
    /// Returns the smallest and the largest value.
    pub fn range(&self) -> [f64; 2] {
        let end = |pick: fn(f64, f64) -> f64| self.values.iter().copied().fold(self.median, pick);
        [end(f64::min), end(f64::max)]
    }
}

/// Relative difference of times: 0.1 is 10 % slower than the base, for latencies and for bandwidths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Hodges-Lehmann estimate, minus 1: the median of the ratios of all pairs of runs, or of the means of all pairs of turns.
    pub estimate: f64,
    /// Its 90 % interval, not corrected for the number of cases. `None` for too few runs or turns.
    pub ci90: Option<[f64; 2]>,
}

/// What a comparison of runs or turns that scatter like these can show, within the state of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// Smallest difference, as a fraction, that would have been called worse or better at least four times in five, although all cases are judged together; never above one that was.
    pub detectable: f64,
    /// Runs or turns per side that would show on which side of the margin the estimate lies. `None` if 100 are too few.
    pub units_to_decide: Option<usize>,
}

/// Turn that differs from all others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OutlyingTurn {
    /// Its number, from 1.
    pub number: u32,
    /// Time of the new side in it, in multiples of that of the base.
    pub slower: f64,
}

/// Conclusion for a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The new side is slower by more than the margin.
    Worse,
    /// The new side is faster by more than the margin.
    Better,
    /// The difference is within the margin.
    Same,
    /// Not decided, with the reason.
    Undecided(Reason),
}

impl Verdict {
    /// Returns the name in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Worse => "worse",
            Verdict::Better => "better",
            Verdict::Same => "same",
            Verdict::Undecided(_) => "undecided",
        }
    }
}

/// Why a case is not decided.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A side has fewer runs or turns than a verdict needs.
    FewUnits(Unit),
    /// The sides have too few runs or turns in the same state of the machine.
    MachineChanged,
    /// The state of the machine is unknown in too many runs or turns.
    UnknownState,
    /// A mark of too many launches says that their figures are wrong. Its code.
    Marked(MarkCode),
    /// The sides, or too many of their launches, measured other links of the host.
    OtherLinks,
    /// The sides differ, but the interval contains an end of the margin.
    SizeUnknown,
    /// The interval is beyond the margin, but among all cases this could be chance.
    Chance,
    /// The interval contains an end of the margin.
    Scatter,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::FewUnits(Unit::Run) => write!(f, "fewer than {} runs on a side", Unit::Run.least()),
            Reason::FewUnits(Unit::Turn) => write!(f, "fewer than {} turns", Unit::Turn.least()),
            Reason::MachineChanged => f.write_str("the sides met different states of the machine"),
            Reason::UnknownState => f.write_str("the state of the machine is unknown"),
            Reason::Marked(code) => write!(f, "spoiled by {}", code.phrase()),
            Reason::OtherLinks => f.write_str("the sides measured other links of the host"),
            Reason::SizeUnknown => f.write_str("differs, size unknown"),
            Reason::Chance => f.write_str("beyond the margin, but it could be chance"),
            Reason::Scatter => f.write_str("the figures scatter too much"),
        }
    }
}

/// Numbers of cases of each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Slower by more than the margin.
    pub worse: usize,
    /// Faster by more than the margin.
    pub better: usize,
    /// Within the margin.
    pub same: usize,
    /// Not decided.
    pub undecided: usize,
}

/// Case that only one side measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// Key of the row.
    pub key: String,
    /// Side that measured the case.
    pub only: Side,
    /// Why the other side did not measure it: `not there`, or the reason for skipping or failing.
    #[serde(rename = "reason")]
    pub why: String,
}

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Reference side.
    Base,
    /// Side that is compared with the base.
    New,
}

/// Remark on a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Stable code for programs, such as `library`.
    pub code: &'static str,
    /// Text for people.
    pub text: String,
}

/// Options that may differ between the sides without a note.
const EXPECTED_OPTIONS: [&str; 9] =
    ["benchmarks", "sizes", "placement", "launch", "launches", "order", "row_time_s", OPTION, state::BEFORE];

/// Returns whether an option of a plan tells two setups apart.
pub(crate) fn is_of_setup(option: &str) -> bool {
    !EXPECTED_OPTIONS.contains(&option)
}

/// Returns whether two runs have the same options, except those that may differ between the launches of a command.
pub fn has_same_options(one: &Run, other: &Run) -> bool {
    let options =
        |run: &Run| run.plan.clone().into_iter().filter(|(name, _)| is_of_setup(name)).collect::<Vec<_>>();
    options(one) == options(other)
}

/// Maximum number of values per side in a note.
const MAX_LISTED: usize = 3;

pub(super) fn notes(base: &SideResults, new: &SideResults) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut differ = |code: &'static str, what: &str, of: &dyn Fn(&Run) -> String| {
        let [a, b] = [base, new].map(|side| side.runs.iter().map(of).collect::<BTreeSet<String>>());
        if a != b && !a.is_empty() && !b.is_empty() {
            notes.push(Note { code, text: format!("{what}: base {}, new {}", list(&a), list(&b)) });
        }
    };
    differ("library", "library", &library);
    differ("hosts", "hosts", &|run| node_set::fold(hosts(run)));
    differ("ranks", "ranks", &|run| run.places.len().to_string());
    differ("binding", "CPUs of ranks", &|run| {
        run.places.iter().map(|place| place.cpus.as_str()).collect::<Vec<_>>().join(" ")
    });
    differ("placement", "placement", &|run| Placement::from_places(&run.places).name().to_owned());
    differ("clock", "clock", &|run| run.clock.source.clone());
    differ("version", "ombx", &|run| run.version.clone());
    differ("profile", "build", &|run| run.profile.clone());
    let variables = differing(base, new, |run| &run.env);
    differ("env", "environment", &|run| pairs(run.env.iter().filter(|(name, _)| variables.contains(*name))));
    let mut options = differing(base, new, |run| &run.plan);
    options.retain(|option| is_of_setup(option) && !is_of_one_side(option, base, new));
    differ("plan", "options", &|run| pairs(run.plan.iter().filter(|(name, _)| options.contains(*name))));
    notes.extend(of_facts(base, new));
    notes.extend(replaced(base, new));
    if [base, new].iter().flat_map(|side| &side.runs).all(|run| run.profile == "debug") {
        notes.push(Note {
            code: "debug_build",
            text: "both sides are debug builds of ombx: build with --release for meaningful figures".into(),
        });
    }
    for (name, side) in [("base", base), ("new", new)] {
        let (runs, ended) = (side.runs.len(), side.complete);
        if ended < runs {
            let text = format!("{name}: {} of {runs} runs are incomplete", runs - ended);
            notes.push(Note { code: "incomplete", text });
        }
    }
    if base.has_links_by_host || new.has_links_by_host {
        let left_out = match [base, new].map(SideResults::links_left_out) {
            [0, 0] => String::new(),
            [base, new] => format!(", without those whose marks spoil their times (base {base}, new {new})"),
        };
        let text = format!(
            "a case of a sweep over more than {MOST_RANKS} ranks is the median of the links of a \
             host{left_out}; its slow links are in its verdict (ombx show)"
        );
        notes.push(Note { code: "links_by_host", text });
    }
    notes
}

/// Returns the note on sides that did not take turns; `None` if each has one run.
pub(super) fn without_turns(base: &SideResults, new: &SideResults) -> Option<Note> {
    let text = "the sides were measured one after the other, so a change of the machine in between \
                looks like a difference; ombx ab alternates the sides";
    (base.count().max(new.count()) > 1).then(|| Note { code: "no_turns", text: text.into() })
}

/// Returns whether the launches of the sides overlap in time. Sides without launches do. Times are whole seconds.
pub(super) fn overlap(base: &SideResults, new: &SideResults) -> bool {
    let span = |side: &SideResults| {
        let starts = || side.runs.iter().map(|run| run.started.as_str());
        Some((starts().min()?.to_owned(), starts().max()?.to_owned()))
    };
    let spans = span(base).zip(span(new));
    spans.is_none_or(|((a_first, a_last), (b_first, b_last))| a_last > b_first && b_last > a_first)
}

/// Names program, libraries and preloads that lie where they did, with other contents, on the new side.
fn replaced(base: &SideResults, new: &SideResults) -> Vec<Note> {
    let loaded =
        |side: &'_ SideResults| side.runs.iter().filter_map(|run| run.loaded.clone()).collect::<Vec<_>>();
    let sides = [base, new].map(loaded);
    let pairs = sides[0].iter().flat_map(|before| sides[1].iter().map(move |after| (before, after)));
    let files: BTreeMap<&str, [String; 2]> = pairs
        .flat_map(|(before, after)| before.replaced(after))
        .map(|(before, after)| (before.path.as_str(), [before, after].map(LoadedFile::identity)))
        .collect();
    let text = |(path, [before, after]): (&str, [String; 2])| {
        format!("{path} was replaced between the sides: base {before}, new {after}")
    };
    files.into_iter().map(|file| Note { code: "replaced", text: text(file) }).collect()
}

/// Names the facts about software and machines that both sides know and that differ.
fn of_facts(base: &SideResults, new: &SideResults) -> Vec<Note> {
    let names: BTreeSet<&str> =
        [base, new].iter().flat_map(|side| facts_of(side).map(|(name, _)| name)).collect();
    names.into_iter().filter_map(|name| fact_note(name, base, new)).collect()
}

/// Returns a note on a fact that both sides know, if it differs.
fn fact_note(name: &str, base: &SideResults, new: &SideResults) -> Option<Note> {
    let [a, b] = [base, new].map(|side| {
        let values = facts_of(side).filter(|(other, _)| *other == name);
        values.filter_map(|(_, fact)| Some(fact.known()?.to_owned())).collect::<BTreeSet<String>>()
    });
    let text = || format!("{}: base {}, new {}", name.replace('_', " "), list(&a), list(&b));
    (a != b && !a.is_empty() && !b.is_empty()).then(|| Note { code: "facts", text: text() })
}

fn facts_of(side: &SideResults) -> impl Iterator<Item = (&str, &Fact)> {
    let sets =
        side.runs.iter().flat_map(|run| run.hosts.iter().map(|group| &group.facts).chain([&run.software]));
    sets.flatten().map(|(name, fact)| (name.as_str(), fact))
}

/// Returns the names that do not have the same values on both sides.
fn differing(
    base: &SideResults,
    new: &SideResults,
    of: fn(&Run) -> &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let runs = [base, new].into_iter().flat_map(|side| &side.runs);
    let names: BTreeSet<&String> = runs.flat_map(|run| of(run).keys()).collect();
    let values = |side: &SideResults, name: &str| -> BTreeSet<Option<String>> {
        side.runs.iter().map(|run| of(run).get(name).cloned()).collect()
    };
    names.into_iter().filter(|name| values(base, name) != values(new, name)).cloned().collect()
}

/// Returns whether only one side has an option, as one of benchmarks that only this side measured. A run has the options of all its
/// benchmarks with their defaults.
fn is_of_one_side(option: &str, base: &SideResults, new: &SideResults) -> bool {
    let benchmarks = |side: &SideResults| -> BTreeSet<String> {
        let of = |run: &Run| run.plan.get("benchmarks").cloned();
        side.runs.iter().filter_map(of).collect()
    };
    let has = |side: &SideResults| side.runs.iter().any(|run| run.plan.contains_key(option));
    has(base) != has(new) && benchmarks(base) != benchmarks(new)
}

fn pairs<'a>(options: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let all = named_values(options, " ");
    if all.is_empty() { "none".into() } else { all }
}

fn list(values: &BTreeSet<String>) -> String {
    let some: Vec<&str> =
        values.iter().take(MAX_LISTED).map(|v| if v.is_empty() { "unknown" } else { v }).collect();
    let more = values.len().saturating_sub(MAX_LISTED);
    if more > 0 { format!("{} and {more} others", some.join(", ")) } else { some.join(", ") }
}

/// Name in the plan of a run: a name of the comparison, then `open` or `fixed`. The number of the turn is that of the launch.
const OPTION: &str = "turns";

/// Place of a launch in a comparison of two sides that took turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Name of the comparison.
    pub of: String,
    /// Number of the turn, from 1.
    pub number: u32,
    /// Whether the number of turns was open, so that it depends on what they showed.
    pub is_open: bool,
}

impl Turn {
    /// Returns the turn of a run; `None` for a run of another command.
    pub fn of_run(run: &Run) -> Option<Turn> {
        let (of, kind) = run.plan.get(OPTION)?.split_once(' ')?;
        let number = run.plan.get("launch")?.parse().ok()?;
        Some(Turn { of: of.to_owned(), number, is_open: kind == "open" })
    }

    /// Adds the turn to the plan of a run. The number must be that of its launch.
    pub fn add_to(&self, run: &mut Run) {
        let kind = if self.is_open { "open" } else { "fixed" };
        run.plan.insert(OPTION.into(), format!("{} {kind}", self.of));
        run.plan.insert("launch".into(), self.number.to_string());
    }
}

#[cfg(test)]
mod setup_tests {
    use ombx_record::{
        fact::HostFacts,
        file::RunWithRows,
        result::{Contents, LoadedFiles},
    };
    use ombx_testkit::golden;

    use crate::comparison::*;

    #[test]
    fn hosts_follow_each_other_whatever_the_axes() {
        let id = |host: &str, path: &str, depth: u32| CaseId {
            bench: BENCH.to_owned(),
            key: format!("{host} {path} {depth}"),
            metric: Metric::Latency,
            unit: "us",
            bytes: Some(8),
            depth: Some(depth),
            pairs: 1,
            axes: [(HOST, host), ("path", path)].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        };
        let mut ids = Vec::new();
        for host in ["n2", "n1"] {
            ids.extend([id(host, "b", 1), id(host, "a", 2), id(host, "a", 1)]);
        }
        let mut sorted: Vec<&CaseId> = ids.iter().collect();
        sorted.sort_by_cached_key(|id| id.sort_key());
        let keys: Vec<&str> = sorted.iter().map(|id| id.key.as_str()).collect();
        assert_eq!(keys, ["n1 a 1", "n2 a 1", "n1 a 2", "n2 a 2", "n1 b 1", "n2 b 1"]);
    }

    #[test]
    fn a_library_that_was_replaced_in_place_is_named() {
        let side = |crc32: Option<&str>| {
            let contents = crc32.map(|crc32| Contents { bytes: 8, crc32: crc32.into() });
            let library = LoadedFile { path: "/libmpi.so".into(), build_id: None, contents };
            let mut launch: RunWithRows = golden();
            launch.run.loaded = Some(LoadedFiles { libraries: vec![library], ..LoadedFiles::default() });
            let mut side = SideResults::named("x");
            side.run(&launch);
            side
        };
        let notes = |one, other| replaced(&side(one), &side(other));
        let found = notes(Some("1"), Some("2"));
        let text = "/libmpi.so was replaced between the sides: base CRC-32 1, new CRC-32 2";
        assert_eq!(found, [Note { code: "replaced", text: text.into() }]);
        assert!(notes(Some("1"), Some("1")).is_empty() && notes(Some("1"), None).is_empty());
    }

    #[test]
    fn notes_have_the_options_and_variables_that_differ_and_no_others() {
        let side = |plan: &[(&str, &str)], env: &[(&str, &str)]| {
            let owned = |all: &[(&str, &str)]| {
                all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
            };
            let mut launch: RunWithRows = golden();
            (launch.run.plan, launch.run.env) = (owned(plan), owned(env));
            let mut side = SideResults::named("x");
            side.run(&launch);
            side
        };
        let texts = |base: &SideResults, new: &SideResults| {
            let of_setup = |note: &Note| ["env", "plan"].contains(&note.code);
            notes(base, new).into_iter().filter(of_setup).map(|note| note.text).collect::<Vec<_>>()
        };
        let both = side(
            &[
                ("benchmarks", "p2p.latency,rma.put_bw"),
                ("sync", "pscw"),
                ("cache", "warm"),
                ("window", "64"),
            ],
            &[("UCX_TLS", "sm"), ("UCX_LOG", "a")],
        );
        let one =
            side(&[("benchmarks", "p2p.latency"), ("cache", "warm")], &[("UCX_TLS", "rc"), ("UCX_LOG", "a")]);
        assert_eq!(texts(&both, &one), ["environment: base UCX_TLS=sm, new UCX_TLS=rc"]);
        let same = [("benchmarks", "p2p.latency"), ("cache", "cold"), ("window", "64")];
        let other = [("benchmarks", "p2p.latency"), ("cache", "warm"), ("window", "64"), ("counters", "on")];
        let found = texts(&side(&same, &[]), &side(&other, &[("A", "1")]));
        let options = "options: base cache=cold, new cache=warm counters=on";
        assert_eq!(found, ["environment: base none, new A=1", options]);
    }

    #[test]
    fn facts_that_differ_are_noted_if_both_sides_know_them() {
        let side = |kernel: Option<&str>| {
            let facts = [("kernel".to_owned(), Fact::new(kernel, "unreadable"))].into();
            let mut launch: RunWithRows = golden();
            launch.run.hosts = vec![HostFacts { hosts: vec!["n01".into()], facts }];
            let mut side = SideResults::named("x");
            side.run(&launch);
            side
        };
        let texts = |one, other| {
            of_facts(&side(one), &side(other)).into_iter().map(|note| note.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(Some("6.1"), Some("6.2")), ["kernel: base 6.1, new 6.2"]);
        assert!(texts(Some("6.1"), None).is_empty() && texts(Some("6.1"), Some("6.1")).is_empty());
    }
}
