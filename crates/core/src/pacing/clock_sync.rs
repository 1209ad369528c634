//! One clock for all ranks: HCA3 of Hunold and Carpen-Amarie, by hosts first, then down a binomial tree.
//!
//! Ranks that read the same clock share one model of it. Of those that do not, one for each clock learns from another that
//! knows already: in round k the first 2^k teach the next 2^k. What it learns is a line from its own raw readings to rank
//! 0's time, by ping-pongs of which the fastest count; since a teacher answers in rank 0's time, models need no merging.

use crate::{
    benchmark::context::Context, error::Result, pacing::mesh::Mesh, stats::Summary, system::clock::Clock,
    team::Team, unit::Rank,
};

crate::axis! {
    /// Clocks of ranks on one host under --pace window
    pub enum SyncHosts: "sync-hosts", IfChosen, default On {
        /// One clock for all ranks of a host
        On = "on",
        /// Every rank synchronises its own clock
        Off = "off",
    }
}

/// Ping-pongs of which the fastest is a point.
const PINGS: u32 = 10;
/// Points by which a rank learns first, and the time between two.
const FIRST: (u32, u64) = (40, 2_000_000);
/// Points by which it finds its offset again, as often as it is asked.
const AGAIN: (u32, u64) = (8, 0);
/// Points by which the error of a model is found.
const PROBES: u32 = 5;
/// Points that are remembered.
const MOST_POINTS: usize = 400;

/// Raw readings of one clock as nanoseconds of rank 0's.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Model {
    ticks: u64,
    ns: f64,
    tick_ns: f64,
}

impl Model {
    /// Rank 0's nanoseconds at a raw reading.
    pub(crate) fn ns(&self, ticks: u64) -> f64 {
        self.ns + self.tick_ns * ticks.wrapping_sub(self.ticks).cast_signed() as f64
    }

    /// The raw reading at a nanosecond of rank 0.
    pub(crate) fn ticks(&self, ns: f64) -> u64 {
        self.ticks.wrapping_add_signed(((ns - self.ns) / self.tick_ns).ceil() as i64)
    }

    fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let words = [self.ticks, self.ns.to_bits(), self.tick_ns.to_bits()];
        bytes
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(words)
            .for_each(|(at, word): (&mut [u8; 8], _)| *at = word.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; 24]) -> Model {
        let word = |at: usize| bytes.as_chunks().0.get(at).copied().map_or(0, u64::from_le_bytes);
        Model { ticks: word(0), ns: f64::from_bits(word(1)), tick_ns: f64::from_bits(word(2)) }
    }
}

/// The fastest of some ping-pongs: this clock's reading half way, rank 0's time then, and how long it took.
#[derive(Debug, Clone, Copy)]
struct Point {
    ticks: u64,
    ns: f64,
    round_trip: u64,
}

/// How far models are from what they model, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Residual {
    /// Median of the absolute differences that ping-pongs with rank 0 show.
    pub(crate) median_ns: f64,
    /// Median of the absolute errors of ranks that read the very clock of rank 0 but learnt it; `None` if there are none.
    pub(crate) truth_ns: Option<f64>,
}

/// What one rank knows of the time of all.
pub(crate) struct Sync<'a, M> {
    team: &'a dyn Team,
    clock: &'a Clock,
    mesh: M,
    /// This rank's clock, as rank 0 names it, and which of its readers learns for all.
    leader: Rank,
    /// One rank for each clock, in the order of the tree.
    leaders: Vec<Rank>,
    /// Those who get their model from this rank.
    followers: Vec<Rank>,
    /// Whether this rank reads the clock of rank 0 without being given its model.
    knows_truth: bool,
    model: Model,
    points: Vec<Point>,
}

impl<'a, M: Mesh> Sync<'a, M> {
    /// Learns. Collective, and takes about a tenth of a second for each round of the tree.
    pub(crate) fn learn(cx: &Context<'a>, clock: &'a Clock, by_host: bool) -> Result<Sync<'a, M>> {
        let (team, mesh) = (cx.team, M::open(cx)?);
        let here = leaders(team, &mesh.clock_of(clock))?;
        let of = if by_host { here.clone() } else { (0..team.size()).collect() };
        let me = team.rank();
        let leader = Rank(of[me.0 as usize]);
        let ranks = || (0..).zip(&of);
        let model = Model { ticks: clock.mark().ticks(), ns: 0.0, tick_ns: clock.tick_ns() };
        let mut sync = Sync {
            team,
            clock,
            mesh,
            leader,
            leaders: ranks().filter(|(rank, leader)| rank == *leader).map(|(rank, _)| Rank(rank)).collect(),
            followers: ranks()
                .filter(|(rank, of)| **of == me.0 && *rank != me.0)
                .map(|(rank, _)| Rank(rank))
                .collect(),
            knows_truth: here[me.0 as usize] == 0 && leader != Rank(0),
            model,
            points: Vec::new(),
        };
        sync.teach(FIRST)?;
        Ok(sync)
    }

    /// Finds the offsets again, which have drifted since; the longer it is since the beginning, the better the rates. Collective.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        self.teach(AGAIN)
    }

    /// This rank's clock in the time of rank 0.
    pub(crate) fn model(&self) -> Model {
        self.model
    }

    /// Rank 0's time now, as this rank knows it.
    pub(crate) fn now_ns(&self) -> f64 {
        self.model.ns(self.clock.mark().ticks())
    }

    /// From those who know to those who do not, with twice as many in each round.
    fn teach(&mut self, points: (u32, u64)) -> Result<()> {
        let me = self.team.rank();
        if let Some(at) = self.leaders.iter().position(|rank| *rank == me) {
            let mut known = 1;
            while known < self.leaders.len() {
                if at < known {
                    if let Some(pupil) = self.leaders.get(at + known) {
                        self.answer(*pupil, points.0)?;
                    }
                } else if at < 2 * known {
                    self.ask(self.leaders[at - known], points)?;
                }
                known *= 2;
            }
            for follower in &self.followers {
                self.mesh.send(*follower, &self.model.to_bytes())?;
            }
        } else {
            let mut bytes = [0; 24];
            self.mesh.receive(self.leader, &mut bytes)?;
            self.model = Model::from_bytes(bytes);
        }
        Ok(())
    }

    /// Answers another rank's pings with rank 0's time.
    fn answer(&mut self, pupil: Rank, points: u32) -> Result<()> {
        for _ in 0..points * PINGS {
            self.mesh.receive(pupil, &mut [0])?;
            let now = self.now_ns();
            self.mesh.send(pupil, &now.to_le_bytes())?;
        }
        Ok(())
    }

    /// The fastest of some pings of another rank.
    fn ping(&mut self, teacher: Rank) -> Result<Point> {
        let mut best = Point { ticks: 0, ns: 0.0, round_trip: u64::MAX };
        for _ in 0..PINGS {
            let mut answer = [0; 8];
            let asked = self.clock.mark().ticks();
            self.mesh.send(teacher, &[0])?;
            self.mesh.receive(teacher, &mut answer)?;
            let round_trip = self.clock.mark().ticks() - asked;
            if round_trip < best.round_trip {
                best = Point { ticks: asked + round_trip / 2, ns: f64::from_le_bytes(answer), round_trip };
            }
        }
        Ok(best)
    }

    /// Learns this rank's clock from a rank that knows rank 0's time.
    fn ask(&mut self, teacher: Rank, (points, gap_ns): (u32, u64)) -> Result<()> {
        let gap = (gap_ns as f64 / self.clock.tick_ns()) as u64;
        for _ in 0..points {
            let point = self.ping(teacher)?;
            self.points.push(point);
            if gap > 0 {
                self.clock.wait_until(point.ticks + gap, |left| self.mesh.linger(left));
            }
        }
        let excess = self.points.len().saturating_sub(MOST_POINTS);
        self.points.drain(..excess);
        self.model = fit(&self.points, points as usize, self.clock.tick_ns());
        Ok(())
    }

    /// How wrong models are now, on rank 0; it asks nobody else. Collective.
    pub(crate) fn residual(&mut self) -> Result<Option<Residual>> {
        let me = self.team.rank();
        let mut mine = Vec::new();
        let mut truth = self.model.to_bytes();
        self.team.broadcast(&mut truth)?;
        for rank in (1..self.team.size()).map(Rank) {
            if me == Rank(0) {
                self.answer(rank, PROBES)?;
            } else if me == rank {
                for _ in 0..PROBES {
                    let point = self.ping(Rank(0))?;
                    let right = self.knows_truth.then(|| Model::from_bytes(truth).ns(point.ticks));
                    let found = self.model.ns(point.ticks);
                    mine.extend((found - point.ns).abs().to_le_bytes());
                    mine.extend(right.map_or(f64::NAN, |right| (found - right).abs()).to_le_bytes());
                }
            }
        }
        let Some(all) = self.team.gather(&mine)? else { return Ok(None) };
        let all: Vec<f64> =
            all.iter().flat_map(|bytes| bytes.as_chunks().0).map(|b| f64::from_le_bytes(*b)).collect();
        let of = |part: usize| {
            let values: Vec<f64> =
                all.iter().skip(part).step_by(2).copied().filter(|x| !x.is_nan()).collect();
            Summary::of(&values).map(|summary| summary.median)
        };
        Ok(of(0).map(|median_ns| Residual { median_ns, truth_ns: of(1) }))
    }
}

/// For every rank the first that reads the same clock.
fn leaders(team: &dyn Team, clock: &str) -> Result<Vec<u32>> {
    let mut bytes = vec![0; 4 * team.size() as usize];
    if let Some(all) = team.gather(clock.as_bytes())? {
        let first = |name: &Vec<u8>| all.iter().position(|other| other == name).unwrap_or(0) as u32;
        bytes = all.iter().flat_map(|name| first(name).to_le_bytes()).collect();
    }
    team.broadcast(&mut bytes)?;
    Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// The line through points: its slope from all of them, its height from the newest; of both the faster half counts.
fn fit(points: &[Point], newest: usize, usual_tick_ns: f64) -> Model {
    let all = faster(points);
    let new = faster(&points[points.len().saturating_sub(newest)..]);
    let Some(origin) = new.last().copied() else {
        return Model { ticks: 0, ns: 0.0, tick_ns: usual_tick_ns };
    };
    // Far from the origin, times would be too long for exact differences.
    let at = |p: &Point| (p.ticks.wrapping_sub(origin.ticks).cast_signed() as f64, p.ns - origin.ns);
    let n = all.len() as f64;
    let (x, y) = all.iter().map(at).fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (xx, xy) = all
        .iter()
        .map(at)
        .fold((0.0, 0.0), |(xx, xy), p| (xx + (p.0 - x) * (p.0 - x), xy + (p.0 - x) * (p.1 - y)));
    let tick_ns = if xx > 0.0 && xy > 0.0 { xy / xx } else { usual_tick_ns };
    let heights: Vec<f64> = new.iter().map(at).map(|(x, y)| y - tick_ns * x).collect();
    let height = Summary::of(&heights).map_or(0.0, |summary| summary.median);
    Model { ticks: origin.ticks, ns: origin.ns + height, tick_ns }
}

/// The half of the points whose ping-pongs were the fastest, in order of time.
fn faster(points: &[Point]) -> Vec<Point> {
    let mut times: Vec<u64> = points.iter().map(|p| p.round_trip).collect();
    times.sort_unstable();
    let Some(middle) = times.get(times.len() / 2) else { return Vec::new() };
    points.iter().filter(|p| p.round_trip <= *middle).copied().collect()
}

#[cfg(test)]
mod tests;
