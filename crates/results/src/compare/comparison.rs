//! Result of a comparison: cases, differences, evidence and verdicts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use ombx_core::benchmark::Metric;

use super::permutation::Design;

/// Minimum number of launches per side for a verdict.
pub(super) const MIN_LAUNCHES: usize = 4;
/// Accepted probability that equal sides are said to differ in any case.
pub(super) const SIGNIFICANCE: f64 = 0.05;
/// Accepted probability of a verdict "worse" or "better" for any case of equal sides, if so few launches can show it.
pub(super) const VERDICT_SIGNIFICANCE: f64 = 0.01;

/// How two sides are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Differences up to this fraction do not matter.
    pub margin: f64,
    /// How labels may be exchanged between launches.
    pub design: Design,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { margin: 0.05, design: Design::default() }
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
    pub(super) fn sort_key(&self) -> impl Ord {
        let axes: Vec<(&str, &str)> = self.axes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        (self.bench.as_str(), axes, self.depth, self.pairs, self.bytes)
    }
}

/// Comparison of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseComparison {
    /// The case.
    pub id: CaseId,
    /// Figures of the base.
    pub base: LaunchMedians,
    /// Figures of the new side.
    pub new: LaunchMedians,
    /// Difference of the sides.
    pub change: Change,
    /// Probability of a difference of this size in any case of equal sides. `None` for a case that cannot have a verdict.
    pub p_adjusted: Option<f64>,
    /// What the launches of this case can show. `None` if each side has one launch.
    pub power: Option<Power>,
    /// Conclusion.
    pub verdict: Verdict,
}

/// Headline figures of a case on one side.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchMedians {
    /// Median over launches.
    pub median: f64,
    /// Median of each launch that counts, in the order of launches.
    pub launches: Vec<f64>,
    /// Codes of the marks that any launch has.
    pub marks: BTreeSet<String>,
}

impl LaunchMedians {
    /// Returns the smallest and the largest launch.
    pub fn range(&self) -> [f64; 2] {
        let end = |pick: fn(f64, f64) -> f64| self.launches.iter().copied().fold(self.median, pick);
        [end(f64::min), end(f64::max)]
    }
}

/// Relative difference of times: 0.1 is 10 % slower than the base, for latencies and for bandwidths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Hodges-Lehmann estimate: the median of the ratios of all pairs of launches, minus 1.
    pub estimate: f64,
    /// Its 90 % interval, not corrected for the number of cases. `None` for few launches.
    pub ci90: Option<[f64; 2]>,
}

/// What a comparison of launches that scatter like these can show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// Smallest difference, as a fraction, that this many launches would have shown four times in five.
    pub detectable: f64,
    /// Launches per side that would show a difference of the margin. `None` if 100 are too few.
    pub launches_for_margin: Option<usize>,
    /// Launches per side that would show on which side of the margin the estimate lies. `None` if 100 are too few.
    pub launches_to_decide: Option<usize>,
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
    Inconclusive(Reason),
}

impl Verdict {
    /// Returns the name in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Worse => "worse",
            Verdict::Better => "better",
            Verdict::Same => "same",
            Verdict::Inconclusive(_) => "inconclusive",
        }
    }
}

/// Why a case is not decided.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A side has fewer launches than a verdict needs.
    FewLaunches,
    /// The machine was in another state in the launches of the other side.
    MachineChanged,
    /// A mark of too many launches says that their figures are wrong. Its code.
    Marked(String),
    /// The sides differ, but the interval contains an end of the margin.
    SizeUnknown,
    /// The interval is beyond the margin, but the adjusted p value is not small enough.
    Chance,
    /// The interval contains an end of the margin.
    Scatter,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::FewLaunches => write!(f, "fewer than {MIN_LAUNCHES} launches on a side"),
            Reason::MachineChanged => f.write_str("the machine changed between the sides"),
            Reason::Marked(code) => write!(f, "marked {}", code.replace('_', " ")),
            Reason::SizeUnknown => f.write_str("differs, size unknown"),
            Reason::Chance => f.write_str("beyond the margin, but it could be chance"),
            Reason::Scatter => f.write_str("the launches scatter too much"),
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
    pub inconclusive: usize,
}

/// Case that only one side measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// Key of the row.
    pub key: String,
    /// Side that measured the case.
    pub only: Side,
    /// Why the other side did not measure it: `not there`, or the reason for skipping or failing.
    pub why: String,
}

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Reference side.
    Base,
    /// Side that is compared with the base.
    New,
}

/// Remark on a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable code for programs, such as `library`.
    pub code: &'static str,
    /// Text for people.
    pub text: String,
}
