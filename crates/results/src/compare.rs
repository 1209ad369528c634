//! Two sides, case by case: how far apart they are, how sure that is, and which is better. Nothing is printed here.

mod evaluation;
pub mod holm;
pub mod rank_sum;
mod setup;
mod side;
pub mod student;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use self::{
    evaluation::{SIGNIFICANCE, launches_needed},
    side::SideResults,
};
use ombx_core::benchmark::work::Metric;

/// Probability on each side of a 95 % interval.
const TAIL: f64 = 0.025;

/// What two sides have in common, and how they differ. `base` is what was before, `new` what is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What was before.
    pub base: SideInfo,
    /// What is asked about.
    pub new: SideInfo,
    /// Cases measured on both sides, in the order of benchmark, axes, depth and size.
    pub cases: Vec<CaseComparison>,
    /// Cases measured on one side only.
    pub unmatched: Vec<Unmatched>,
    /// Cases that failed on the new side and never on the other, with the reason.
    pub broken: Vec<(String, String)>,
    /// What else differs between the sides, and what limits the comparison.
    pub notes: Vec<Note>,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideInfo {
    /// What the user calls it: its files.
    pub name: String,
    /// Identifiers of its runs, each one launch.
    pub runs: Vec<String>,
    /// The libraries that it ran with, without the story of their builds.
    pub libraries: BTreeSet<String>,
}

/// What is compared: one row of results, by its stable name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseId {
    /// Benchmark.
    pub bench: String,
    /// Stable name of the row.
    pub key: String,
    /// What the headline is.
    pub metric: Metric,
    /// Unit of the headline: `us` or `MB/s`.
    pub unit: &'static str,
    /// Message size.
    pub bytes: Option<u64>,
    /// Operations in flight.
    pub depth: Option<u32>,
    /// Pairs at the same time.
    pub pairs: u32,
    /// Axis to value.
    pub axes: BTreeMap<String, String>,
}

impl CaseId {
    /// Where it stands among others.
    fn sort_key(&self) -> impl Ord {
        let axes: Vec<(&str, &str)> = self.axes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        (self.bench.as_str(), axes, self.depth, self.pairs, self.bytes)
    }
}

/// One case of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseComparison {
    /// Side.
    pub id: CaseId,
    /// Before.
    pub base: LaunchMedians,
    /// Now.
    pub new: LaunchMedians,
    /// Difference of the headlines as a fraction of the base: 0.1 is 10 % more latency, or 10 % more bandwidth.
    pub change: Change,
    /// How sure that is.
    pub evidence: Evidence,
    /// What follows.
    pub verdict: Verdict,
}

/// The headline of a case on one side.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchMedians {
    /// Median of the medians of launches.
    pub median: f64,
    /// Median of each launch, in the order of launches.
    pub launches: Vec<f64>,
    /// Codes of what could have spoiled it in any launch.
    pub doubts: BTreeSet<String>,
}

impl LaunchMedians {
    /// Between the lowest and the highest launch, as a fraction of the median; `None` of one launch.
    pub fn spread(&self) -> Option<f64> {
        let ends = |pick: fn(f64, f64) -> f64, from| self.launches.iter().copied().fold(from, pick);
        let range = ends(f64::max, f64::NEG_INFINITY) - ends(f64::min, f64::INFINITY);
        (self.launches.len() > 1).then(|| range / self.median)
    }
}

/// A relative difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Of the medians.
    pub median: f64,
    /// Its 95 % interval, low and high, before any correction for the number of cases; none where samples give none.
    pub ci95: Option<[f64; 2]>,
}

/// What a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// What was tested.
    pub method: Method,
    /// Chance of such a difference between two sides that are alike; none where samples depend on each other.
    pub p: Option<f64>,
    /// The same, corrected for the number of cases by Holm's method.
    pub p_adjusted: Option<f64>,
    /// What two alike sides may differ by, as a fraction: where they have one launch each, or did not take turns.
    pub allowance: Option<f64>,
}

/// What was tested, from strong to weak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Medians of five launches and more on each side, by rank.
    Launches,
    /// Medians of few launches by Student's t, and samples by rank: the weaker of the two counts.
    FewLaunches,
    /// Samples of one launch on each side by rank, beyond an allowance for what launches differ by.
    OneLaunch,
}

impl Method {
    /// Stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Launches => "launches",
            Method::FewLaunches => "few launches",
            Method::OneLaunch => "one launch",
        }
    }
}

/// What follows for a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The new side is better.
    Better,
    /// The new side is worse.
    Worse,
    /// Nothing can be said, and why.
    Unresolved(String),
}

impl Verdict {
    /// Stable name.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Unresolved(_) => "unresolved",
        }
    }
}

/// A case that only one side measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// Stable name of the row.
    pub key: String,
    /// Who has it.
    pub only: Side,
    /// Why the other has not: `not there`, or the reason why it was skipped or failed.
    pub why: String,
}

/// One of two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What was before.
    Base,
    /// What is asked about.
    New,
}

/// Order in which the launches of both sides ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The sides overlap in time.
    Interleaved,
    /// All launches of one side ran first. A change of the machine in between looks like a difference.
    Consecutive,
}

/// Something to know when reading a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable word for programs: `library`.
    pub code: &'static str,
    /// In words.
    pub text: String,
}

impl Comparison {
    /// Compares two sides.
    pub fn of(base: &SideResults, new: &SideResults) -> Comparison {
        let mut measured: Vec<_> = base.rows().filter_map(|row| Some((row, new.row(&row.id.key)?))).collect();
        measured.retain(|(a, b)| a.measured() && b.measured());
        measured.sort_by(|(a, _), (b, _)| a.id.sort_key().cmp(&b.id.sort_key()));
        let (cases, mut notes) = evaluation::evaluate(&measured, setup::order(base, new));
        notes.splice(0..0, setup::notes(base, new));
        let lost = |from: &SideResults, other: &SideResults, only| -> Vec<Unmatched> {
            let missing = |row: &side::Row| match other.row(&row.id.key) {
                None => Some("not there".to_owned()),
                Some(there) if !there.measured() => Some(there.missing.clone().unwrap_or_default()),
                Some(_) => None,
            };
            let of = |row: &side::Row| {
                row.measured().then(|| missing(row)).flatten().map(|why| Unmatched {
                    key: row.id.key.clone(),
                    only,
                    why,
                })
            };
            from.rows().filter_map(of).collect()
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

    /// Cases that are worse beyond a fraction: what a gate is for.
    pub fn regressions(&self, beyond: f64) -> impl Iterator<Item = &CaseComparison> {
        self.cases
            .iter()
            .filter(move |case| case.verdict == Verdict::Worse && case.change.median.abs() > beyond)
    }

    /// Counts the cases that are worse, better and unresolved.
    pub fn verdict_counts(&self) -> [usize; 3] {
        ["worse", "better", "unresolved"]
            .map(|name| self.cases.iter().filter(|case| case.verdict.name() == name).count())
    }

    /// Cases with a verdict of either kind.
    pub fn resolved(&self) -> impl Iterator<Item = &CaseComparison> {
        self.cases.iter().filter(|case| !matches!(case.verdict, Verdict::Unresolved(_)))
    }
}
