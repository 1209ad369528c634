//! Verdicts on simulated fabrics: a fat tree and a dragonfly in which one part is slow, judged by the code of `ombx links`.
//!
//! Nothing is sent: times of links come from the fabric, and go as rounds of a sweep to the verdict. Links that stand out are measured
//! again as in a sweep.

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Instant,
};

use ombx_cost::link::{self, normal_of};
use ombx_host::environment;
use ombx_links::verdict::{self, LinkSweep, MOST_ROWS, Retest, TimesBySize};
use ombx_record::{
    result::{Measurement, Run},
    stats::Summary,
    unit::Rank,
    verdict::Component,
};
use ombx_sweep::{
    schedule::{Mode, Schedule},
    sweep::rounds_of,
};

/// Standard deviation of the logarithm of a time.
const NOISE: f64 = 0.03;
/// Factor of what all links of a host or leaf switch have, and of what some links have.
const SLOW_UNIT: f64 = 1.4;
const SLOW_LINK: f64 = 1.6;
/// Number of slowest links that are measured again.
const RETEST_COUNT: usize = 4;
/// Percentage of the seeds that must name the slow part and nothing else, so that no more rounds are tried. If 297 of 300 do, the probability
/// is at least 97.4 % with a confidence of 95 %; if all 300 do, at least 99.0 %.
const ENOUGH_PERCENT: usize = 99;

/// How switches are connected.
#[derive(Debug, PartialEq)]
pub(crate) struct Topology {
    pub(crate) name: &'static str,
    /// Number of hosts at a leaf switch or router, and in a pod or group.
    sizes: [u32; 2],
    /// Nouns of the two levels of groups.
    nouns: [&'static str; 2],
    /// Level of the groups that a cable connects: of leaves to the spine (0), or of groups (1).
    of_cables: usize,
    /// Number of cables among which links are distributed.
    cables: u64,
    /// Times of links below one leaf, in one pod, and between pods, in nanoseconds.
    ns: [f64; 3],
}

pub(crate) static TOPOLOGIES: [Topology; 2] = [
    // Leaf switches of 40 hosts, each with 20 cables to the spine, in pods of 25.
    Topology {
        name: "fat tree",
        sizes: [40, 1000],
        nouns: ["switch", "pod"],
        of_cables: 0,
        cables: 20,
        ns: [4000.0, 4600.0, 5200.0],
    },
    // Routers of 20 hosts in groups of 25; every two groups have 4 cables between them.
    Topology {
        name: "dragonfly",
        sizes: [20, 500],
        nouns: ["router", "group"],
        of_cables: 1,
        cables: 4,
        ns: [4000.0, 4400.0, 5400.0],
    },
];

/// What is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Host,
    Link,
    Leaf,
    Cable,
}

impl Part {
    pub(crate) const ALL: [Part; 4] = [Part::Host, Part::Link, Part::Leaf, Part::Cable];
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Host => "one host",
            Part::Link => "one link",
            Part::Leaf => "one leaf switch or router",
            Part::Cable => "one cable",
        })
    }
}

/// A fabric with one rank on each host, of which one part is slow.
struct Fabric {
    topology: &'static Topology,
    hosts: u32,
    part: Part,
    seed: u64,
    /// The slow host, or one end of the slow link.
    host: u32,
    /// The other end of the slow link, or of a link over the slow cable.
    other: u32,
}

impl Fabric {
    /// Chooses what is slow by the seed: a part of a link of this round, which is measured.
    fn new(trial: &Trial, seed: u64, schedule: &Schedule, round: u32) -> Fabric {
        let Trial { topology, hosts, part, .. } = *trial;
        let mut fabric = Fabric { topology, hosts, part, seed, host: 0, other: 0 };
        let first = (mixed(seed) % u64::from(schedule.pairs())) as u32;
        let pairs = (0..schedule.pairs()).map(|at| (first + at) % schedule.pairs());
        // The links of a slow cable are between leaves or groups.
        let pair = pairs
            .map(|turn| schedule.pair(round, turn))
            .find(|(Rank(a), Rank(b))| part != Part::Cable || fabric.are_apart(*a, *b));
        (fabric.host, fabric.other) = pair.map_or((0, 1), |(Rank(a), Rank(b))| (a, b));
        fabric
    }

    /// Returns the leaf (level 0) or pod (level 1) of a host.
    fn unit(&self, level: usize, host: u32) -> u32 {
        host / self.topology.sizes[level]
    }

    /// Returns whether messages between two hosts go over cables.
    fn are_apart(&self, from: u32, to: u32) -> bool {
        let level = self.topology.of_cables;
        self.unit(level, from) != self.unit(level, to)
    }

    /// Returns the cable of a link at the leaf of its end `from`, or between two groups.
    fn cable(&self, from: u32, to: u32) -> (u32, u32, u64) {
        let hash = mixed(u64::from(from.min(to)) << 32 | u64::from(from.max(to)));
        if self.topology.of_cables == 0 {
            let leaf = self.unit(0, from);
            (leaf, leaf, mixed(hash ^ u64::from(leaf)) % self.topology.cables)
        } else {
            let [a, b] = [self.unit(1, from), self.unit(1, to)];
            (a.min(b), a.max(b), hash % self.topology.cables)
        }
    }

    /// Returns whether a link has the slow part.
    fn is_slow(&self, from: u32, to: u32) -> bool {
        let (a, b) = (self.host, self.other);
        match self.part {
            Part::Host => [from, to].contains(&a),
            Part::Link => [(a, b), (b, a)].contains(&(from, to)),
            Part::Leaf => {
                let [leaf, one, other] = [a, from, to].map(|host| self.unit(0, host));
                one != other && [one, other].contains(&leaf)
            }
            Part::Cable => {
                let slow = self.cable(a, b);
                self.are_apart(from, to) && (self.cable(from, to) == slow || self.cable(to, from) == slow)
            }
        }
    }

    /// Returns the time of a row. `kind` tells apart rows of the same link.
    fn ns(&self, from: u32, to: u32, kind: u64) -> f64 {
        let distance = (0..2).find(|level| self.unit(*level, from) == self.unit(*level, to)).unwrap_or(2);
        let slow = match self.part {
            _ if !self.is_slow(from, to) => 1.0,
            Part::Host | Part::Leaf => SLOW_UNIT,
            Part::Link | Part::Cable => SLOW_LINK,
        };
        let noise = normal_of(from, to, kind.wrapping_add(self.seed << 8));
        self.topology.ns[distance] * slow * (NOISE * noise).exp()
    }

    /// Returns whether a verdict names the slow part and nothing else. A cable has no name: its links are named.
    fn is_named_by(&self, named: &[Component]) -> bool {
        let (a, b) = (self.host, self.other);
        match self.part {
            Part::Host => named == [Component::HostBetween(a)],
            Part::Link => named == [Component::Link(a.min(b), a.max(b))],
            Part::Leaf => named == [Component::GroupBetween(0, self.unit(0, a))],
            Part::Cable => {
                let is_of_cable =
                    |part: &Component| part.link().is_some_and(|[from, to]| self.is_slow(from, to));
                !named.is_empty() && named.iter().all(is_of_cable)
            }
        }
    }

    /// Returns the record of a run on the fabric, with its groups of hosts.
    fn run(&self) -> Run {
        let plan = [("groups".to_owned(), format!("{};{}", self.groups(0), self.groups(1)))].into();
        let hosts = (0..self.hosts).map(|host| format!("n{host:06}"));
        Run { plan, ..link::run("simulated", String::new(), hosts) }
    }

    /// Returns the groups of hosts of a level, as the record of a run has them.
    fn groups(&self, level: usize) -> String {
        let (size, noun) = (self.topology.sizes[level], self.topology.nouns[level]);
        let group = |at: u32| {
            let (first, last) = (at * size, (at * size + size).min(self.hosts) - 1);
            format!("{noun}:{noun}{at}=n[{first:06}-{last:06}]")
        };
        (0..self.hosts.div_ceil(size)).map(group).collect::<Vec<_>>().join(" ")
    }
}

/// The finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
fn mixed(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Sweeps over a sample of the pairs, or over all, and judges the links. Returns the parts that are named.
fn judged(fabric: &Fabric, schedule: &Schedule, rounds: Option<u32>) -> Vec<Component> {
    let mut sweep = LinkSweep::of_run(&fabric.run());
    for number in rounds_of(schedule, rounds) {
        let pairs = || (0..schedule.pairs()).map(|turn| schedule.pair(number, turn));
        let forth = pairs().map(|(Rank(a), Rank(b))| [a, b]);
        let links: Vec<[u32; 2]> = forth.chain(pairs().map(|(Rank(a), Rank(b))| [b, a])).collect();
        sweep.add_round(&link::round(number, &links, |[from, to]| fabric.ns(from, to, 1) as f32));
    }
    let mut again = verdict::retest_candidates(&sweep.times().0, &sweep.hosts, RETEST_COUNT);
    let mut alone = TimesBySize::default();
    for attempt in 1.. {
        if again.is_empty() {
            break;
        }
        for link in &again {
            let row = row_again(fabric, link, attempt);
            alone.add(&row, &sweep.hosts, MOST_ROWS);
            sweep.add(&row);
        }
        again = verdict::once_more(again, &alone.0, &sweep.hosts, attempt);
    }
    sweep.verdict().components()
}

/// Returns the row of a link that is measured again.
fn row_again(fabric: &Fabric, link: &Retest, attempt: usize) -> Measurement {
    let mut row = link::shared();
    let own = [("from", link.from.to_string()), ("to", link.to.to_string())];
    let own = own.into_iter().chain(link.axes(attempt));
    row.axes.extend(own.map(|(name, value)| (name.to_owned(), value)));
    row.summary = Summary::new(&[fabric.ns(link.from, link.to, 1 + attempt as u64)]);
    row
}

/// A number of sweeps over fabrics that differ by their seeds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    pub(crate) topology: &'static Topology,
    pub(crate) hosts: u32,
    pub(crate) part: Part,
    /// Rounds of the sweep; `None` for all pairs.
    pub(crate) rounds: Option<u32>,
    pub(crate) seeds: usize,
}

/// What a trial showed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tried {
    pub(crate) trial: Trial,
    /// Number of sweeps that named the slow part and nothing else.
    pub(crate) named: usize,
    /// Wall time of a sweep, with making the times, in seconds.
    pub(crate) seconds: f64,
}

impl Tried {
    /// Returns whether so many seeds name the slow part that no more rounds are tried.
    pub(crate) fn is_enough(&self) -> bool {
        100 * self.named >= ENOUGH_PERCENT * self.trial.seeds
    }
}

impl Trial {
    /// Sweeps with all seeds, on all CPUs.
    #[expect(clippy::disallowed_methods, reason = "seconds of a whole sweep are no measurement of ombx")]
    pub(crate) fn run(self) -> Tried {
        let (next, named) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let threads = thread::available_parallelism().map_or(1, usize::from).min(self.seeds);
        let start = Instant::now();
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= self.seeds {
                    return;
                }
                named.fetch_add(usize::from(self.is_named(seed as u64)), Ordering::Relaxed);
            }
        };
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        let seconds = start.elapsed().as_secs_f64() * threads as f64 / self.seeds as f64;
        Tried { trial: self, named: named.into_inner(), seconds }
    }

    fn is_named(&self, seed: u64) -> bool {
        let schedule = Mode::Parallel.schedule(self.hosts, Some(seed + 1));
        let measured: Vec<u32> = rounds_of(&schedule, self.rounds).collect();
        let round = measured[mixed(seed) as usize % measured.len()];
        let fabric = Fabric::new(self, seed + 1, &schedule, round);
        fabric.is_named_by(&judged(&fabric, &schedule, self.rounds))
    }
}

/// Returns the date and a table of trials.
pub(crate) fn table(tried: &[Tried]) -> String {
    let head = "fabric | hosts | slow | rounds | links | named, and nothing else | probability, at least | s per sweep";
    format!("{}.\n\n{}", environment::timestamp(), ombx_toolchain::table(head, tried.iter().map(line)))
}

/// Returns the line of a trial.
fn line(Tried { trial, named, seconds }: &Tried) -> String {
    let Trial { topology, hosts, part, rounds, seeds } = trial;
    let all = u64::from(hosts - 1);
    let measured = rounds.map_or(all, u64::from);
    let rounds = rounds.map_or("all".to_owned(), |rounds| rounds.to_string());
    let links = measured * u64::from(*hosts) / 2;
    let least = 100.0 * least_probability(*named, *seeds);
    let name = topology.name;
    format!(
        "{name} | {hosts} | {part} | {rounds} | {links} | {named} of {seeds} | {least:.1} % | {seconds:.1}"
    )
}

/// Returns the lower bound of the probability of success with a confidence of 95 %: with it, as many successes or more have 5 %
/// (Clopper and Pearson 1934).
fn least_probability(successes: usize, trials: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if probability(successes, trials, middle) < 0.05 { low = middle } else { high = middle }
    }
    low
}

/// Returns the probability of as many successes or more, each with probability `p`.
fn probability(successes: usize, trials: usize, p: f64) -> f64 {
    // Probability of all successes, and of one less each time.
    let (mut ln, mut sum) = (trials as f64 * p.ln(), 0.0);
    for failures in 0..=trials - successes {
        sum += ln.exp();
        ln += ((trials - failures) as f64 / (failures + 1) as f64 * (1.0 - p) / p).ln();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slow_part_is_named() {
        for topology in &TOPOLOGIES {
            for part in Part::ALL {
                let tried = Trial { topology, hosts: 2000, part, rounds: Some(20), seeds: 2 }.run();
                assert_eq!(tried.named, 2, "{}, {part}", topology.name);
            }
        }
    }

    #[test]
    fn a_proportion_has_a_lower_bound() {
        for (successes, trials, bound) in
            [(50, 50, 0.9418), (300, 300, 0.990_06), (297, 300, 0.974_36), (49, 50, 0.9086), (0, 9, 0.0)]
        {
            let least = least_probability(successes, trials);
            assert!((least - bound).abs() < 1e-4, "{successes} of {trials}: {least}");
        }
    }

    #[test]
    fn of_300_seeds_297_are_enough() {
        let (topology, part) = (&TOPOLOGIES[0], Part::Host);
        let trial = Trial { topology, hosts: 2000, part, rounds: None, seeds: 300 };
        let is_enough = |named| Tried { trial, named, seconds: 0.0 }.is_enough();
        assert!(is_enough(297) && !is_enough(296));
    }

    #[test]
    fn a_cable_has_few_links() {
        let schedule = Mode::Parallel.schedule(2000, Some(1));
        for topology in &TOPOLOGIES {
            let trial = Trial { topology, hosts: 2000, part: Part::Cable, rounds: None, seeds: 1 };
            let fabric = Fabric::new(&trial, 7, &schedule, 3);
            let slow = (0..2000).filter(|to| fabric.is_slow(fabric.host, *to)).count();
            assert!(fabric.is_slow(fabric.host, fabric.other) && (1..300).contains(&slow), "{slow}");
        }
    }
}
