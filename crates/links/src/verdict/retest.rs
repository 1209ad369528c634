//! Choice of the links to measure again alone: slow links, and ordinary links for comparison.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use ombx_record::{
    link::{ALONE, ATTEMPT, ATTEMPTS, REFERENCE, RETEST},
    order::sort_by_value,
    verdict::Component,
};
use serde::{Deserialize, Serialize};

use crate::verdict::{
    Hosts, LEVEL, LOOKS, Link, LinkTimes, MIN_RETEST_FACTOR, MOST_TIMES_AGAIN, TIMES_AGAIN,
    detection::at_one_size,
    few_units,
    relative::{self, Parts, RelativeLink, Retested, median, relative_links, relative_times},
};

/// Maximum number of single links per size, beyond those that the user asks for. With many ranks the limit is two per
/// rank, which takes about as long as the sweep.
const MAX_SINGLE_LINKS: usize = 32;
/// Number of links measured again for a slow group, host or rank.
const LINKS_PER_UNIT: usize = 4;
/// Number of ordinary links of each kind.
const REFERENCE_LINKS: usize = 3;

/// Link to measure again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retest {
    /// Timed rank.
    pub from: u32,
    /// Rank that answers.
    pub to: u32,
    /// Message size.
    pub bytes: u64,
    /// Whether the link is slow. Otherwise it is an ordinary link for comparison.
    pub is_slow: bool,
    /// Number of attempts in each of which the link must be slow.
    pub attempts: usize,
}

impl Retest {
    /// Returns the axes of the row of an attempt, besides those of the link.
    pub fn axes(&self, attempt: usize) -> [(&'static str, String); 3] {
        let kind = if self.is_slow { ALONE } else { REFERENCE };
        [(RETEST, kind.to_owned()), (ATTEMPT, attempt.to_string()), (ATTEMPTS, self.attempts.to_string())]
    }
}

/// Returns the links to measure again at a look before the end of a sweep: none if nothing stands out.
pub fn interim_candidates(times: &[LinkTimes], hosts: &Hosts) -> Vec<Retest> {
    let is_clear = |times_of: &LinkTimes| {
        let found = at_one_size(&times_of.averaged(), hosts, times.len() * LOOKS);
        found.slow.is_empty() && found.unsure.is_empty()
    };
    if times.iter().all(is_clear) {
        return Vec::new();
    }
    candidates(times, hosts, 1, times.len() * LOOKS)
}

/// Returns the slowest `count` links of each size, all links that stand out, and ordinary links of the same kinds. Without
/// directed traffic a link is measured again in one direction only.
pub fn retest_candidates(times: &[LinkTimes], hosts: &Hosts, count: usize) -> Vec<Retest> {
    candidates(times, hosts, count, times.len())
}

/// Returns the links to measure again, so often that this number of searches for slow links shares the error probability of a verdict.
fn candidates(times: &[LinkTimes], hosts: &Hosts, count: usize, searches: usize) -> Vec<Retest> {
    let mut all = Vec::new();
    if count == 0 {
        return all;
    }
    for rows in times {
        let of_size = &rows.averaged();
        let mut links = relative_times(of_size, hosts);
        sort_by_value(&mut links, |link| -link.log);
        let mut slowest: Vec<RelativeLink> = links.iter().take(count).copied().collect();
        let mut add = |links: Vec<RelativeLink>| {
            let new = |l: &RelativeLink| slowest.iter().all(|s| (s.from, s.to) != (l.from, l.to));
            let new: Vec<RelativeLink> = links.into_iter().filter(new).collect();
            slowest.extend(new);
        };
        // All links of a slow host are unsuitable as ordinary links, also those not measured again.
        let mut named: BTreeSet<(u32, u32)> = BTreeSet::new();
        // Few links are all measured again: with few, a disturbed one hides the others.
        let few = hosts.ranks() as usize <= few_units::MAX_UNITS;
        let (per_unit, references) =
            if few { (usize::MAX, usize::MAX) } else { (LINKS_PER_UNIT, REFERENCE_LINKS) };
        let (mut singles, most) = (0, MAX_SINGLE_LINKS.max(2 * hosts.ranks() as usize));
        let found = at_one_size(of_size, hosts, times.len());
        let mut found = [found.slow, found.unsure].concat();
        let units = found.iter().map(|slow| slow.component.clone()).filter(|part| !part.is_link());
        let units: Vec<Component> = units.collect();
        sort_by_value(&mut found, |part| -part.factor);
        for slow in found {
            if slow.component.is_link() {
                singles += 1;
                if singles > most {
                    continue;
                }
            }
            let of = links.iter().filter(|l| hosts.has_link(&slow.component, [l.from, l.to]));
            let all: Vec<RelativeLink> = of.copied().collect();
            named.extend(all.iter().map(|l| (l.from, l.to)));
            add(all.into_iter().take(per_unit).collect());
        }
        let attempts = if few {
            TIMES_AGAIN
        } else {
            attempts(slow_share(rows, hosts, &units), slowest.len() * searches)
        };
        let again = |l: &RelativeLink, is_slow| {
            let RelativeLink { from, to, .. } = *l;
            Retest { from, to, bytes: of_size.bytes, is_slow, attempts }
        };
        all.extend(slowest.iter().map(|l| again(l, true)));
        let again_anyway: BTreeSet<(u32, u32)> = slowest.iter().map(|l| (l.from, l.to)).collect();
        for distance in 0..=hosts.levels() + 1 {
            if slowest.iter().all(|l| l.distance != distance) && !few {
                continue;
            }
            let mut usual: Vec<&RelativeLink> = links
                .iter()
                .filter(|l| l.sampled && l.distance == distance && !again_anyway.contains(&(l.from, l.to)))
                .collect();
            if usual.iter().any(|l| !named.contains(&(l.from, l.to))) {
                usual.retain(|l| !named.contains(&(l.from, l.to)));
            }
            let centre = median(&usual.iter().map(|l| l.log).collect::<Vec<_>>());
            sort_by_value(&mut usual, |link| (link.log - centre).abs());
            all.extend(usual.into_iter().take(references).map(|l| again(l, false)));
        }
    }
    all
}

/// Returns the number of attempts in each of which a slow link must be slow, so that at most [`LEVEL`] of the sweeps in which this share of
/// rows is slow by chance confirm any of the candidates.
fn attempts(slow_share: f64, candidates: usize) -> usize {
    let wanted = ((candidates as f64 / LEVEL).ln() / (1.0 / slow_share).ln()).ceil();
    (wanted as usize).clamp(TIMES_AGAIN, MOST_TIMES_AGAIN)
}

/// Returns the share of the rows of the sweep that are as slow as a row must be to confirm a slow link. Links of the slow groups, hosts and
/// ranks do not count. Single links that stand out do: most rows that chance makes slow are theirs.
fn slow_share(rows: &LinkTimes, hosts: &Hosts, slow: &[Component]) -> f64 {
    let slow = Parts::new(slow);
    let mut ordinary = relative_links(&rows.delayed_at_most(1.0).sweep, hosts);
    ordinary.retain(|l| !slow.contain([l.from, l.to], hosts));
    let slow_rows = ordinary.iter().filter(|l| l.log >= MIN_RETEST_FACTOR.ln()).count();
    slow_rows as f64 / ordinary.len().max(1) as f64
}

/// Returns the links that are measured once more after this many attempts. Until those of [`Retest::attempts`] these are the ordinary ones,
/// and the slow ones that were slow each time until now; then those that have fewer rows in which no rank waited for a CPU, until twice as
/// many attempts.
/// Few links are all measured equally often, because the shortest times of all are compared. `again` has the rows that measured links again.
pub fn once_more(links: Vec<Retest>, again: &[LinkTimes], hosts: &Hosts, attempts: usize) -> Vec<Retest> {
    let mut links = links;
    let decisive: Vec<(u64, Cow<'_, LinkTimes>)> =
        again.iter().map(|times| (times.bytes, times.delayed_at_most(1.0))).collect();
    if hosts.ranks() as usize > few_units::MAX_UNITS {
        // Links of earlier looks have all their rows, those of this one not yet.
        let of_size = |(bytes, times): &(u64, Cow<'_, LinkTimes>)| {
            let known = LinkTimes { given_up: BTreeSet::new(), ..times.averaged() };
            (*bytes, Retested::new(&known, hosts))
        };
        let known: BTreeMap<u64, Retested> = decisive.iter().map(of_size).collect();
        let is_slow = |l: &Retest| known.get(&l.bytes).is_none_or(|known| known.is_slow(l.from, l.to));
        links.retain(|l| !l.is_slow || is_slow(l));
    }
    let rows = |l: &Retest| {
        let of_size = decisive.iter().find(|(bytes, _)| *bytes == l.bytes);
        of_size.map_or(0, |(_, times)| times.times_again([l.from, l.to]))
    };
    links.retain(|l| attempts < l.attempts || attempts < 2 * l.attempts && rows(l) < l.attempts);
    links
}

/// Link among the slowest of its kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowLink {
    /// The link with its time.
    pub link: Link,
    /// Ratio of the time to the median of the ordinary links of its kind.
    pub factor: f64,
}

/// Returns the slowest links relative to the ordinary ones of their kind, which belong to no slow component. `times` are averaged.
pub fn slowest(times: &LinkTimes, hosts: &Hosts, count: usize, slow: &[Component]) -> Vec<SlowLink> {
    let usual = usual_times(times, hosts, slow);
    let links = times.sweep.iter().chain(&times.outliers).filter(|l| l.ns.is_finite() && l.ns > 0.0);
    let ratio =
        |l: &Link| SlowLink { link: *l, factor: f64::from(l.ns) / usual[hosts.distance(l.from, l.to)] };
    let mut links: Vec<SlowLink> = links.map(ratio).collect();
    sort_by_value(&mut links, |link| -link.factor);
    links.truncate(count);
    links
}

/// Returns the time of ordinary links by distance, in nanoseconds: of those that belong to no slow component, or of all if all of a
/// distance are slow.
pub fn usual_times(times: &LinkTimes, hosts: &Hosts, slow: &[Component]) -> Vec<f64> {
    let [usual, all] = [slow, &[]].map(|parts| relative::ordinary(times, hosts, parts));
    usual.iter().zip(&all).map(|(usual, all)| if usual.ns > 0.0 { usual.ns } else { all.ns }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_slow_rows_and_more_candidates_need_more_attempts() {
        let cases = [
            (0.0, 516, 3),
            (0.01, 4, 3),
            (0.045, 40, 3),
            (0.045, 516, 4),
            (0.2, 4, 4),
            (0.5, 4, 9),
            (0.5, 516, 9),
            (1.0, 4, 9),
            (0.5, 0, 3),
        ];
        for (slow_share, candidates, expected) in cases {
            assert_eq!(attempts(slow_share, candidates), expected, "{candidates} candidates, {slow_share}");
        }
    }
}
