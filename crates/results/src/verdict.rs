//! Link verdicts: which group of hosts, host, rank or link of a machine is slow.
//!
//! Links inside a host and links between hosts are two kinds. With groups of hosts, links inside a group and links between groups
//! are two kinds too. All tests compare logarithms of median times within a kind. Groups are tested first, then hosts, then ranks,
//! then the single links that remain. Each test is corrected for multiple testing.

mod criteria;
mod detection;
mod few_units;
mod groups;
mod launches;
mod relative;
mod retest;
mod sweep;
mod times;

use std::collections::BTreeMap;

use ombx_record::{
    result::MarkCode,
    unit::{Bytes, plural},
};
use serde::{Deserialize, Serialize};

pub use self::{
    criteria::{Criteria, Expectation, FailOn, Reference},
    detection::{find_slow, nameable},
    groups::{Group, HostGroups, Hosts},
    launches::{Step, join_steps},
    relative::Evidence,
    retest::{Retest, SlowLink, interim_candidates, once_more, retest_candidates, slowest},
    sweep::{Checks, LinkSweep},
    times::{Link, LinkTimes, MOST_ROWS, TimesBySize},
};
pub(crate) use self::{retest::usual_times, times::ends_of};

/// Maximum number of ranks of a sweep whose links are cases of a history or comparison, each for itself. It has 65,280 links of each size.
pub const MOST_RANKS: usize = 256;
/// Benchmark name of the rows of `ombx links`.
pub const BENCH: &str = "links";
/// Axis with the number of the round in which a link was measured. Keys of rows leave it out.
pub const ROUND: &str = "round";
/// Axis of rows that were measured again. Its values are [`ALONE`] and [`REFERENCE`].
pub const RETEST: &str = "retest";
/// Value of [`RETEST`] for a slow link that was measured again.
pub const ALONE: &str = "alone";
/// Value of [`RETEST`] for an ordinary link that was measured again for comparison.
pub const REFERENCE: &str = "reference";
/// Axis with the number of a second measurement, from 1. Each link is measured [`TIMES_AGAIN`] times.
pub const ATTEMPT: &str = "attempt";
/// Number of times that a link is measured again. The shortest counts, because what disturbs a measurement makes it longer: one disturbed
/// row would confirm a link that is not slow.
pub const TIMES_AGAIN: usize = 3;
/// Number of looks at the links of a long sweep before its end. They share the error probability of a verdict.
pub const LOOKS: usize = 3;

/// Probability of a false verdict on a healthy machine with normally distributed times.
const LEVEL: f64 = 0.01;
/// Smallest ratio with a verdict.
const MIN_FACTOR: f64 = 1.15;
/// Smallest ratio that confirms a slow link when it is measured again alone.
const MIN_RETEST_FACTOR: f64 = 1.1;
/// Number of standard deviations of the shortest of [`TIMES_AGAIN`] times by which the logarithm of a link's time alone must differ from those
/// of ordinary links to confirm it.
const MIN_RETEST_SPREADS: f64 = 4.0;
/// Smallest standard deviation of logarithms: repeated runs differ by as much.
const MIN_SPREAD: f64 = 0.01;
/// Minimum number of links of a kind for tests of single links, and for the verdict that nothing is slow.
const MIN_LINKS: usize = 10;
/// Minimum number of hosts, ranks or groups for tests of hosts, ranks or groups. Each needs one partner fewer.
const MIN_UNITS: usize = 4;
/// Probability with which a slow part is not named although it has the factor that is printed.
const MISSED: f64 = 0.05;

/// Part of a machine that can be slow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// Links from a group of hosts to others of its level (from 0).
    GroupBetween(usize, u32),
    /// Links inside a group of hosts, but not inside one of a lower level.
    GroupWithin(usize, u32),
    /// Links from a host to other hosts.
    HostBetween(u32),
    /// Links inside a host.
    HostWithin(u32),
    /// Links of one rank, whose host as a whole is not slow.
    Rank(u32),
    /// A link, in both directions if the traffic is directed.
    Link(u32, u32),
    /// One direction of a link.
    OneWay(u32, u32),
}

impl Component {
    /// Returns whether a link belongs to the component.
    pub fn contains(&self, [from, to]: [u32; 2], hosts: &Hosts) -> bool {
        let (on_from, on_to) = (hosts.number(from), hosts.number(to));
        let ends = |level: usize| [hosts.unit(level + 1, from), hosts.unit(level + 1, to)];
        match *self {
            Component::GroupBetween(level, group) => {
                let [a, b] = ends(level);
                a != b && [a, b].contains(&group)
            }
            Component::GroupWithin(level, group) => {
                ends(level) == [group; 2] && hosts.distance(from, to) == level + 1
            }
            Component::HostBetween(host) => on_from != on_to && [on_from, on_to].contains(&host),
            Component::HostWithin(host) => on_from == host && on_to == host,
            Component::Rank(rank) => [from, to].contains(&rank),
            Component::Link(a, b) => [(a, b), (b, a)].contains(&(from, to)),
            // Without directed traffic no component has this form.
            Component::OneWay(a, b) => (from, to) == (a, b),
        }
    }

    /// Returns whether a rank is on the host or in the group of the component; false for a rank or link.
    pub(crate) fn contains_rank(&self, rank: u32, hosts: &Hosts) -> bool {
        match *self {
            Component::GroupBetween(level, group) | Component::GroupWithin(level, group) => {
                hosts.unit(level + 1, rank) == group
            }
            Component::HostBetween(host) | Component::HostWithin(host) => hosts.number(rank) == host,
            _ => false,
        }
    }

    /// Returns whether the links of the component are inside a host or group.
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self, Component::GroupWithin(..) | Component::HostWithin(_))
    }

    /// Returns whether the component is a single link.
    pub fn is_link(&self) -> bool {
        self.link().is_some()
    }

    /// Returns the ends of a single link.
    pub fn link(&self) -> Option<[u32; 2]> {
        match *self {
            Component::Link(a, b) | Component::OneWay(a, b) => Some([a, b]),
            _ => None,
        }
    }
}

/// Slow component.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowComponent {
    /// The component.
    pub component: Component,
    /// Ratio of the time of the component to the time of comparable ones.
    pub factor: f64,
    /// Message size with the largest factor.
    pub bytes: u64,
    /// Links that show it.
    pub evidence: Evidence,
}

/// Returns the key of the row of a link. A link keeps its name in another order of rounds.
pub fn key_of_link(axes: &BTreeMap<String, String>, bytes: Option<u64>, depth: Option<u32>) -> String {
    let named = axes.iter().filter(|(name, _)| *name != ROUND);
    let axes: String = named.map(|(name, value)| format!("{name}={value},")).collect();
    let depth = depth.map_or(String::new(), |depth| format!(",depth={depth}"));
    format!("{BENCH}/{axes}bytes={}{depth}", bytes.unwrap_or(0))
}

/// Returns the name of a link: its two ends.
fn link_name([from, to]: [u32; 2], hosts: &Hosts) -> String {
    if hosts.count() == 1 {
        format!("ranks {from}-{to}")
    } else {
        format!("{}-{}", hosts.label(from), hosts.label(to))
    }
}

/// Returns why marks with these codes prevent a verdict; `None` if they do not. Times on shared CPUs include waiting for the scheduler.
fn no_verdict_reason<'a>(codes: impl IntoIterator<Item = &'a MarkCode>) -> Option<String> {
    let mut codes = codes.into_iter();
    let shared = codes.any(|code| [MarkCode::Oversubscribed, MarkCode::SharedCpu].contains(code));
    shared.then(|| "ranks share CPUs, and their times include waiting for a CPU".into())
}

impl SlowComponent {
    /// Returns a sentence that names the component, its factor and the message size.
    pub fn sentence(&self, hosts: &Hosts) -> String {
        let one_each = hosts.count() == hosts.ranks() as usize;
        let at = |rank: u32| {
            let host = hosts.name(rank);
            if one_each { host.to_owned() } else { format!("rank {rank} on {host}") }
        };
        let others_of = |level: usize, start: &str| format!("{start} other {}", plural(hosts.noun(level)));
        let (subject, others) = match self.component {
            Component::GroupBetween(level, group) => (
                format!(
                    "{} is slow: its links to other {} take",
                    hosts.group_label(level, group),
                    plural(hosts.noun(level))
                ),
                others_of(level, "those of"),
            ),
            Component::GroupWithin(level, group) => (
                format!("{} is slow inside: links between its hosts take", hosts.group_label(level, group)),
                others_of(level, "those inside"),
            ),
            Component::HostBetween(host) => (
                format!("host {} is slow: its links to other hosts take", hosts.name_of(host)),
                "those of other hosts".to_owned(),
            ),
            Component::HostWithin(host) => (
                format!("host {} is slow inside: links between its ranks take", hosts.name_of(host)),
                "those inside other hosts".to_owned(),
            ),
            Component::Rank(rank) => {
                (format!("{} is slow: its links take", at(rank)), "those of other ranks".to_owned())
            }
            Component::Link(a, b) => (
                format!("the link between {} and {} is slow: it takes", at(a), at(b)),
                "comparable links".to_owned(),
            ),
            Component::OneWay(from, to) => (
                format!("the link from {} to {} is slow: it takes", at(from), at(to)),
                "comparable links".to_owned(),
            ),
        };
        format!("{subject} {:.2} times as long as {others} (at {} bytes)", self.factor, Bytes(self.bytes))
    }
}

/// Conclusion of a verdict, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Conclusion {
    /// Nothing is slow, or all links meet what the user demands of them.
    Clear,
    /// Something is slow, or a demand is missed.
    Slow,
    /// Nothing can be concluded.
    None,
}

impl Conclusion {
    /// All conclusions.
    pub const ALL: [Conclusion; 3] = [Conclusion::Clear, Conclusion::Slow, Conclusion::None];

    /// Returns the name in result files.
    pub const fn name(self) -> &'static str {
        match self {
            Conclusion::Clear => "clear",
            Conclusion::Slow => "slow",
            Conclusion::None => "none",
        }
    }
}

/// Sentence of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sentence {
    /// Conclusion that it supports.
    pub conclusion: Conclusion,
    /// What is concluded; for [`Conclusion::None`], why nothing can be.
    pub text: String,
    /// What the sentence rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// What is concluded about the links of a sweep. It is computed when the sweep ends, is kept in the result file, and is all that is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What is concluded.
    pub conclusion: Conclusion,
    /// Sentences with their evidence, the most important first.
    pub sentences: Vec<Sentence>,
    /// Number of demands that are missed: expectations and the reference.
    #[serde(default)]
    pub missed: usize,
    /// Slow parts, the slowest first.
    pub slow: Vec<SlowPart>,
    /// For each message size, the slow link that would have been named.
    #[serde(default)]
    pub nameable: Vec<Nameable>,
}

impl Verdict {
    /// Returns the verdict on a run that did not measure everything.
    pub fn incomplete(why: impl Into<String>) -> Verdict {
        let conclusion = Conclusion::None;
        let sentence = Sentence { conclusion, text: why.into(), evidence: Vec::new() };
        Verdict { conclusion, sentences: vec![sentence], missed: 0, slow: Vec::new(), nameable: Vec::new() }
    }

    /// Returns the slow components.
    pub fn components(&self) -> Vec<Component> {
        self.slow.iter().map(|slow| slow.component.clone()).collect()
    }

    /// Returns the lines of the verdict for a terminal. Evidence is indented.
    pub fn lines(&self) -> Vec<String> {
        self.sentences.iter().flat_map(Sentence::lines).collect()
    }
}

impl Sentence {
    /// Returns the line of the sentence, and one for each piece of evidence.
    fn lines(&self) -> Vec<String> {
        let start = if self.conclusion == Conclusion::None { "no verdict" } else { "verdict" };
        let mut lines = vec![format!("{start}: {}", self.text)];
        lines.extend(self.evidence.iter().map(|line| format!("  {line}")));
        lines
    }
}

/// The fastest slow link that would have been named at a message size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nameable {
    /// Message size.
    pub bytes: u64,
    /// Ratio of its time to the time of comparable links.
    pub factor: f64,
}

/// Slow part of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowPart {
    /// Kind of the part: `group`, `group_inside`, `host`, `host_inside`, `rank`, `link` or `direction`.
    pub part: String,
    /// Noun and name of a group, such as `switch s1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Names of its hosts; of a link, those of its two ends.
    pub hosts: Vec<String>,
    /// Its ranks; of a link, its two ends. None of a host or a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u32>,
    /// Ratio of its time to the time of comparable parts.
    pub factor: f64,
    /// Message size with the largest factor.
    pub bytes: u64,
    /// The part by numbers: of ranks, or of hosts and groups in the order of the lowest ranks that they have.
    pub component: Component,
    /// Links that show it.
    pub evidence: Evidence,
    /// What may explain it, such as `h3: eth0 speed 1 Gbit/s, others 10 Gbit/s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}
