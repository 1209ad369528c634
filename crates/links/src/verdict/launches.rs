//! Several launches of a sweep: which runs they are, and the median of each link over them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use ombx_record::{
    event::Round,
    link::{RETEST, ROUND, ends_of},
    order::sort_by_value,
    result::{Measurement, Metric, Run},
    runs::number,
    stats,
};

use crate::verdict::{
    Hosts, Link, LinkTimes, TimesBySize,
    times::{LinkRow, Tiles},
};

/// Options in which the launches of a sweep differ.
const OF_LAUNCH: [&str; 2] = ["launch", "randomize"];

/// Place of a run among the launches of its sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Launch {
    /// Number of the launch, from 1, and number of launches.
    position: (u32, u32),
    hosts: Vec<String>,
    /// Options that all launches share.
    options: BTreeMap<String, String>,
}

impl Launch {
    pub(super) fn of_run(run: &Run) -> Launch {
        let shared = run.plan.iter().filter(|(name, _)| !OF_LAUNCH.contains(&name.as_str()));
        Launch {
            position: (number(run, "launch").unwrap_or(1), number(run, "launches").unwrap_or(1)),
            hosts: run.places.iter().map(|place| place.host.clone()).collect(),
            options: shared.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }

    /// Returns whether this is the launch after `last`.
    pub(super) fn follows(&self, last: &Launch) -> bool {
        let next = Launch { position: (last.position.0 + 1, last.position.1), ..last.clone() };
        *self == next
    }

    /// Returns the number of launches of the sweep.
    pub(super) fn launch_count(&self) -> usize {
        self.position.1 as usize
    }

    /// Returns whether no launch follows.
    pub(super) fn is_last(&self) -> bool {
        self.position.0 >= self.position.1
    }
}

/// Returns the median of each row over launches. A launch that did not measure a row does not count for it.
///
/// If a launch has a sample of the links, all get this sample.
pub(super) fn median_over(launches: &[TimesBySize], hosts: &Hosts) -> TimesBySize {
    if let [one] = launches {
        return one.clone();
    }
    let mut sizes: Vec<u64> = Vec::new();
    for times in launches.iter().flat_map(|launch| &launch.0) {
        if !sizes.contains(&times.bytes) {
            sizes.push(times.bytes);
        }
    }
    TimesBySize(sizes.iter().map(|bytes| median_of_size(launches, hosts, *bytes)).collect())
}

/// Returns the median of each row of a size over launches.
fn median_of_size(launches: &[TimesBySize], hosts: &Hosts, bytes: u64) -> LinkTimes {
    let of_launches = launches.iter().flat_map(|launch| launch.0.iter());
    let mut all: Vec<Cow<'_, LinkTimes>> =
        of_launches.filter(|times| times.bytes == bytes).map(Cow::Borrowed).collect();
    let level = all.iter().map(|times| times.level).max().unwrap_or(0);
    for times in all.iter_mut().filter(|times| times.level < level) {
        times.to_mut().level = level;
        times.to_mut().leave_sample(hosts);
    }
    let directed = all.iter().any(|times| times.directed);
    let attempts = all.iter().map(|times| times.attempts().0).max().unwrap_or(0);
    let given_up = usually(all.iter().map(|times| times.attempts().1), &all);
    let outside: Vec<Vec<LinkRow>> = all.iter().map(|times| times.outside.rows()).collect();
    let most = all.iter().max_by_key(|times| times.measured);
    let mut combined = LinkTimes {
        bytes,
        directed,
        attempts,
        given_up,
        sweep: medians(all.iter().flat_map(|times| &times.sweep)),
        alone: medians(all.iter().flat_map(|times| shortest(&times.alone)).collect::<Vec<_>>().iter()),
        reference: medians(
            all.iter().flat_map(|times| shortest(&times.reference)).collect::<Vec<_>>().iter(),
        ),
        measured: most.map_or(0, |times| times.measured),
        ascending: most.map_or(0, |times| times.ascending),
        level,
        tiles: Tiles::median_over(all.iter().map(|times| &times.tiles)),
        delay: all.iter().map(|times| times.delay).fold(0.0, f64::max),
        ..LinkTimes::default()
    };
    usually_slow(&outside).for_each(|row| combined.leave_out(row, hosts));
    combined
}

/// Returns the median over launches of the rows that may decide, see [`LinkTimes::decisive`].
pub(super) fn decisive_median_over(launches: &[TimesBySize], hosts: &Hosts) -> TimesBySize {
    let decisive = |launch: &TimesBySize| {
        TimesBySize(launch.0.iter().map(|times| times.decisive().into_owned()).collect())
    };
    match launches {
        [one] => decisive(one),
        several => median_over(&several.iter().map(decisive).collect::<Vec<_>>(), hosts),
    }
}

/// Returns the shortest time of the rows of a launch between the same ends.
fn shortest(rows: &[Link]) -> Vec<Link> {
    let mut of_ends: BTreeMap<(u32, u32), f32> = BTreeMap::new();
    for row in rows {
        let shortest = of_ends.entry((row.from, row.to)).or_insert(f32::MAX);
        *shortest = shortest.min(row.ns);
    }
    of_ends.into_iter().map(|((from, to), ns)| Link { from, to, ns }).collect()
}

/// Returns the median time of the rows between the same ends, sorted by ends.
fn medians<'a>(rows: impl Iterator<Item = &'a Link>) -> Vec<Link> {
    let mut of_ends: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for row in rows {
        of_ends.entry((row.from, row.to)).or_default().push(row.ns.into());
    }
    let one =
        |((from, to), ns): ((u32, u32), Vec<f64>)| Some(Link { from, to, ns: stats::median(&ns)? as f32 });
    of_ends.into_iter().filter_map(one).collect()
}

/// Returns the links that were given up in most of the launches that measured them again.
fn usually(
    given_up: impl Iterator<Item = BTreeSet<(u32, u32)>>,
    launches: &[Cow<'_, LinkTimes>],
) -> BTreeSet<(u32, u32)> {
    let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    given_up.flatten().for_each(|ends| *counts.entry(ends).or_default() += 1);
    let ends = |l: &Link| [(l.from, l.to), (l.to, l.from)];
    let measured = |link: &(u32, u32)| {
        launches.iter().filter(|times| times.alone.iter().any(|l| ends(l).contains(link))).count()
    };
    counts.into_iter().filter(|(link, count)| 2 * count > measured(link)).map(|(link, _)| link).collect()
}

/// Returns the medians over launches of rows outside the sample. A launch that did not keep a row counts as a faster one.
fn usually_slow(launches: &[Vec<LinkRow>]) -> impl Iterator<Item = LinkRow> {
    let mut of_ends: BTreeMap<(u32, u32), Vec<LinkRow>> = BTreeMap::new();
    for row in launches.iter().flatten() {
        of_ends.entry((row.link.from, row.link.to)).or_default().push(*row);
    }
    let launches = launches.len();
    of_ends.into_values().filter_map(move |mut rows| {
        let missing = launches - rows.len().min(launches);
        sort_by_value(&mut rows, |row| f64::from(row.link.ns));
        let at = |middle: usize| rows.get(middle.checked_sub(missing)?);
        let (low, high) = (at((launches - 1) / 2)?, at(launches / 2)?);
        let link = Link { ns: f32::midpoint(low.link.ns, high.link.ns), ..low.link };
        Some(LinkRow { link, delay: low.delay.min(high.delay) })
    })
}

/// Links that were measured at the same time: one direction of the pairs of a round. Several steps can be added up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Number of links.
    pub links: usize,
    /// Shortest and longest time in nanoseconds.
    pub range_ns: [f64; 2],
    sum_ns: f64,
    /// Lowest and highest bandwidth in MB/s; `None` for messages of 0 bytes.
    pub range_mb_per_s: Option<[f64; 2]>,
    /// Sum of the bandwidths in MB/s: what all links carried together.
    pub sum_mb_per_s: f64,
}

impl Step {
    /// Returns the mean time in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.links as f64
    }

    /// Returns the mean bandwidth in MB/s; `None` for messages of 0 bytes.
    pub fn mean_mb_per_s(&self) -> Option<f64> {
        self.range_mb_per_s.map(|_| self.sum_mb_per_s / self.links as f64)
    }

    /// Returns the step of one link, whose work is that of the row.
    fn of_link(ns: f64, row: &Measurement) -> Step {
        let rate = row.in_unit(ns).filter(|_| row.metric == Metric::Bandwidth);
        Step {
            links: 1,
            range_ns: [ns; 2],
            sum_ns: ns,
            range_mb_per_s: rate.map(|rate| [rate; 2]),
            sum_mb_per_s: rate.unwrap_or(0.0),
        }
    }

    /// Returns a step with the links of both.
    #[must_use]
    pub fn and(self, other: Step) -> Step {
        let both = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        Step {
            links: self.links + other.links,
            range_ns: both(self.range_ns, other.range_ns),
            sum_ns: self.sum_ns + other.sum_ns,
            range_mb_per_s: match (self.range_mb_per_s, other.range_mb_per_s) {
                (Some(a), Some(b)) => Some(both(a, b)),
                (a, b) => a.or(b),
            },
            sum_mb_per_s: self.sum_mb_per_s + other.sum_mb_per_s,
        }
    }
}

/// Size, launch, round and direction of a step. The lower rank of each pair is timed first.
type Place = (u64, usize, u32, bool);

/// Steps of all launches of a sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Steps(BTreeMap<Place, Step>);

impl Steps {
    /// Adds the links of a round.
    pub(super) fn add_round(&mut self, round: &Round, launch: usize) {
        let (Some(bytes), Some(number)) = (round.row.bytes, round.number) else { return };
        for back in [false, true] {
            let links = round.links().filter(|(from, to, _)| (from > to) == back);
            let all = links.map(|(.., ns)| Step::of_link(f64::from(ns), &round.row)).reduce(Step::and);
            all.into_iter().for_each(|step| self.and((bytes, launch, number, back), step));
        }
    }

    /// Adds a row. Rows without a round, such as those of links that were measured alone, are ignored.
    pub(super) fn add(&mut self, row: &Measurement, launch: usize) {
        let place = || {
            let [from, to] = ends_of(row)?;
            Some((row.bytes?, launch, row.axes.get(ROUND)?.parse::<u32>().ok()?, from > to))
        };
        let place = place().filter(|_| !row.axes.contains_key(RETEST));
        if let (Some(place), Some(summary)) = (place, &row.summary) {
            self.and(place, Step::of_link(summary.median, row));
        }
    }

    fn and(&mut self, place: Place, step: Step) {
        self.0.entry(place).and_modify(|known| *known = known.and(step)).or_insert(step);
    }

    /// Adds the steps of a launch alone.
    pub(super) fn join(&mut self, of_launch: &Steps, launch: usize) {
        let steps = of_launch.0.iter();
        self.0.extend(steps.map(|((bytes, _, round, back), step)| ((*bytes, launch, *round, *back), *step)));
    }

    /// Returns the steps of a size in the order of measuring.
    pub(super) fn of_size(&self, bytes: u64) -> Vec<Step> {
        let from = (bytes, 0, 0, false);
        self.0.range(from..=(bytes, usize::MAX, u32::MAX, true)).map(|(_, step)| *step).collect()
    }
}

/// Joins consecutive steps so that at most `most` remain. Returns the number of the first step of each group, from 1, with the
/// links of all its steps.
pub fn join_steps(steps: &[Step], most: usize) -> Vec<(usize, Step)> {
    let each = steps.len().div_ceil(most.max(1)).max(1);
    let joined = steps.chunks(each).filter_map(|chunk| chunk.iter().copied().reduce(Step::and));
    (0..).map(|at| 1 + at * each).zip(joined).collect()
}

#[cfg(test)]
mod tests {
    use ombx_record::{result::Work, stats::Summary};

    use crate::verdict::launches::*;

    fn launch(ns: [f32; 2]) -> TimesBySize {
        let sweep = vec![Link { from: 0, to: 1, ns: ns[0] }, Link { from: 1, to: 0, ns: ns[1] }];
        TimesBySize(vec![LinkTimes { bytes: 8, sweep, ..LinkTimes::default() }])
    }

    #[test]
    fn each_row_is_the_median_of_the_launches_that_measured_it() {
        let mut launches = vec![launch([100.0, 10.0]), launch([300.0, 20.0]), launch([900.0, 30.0])];
        launches[1].0[0].alone.push(Link { from: 1, to: 0, ns: 7.0 });
        let over = median_over(&launches, &Hosts::default()).0.remove(0);
        assert_eq!(over.sweep, launch([300.0, 20.0]).0[0].sweep);
        assert_eq!(over.alone, [Link { from: 1, to: 0, ns: 7.0 }]);
        // The first and the last row of the first link are of ranks that waited.
        let always = |link: Link| LinkRow { link, delay: f32::INFINITY };
        let mut waited = launches.clone();
        for launch in [0, 2] {
            waited[launch].0[0].waited = vec![always(launches[launch].0[0].sweep[0])];
        }
        let decisive = decisive_median_over(&waited, &Hosts::default()).0.remove(0);
        assert_eq!(decisive.sweep, launch([300.0, 20.0]).0[0].sweep);
        assert_eq!(median_over(&waited, &Hosts::default()).0[0].sweep, decisive.sweep, "all rows are shown");
        waited[1].0[0].waited = vec![always(launches[1].0[0].sweep[0])];
        let decisive = decisive_median_over(&waited, &Hosts::default()).0.remove(0);
        assert_eq!(decisive.sweep, [Link { from: 1, to: 0, ns: 20.0 }]);
        assert_eq!(
            median_over(&launches[..2], &Hosts::default()).0[0].sweep,
            launch([200.0, 15.0]).0[0].sweep
        );
        assert_eq!(median_over(&[], &Hosts::default()).0.len(), 0);
    }

    #[test]
    fn launches_of_one_sweep_follow_each_other() {
        let run = |launch: u32, seed: u32, host: &str| {
            let mut run = ombx_testkit::golden().run;
            run.places[0].host = host.to_owned();
            let options = [("launch", launch), ("launches", 3), ("randomize", seed)];
            run.plan.extend(options.map(|(name, value)| (name.to_owned(), value.to_string())));
            Launch::of_run(&run)
        };
        let (first, second) = (run(1, 7, "a"), run(2, 8, "a"));
        assert!(second.follows(&first) && run(3, 9, "a").follows(&second));
        assert!(!first.follows(&second) && !run(3, 9, "a").follows(&first) && !first.follows(&first));
        assert!(!run(2, 8, "b").follows(&first), "another host");
        assert!(!first.is_last() && run(3, 9, "a").is_last());
        let alone = Launch::of_run(&ombx_testkit::golden().run);
        assert!(alone.is_last() && !alone.follows(&alone));
    }

    /// Returns the row of a link of 1000 bytes.
    fn row(from: u32, to: u32, round: u32, ns: f64) -> Measurement {
        let axes = [("from", from), ("to", to), ("round", round)];
        Measurement {
            bytes: Some(1000),
            axes: axes.map(|(name, value)| (name.to_owned(), value.to_string())).into(),
            work: Some(Work { bytes: 2000, ops: 2, legs: 2 }),
            summary: Summary::new(&[ns; 10]),
            ..Measurement::new("links", "x", Metric::Bandwidth, 2)
        }
    }

    #[test]
    fn a_step_has_the_least_the_mean_and_the_largest_of_its_links() {
        let mut steps = Steps::default();
        // Round 0 pairs 0 with 1, 2 with 3 and 4 with 5; round 1 comes later although its row is added first.
        steps.add(&row(0, 2, 1, 500.0), 0);
        steps.add(&row(0, 1, 0, 1000.0), 0);
        steps.add(&row(2, 3, 0, 4000.0), 0);
        steps.add(&row(4, 5, 0, 1000.0), 0);
        steps.add(&row(1, 0, 0, 2000.0), 0);
        let mut again = row(0, 1, 0, 9e9);
        again.axes.insert(RETEST.into(), "alone".into());
        steps.add(&again, 0);
        let all = steps.of_size(1000);
        assert_eq!(all.iter().map(|step| step.links).collect::<Vec<_>>(), [3, 1, 1]);
        assert_eq!((all[0].range_ns, all[0].mean_ns()), ([1000.0, 4000.0], 2000.0));
        let [low, high] = all[0].range_mb_per_s.unwrap();
        let rates = [low, all[0].mean_mb_per_s().unwrap(), high, all[0].sum_mb_per_s];
        assert_eq!(rates.map(f64::round), [250.0, 750.0, 1000.0, 2250.0], "{rates:?}");
        assert_eq!((all[1].mean_ns(), all[2].mean_ns()), (2000.0, 500.0));
        assert!(steps.of_size(8).is_empty());
    }

    #[test]
    fn launches_are_steps_of_their_own_and_lines_join_steps() {
        let mut steps = Steps::default();
        for launch in 0..2 {
            for round in 0..3 {
                steps.add(&row(0, 1, round, 1000.0 * f64::from(1 + round) + 100.0 * launch as f64), launch);
            }
        }
        let all = steps.of_size(1000);
        let means: Vec<f64> = all.iter().map(Step::mean_ns).collect();
        assert_eq!(means, [1000.0, 2000.0, 3000.0, 1100.0, 2100.0, 3100.0]);
        let joined = join_steps(&all, 3);
        assert_eq!(
            joined.iter().map(|(first, step)| (*first, step.links)).collect::<Vec<_>>(),
            [(1, 2), (3, 2), (5, 2)]
        );
        assert_eq!((joined[1].1.range_ns, joined[1].1.mean_ns()), ([1100.0, 3000.0], 2050.0));
        assert_eq!(join_steps(&all, 100).len(), 6);
        assert!(join_steps(&[], 3).is_empty());
    }
}
