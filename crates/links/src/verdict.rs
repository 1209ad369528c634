//! Link verdicts: which group of hosts, host, rank or link of a machine is slow.
//!
//! Links inside a host and links between hosts are two kinds. With groups of hosts, links inside a group and links between groups
//! are two kinds too. All tests compare logarithms of median times within a kind. Groups are tested first, then hosts, then ranks,
//! then the single links that remain. Each test is corrected for multiple testing.

mod criteria;
mod detection;
#[cfg(test)]
mod dice;
mod few_units;
mod groups;
mod launches;
mod relative;
mod retest;
mod shared;
mod sweep;
mod swept;
mod times;
mod undecided;
mod unsteady;

use ombx_record::{
    result::MarkCode,
    unit::{Bytes, plural},
    verdict::{Component, Evidence},
};

pub use self::{
    criteria::{Criteria, Expectation, FailOn, LEFT_OUT, Reference},
    detection::{find_slow, nameable},
    groups::{Group, HostGroups, Hosts},
    launches::{Step, join_steps},
    retest::{Retest, SlowLink, interim_candidates, once_more, retest_candidates, slowest, usual_times},
    shared::{CommonPath, Shares},
    sweep::{Checks, LinkSweep},
    swept::{SweepCollector, SweptFile, SweptRun},
    times::{Link, LinkTimes, MOST_ROWS, TimesBySize},
};

/// Smallest number of times that a link is measured again, see [`Retest::attempts`]. The shortest counts, because what disturbs a
/// measurement makes it longer: one disturbed row would confirm a link that is not slow.
pub const TIMES_AGAIN: usize = 3;
/// Largest number of times that a link is measured again. Four candidates need it if half of the rows are slow, and more are not slower than
/// the median. From a fifth of slow rows on, the spread of links is so wide that no link stands out by chance, so that there are no more
/// candidates than the slowest ones (simulated with 32 hosts).
const MOST_TIMES_AGAIN: usize = 9;
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
