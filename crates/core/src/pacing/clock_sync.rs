//! Clock synchronisation by HCA3 [Hunold & Carpen-Amarie]: first per host, then along a binomial tree.
//!
//! Ranks that read the same clock share one model, which one of them, the leader, fits. In round k, the first 2^k
//! leaders are references for the next 2^k. A client fits a line from its raw readings to rank 0's time, using the fastest
//! ping-pongs. A reference answers in rank 0's time, so models need no merging.

use std::time::Duration;

use ombx_record::{
    error::Result,
    stats::{self, Summary},
    unit::Rank,
};

use crate::{benchmark::Context, clock::Clock, pacing::mesh::Mesh, team::Team};

crate::parameter! {
    /// Clocks of ranks on one host under --pace window
    pub enum SyncHosts: "sync-hosts", IfChosen, default On {
        /// One clock for all ranks of a host
        On = "on",
        /// Every rank synchronises its own clock
        Off = "off",
    }
}

/// Number of ping-pongs per point; only the fastest counts.
const PINGS_PER_POINT: u32 = 10;
/// Number of points of the first fit, which are spread over [`learning_time`].
const FIRST_POINTS: u32 = 40;
/// Shortest time over which the first fit learns drift.
const LEAST_LEARNING: Duration = Duration::from_millis(10);
/// Longest time over which the first fit learns drift.
const MOST_LEARNING: Duration = Duration::from_millis(500);
/// Time over which the first fit learns drift if the length of rows is not known.
const USUAL_LEARNING: Duration = Duration::from_millis(80);
/// Points of a refresh.
const REFRESH: Pings = Pings { points: 8, gap_ns: 0 };
/// Number of points by which the error of a model is measured.
const RESIDUAL_POINTS: u32 = 5;
/// Maximum number of points that a rank keeps.
const MAX_POINTS: usize = 400;

/// Points of one synchronisation.
#[derive(Debug, Clone, Copy)]
struct Pings {
    points: u32,
    /// Time between two points in nanoseconds.
    gap_ns: u64,
}

/// Linear model from raw readings of one clock to nanoseconds of rank 0's time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ClockModel {
    ticks: u64,
    ns: f64,
    tick_ns: f64,
}

impl ClockModel {
    /// Returns rank 0's time at a raw reading, in nanoseconds.
    pub(crate) fn ns(&self, ticks: u64) -> f64 {
        self.ns + self.tick_ns * ticks.wrapping_sub(self.ticks).cast_signed() as f64
    }

    /// Returns the first raw reading at or after a time of rank 0, in nanoseconds.
    pub(crate) fn ticks(&self, ns: f64) -> u64 {
        self.ticks.wrapping_add_signed(((ns - self.ns) / self.tick_ns).ceil() as i64)
    }

    fn to_bytes(self) -> [u8; 24] {
        let words = [self.ticks, self.ns.to_bits(), self.tick_ns.to_bits()].map(u64::to_le_bytes);
        std::array::from_fn(|at| words[at / 8][at % 8])
    }

    fn from_bytes(bytes: [u8; 24]) -> ClockModel {
        let word = |at: usize| bytes.as_chunks().0.get(at).copied().map_or(0, u64::from_le_bytes);
        ClockModel { ticks: word(0), ns: f64::from_bits(word(1)), tick_ns: f64::from_bits(word(2)) }
    }
}

/// One ping-pong.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// Raw reading half way through the round trip.
    ticks: u64,
    /// Rank 0's time in the answer, in nanoseconds.
    ns: f64,
    /// Duration, in raw ticks.
    round_trip: u64,
}

/// Returns the time over which the first fit learns drift: half the time of a row.
///
/// A line learned over half a row is extrapolated by as much for every length of rows.
pub(crate) fn learning_time(row: Option<Duration>) -> Duration {
    row.map_or(USUAL_LEARNING, |row| (row / 2).clamp(LEAST_LEARNING, MOST_LEARNING))
}

/// Error of the models.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Residual {
    /// Difference to rank 0's time of each clock, as the median over ping-pongs with rank 0, which is the first clock.
    pub(crate) of_clocks_ns: Vec<f64>,
    /// Median of the absolute errors of ranks that read the clock of rank 0 but fitted a model; `None` without such ranks.
    pub(crate) true_error_ns: Option<f64>,
}

impl Residual {
    /// Returns the median of the absolute differences, without that of rank 0; 0 for one clock.
    pub(crate) fn median_ns(&self) -> f64 {
        let others: Vec<f64> = self.of_clocks_ns.iter().skip(1).map(|ns| ns.abs()).collect();
        stats::median(&others).unwrap_or(0.0)
    }

    /// Returns the largest absolute difference.
    pub(crate) fn max_ns(&self) -> f64 {
        self.of_clocks_ns.iter().map(|ns| ns.abs()).fold(0.0, f64::max)
    }

    /// Returns the distance from the lowest to the highest difference. The time from the first start to the last end of an
    /// operation is wrong by up to this.
    pub(crate) fn range_ns(&self) -> f64 {
        let ends = |of: fn(f64, f64) -> f64| self.of_clocks_ns.iter().copied().fold(0.0, of);
        ends(f64::max) - ends(f64::min)
    }
}

/// One rank's synchronised clock.
pub(crate) struct ClockSync<'a, M> {
    team: &'a dyn Team,
    clock: &'a Clock,
    mesh: M,
    /// Rank that fits the model for all ranks that read this clock.
    leader: Rank,
    /// Leaders of all clocks, in the order of the tree.
    leaders: Vec<Rank>,
    /// Ranks that receive their model from this rank.
    followers: Vec<Rank>,
    /// Whether this rank reads the clock of rank 0 but fits its own model.
    shares_clock_of_rank_0: bool,
    model: ClockModel,
    points: Vec<Point>,
}

impl<'a, M: Mesh> ClockSync<'a, M> {
    /// Synchronises the clocks. Collective; learns drift for `learning` in each round of the tree.
    pub(crate) fn new(
        cx: &Context<'a>,
        clock: &'a Clock,
        hosts: SyncHosts,
        learning: Duration,
    ) -> Result<ClockSync<'a, M>> {
        let (team, mesh) = (cx.team, M::open(cx)?);
        let owners = clock_owners(team, &mesh.clock_name(clock))?;
        let leader_of = match hosts {
            SyncHosts::On => owners.clone(),
            SyncHosts::Off => (0..team.size()).collect(),
        };
        let me = team.rank();
        let leader = Rank(leader_of[me.0 as usize]);
        let ranks = || (0..).zip(&leader_of);
        let model = ClockModel { ticks: clock.mark().ticks(), ns: 0.0, tick_ns: clock.tick_ns() };
        let mut sync = ClockSync {
            team,
            clock,
            mesh,
            leader,
            leaders: ranks().filter(|(rank, leader)| rank == *leader).map(|(rank, _)| Rank(rank)).collect(),
            followers: ranks()
                .filter(|(rank, leader)| **leader == me.0 && *rank != me.0)
                .map(|(rank, _)| Rank(rank))
                .collect(),
            shares_clock_of_rank_0: owners[me.0 as usize] == 0 && leader != Rank(0),
            model,
            points: Vec::new(),
        };
        let gap_ns = learning.as_nanos() as u64 / u64::from(FIRST_POINTS);
        sync.synchronise(Pings { points: FIRST_POINTS, gap_ns })?;
        Ok(sync)
    }

    /// Measures the offsets again, which drift. Rates improve with the time since the first fit. Collective.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        self.synchronise(REFRESH)
    }

    /// Returns the model of this rank's clock.
    pub(crate) fn model(&self) -> ClockModel {
        self.model
    }

    /// Returns rank 0's time now by this rank's model, in nanoseconds.
    pub(crate) fn now_ns(&self) -> f64 {
        self.model.ns(self.clock.mark().ticks())
    }

    /// Fits all models along the binomial tree and sends them to the followers. Collective.
    fn synchronise(&mut self, pings: Pings) -> Result<()> {
        let me = self.team.rank();
        if let Some(at) = self.leaders.iter().position(|rank| *rank == me) {
            let mut known = 1;
            while known < self.leaders.len() {
                if at < known {
                    if let Some(client) = self.leaders.get(at + known) {
                        self.answer_pings(*client, pings.points)?;
                    }
                } else if at < 2 * known {
                    self.fit_to(self.leaders[at - known], pings)?;
                }
                known *= 2;
            }
            for follower in &self.followers {
                self.mesh.send(*follower, &self.model.to_bytes())?;
            }
        } else {
            let mut bytes = [0; 24];
            self.mesh.receive(self.leader, &mut bytes)?;
            self.model = ClockModel::from_bytes(bytes);
        }
        Ok(())
    }

    /// Answers the pings of `points` points of another rank with rank 0's time.
    fn answer_pings(&mut self, client: Rank, points: u32) -> Result<()> {
        for _ in 0..points * PINGS_PER_POINT {
            self.mesh.receive(client, &mut [0])?;
            let now = self.now_ns();
            self.mesh.send(client, &now.to_le_bytes())?;
        }
        Ok(())
    }

    /// Pings another rank and returns the fastest ping-pong.
    fn ping(&mut self, reference: Rank) -> Result<Point> {
        let mut best = Point { ticks: 0, ns: 0.0, round_trip: u64::MAX };
        for _ in 0..PINGS_PER_POINT {
            let mut answer = [0; 8];
            let asked = self.clock.mark().ticks();
            self.mesh.send(reference, &[0])?;
            self.mesh.receive(reference, &mut answer)?;
            let round_trip = self.clock.mark().ticks() - asked;
            if round_trip < best.round_trip {
                best = Point { ticks: asked + round_trip / 2, ns: f64::from_le_bytes(answer), round_trip };
            }
        }
        Ok(best)
    }

    /// Fits this rank's model to a rank whose model is known.
    fn fit_to(&mut self, reference: Rank, Pings { points, gap_ns }: Pings) -> Result<()> {
        let gap = (gap_ns as f64 / self.clock.tick_ns()) as u64;
        for _ in 0..points {
            let point = self.ping(reference)?;
            self.points.push(point);
            if gap > 0 {
                self.clock.wait_until(point.ticks + gap, |left| self.mesh.linger(left));
            }
        }
        let excess = self.points.len().saturating_sub(MAX_POINTS);
        self.points.drain(..excess);
        self.model = fit(&self.points, points as usize, self.clock.tick_ns());
        Ok(())
    }

    /// Measures the current error of all models. Returns it on rank 0, `None` on others. Collective.
    ///
    /// Only the leaders of clocks take part: the other ranks have the model of their leader.
    pub(crate) fn residual(&mut self) -> Result<Option<Residual>> {
        let me = self.team.rank();
        let (mut found, mut wrong) = (Vec::new(), Vec::new());
        let mut model_of_rank_0 = self.model.to_bytes();
        self.team.broadcast(&mut model_of_rank_0)?;
        for at in 1..self.leaders.len() {
            let leader = self.leaders[at];
            if me == Rank(0) {
                self.answer_pings(leader, RESIDUAL_POINTS)?;
            } else if me == leader {
                for _ in 0..RESIDUAL_POINTS {
                    let point = self.ping(Rank(0))?;
                    let now = self.model.ns(point.ticks);
                    found.push(now - point.ns);
                    if self.shares_clock_of_rank_0 {
                        wrong.push((now - ClockModel::from_bytes(model_of_rank_0).ns(point.ticks)).abs());
                    }
                }
            }
        }
        // A missing value is not a number.
        let mine = [&found, &wrong].map(|values| stats::median(values).unwrap_or(f64::NAN));
        let all: Option<Vec<[f64; 2]>> = self.team.gather_messages(&mine)?;
        let Some(all) = all else { return Ok(None) };
        let known =
            |part: usize| all.iter().map(|ns| ns[part]).filter(|ns| !ns.is_nan()).collect::<Vec<f64>>();
        let of_clocks_ns = [vec![0.0], known(0)].concat();
        Ok(Some(Residual { of_clocks_ns, true_error_ns: stats::median(&known(1)) }))
    }
}

/// Returns for every rank the first rank that reads the same clock. Collective.
pub(crate) fn clock_owners(team: &dyn Team, clock: &str) -> Result<Vec<u32>> {
    let all = team.gather(clock.as_bytes())?.unwrap_or_default();
    let first = |name: &Vec<u8>| all.iter().position(|other| other == name).unwrap_or(0) as u32;
    team.broadcast_message(all.iter().map(first).collect())
}

/// Fits a line: the slope to the faster half of all points, the offset to the faster half of the newest.
fn fit(points: &[Point], newest: usize, usual_tick_ns: f64) -> ClockModel {
    let all = faster_half(points);
    let new = faster_half(&points[points.len().saturating_sub(newest)..]);
    let Some(origin) = new.last().copied() else {
        return ClockModel { ticks: 0, ns: 0.0, tick_ns: usual_tick_ns };
    };
    // Relative to a near origin, so that floating-point differences stay exact.
    let at = |p: &Point| (p.ticks.wrapping_sub(origin.ticks).cast_signed() as f64, p.ns - origin.ns);
    let n = all.len() as f64;
    let (x, y) = all.iter().map(at).fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (xx, xy) = all
        .iter()
        .map(at)
        .fold((0.0, 0.0), |(xx, xy), p| (xx + (p.0 - x) * (p.0 - x), xy + (p.0 - x) * (p.1 - y)));
    let tick_ns = if xx > 0.0 && xy > 0.0 { xy / xx } else { usual_tick_ns };
    let heights: Vec<f64> = new.iter().map(at).map(|(x, y)| y - tick_ns * x).collect();
    let height = Summary::new(&heights).map_or(0.0, |summary| summary.median);
    ClockModel { ticks: origin.ticks, ns: origin.ns + height, tick_ns }
}

/// Returns the points whose round trip is at most the median, in order of time.
fn faster_half(points: &[Point]) -> Vec<Point> {
    let mut times: Vec<u64> = points.iter().map(|p| p.round_trip).collect();
    times.sort_unstable();
    let Some(middle) = times.get(times.len() / 2) else { return Vec::new() };
    points.iter().filter(|p| p.round_trip <= *middle).copied().collect()
}

#[cfg(test)]
mod tests;
