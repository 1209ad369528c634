//! Names in the rows of a sweep over links.

use std::collections::BTreeMap;

use crate::result::Measurement;

/// Maximum number of ranks of a sweep whose links are cases of a history or comparison, each for itself. It has 65,280 links of each size.
pub const MOST_RANKS: usize = 256;
/// Benchmark name of the rows of `ombx links`.
pub const BENCH: &str = "links";
/// Axis with the number of the round in which a link was measured. Keys of rows leave it out.
pub const ROUND: &str = "round";
/// Axis of rows that were measured again. Its values are [`ALONE`], [`REFERENCE`], [`TOGETHER`] and [`APART`].
pub const RETEST: &str = "retest";
/// Value of [`RETEST`] for a slow link that was measured again.
pub const ALONE: &str = "alone";
/// Value of [`RETEST`] for an ordinary link that was measured again for comparison.
pub const REFERENCE: &str = "reference";
/// Value of [`RETEST`] for a link of a [`PATH`] that was measured together with the others of the path.
pub const TOGETHER: &str = "together";
/// Value of [`RETEST`] for a link of a [`PATH`] that was measured alone.
pub const APART: &str = "apart";
/// Axis that names what links may share, such as `switch s1` that they leave.
pub const PATH: &str = "path";
/// Axis with the number of a second measurement, from 1. Each link is measured several times.
pub const ATTEMPT: &str = "attempt";
/// Axis with the number of attempts in each of which a link must be slow. Rows without it are of three attempts. Keys of rows leave it out.
pub const ATTEMPTS: &str = "attempts";

/// Returns the key of the row of a link. A link keeps its name in another order of rounds, and with another number of attempts.
pub fn key_of_link(axes: &BTreeMap<String, String>, bytes: Option<u64>, depth: Option<u32>) -> String {
    let named = axes.iter().filter(|(name, _)| ![ROUND, ATTEMPTS].contains(&name.as_str()));
    let axes: String = named.map(|(name, value)| format!("{name}={value},")).collect();
    let depth = depth.map_or(String::new(), |depth| format!(",depth={depth}"));
    format!("{BENCH}/{axes}bytes={}{depth}", bytes.unwrap_or(0))
}

/// Returns the timed and the answering rank of the row of a link.
pub fn ends_of(row: &Measurement) -> Option<[u32; 2]> {
    let rank = |axis: &str| row.axes.get(axis)?.parse().ok();
    Some([rank("from")?, rank("to")?])
}
