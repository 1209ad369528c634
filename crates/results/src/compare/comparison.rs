//! Result of a comparison: cases, differences, evidence and verdicts.

use std::collections::{BTreeMap, BTreeSet};

use ombx_core::benchmark::Metric;

/// Probability on each side of a 95 % interval.
pub(super) const TAIL: f64 = 0.025;

/// Comparison of a new side with a base.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Reference side.
    pub base: SideInfo,
    /// Side that is compared with the base.
    pub new: SideInfo,
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
    /// Name given by the user, usually the names of the files.
    pub name: String,
    /// Identifiers of the runs of this side. Each run is one launch.
    pub runs: Vec<String>,
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
    /// Difference of the medians.
    pub change: Change,
    /// Statistical evidence for the difference.
    pub evidence: Evidence,
    /// Conclusion.
    pub verdict: Verdict,
}

/// Headline figures of a case on one side.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchMedians {
    /// Median over launches.
    pub median: f64,
    /// Median of each launch, in the order of launches.
    pub launches: Vec<f64>,
    /// Codes of the marks that any launch has.
    pub marks: BTreeSet<String>,
}

impl LaunchMedians {
    /// Returns the range of the launches as a fraction of the median, or `None` for one launch.
    pub fn spread(&self) -> Option<f64> {
        let ends = |pick: fn(f64, f64) -> f64, from| self.launches.iter().copied().fold(from, pick);
        let range = ends(f64::max, f64::NEG_INFINITY) - ends(f64::min, f64::INFINITY);
        (self.launches.len() > 1).then(|| range / self.median)
    }
}

/// Relative difference: 0.1 is 10 % more latency, or 10 % more bandwidth, than the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Difference of the medians.
    pub median: f64,
    /// 95 % interval, not corrected for the number of cases. `None` if the samples give no interval.
    pub ci95: Option<[f64; 2]>,
}

/// Evidence behind a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Test method.
    pub method: Method,
    /// Probability of a difference of this size between equal sides. `None` if samples depend on each other.
    pub p: Option<f64>,
    /// The same after Holm's correction for the number of cases.
    pub p_adjusted: Option<f64>,
    /// Difference that equal sides may have, as a fraction. Present for few launches and for consecutive sides.
    pub allowance: Option<f64>,
}

/// Test method, from strong to weak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Mann-Whitney test on the medians of at least five launches per side.
    Launches,
    /// Student's t test on the medians of launches and Mann-Whitney test on samples. The larger p value counts.
    FewLaunches,
    /// Mann-Whitney test on the samples of one launch per side, after subtraction of an allowance.
    OneLaunch,
}

impl Method {
    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Launches => "launches",
            Method::FewLaunches => "few launches",
            Method::OneLaunch => "one launch",
        }
    }
}

/// Conclusion for a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The new side is better.
    Better,
    /// The new side is worse.
    Worse,
    /// No verdict, with the reason.
    Unresolved(String),
}

impl Verdict {
    /// Returns the name in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Unresolved(_) => "unresolved",
        }
    }
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

/// Order in which the launches of both sides ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The sides overlap in time.
    Interleaved,
    /// All launches of one side ran first. A change of the machine in between looks like a difference.
    Consecutive,
}

/// Remark on a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable code for programs, such as `library`.
    pub code: &'static str,
    /// Text for people.
    pub text: String,
}
