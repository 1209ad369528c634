//! Times of links.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use ombx_record::{
    event::{Round, RoundMark},
    link::{ALONE, ATTEMPTS, REFERENCE, RETEST, ends_of},
    order::sort_by_value,
    random::SplitMix64,
    result::{Level, Mark, MarkCode, Measurement},
    stats,
    unit::counted,
};

use crate::verdict::{Hosts, MIN_FACTOR, Retest, TIMES_AGAIN, few_units};

/// Standard deviation of the smallest of one, two and three normally distributed values, in theirs (David and Nagaraja, Order Statistics).
/// Of more values it is slightly smaller, so that the last one is an upper bound.
const SPREADS_OF_SHORTEST: [f64; 3] = [1.0, 0.826, 0.748];

/// Value of the axis `pattern` of traffic in one direction.
const DIRECTED: &str = "unidirectional";

/// Time of a link at one message size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Timed rank; the lower of the two ranks once both directions are averaged.
    pub from: u32,
    /// Rank that answers.
    pub to: u32,
    /// Median time in nanoseconds.
    pub ns: f32,
}

impl Link {
    /// Returns the link of a row; `None` if the row is of no link, or has no time.
    pub(crate) fn of_row(row: &Measurement) -> Option<Link> {
        let [from, to] = ends_of(row)?;
        Some(Link { from, to, ns: row.summary.as_ref()?.median as f32 })
    }
}

/// Times of all links at one message size: 12 bytes per row that is kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkTimes {
    /// Message size.
    pub bytes: u64,
    /// Whether the data flow in one direction. Otherwise the rows from a to b and from b to a time the same round trip.
    pub directed: bool,
    /// Times from the sweep: of all links, or of a sample.
    pub sweep: Vec<Link>,
    /// Slowest links of each rank that are not in the sample; filled once rows are averaged.
    pub outliers: Vec<Link>,
    /// Number of rows of the sweep, or of links once they are averaged. Those that are not kept count too.
    pub measured: usize,
    /// Number of rows of the sweep whose timed rank is the lower one.
    pub(super) ascending: usize,
    /// The sample has one link in 2^`level` of the most frequent kind, see [`Hosts::sample_level`].
    pub(super) level: u32,
    /// Rows of links outside the sample.
    pub(super) outside: Outliers,
    /// Slowest rows of blocks of ranks, for maps: also of rows that are not kept.
    pub(crate) tiles: Tiles,
    /// Slow links, measured again while all other ranks sleep; the shortest time of each once they are averaged.
    pub alone: Vec<Link>,
    /// Ordinary links, measured again for comparison with `alone`.
    pub reference: Vec<Link>,
    /// Whether every link was measured again, once they are averaged. The time of a link is then the shortest of all its rows, which few
    /// disturbances reach. Otherwise it is that of the sweep, in which all links are measured under the same conditions.
    pub is_repeated: bool,
    /// Number of rows that measure a slow link again, once they are combined. It is 1 in older results.
    pub(super) attempts: usize,
    /// Number of attempts in each of which a link must be slow: of the links that were measured again.
    pub(super) planned: BTreeMap<(u32, u32), usize>,
    /// Links that were measured again fewer times, because they were not slow each time.
    pub(super) given_up: BTreeSet<(u32, u32)>,
    /// Shortest time of all rows of a link, once they are averaged. What disturbs a measurement makes it longer.
    pub shortest: Vec<Link>,
    /// Standard error of the logarithm of a link's time by which its rows disagree, once they are averaged.
    pub(super) row_error: f64,
    /// Rows of all three kinds in which ranks waited for a CPU.
    pub(super) waited: Vec<LinkRow>,
    /// Logarithm of the factor by which waiting has lengthened the rows at most: of those that may decide, see [`LinkTimes::decisive`].
    pub(super) delay: f64,
}

impl LinkTimes {
    /// Returns the times with one entry per link: the mean of its rows in the sweep, or the shortest of all its rows if every link was
    /// measured again. Links with directed traffic are two, one for each direction.
    #[must_use]
    pub fn averaged(&self) -> LinkTimes {
        let mean = |ns: &[f32]| ns.iter().sum::<f32>() / ns.len() as f32;
        let average = |links: &[Link]| self.combine(links, mean);
        let mut rows: Vec<Link> =
            [&self.sweep, &self.alone, &self.reference].into_iter().flatten().copied().collect();
        let row_error = self.row_error(&rows);
        let outside: Vec<Link> = self.outside.rows().into_iter().map(|row| row.link).collect();
        rows.extend(&outside);
        let shortest = |links: &[Link]| self.combine(links, |ns| ns.iter().copied().fold(f32::MAX, f32::min));
        let (alone, reference) = (shortest(&self.alone), shortest(&self.reference));
        let (attempts, given_up) = self.attempts();
        let mut sweep = average(&self.sweep);
        let again: BTreeSet<(u32, u32)> = alone.iter().chain(&reference).map(|l| (l.from, l.to)).collect();
        // All rows of a link in the sweep may be of ranks that waited.
        let is_repeated =
            self.level == 0 && !again.is_empty() && sweep.iter().all(|l| again.contains(&(l.from, l.to)));
        let shortest = shortest(&rows);
        if is_repeated {
            sweep.clone_from(&shortest);
        }
        let measured = match self.level {
            0 => sweep.len(),
            _ if self.directed => self.measured,
            // Some links may have only one of their two rows: those of a round that was interrupted.
            _ => self.ascending.max(self.measured - self.ascending),
        };
        LinkTimes {
            bytes: self.bytes,
            directed: self.directed,
            measured,
            level: self.level,
            tiles: self.tiles.clone(),
            outliers: average(&outside),
            sweep,
            alone,
            reference,
            is_repeated,
            attempts,
            given_up,
            shortest,
            row_error,
            delay: self.delay,
            ..LinkTimes::default()
        }
    }

    /// Returns the standard error of the mean logarithm of a link's rows: of the median link, so that one disturbed row of one link
    /// counts little.
    fn row_error(&self, rows: &[Link]) -> f64 {
        let rows = self.by_link(rows);
        let of_links = rows.chunk_by(|a, b| a.0 == b.0).filter(|rows| rows.len() > 1).map(error_of_link);
        stats::median(&of_links.collect::<Vec<_>>()).unwrap_or(0.0)
    }

    /// Returns the ends and the time of each row, sorted by link.
    fn by_link(&self, rows: &[Link]) -> Vec<((u32, u32), f32)> {
        let known = rows.iter().filter(|l| l.ns.is_finite() && l.ns > 0.0);
        let mut rows: Vec<((u32, u32), f32)> = known.map(|l| (self.ends(l), l.ns)).collect();
        rows.sort_by_key(|(ends, _)| *ends);
        rows
    }

    /// Returns the ends of the link of a row: the lower one first, unless each direction is a link.
    fn ends(&self, l: &Link) -> (u32, u32) {
        if self.directed { (l.from, l.to) } else { (l.from.min(l.to), l.from.max(l.to)) }
    }

    /// Returns one entry per link with a figure of the times of its rows.
    fn combine(&self, rows: &[Link], figure: impl Fn(&[f32]) -> f32) -> Vec<Link> {
        let one = |rows: &[((u32, u32), f32)]| {
            let (from, to) = rows[0].0;
            Link { from, to, ns: figure(&rows.iter().map(|(_, ns)| *ns).collect::<Vec<_>>()) }
        };
        self.by_link(rows).chunk_by(|a, b| a.0 == b.0).map(one).collect()
    }

    /// Returns how often links were measured again, and the slow ones that were measured less often.
    pub(super) fn attempts(&self) -> (usize, BTreeSet<(u32, u32)>) {
        if self.attempts > 0 {
            return (self.attempts, self.given_up.clone());
        }
        // Ordinary links are never given up.
        let [alone, reference] = [&self.alone, &self.reference].map(|links| {
            let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
            self.by_link(links).iter().for_each(|(ends, _)| *counts.entry(*ends).or_default() += 1);
            counts
        });
        // A series is complete with its attempts, also if a link had several series, at looks or in launches.
        let planned = self.planned.values().copied().max().unwrap_or(TIMES_AGAIN);
        let most = alone.values().chain(reference.values()).copied().max().unwrap_or(0).min(planned);
        let is_given_up = |(ends, rows): &((u32, u32), usize)| *rows < self.needed(*ends, most);
        (most, alone.into_iter().filter(is_given_up).map(|(ends, _)| ends).collect())
    }

    /// Returns the number of rows that complete the series of a link: its attempts, at most those that were made.
    fn needed(&self, ends: (u32, u32), attempts: usize) -> usize {
        self.planned.get(&ends).copied().unwrap_or(TIMES_AGAIN).min(attempts)
    }

    /// Adds a row that measured a link again.
    pub fn add_again(&mut self, retest: &Retest, ns: f32) {
        let Retest { from, to, is_slow, attempts, .. } = *retest;
        let link = Link { from, to, ns };
        self.planned.insert(self.ends(&link), attempts);
        if is_slow { self.alone.push(link) } else { self.reference.push(link) }
    }

    /// Adds a row of the sweep. Keeps at most `most` rows, or some for each rank.
    pub(super) fn add(&mut self, row: LinkRow, hosts: &Hosts, most: usize) {
        let link = row.link;
        self.measured += 1;
        self.ascending += usize::from(link.from < link.to);
        self.tiles.add(link, hosts.ranks());
        if !self.is_sampled(&link, hosts) {
            return self.leave_out(row, hosts);
        }
        self.sweep.push(link);
        if row.waited() {
            self.waited.push(row);
        }
        while self.sweep.len() > most_rows(most, hosts) {
            self.level += 1;
            self.leave_sample(hosts);
        }
    }

    /// Removes the rows that are not in the sample any more.
    pub(super) fn leave_sample(&mut self, hosts: &Hosts) {
        let level = self.level;
        let leaves = |from: u32, to: u32| !is_sampled(hosts.sample_level(level, from, to), from, to);
        let left: Vec<Link> = self.sweep.extract_if(.., |row| leaves(row.from, row.to)).collect();
        // Links outside the sample can have rows that measured them again, which keep their entries.
        let delays: BTreeMap<(u32, u32, u32), f32> =
            self.waited.iter().map(|row| (identity(&row.link), row.delay)).collect();
        let rows: BTreeSet<(u32, u32, u32)> = left.iter().map(identity).collect();
        self.waited.retain(|row| !rows.contains(&identity(&row.link)));
        for link in left {
            let delay = delays.get(&identity(&link)).copied().unwrap_or(1.0);
            self.leave_out(LinkRow { link, delay }, hosts);
        }
    }

    /// Takes a row of a link outside the sample, which is kept if the link is among the slowest of one of its ranks.
    pub(super) fn leave_out(&mut self, row: LinkRow, hosts: &Hosts) {
        if !row.link.ns.is_finite() {
            return;
        }
        if self.directed {
            self.outside.keep(Outlier { row, back: None }, hosts);
        } else {
            self.outside.pair(row, hosts);
        }
    }

    /// Returns whether a link is in the sample. All are, if all rows are kept.
    pub fn is_sampled(&self, link: &Link, hosts: &Hosts) -> bool {
        is_sampled(hosts.sample_level(self.level, link.from, link.to), link.from, link.to)
    }

    /// Returns how many links were measured for each one in the sample, once rows are averaged.
    pub(super) fn links_per_sampled(&self) -> f64 {
        if self.level == 0 { 1.0 } else { self.measured as f64 / self.sweep.len().max(1) as f64 }
    }

    /// Returns a clause on the sample by which the links are judged; `None` if all are kept. The times are averaged.
    pub fn sample(&self) -> Option<String> {
        (self.level > 0).then(|| format!("{}, and the slowest of each rank", self.counted_links()))
    }

    /// Returns the number of links, in words: of all, or of a random sample and of all. The times are averaged.
    pub fn counted_links(&self) -> String {
        let kept = self.sweep.len();
        match self.level {
            0 => counted(kept, "link"),
            _ => format!("a random sample of {kept} of {}", counted(self.measured, "link")),
        }
    }

    /// Returns the time of a link that was measured again alone, in nanoseconds.
    pub fn retested(&self, from: u32, to: u32) -> Option<f32> {
        let again = self.alone.iter().chain(&self.reference);
        again.into_iter().find(|link| (link.from, link.to) == (from, to)).map(|link| link.ns)
    }

    /// Returns the standard deviation of the shortest of the rows that measure a link again, in those of the link. Without directed traffic
    /// a link is the mean of two rows in the sweep.
    pub(super) fn shortest_spreads(&self) -> f64 {
        let rows = self.attempts.clamp(1, SPREADS_OF_SHORTEST.len());
        SPREADS_OF_SHORTEST[rows - 1] * if self.directed { 1.0 } else { std::f64::consts::SQRT_2 }
    }

    /// Returns the rows that may decide: those in which no rank waited for a CPU. If less than half of the links would be left, or any would miss
    /// among those of few ranks, which are judged together, also those that waiting has lengthened little: by the smallest limit that leaves
    /// as many links as the largest would. A link that is measured again as often as others needs as many such rows. Otherwise none of its
    /// rows decides.
    pub(super) fn decisive(&self) -> Cow<'_, LinkTimes> {
        if !self.has_waited() {
            return Cow::Borrowed(self);
        }
        let outside = self.outside.rows();
        let bounded = self.waited.iter().chain(&outside).filter(|row| row.delay <= MAX_DELAY);
        let mut limits: Vec<f32> =
            std::iter::once(1.0).chain(bounded.map(|row| (row.delay * 100.0).ceil() / 100.0)).collect();
        limits.sort_by(f32::total_cmp);
        limits.dedup();
        let links = |times: &LinkTimes| {
            times.sweep.iter().map(|row| times.ends(row)).collect::<BTreeSet<(u32, u32)>>().len()
        };
        let most = limits.last().map_or(0, |limit| links(&self.with_enough_rows(*limit)));
        // Each limit leaves at least as many links as a lower one.
        let without = links(&self.with_enough_rows(1.0));
        let is_few =
            most <= few_units::MAX_UNITS * (few_units::MAX_UNITS - 1) / if self.directed { 1 } else { 2 };
        let at = if 2 * without >= most && !is_few {
            0
        } else {
            limits.partition_point(|limit| links(&self.with_enough_rows(*limit)) < most)
        };
        let limit = limits.get(at).copied().unwrap_or(1.0);
        Cow::Owned(LinkTimes { delay: f64::from(limit).ln(), ..self.with_enough_rows(limit) })
    }

    /// Returns whether ranks waited for a CPU in some rows.
    fn has_waited(&self) -> bool {
        !self.waited.is_empty() || self.outside.rows().iter().any(|row| row.waited())
    }

    /// Returns the rows that waiting has lengthened by this factor at most, of links with enough of them.
    fn with_enough_rows(&self, most: f32) -> LinkTimes {
        let mut times = self.delayed_at_most(most).into_owned();
        let all = self.alone.iter().chain(&self.reference);
        let all: BTreeSet<(u32, u32)> = all.map(|row| self.ends(row)).collect();
        let has_few = |ends: &(u32, u32)| {
            !times.given_up.contains(ends)
                && times.times_again((*ends).into()) < times.needed(*ends, times.attempts)
        };
        let undecided: BTreeSet<(u32, u32)> = all.into_iter().filter(has_few).collect();
        for rows in [&mut times.sweep, &mut times.alone, &mut times.reference] {
            rows.retain(|row| !undecided.contains(&self.ends(row)));
        }
        times
    }

    /// Returns the rows that waiting for a CPU has lengthened by this factor at most.
    pub(super) fn delayed_at_most(&self, most: f32) -> Cow<'_, LinkTimes> {
        if !self.has_waited() {
            return Cow::Borrowed(self);
        }
        // Rows in which ranks waited count as measurements.
        let (attempts, given_up) = self.attempts();
        let too_long = self.waited.iter().filter(|row| row.delay > most);
        let waited: BTreeSet<(u32, u32, u32)> = too_long.map(|row| identity(&row.link)).collect();
        let rest = |rows: &[Link]| -> Vec<Link> {
            rows.iter().filter(|row| !waited.contains(&identity(row))).copied().collect()
        };
        Cow::Owned(LinkTimes {
            sweep: rest(&self.sweep),
            alone: rest(&self.alone),
            reference: rest(&self.reference),
            outside: self.outside.delayed_at_most(most),
            waited: Vec::new(),
            attempts,
            given_up,
            ..self.clone()
        })
    }

    /// Returns the number of rows that measure a link again.
    pub(super) fn times_again(&self, [from, to]: [u32; 2]) -> usize {
        let ends = self.ends(&Link { from, to, ns: 0.0 });
        self.alone.iter().chain(&self.reference).filter(|row| self.ends(row) == ends).count()
    }

    /// Returns the links of which other times have none. Both are averaged.
    pub(super) fn missing_in(&self, other: &LinkTimes) -> BTreeSet<(u32, u32)> {
        let links = |times: &LinkTimes| -> BTreeSet<(u32, u32)> {
            times.sweep.iter().chain(&times.outliers).map(|row| times.ends(row)).collect()
        };
        links(self).difference(&links(other)).copied().collect()
    }

    /// Returns the links of a map, and the number of ranks that a block of it has at least. Of a sample, the slowest rows of blocks.
    pub fn mapped(&self) -> (Vec<Link>, usize) {
        match self.level {
            0 => (self.sweep.clone(), 1),
            _ => (self.tiles.rows().copied().collect(), self.tiles.block.max(1) as usize),
        }
    }

    /// Returns the fastest, the median and the slowest time of the sweep, in nanoseconds. [`LinkTimes::range_names`] says of which links.
    pub fn range(&self) -> Option<[f32; 3]> {
        let mut ns: Vec<f32> = self.sweep.iter().map(|link| link.ns).collect();
        ns.sort_by(f32::total_cmp);
        let (low, high) = (*ns.get((ns.len().max(1) - 1) / 2)?, *ns.get(ns.len() / 2)?);
        let slowest = self.outliers.iter().map(|link| link.ns).fold(*ns.last()?, f32::max);
        Some([*ns.first()?, f32::midpoint(low, high), slowest])
    }

    /// Returns the names of the times of [`LinkTimes::range`]. The slowest links of each rank are kept beside a sample, so that the slowest
    /// time is that of all links.
    pub fn range_names(&self) -> [&'static str; 3] {
        match self.level {
            0 => ["fastest", "median", "slowest"],
            _ => ["fastest of the sample", "median of the sample", "slowest of all links"],
        }
    }
}

/// Maximum number of blocks of ranks along a side of a map.
pub(crate) const MOST_TILES: u32 = 256;

/// Slowest row of each block of senders and receivers. Without more ranks than blocks there are none: maps show the links.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Tiles {
    /// Number of ranks in a block.
    pub(crate) block: u32,
    side: u32,
    /// By sender and receiver; a time of 0 if nothing was measured.
    slowest: Vec<Link>,
}

impl Tiles {
    fn add(&mut self, row: Link, ranks: u32) {
        if ranks <= MOST_TILES || row.from.max(row.to) >= ranks {
            return;
        }
        if self.slowest.is_empty() {
            self.block = ranks.div_ceil(MOST_TILES);
            self.side = ranks.div_ceil(self.block);
            self.slowest = vec![Link { from: 0, to: 0, ns: 0.0 }; (self.side * self.side) as usize];
        }
        let known = &mut self.slowest[(row.from / self.block * self.side + row.to / self.block) as usize];
        if row.ns > known.ns {
            *known = row;
        }
    }

    /// Returns the slowest rows of the blocks that were measured.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Link> {
        self.slowest.iter().filter(|row| row.ns > 0.0)
    }

    /// Returns the median of each block over launches.
    pub(super) fn median_over<'a>(launches: impl Iterator<Item = &'a Tiles>) -> Tiles {
        let launches: Vec<&Tiles> = launches.filter(|tiles| !tiles.slowest.is_empty()).collect();
        let Some(first) = launches.first() else { return Tiles::default() };
        let of_block = |at: usize| median_of_block(&launches, at).unwrap_or(first.slowest[at]);
        Tiles {
            slowest: (0..first.slowest.len()).map(of_block).collect(),
            block: first.block,
            side: first.side,
        }
    }
}

/// Returns the median of a block over launches; `None` if none measured it.
fn median_of_block(launches: &[&Tiles], at: usize) -> Option<Link> {
    // A launch that measured nothing in a block does not count.
    let of_launches = launches.iter().filter_map(|tiles| tiles.slowest.get(at).copied());
    let mut rows: Vec<Link> = of_launches.filter(|row| row.ns > 0.0).collect();
    sort_by_value(&mut rows, |row| row.ns.into());
    rows.get(rows.len() / 2).copied()
}

/// Returns the standard error of the mean logarithm of the rows of one link.
fn error_of_link(rows: &[((u32, u32), f32)]) -> f64 {
    let logs = rows.iter().map(|(_, ns)| f64::from(*ns).ln());
    let n = rows.len() as f64;
    let mean = logs.clone().sum::<f64>() / n;
    (logs.map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt()
}

/// Times of all links of a run, one entry per message size in the order of rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimesBySize(pub Vec<LinkTimes>);

impl TimesBySize {
    /// Adds the row of a link. Other rows, and rows without a summary, are ignored. Of each message size at most `most` rows are
    /// kept, or some for each rank, such as [`MOST_ROWS`](super::MOST_ROWS).
    pub fn add(&mut self, row: &Measurement, hosts: &Hosts, most: usize) {
        let (Some(link), Some(bytes)) = (Link::of_row(row), row.bytes) else { return };
        let times = self.of_size(row, bytes);
        let [retest, attempts] = [RETEST, ATTEMPTS].map(|axis| row.axes.get(axis).map(String::as_str));
        let row = LinkRow { link, delay: delay_of(&row.trust) };
        let is_slow = match retest {
            None => return times.add(row, hosts, most),
            Some(ALONE) => true,
            Some(REFERENCE) => false,
            Some(_) => return,
        };
        let attempts = attempts.and_then(|text| text.parse().ok()).unwrap_or(TIMES_AGAIN);
        times.add_again(&Retest { from: link.from, to: link.to, bytes, is_slow, attempts }, link.ns);
        if row.waited() {
            times.waited.push(row);
        }
    }

    /// Adds the links of a round.
    pub(super) fn add_round(&mut self, round: &Round, hosts: &Hosts, most: usize) {
        let Some(bytes) = round.row.bytes else { return };
        let times = self.of_size(&round.row, bytes);
        let delays = Delays::of(round);
        for (at, (from, to, ns)) in round.links().enumerate() {
            times.add(LinkRow { link: Link { from, to, ns }, delay: delays.of_link(at) }, hosts, most);
        }
    }

    /// Returns the times of a message size.
    fn of_size(&mut self, row: &Measurement, bytes: u64) -> &mut LinkTimes {
        let at = self.0.iter().position(|t| t.bytes == bytes).unwrap_or_else(|| {
            let directed = row.axes.get("pattern").is_some_and(|pattern| pattern == DIRECTED);
            self.0.push(LinkTimes { bytes, directed, ..LinkTimes::default() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

/// Largest factor by which waiting may have lengthened a row that decides: a part that is slower by [`few_units::MAX_NAMEABLE`] must be named.
pub(super) const MAX_DELAY: f32 = (few_units::MAX_NAMEABLE / MIN_FACTOR) as f32;

/// Returns by how many times waiting for a CPU has made a row with these marks longer at most: 1 if no rank waited, infinite if it is unknown.
pub(super) fn delay_of<'a>(marks: impl IntoIterator<Item = &'a Mark>) -> f32 {
    together(marks.into_iter().map(|mark| (mark, mark.effect)))
}

/// While other virtual machines have a CPU, no rank waits for it in the eyes of this kernel, so that `stolen` lengthens what the other marks
/// have lengthened. These count the same waiting in several ways.
fn together<'a>(marks: impl Iterator<Item = (&'a Mark, Option<f64>)>) -> f32 {
    let (mut stolen, mut waited) = (1.0_f32, 1.0_f32);
    for (mark, effect) in marks {
        let of_kind = if mark.code == MarkCode::Stolen { &mut stolen } else { &mut waited };
        *of_kind = of_kind.max(delay_of_mark(mark, effect));
    }
    stolen * waited
}

/// The bound of the mark leaves out threads of the kernel that wait for the same CPU and carry the message. It is taken twice, as if they had
/// waited as long as the ranks; a note counts too. Single preemptions, and the time of other virtual machines, count from the level on at
/// which they could have moved the median.
fn delay_of_mark(mark: &Mark, effect: Option<f64>) -> f32 {
    let counts = match mark.code {
        MarkCode::Waited => true,
        MarkCode::Preempted | MarkCode::Stolen | MarkCode::QuotaStops => mark.level >= Level::Caution,
        _ => false,
    };
    match effect {
        _ if !counts => 1.0,
        Some(effect) if effect < 1.0 => (1.0 - effect).powi(-2) as f32,
        _ => f32::INFINITY,
    }
}

/// Marks of a round that say that ranks of a link waited.
pub(super) struct Delays<'a>(Vec<&'a RoundMark>);

impl Delays<'_> {
    pub(super) fn of(round: &Round) -> Delays<'_> {
        let is_delay = |mark: &&RoundMark| delay_of_mark(&mark.mark, mark.mark.effect) > 1.0;
        Delays(round.marks.iter().filter(is_delay).collect())
    }

    /// Returns the delay of the link with this place in the round.
    pub(super) fn of_link(&self, at: usize) -> f32 {
        together(self.0.iter().filter_map(|mark| Some((&mark.mark, mark.effect(at)?))))
    }
}

/// Returns the ends and the time of a row, by which it is found again.
fn identity(row: &Link) -> (u32, u32, u32) {
    (row.from, row.to, row.ns.to_bits())
}

/// Maximum number of rows of one message size that are kept, unless there are more than `ROWS_PER_RANK` for each rank.
pub const MOST_ROWS: usize = 1 << 20;
/// Number of rows per rank that a sample may have.
const ROWS_PER_RANK: usize = 32;
/// Number of slowest links that are kept of each rank and kind.
const SLOWEST_PER_RANK: usize = 8;
/// Maximum number of links outside the sample that wait for the row of their other direction, unless there are more ranks. In a sweep of
/// ombx those of one round wait. With more, the order of the rows has some influence on which links are kept: a link whose first row was not
/// among the slowest is compared by its second row alone.
const MOST_PENDING: usize = 1 << 16;

/// Returns whether a link is in a sample of one link in 2^`level`. Both directions of a link are, or none. A sample has all links of
/// those with a higher level.
pub(super) fn is_sampled(level: u32, from: u32, to: u32) -> bool {
    let link = u64::from(from.min(to)) << 32 | u64::from(from.max(to));
    SplitMix64(link).next_u64().trailing_zeros() >= level
}

/// Returns the number of rows that may be kept of a sweep over these hosts.
pub(super) fn most_rows(most: usize, hosts: &Hosts) -> usize {
    most.max(ROWS_PER_RANK * hosts.ranks() as usize)
}

/// Row of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LinkRow {
    pub(super) link: Link,
    /// By how many times waiting for a CPU has made it longer at most, see [`delay_of`].
    pub(super) delay: f32,
}

impl LinkRow {
    /// Returns whether ranks waited for a CPU in it.
    pub(super) fn waited(&self) -> bool {
        self.delay > 1.0
    }
}

/// Link outside the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Outlier {
    row: LinkRow,
    /// The row of the other direction of traffic that is not directed.
    back: Option<LinkRow>,
}

impl Outlier {
    /// Returns the rows that waiting has lengthened by this factor at most; `None` without any.
    fn delayed_at_most(self, most: f32) -> Option<Outlier> {
        let mut left = self.rows().filter(|row| row.delay <= most);
        let row = left.next()?;
        Some(Outlier { row, back: left.next() })
    }

    fn rows(self) -> impl Iterator<Item = LinkRow> {
        std::iter::once(self.row).chain(self.back)
    }

    /// Returns the time by which links are compared: the mean of the rows that can decide; 0 without any.
    fn time(&self) -> f32 {
        let decides = |row: &LinkRow| row.delay <= MAX_DELAY;
        match (Some(self.row).filter(decides), self.back.filter(decides)) {
            (Some(row), Some(back)) => f32::midpoint(row.link.ns, back.link.ns),
            (row, back) => row.or(back).map_or(0.0, |row| row.link.ns),
        }
    }
}

/// Slowest links of each rank outside the sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outliers {
    /// By rank, and by the distance of the other rank.
    slowest: HashMap<(u32, usize), Vec<Outlier>>,
    /// Links of which one direction has arrived.
    pending: HashMap<(u32, u32), Outlier>,
    /// Whether links of which one direction has arrived are among the slowest too, because too many waited.
    keeps_single_rows: bool,
    /// Time of the fastest of the slowest links, by rank and distance; 0 until there are enough. Most links are faster.
    least: Vec<f32>,
}

impl Outliers {
    /// Takes a row of one direction of a link. Keeps the link with its other row if it is among the slowest of one of its ranks.
    fn pair(&mut self, row: LinkRow, hosts: &Hosts) {
        let Link { from, to, .. } = row.link;
        let ends = (from.min(to), from.max(to));
        let first = self.pending.remove(&ends).filter(|first| first.row.link.from == to);
        match first.or_else(|| self.take_single(&row.link, hosts)) {
            Some(first) => self.keep(Outlier { back: Some(row), ..first }, hosts),
            None => _ = self.pending.insert(ends, Outlier { row, back: None }),
        }
        if self.pending.len() > MOST_PENDING.max(hosts.ranks() as usize) {
            // The file has one direction of each link, or the directions are far apart.
            self.keeps_single_rows = true;
            for link in std::mem::take(&mut self.pending).into_values() {
                self.keep(link, hosts);
            }
        }
    }

    /// Removes from the slowest links the one of which only the other direction of this row is known, and returns it.
    fn take_single(&mut self, row: &Link, hosts: &Hosts) -> Option<Outlier> {
        if !self.keeps_single_rows {
            return None;
        }
        let is_first = |link: &Outlier| {
            link.back.is_none() && (link.row.link.from, link.row.link.to) == (row.to, row.from)
        };
        let distance = hosts.distance(row.from, row.to);
        let kinds = hosts.levels() + 2;
        let mut first = None;
        for rank in [row.from, row.to] {
            let Some(slowest) = self.slowest.get_mut(&(rank, distance)) else { continue };
            let Some(at) = slowest.iter().position(is_first) else { continue };
            first = Some(slowest.swap_remove(at));
            // There are not enough any more.
            if let Some(least) = self.least.get_mut(rank as usize * kinds + distance) {
                *least = 0.0;
            }
        }
        first
    }

    /// Keeps a link if it is among the slowest of one of its ranks.
    fn keep(&mut self, link: Outlier, hosts: &Hosts) {
        let ends = |link: &Outlier| (link.row.link.from, link.row.link.to);
        let (from, to) = ends(&link);
        let distance = hosts.distance(from, to);
        let kinds = hosts.levels() + 2;
        for rank in [from, to] {
            let place = rank as usize * kinds + distance;
            if self.least.get(place).is_some_and(|least| link.time() < *least) {
                continue;
            }
            let slowest = self.slowest.entry((rank, distance)).or_default();
            if slowest.len() < SLOWEST_PER_RANK {
                slowest.push(link);
                continue;
            }
            // Of equally slow links, those of the lowest ranks are kept.
            let order =
                |a: &Outlier, b: &Outlier| a.time().total_cmp(&b.time()).then_with(|| ends(b).cmp(&ends(a)));
            if let Some(fastest) = slowest.iter_mut().min_by(|a, b| order(a, b))
                && order(fastest, &link).is_lt()
            {
                *fastest = link;
            }
            self.least.resize(hosts.ranks() as usize * kinds, 0.0);
            // Ranks of a file that no host has are not known.
            if let Some(least) = self.least.get_mut(place) {
                *least = slowest.iter().map(Outlier::time).fold(f32::MAX, f32::min);
            }
        }
    }

    /// Returns the rows that waiting for a CPU has lengthened by this factor at most.
    fn delayed_at_most(&self, most: f32) -> Outliers {
        let mut all = self.clone();
        for links in all.slowest.values_mut() {
            *links = links.iter().filter_map(|link| link.delayed_at_most(most)).collect();
        }
        let pending = std::mem::take(&mut all.pending).into_iter();
        all.pending = pending.filter_map(|(ends, link)| Some((ends, link.delayed_at_most(most)?))).collect();
        all
    }

    /// Returns the rows of the links that are kept, in the order of their ends, and whether ranks waited in them.
    pub(super) fn rows(&self) -> Vec<LinkRow> {
        let links = self.slowest.values().flatten().chain(self.pending.values());
        let rows = links.flat_map(|link| link.rows());
        let by_ends: BTreeMap<(u32, u32), LinkRow> =
            rows.map(|row| ((row.link.from, row.link.to), row)).collect();
        by_ends.into_values().collect()
    }
}

#[cfg(test)]
mod sample_tests;
