//! Links that are slow in some of their measurements only.
//!
//! A *visit* is all that is measured of a link in one place of a sweep: in a round, or in one attempt at measuring it again. What disturbs a
//! moment spoils all rows of a visit, so that they count once. Visits in which ranks waited for a CPU do not count.

use std::collections::{BTreeMap, BTreeSet};

use ombx_host::device_counters::is_retransmission;
use ombx_record::{
    event::Round,
    link::{ATTEMPT, MOST_RANKS, PATH, RETEST, ROUND},
    result::{Growth, Measurement},
    unit::Bytes,
    verdict::Component,
};

use crate::verdict::{
    Hosts, LEVEL, Link, MIN_LINKS,
    detection::{spread, threshold},
    link_name,
    relative::median,
    times::{Delays, MAX_DELAY, delay_of},
};

/// Probability with which a slow visit is by chance the one with the most packets sent again. Two facts must meet, and the verdict says
/// both; four hosts, the fewest that are compared, have 24 visits.
const MOST_BY_CHANCE: f64 = 0.05;

/// VisitPlace of a visit in its launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum VisitPlace {
    /// Round of a sweep; `None` if one pair is measured at a time.
    Sweep(Option<u32>),
    /// Attempt at measuring the link again.
    Again(u32),
}

/// Launch and place of a visit.
type Moment = (usize, VisitPlace);

/// Row of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
struct VisitedRow {
    moment: Moment,
    bytes: u64,
    link: Link,
    /// By how many times waiting for a CPU has made it longer at most.
    delay: f32,
}

/// Visits to the links of a sweep, of at most [`MOST_RANKS`] ranks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Visits {
    rows: Vec<VisitedRow>,
    /// Packets that hosts sent again in a round.
    resent_in_round: BTreeMap<(Moment, String), u64>,
    /// Packets that were sent again while a link was measured again.
    resent_again: BTreeMap<(Moment, (u32, u32)), u64>,
}

/// Link that is slow in some visits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UnsteadyLink {
    pub(super) ends: [u32; 2],
    /// Largest ratio to comparable rows, and its message size.
    factor: f64,
    bytes: u64,
    /// Slow visits, and all.
    visits: [usize; 2],
    why: Why,
}

/// Why slow visits are no chance.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Why {
    /// So many slow visits would meet one link by chance with this probability.
    Often(f64),
    /// The slow visit has the most packets sent again, here this many, of all visits, here this many.
    Resent { packets: u64, visits: usize },
}

impl Visits {
    /// Adds the row of a link.
    pub(super) fn add(&mut self, row: &Measurement, launch: usize, hosts: &Hosts) {
        let (Some(link), Some(bytes)) =
            (Link::of_row(row), row.bytes.filter(|_| !row.axes.contains_key(PATH)))
        else {
            return;
        };
        let number = |axis: &str| row.axes.get(axis).and_then(|text| text.parse().ok());
        let is_again = row.axes.contains_key(RETEST);
        let place = if is_again {
            VisitPlace::Again(number(ATTEMPT).unwrap_or(1))
        } else {
            VisitPlace::Sweep(number(ROUND))
        };
        let moment = (launch, place);
        let delay = delay_of(&row.trust);
        self.add_row(VisitedRow { moment, bytes, link, delay }, hosts);
        if is_again {
            let sum: u64 = row.grown.iter().filter(|one| is_retransmission(one)).map(|one| one.by).sum();
            *self.resent_again.entry((moment, ends(&link))).or_default() += sum;
        } else {
            self.add_grown(moment, &row.grown);
        }
    }

    /// Adds the links of a round.
    pub(super) fn add_round(&mut self, round: &Round, launch: usize, hosts: &Hosts) {
        let Some(bytes) = round.row.bytes else { return };
        let moment = (launch, VisitPlace::Sweep(round.number));
        let delays = Delays::of(round);
        for (at, (from, to, ns)) in round.links().enumerate() {
            let delay = delays.of_link(at);
            self.add_row(VisitedRow { moment, bytes, link: Link { from, to, ns }, delay }, hosts);
        }
        self.add_grown(moment, &round.row.grown);
    }

    /// Adds the visits of another sweep as those of a launch.
    pub(super) fn join(&mut self, others: &Visits, launch: usize) {
        let moved = |(_, place): Moment| (launch, place);
        self.rows.extend(others.rows.iter().map(|row| VisitedRow { moment: moved(row.moment), ..*row }));
        for ((moment, host), by) in &others.resent_in_round {
            *self.resent_in_round.entry((moved(*moment), host.clone())).or_default() += by;
        }
        for ((moment, ends), by) in &others.resent_again {
            *self.resent_again.entry((moved(*moment), *ends)).or_default() += by;
        }
    }

    fn add_row(&mut self, row: VisitedRow, hosts: &Hosts) {
        let is_known = row.link.from.max(row.link.to) < hosts.ranks();
        if is_known && row.link.ns > 0.0 && hosts.ranks() as usize <= MOST_RANKS {
            self.rows.push(row);
        }
    }

    /// Adds counters that grew in a round. What grew while one of many pairs was measured belongs to no visit.
    fn add_grown(&mut self, moment: Moment, grown: &[Growth]) {
        if moment.1 == VisitPlace::Sweep(None) {
            return;
        }
        for one in grown.iter().filter(|one| is_retransmission(one)) {
            *self.resent_in_round.entry((moment, one.host.clone())).or_default() += one.by;
        }
    }

    /// Returns the links that are slow in some visits, and belong to none of these slow parts.
    ///
    /// A row is slow if it exceeds the limit of single links, corrected for the number of rows. If K of N visits are slow, k or more of the
    /// n visits to a link are by chance with the probability of a hypergeometric distribution. A link is unsteady if this probability, times
    /// the number of links, is at most [`LEVEL`]. One slow visit is enough if packets were sent again in it, more than in any other visit:
    /// without a connection between both this has the probability K / N.
    pub(super) fn unsteady(&self, hosts: &Hosts, slow: &[Component]) -> Vec<UnsteadyLink> {
        let is_ordinary =
            |row: &&VisitedRow| !slow.iter().any(|part| hosts.has_link(part, [row.link.from, row.link.to]));
        let rows: Vec<VisitedRow> = self.rows.iter().filter(is_ordinary).copied().collect();
        let factors = factors_of_slow_rows(&rows, hosts);
        let mut slow_rows: BTreeMap<Moment, Vec<usize>> = BTreeMap::new();
        for at in (0..rows.len()).filter(|at| factors[*at].is_some()) {
            slow_rows.entry(rows[at].moment).or_default().push(at);
        }
        let mut visits: BTreeMap<(Moment, (u32, u32)), Visit> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let visit = visits.entry((row.moment, ends(&row.link))).or_default();
            visit.waited |= row.delay > MAX_DELAY;
            if let Some(factor) = factors[at]
                && !is_burst(&rows, at, &slow_rows[&row.moment], hosts)
                && visit.slow.is_none_or(|(known, _)| known < factor)
            {
                visit.slow = Some((factor, row.bytes));
            }
        }
        visits.retain(|_, visit| !visit.waited);
        let slow_visits = visits.values().filter(|visit| visit.slow.is_some()).count();
        let mut of_links: BTreeMap<(u32, u32), Vec<Visit>> = BTreeMap::new();
        for ((_, ends), visit) in &visits {
            of_links.entry(*ends).or_default().push(*visit);
        }
        let most_resent = self.most_resent(&visits, hosts);
        let found = of_links.iter().filter_map(|(ends, own)| {
            let slow: Vec<(f64, u64)> = own.iter().filter_map(|visit| visit.slow).collect();
            let (factor, bytes) = slow.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
            let tail = hypergeometric_tail([slow.len(), own.len()], [slow_visits, visits.len()]);
            let by_chance = tail * of_links.len() as f64;
            let resent = most_resent.filter(|(of, _)| of == ends).map(|(_, packets)| packets);
            let why = match resent {
                // A link that is slow in every visit is slow, not unsteady.
                _ if slow.len() == own.len() => return None,
                _ if by_chance <= LEVEL => Why::Often(by_chance),
                Some(packets) if slow_visits as f64 <= MOST_BY_CHANCE * visits.len() as f64 => {
                    Why::Resent { packets, visits: visits.len() }
                }
                _ => return None,
            };
            Some(UnsteadyLink { ends: [ends.0, ends.1], factor, bytes, visits: [slow.len(), own.len()], why })
        });
        found.collect()
    }

    /// Returns the link of the visit with the most packets sent again, and their number, if the visit is slow and the only one with so many.
    fn most_resent(
        &self,
        visits: &BTreeMap<(Moment, (u32, u32)), Visit>,
        hosts: &Hosts,
    ) -> Option<((u32, u32), u64)> {
        let resent = |moment: Moment, (a, b): (u32, u32)| match moment.1 {
            VisitPlace::Again(_) => self.resent_again.get(&(moment, (a, b))).copied().unwrap_or(0),
            VisitPlace::Sweep(_) => {
                let ends = BTreeSet::from([hosts.name(a), hosts.name(b)]);
                let of = |host: &str| self.resent_in_round.get(&(moment, host.to_owned()));
                ends.into_iter().filter_map(of).sum()
            }
        };
        let all = visits.iter().map(|((moment, ends), visit)| (resent(*moment, *ends), *ends, visit));
        let mut all: Vec<(u64, (u32, u32), &Visit)> = all.collect();
        all.sort_by_key(|(packets, ..)| std::cmp::Reverse(*packets));
        let (packets, ends, visit) = *all.first()?;
        let is_only = packets > 0 && all.get(1).is_none_or(|(next, ..)| *next < packets);
        (is_only && visit.slow.is_some()).then_some((ends, packets))
    }
}

/// What counts of a visit.
#[derive(Debug, Clone, Copy, Default)]
struct Visit {
    /// Factor and message size of the slowest row that is slow.
    slow: Option<(f64, u64)>,
    waited: bool,
}

/// Returns the factors of the rows that are slow: each against the rows of its size, its distance and its part of the sweep.
fn factors_of_slow_rows(rows: &[VisitedRow], hosts: &Hosts) -> Vec<Option<f64>> {
    let kind = |row: &VisitedRow| {
        let is_again = matches!(row.moment.1, VisitPlace::Again(_));
        (row.bytes, is_again, hosts.distance(row.link.from, row.link.to))
    };
    let mut of_kind: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.delay <= MAX_DELAY) {
        of_kind.entry(kind(row)).or_default().push(f64::from(row.link.ns).ln());
    }
    of_kind.retain(|_, logs| logs.len() >= MIN_LINKS);
    let tests: usize = of_kind.values().map(Vec::len).sum();
    let of_kind: BTreeMap<_, [f64; 2]> = of_kind
        .into_iter()
        .map(|(kind, logs)| {
            let (centre, count) = (median(&logs), logs.len());
            (kind, [centre, threshold(tests as f64, spread(logs), count)])
        })
        .collect();
    let factor = |row: &VisitedRow| {
        let [centre, limit] = *of_kind.get(&kind(row))?;
        let log = f64::from(row.link.ns).ln() - centre;
        (row.delay <= MAX_DELAY && log - f64::from(row.delay).ln() >= limit).then_some(log.exp())
    };
    rows.iter().map(factor).collect()
}

/// Returns whether a slow row is part of a burst, which is no link's fault: of the slow rows of the same moment, one is of a link without a
/// host in common. Links that are measured one by one have such a row just before or after it.
fn is_burst(rows: &[VisitedRow], at: usize, slow_rows: &[usize], hosts: &Hosts) -> bool {
    let hosts_of = |row: &VisitedRow| [row.link.from, row.link.to].map(|rank| hosts.number(rank));
    let own = hosts_of(&rows[at]);
    let is_one_by_one = !matches!(rows[at].moment.1, VisitPlace::Sweep(Some(_)));
    slow_rows.iter().any(|other| {
        let is_near = !is_one_by_one || other.abs_diff(at) == 1;
        is_near && hosts_of(&rows[*other]).iter().all(|host| !own.contains(host))
    })
}

/// Returns the probability that at least `k` of `n` visits are slow if `slow` of `all` are, by chance.
fn hypergeometric_tail([k, n]: [usize; 2], [slow, all]: [usize; 2]) -> f64 {
    let mut logs = vec![0.0];
    (1..=all).for_each(|x| logs.push(logs[x - 1] + (x as f64).ln()));
    let choose = |n: usize, k: usize| logs[n] - logs[k] - logs[n - k];
    let possible = |x: &usize| *x <= slow && slow - x <= all - n;
    let one = |x: usize| (choose(n, x) + choose(all - n, slow - x) - choose(all, slow)).exp();
    (k..=n).filter(possible).map(one).sum::<f64>().min(1.0)
}

fn ends(link: &Link) -> (u32, u32) {
    (link.from.min(link.to), link.from.max(link.to))
}

impl UnsteadyLink {
    /// Returns a sentence that names the link, and what it rests on.
    pub(super) fn sentence(&self, hosts: &Hosts) -> [String; 2] {
        let UnsteadyLink { factor, bytes, visits: [slow, all], why, .. } = self;
        let link = link_name(self.ends, hosts);
        let times = if *factor < 10.0 { format!("{factor:.2}") } else { format!("{factor:.0}") };
        let resent = if matches!(why, Why::Resent { .. }) { ", with retransmits" } else { "" };
        let text = format!(
            "{link} took {times} times as long in {slow} of {all} measurements (at {} bytes){resent}",
            Bytes(*bytes)
        );
        let why = match why {
            Why::Often(chance) => format!(
                "evidence: if slow measurements hit links by chance, so many would hit one link with a probability of \
                 at most {:.1} %",
                (100.0 * chance).max(0.1)
            ),
            Why::Resent { packets, visits } => format!(
                "evidence: {packets} packets were sent again in it, more than in each of the other {} \
                 measurements of links",
                visits - 1
            ),
        };
        [text, why]
    }
}

#[cfg(test)]
mod tests;
