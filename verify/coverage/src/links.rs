//! Simulated sweeps over links: how often a healthy machine is accused, and how often a slow link is named.

use ombx_links::verdict::{Hosts, Link, LinkTimes, find_slow, nameable, once_more, retest_candidates};
use ombx_record::verdict::Component;

use crate::{
    document::with_interval,
    line::wilson,
    random::{mixed, open_unit},
};

/// Numbers of hosts with one rank each.
const HOSTS: [u32; 4] = [4, 8, 16, 64];
/// Share of rows that are disturbed, in the sweep and in second measurements. Each takes up to twice as long.
const DISTURBED: f64 = 0.02;
/// Kind of sweeps in which so many rows are disturbed that links are measured again more than three times.
const OFTEN_DISTURBED: Kind = Kind { hosts: 256, differences: 0.0, disturbed: 0.05 };
/// Standard deviation of the logarithm of a row.
const NOISE: f64 = 0.02;
/// Standard deviations of the logarithms by which links differ for good.
const DIFFERENCES: [f64; 2] = [0.0, 0.05];
/// Factor of a link that is clearly slow.
const CLEARLY: f64 = 1.5;
/// Number of slowest links that are measured again besides those that stand out: the default of `ombx links`.
const AGAIN: usize = 4;
/// Goals: the largest share of healthy sweeps that accuse something, and the smallest power at the printed factor.
const MOST_FALSE: f64 = 0.015;
const LEAST_POWER: f64 = 0.95;

/// Kind of sweeps.
#[derive(Debug, Clone, Copy)]
struct Kind {
    hosts: u32,
    /// Standard deviation of the logarithms by which links differ for good.
    differences: f64,
    /// Share of rows that are disturbed.
    disturbed: f64,
}

/// Counts over sweeps of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sweeps {
    kind: Kind,
    sweeps: u64,
    accused: u64,
    /// Sweeps that printed a factor, and those that named a link which is slower by it.
    printed: u64,
    named: u64,
    /// Sweeps that named a link which is slower by [`CLEARLY`].
    clearly: u64,
    /// Sum of the printed factors.
    factors: f64,
}

impl Sweeps {
    /// Returns whether healthy machines are certainly accused too often, or slow links certainly named too seldom.
    pub(crate) fn failed(&self) -> bool {
        let [least_false, _] = wilson(self.accused, self.sweeps);
        let [_, most_named] = wilson(self.named, self.printed);
        least_false > MOST_FALSE || self.printed > 0 && most_named < LEAST_POWER
    }
}

/// Simulates this many sweeps of each kind.
pub(crate) fn simulate(sweeps: u64, seed: u64) -> Vec<Sweeps> {
    let seldom = HOSTS.iter().flat_map(|hosts| {
        DIFFERENCES.map(|differences| Kind { hosts: *hosts, differences, disturbed: DISTURBED })
    });
    seldom.chain([OFTEN_DISTURBED]).map(|kind| of_kind(kind, sweeps, seed)).collect()
}

fn of_kind(kind: Kind, sweeps: u64, seed: u64) -> Sweeps {
    let mut counts = Sweeps { kind, sweeps, accused: 0, printed: 0, named: 0, clearly: 0, factors: 0.0 };
    let hosts = kind.hosts;
    let names: Vec<String> = (1..=hosts).map(|host| format!("n{host}")).collect();
    let hosts_of = Hosts::new(names.iter().map(String::as_str));
    for number in 0..sweeps {
        let machine = Machine { kind, seed: hash([seed, number, hosts.into(), 0]) };
        let healthy = machine.swept(&hosts_of, None);
        counts.accused += u64::from(!find_slow(&healthy, &hosts_of).is_empty());
        let slow = machine.one_link();
        if let Some(factor) = nameable(&healthy, &hosts_of)[0].1 {
            counts.printed += 1;
            counts.factors += factor;
            counts.named += u64::from(machine.is_named(&hosts_of, slow, factor));
        }
        counts.clearly += u64::from(machine.is_named(&hosts_of, slow, CLEARLY));
    }
    counts
}

/// Returns a line for each kind of sweeps.
pub(crate) fn table(all: &[Sweeps]) -> String {
    let head = "hosts | links differ by | rows disturbed | sweeps | something healthy was named, % | mean printed factor | \
                a link slower by the printed factor was named, % | a link 1.5 times slower was named, %";
    ombx_toolchain::table(head, all.iter().map(line))
}

/// Returns the line of a kind of sweeps.
fn line(s: &Sweeps) -> String {
    format!(
        "{} | {:.0} % | {:.0} % | {} | {} | {:.2} | {} | {}",
        s.kind.hosts,
        100.0 * s.kind.differences,
        100.0 * s.kind.disturbed,
        s.sweeps,
        with_interval(s.accused, s.sweeps),
        s.factors / s.printed.max(1) as f64,
        with_interval(s.named, s.printed),
        with_interval(s.clearly, s.sweeps)
    )
}

/// A machine whose links take 5 us but for noise. Every number follows from the seed, the link and the row, so that a sweep can be
/// repeated with one link slower.
struct Machine {
    kind: Kind,
    seed: u64,
}

impl Machine {
    /// Measures all links in both directions, then some again. A link may take some times as long.
    fn swept(&self, hosts: &Hosts, slow: Option<((u32, u32), f64)>) -> Vec<LinkTimes> {
        let row = |from: u32, to: u32, number: u64| {
            let ends = (from.min(to), from.max(to));
            let factor = slow.filter(|(link, _)| *link == ends).map_or(1.0, |(_, factor)| factor);
            Link { from, to, ns: (5000.0 * factor * self.row(ends, number)) as f32 }
        };
        let mut times = LinkTimes::default();
        times.bytes = 8;
        let pairs = (0..self.kind.hosts).flat_map(|a| (0..self.kind.hosts).map(move |b| (a, b)));
        times.sweep = pairs.filter(|(a, b)| a != b).map(|(a, b)| row(a, b, u64::from(a > b))).collect();
        let mut again = retest_candidates(std::slice::from_ref(&times), hosts, AGAIN);
        for attempt in 1.. {
            if again.is_empty() {
                break;
            }
            for link in &again {
                times.add_again(link, row(link.from, link.to, 1 + attempt as u64).ns);
            }
            again = once_more(again, std::slice::from_ref(&times), hosts, attempt);
        }
        vec![times]
    }

    /// Returns whether a sweep names a link that takes some times as long.
    fn is_named(&self, hosts: &Hosts, link: (u32, u32), factor: f64) -> bool {
        let times = self.swept(hosts, Some((link, factor)));
        find_slow(&times, hosts).iter().any(|found| found.component == Component::Link(link.0, link.1))
    }

    /// Returns the time of a row of a link in that of the machine.
    fn row(&self, (a, b): (u32, u32), number: u64) -> f64 {
        let link = (u64::from(a) << 32) | u64::from(b);
        let draw = |row: u64, what: u64| open_unit(hash([self.seed, link, row, what]));
        let normal =
            |row: u64| (-2.0 * draw(row, 0).ln()).sqrt() * (std::f64::consts::TAU * draw(row, 1)).cos();
        let burst = if draw(number, 2) < self.kind.disturbed { 1.0 + draw(number, 3) } else { 1.0 };
        (self.kind.differences * normal(u64::MAX) + NOISE * normal(number)).exp() * burst
    }

    /// Returns a link, as likely as any other.
    fn one_link(&self) -> (u32, u32) {
        let a = (hash([self.seed, 1, 0, 0]) % u64::from(self.kind.hosts)) as u32;
        let b = (hash([self.seed, 2, 0, 0]) % u64::from(self.kind.hosts - 1)) as u32;
        let b = if b >= a { b + 1 } else { b };
        (a.min(b), a.max(b))
    }
}

/// Mixes words.
fn hash(words: [u64; 4]) -> u64 {
    words.into_iter().fold(0, |state, word| mixed(state ^ word))
}
