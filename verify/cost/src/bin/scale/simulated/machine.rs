//! Simulated machine: hosts with as many ranks each, of which one host and one link are slow.

use std::{fmt, str::FromStr};

use ombx_cost::link::normal_of;
use ombx_record::{unit::Rank, verdict::Component};
use ombx_sweep::sweep::{Task, rounds_of};

/// Size of a machine and of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) ranks: u32,
    pub(crate) hosts: u32,
    pub(crate) rounds: u32,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}x{}", self.ranks, self.hosts, self.rounds)
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        let shape = parsed(text).filter(|s| s.hosts >= 1 && s.rounds >= 1 && s.ranks >= s.hosts.max(8));
        shape.ok_or_else(|| "must be RANKS@HOSTSxROUNDS, such as 10000@1000x20".into())
    }
}

/// Returns the numbers of a text such as `10000@1000x20`, whatever they are.
fn parsed(text: &str) -> Option<Shape> {
    let (ranks, rest) = text.split_once('@')?;
    let (hosts, rounds) = rest.split_once('x')?;
    Some(Shape { ranks: ranks.parse().ok()?, hosts: hosts.parse().ok()?, rounds: rounds.parse().ok()? })
}

/// Times of links in nanoseconds: inside a host, and between hosts.
const INSIDE_NS: f64 = 800.0;
const BETWEEN_NS: f64 = 5000.0;
/// Standard deviation of the logarithm of a time.
const NOISE: f64 = 0.03;
/// Factors of the slow host and of the slow link.
const SLOW_HOST: f64 = 1.4;
const SLOW_LINK: f64 = 1.6;

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) shape: Shape,
    slow_host: u32,
    slow_link: (u32, u32),
}

impl Machine {
    /// Returns a machine whose slow link is measured by the sweep.
    pub(super) fn new(shape: Shape, task: &Task) -> Machine {
        let schedule = task.mode.schedule(shape.ranks, task.seed);
        let mut machine = Machine { shape, slow_host: shape.hosts / 3, slow_link: (0, 0) };
        let links = rounds_of(&schedule, task.rounds)
            .flat_map(|round| (0..schedule.pairs()).map(move |turn| schedule.pair(round, turn)));
        let ordinary = |(Rank(a), Rank(b)): &(Rank, Rank)| {
            let hosts = [*a, *b].map(|rank| machine.host(rank));
            hosts[0] != hosts[1] && !hosts.contains(&machine.slow_host)
        };
        let link = links.skip(shape.ranks as usize / 3).find(ordinary);
        machine.slow_link = link.map_or((0, 0), |(Rank(a), Rank(b))| (a, b));
        machine
    }

    /// Returns the host of a rank.
    pub(super) fn host(&self, rank: u32) -> u32 {
        rank / (self.shape.ranks / self.shape.hosts).max(1)
    }

    /// Returns the time of a row. `kind` tells apart rows of the same link.
    pub(super) fn ns(&self, from: u32, to: u32, kind: u64) -> u64 {
        let hosts = [from, to].map(|rank| self.host(rank));
        let (usual, slow) = if hosts[0] == hosts[1] {
            (INSIDE_NS, 1.0)
        } else if hosts.contains(&self.slow_host) {
            (BETWEEN_NS, SLOW_HOST)
        } else if self.slow_link == (from.min(to), from.max(to)) {
            (BETWEEN_NS, SLOW_LINK)
        } else {
            (BETWEEN_NS, 1.0)
        };
        (usual * slow * (NOISE * normal_of(from, to, kind)).exp()) as u64
    }

    /// Returns the slow components, sorted.
    pub(super) fn slow(&self) -> Vec<Component> {
        let (a, b) = self.slow_link;
        vec![Component::HostBetween(self.slow_host), Component::Link(a, b)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_parsed_as_printed() {
        let shape = Shape { ranks: 100, hosts: 50, rounds: 3 };
        assert_eq!(shape.to_string().parse(), Ok(shape));
        for text in ["", "100", "100@50", "x@1x1", "10@0x1", "10@5x0"] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }
}
