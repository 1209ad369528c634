//! Links that share a bottleneck, such as the uplink of a switch: some of them are measured together and, in turns, each alone.

use std::collections::BTreeMap;

use ombx_record::{
    link::{APART, ATTEMPT, PATH, RETEST, TOGETHER},
    order::sort_by_value,
    result::Measurement,
    stats::median,
    unit::{Bytes, plural},
};
use serde::{Deserialize, Serialize};

use crate::verdict::{Hosts, LEVEL, Link, MIN_FACTOR, TIMES_AGAIN, times::delay_of};

/// Number of links of a path that are measured alone too.
const APART_LINKS: usize = 3;
/// Number of comparisons against the finding that a path may have: a disturbed row alone makes one.
const AGAINST: usize = 1;
/// Name of the path of all pairs of a bisection.
const BISECTION: &str = "bisection";

/// Links that may share a bottleneck. No two have a host in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonPath {
    /// Noun and name of the group that they leave, such as `switch s1`, or `bisection`.
    pub name: String,
    /// Timed and answering rank of each link.
    pub links: Vec<[u32; 2]>,
}

impl CommonPath {
    /// Returns for each group of at least two hosts links to as many hosts of other groups.
    pub fn of_groups(hosts: &Hosts) -> Vec<CommonPath> {
        let first = |rank: &u32| hosts.position(*rank) == 0;
        let mut all: Vec<CommonPath> = Vec::new();
        for level in 1..=hosts.levels() {
            let mut of_group: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for rank in (0..hosts.ranks()).filter(first) {
                of_group.entry(hosts.unit(level, rank)).or_default().push(rank);
            }
            // The partners are spread over the other groups.
            let places = of_group.values().flat_map(|ranks| ranks.iter().enumerate());
            let mut spread: Vec<(usize, u32)> = places.map(|(place, rank)| (place, *rank)).collect();
            spread.sort_unstable();
            for (group, ranks) in &of_group {
                let others = spread.iter().map(|(_, rank)| *rank);
                let others = others.filter(|rank| hosts.unit(level, *rank) != *group);
                let (noun, name) = hosts.group_name(level - 1, *group);
                let links = ranks.iter().zip(others).map(|(from, to)| [*from, to]).collect();
                all.push(CommonPath { name: format!("{noun} {name}"), links });
            }
        }
        all.retain(|path| path.links.len() > 1);
        all
    }

    /// Returns the pairs of a bisection that are on different hosts, one of each host; `None` for fewer than two.
    pub fn of_bisection(hosts: &Hosts, pairs: impl IntoIterator<Item = [u32; 2]>) -> Option<CommonPath> {
        let is_first = |[a, b]: &[u32; 2]| hosts.position(*a) == 0 && hosts.position(*b) == 0;
        let links = pairs.into_iter().filter(|ends| is_first(ends) && !hosts.same_host(ends[0], ends[1]));
        let path = CommonPath { name: BISECTION.into(), links: links.collect() };
        (path.links.len() > 1).then_some(path)
    }

    /// Returns the links that are measured alone too, at equal distances.
    pub fn apart(&self) -> impl Iterator<Item = [u32; 2]> {
        let (all, some) = (self.links.len(), self.links.len().min(APART_LINKS));
        (0..some).map(move |at| self.links[at * all / some])
    }
}

/// Returns the number of attempts after which a path is decided, if none of its rows waited.
fn attempts(links: usize, paths: usize) -> usize {
    let is_enough = |attempts: &usize| chance(attempts * links, AGAINST) <= LEVEL / paths.max(1) as f64;
    (TIMES_AGAIN..).find(is_enough).unwrap_or(TIMES_AGAIN)
}

/// Returns the probability that of so many comparisons of equal times at most this many are against the finding.
fn chance(comparisons: usize, against: usize) -> f64 {
    let mut ways = 1.0;
    let mut all = 0.0;
    for number in 0..=against.min(comparisons) {
        all += ways;
        ways *= (comparisons - number) as f64 / (number + 1) as f64;
    }
    all * 0.5f64.powi(comparisons as i32)
}

/// When and of which link a row was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RowPlace {
    launch: usize,
    attempt: u32,
    ends: [u32; 2],
}

/// Time of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PathTime {
    ns: f64,
    /// By how many times waiting for a CPU has made it longer at most.
    delay: f64,
}

/// Rows of one path.
#[derive(Debug, Clone, Default, PartialEq)]
struct PathRows {
    together: BTreeMap<RowPlace, PathTime>,
    apart: BTreeMap<RowPlace, PathTime>,
    /// Number of links that were measured together.
    links: usize,
}

/// Times of links together and alone, by path and message size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shares(BTreeMap<(String, u64), PathRows>);

impl Shares {
    /// Adds the row of a link of a path. Others are ignored.
    pub fn add(&mut self, row: &Measurement, launch: usize) {
        let (Some(path), Some(link), Some(bytes)) =
            (row.axes.get(PATH), Link::of_row(row), row.bytes.filter(|_| row.summary.is_some()))
        else {
            return;
        };
        let attempt = row.axes.get(ATTEMPT).and_then(|text| text.parse().ok()).unwrap_or(1);
        let of_path = self.0.entry((path.clone(), bytes)).or_default();
        let times = match row.axes.get(RETEST).map(String::as_str) {
            Some(TOGETHER) => &mut of_path.together,
            Some(APART) => &mut of_path.apart,
            _ => return,
        };
        let time = PathTime { ns: link.ns.into(), delay: delay_of(&row.trust).into() };
        times.insert(RowPlace { launch, attempt, ends: [link.from, link.to] }, time);
        let is_of_attempt = |place: &&RowPlace| (place.launch, place.attempt) == (launch, attempt);
        let of_attempt = of_path.together.keys().filter(is_of_attempt);
        of_path.links = of_path.links.max(of_attempt.count());
    }

    /// Adds the rows of another sweep as those of a launch.
    pub(super) fn join(&mut self, others: &Shares, launch: usize) {
        let moved = |(place, time): (&RowPlace, &PathTime)| (RowPlace { launch, ..*place }, *time);
        for (path, rows) in &others.0 {
            let known = self.0.entry(path.clone()).or_default();
            known.together.extend(rows.together.iter().map(moved));
            known.apart.extend(rows.apart.iter().map(moved));
            known.links = known.links.max(rows.links);
        }
    }

    /// Returns the paths that are measured once more after this many attempts: those that may still be found to be shared.
    pub fn once_more(&self, paths: Vec<CommonPath>, done: usize) -> Vec<CommonPath> {
        let is_open = |path: &CommonPath| {
            let needed = attempts(path.apart().count(), self.0.len());
            let rows = self.0.iter().find(|((name, _), _)| *name == path.name);
            let compared = rows.map(|(_, rows)| Compared::new(rows)).unwrap_or_default();
            compared.against <= AGAINST
                && compared.ratios.len() < needed * path.apart().count()
                && done < 2 * needed
        };
        paths.into_iter().filter(is_open).collect()
    }

    /// Returns what was found about each path, the most shared one first. `remedy` says what to do about ranks that waited for a CPU.
    pub(super) fn found(&self, remedy: &'static str) -> Vec<SharedPath> {
        let of = |((name, bytes), rows): (&(String, u64), &PathRows)| {
            let compared = Compared::new(rows);
            let (comparisons, against) = (compared.ratios.len(), compared.against);
            // Without a comparison, because ranks waited in all rows, the factor is not known.
            let factor = median(&compared.ratios).unwrap_or(f64::NAN);
            let is_shared = factor >= MIN_FACTOR
                && against <= AGAINST
                && chance(comparisons, against) <= LEVEL / self.0.len() as f64;
            let middle = |times: &BTreeMap<RowPlace, PathTime>| {
                let known = times.values().filter(|time| time.delay.is_finite());
                median(&known.map(|time| time.ns).collect::<Vec<_>>())
            };
            SharedPath {
                name: name.clone(),
                bytes: *bytes,
                links: rows.links,
                factor,
                is_shared,
                comparisons,
                agreeing: comparisons - against,
                together_ns: middle(&rows.together).unwrap_or(f64::NAN),
                apart_ns: middle(&rows.apart).unwrap_or(f64::NAN),
                remedy,
            }
        };
        let mut all: Vec<SharedPath> = self.0.iter().map(of).collect();
        sort_by_value(&mut all, |path| -path.factor);
        all
    }
}

/// Comparisons of rows of the same link and attempt, together and alone, that waiting for a CPU cannot have decided.
#[derive(Default)]
struct Compared {
    /// Ratios of the time together to the time alone.
    ratios: Vec<f64>,
    /// Number of ratios below [`MIN_FACTOR`].
    against: usize,
}

impl Compared {
    fn new(rows: &PathRows) -> Compared {
        let of = |(place, apart): (&RowPlace, &PathTime)| {
            let together = rows.together.get(place)?;
            let ratio = together.ns / apart.ns;
            // Both ways alike, so that equal times are not more often for the finding than against it.
            let delay = together.delay.max(apart.delay);
            let is_decided = ratio / delay >= MIN_FACTOR || ratio * delay < MIN_FACTOR;
            (is_decided && ratio.is_finite() && ratio > 0.0).then_some(ratio)
        };
        let ratios: Vec<f64> = rows.apart.iter().filter_map(of).collect();
        let against = ratios.iter().filter(|ratio| **ratio < MIN_FACTOR).count();
        Compared { ratios, against }
    }
}

/// What was found about the links of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SharedPath {
    name: String,
    bytes: u64,
    links: usize,
    /// Median ratio of the time together to the time alone.
    factor: f64,
    /// Whether the links share a bottleneck.
    pub(super) is_shared: bool,
    comparisons: usize,
    /// Number of comparisons with at least [`MIN_FACTOR`].
    agreeing: usize,
    together_ns: f64,
    apart_ns: f64,
    /// What to do about ranks that waited for a CPU.
    remedy: &'static str,
}

impl SharedPath {
    /// Returns the noun and name of the path.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the comparisons neither show that the links share a bottleneck nor that they do not.
    pub(super) fn is_open(&self) -> bool {
        self.comparisons == 0 || !self.is_shared && self.factor >= MIN_FACTOR
    }

    /// Returns whether the path is a whole bisection.
    pub(super) fn is_bisection(&self) -> bool {
        self.name == BISECTION
    }

    /// Returns a sentence on the path, and the evidence.
    pub(super) fn sentence(&self) -> [String; 2] {
        let which = match self.name.split_once(' ') {
            Some((noun, _)) => format!("from {} to other {}", self.name, plural(noun)),
            None => "of the bisection".to_owned(),
        };
        let SharedPath { bytes, links, factor, comparisons, agreeing, remedy, .. } = self;
        let takes = format!("{factor:.2} times as long as alone (at {} bytes)", Bytes(*bytes));
        let text = if self.comparisons == 0 {
            format!(
                "the links {which} were measured together and alone, but ranks waited for a CPU: {remedy}"
            )
        } else if self.is_shared {
            let share = *links as f64 / factor;
            format!(
                "together, the {links} links {which} take {takes}, as if they shared the bandwidth of {share:.1} links"
            )
        } else if *factor >= MIN_FACTOR {
            format!(
                "together, the {links} links {which} take {takes}, but only {agreeing} of {comparisons} comparisons \
                 agree: repeat"
            )
        } else {
            format!(
                "together, the {links} links {which} take {takes}: nothing shows that they share a bottleneck"
            )
        };
        let [together, apart] = [self.together_ns, self.apart_ns].map(ombx_estimate::number::time);
        let evidence = format!(
            "together {together}, alone {apart} (medians); at least {MIN_FACTOR} times as long in {agreeing} of \
             {comparisons} comparisons"
        );
        [text, evidence]
    }
}

#[cfg(test)]
mod tests;
