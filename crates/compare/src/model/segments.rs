//! Piecewise lines through a curve of times over message sizes.
//!
//! The segmentation is the one that minimizes the weighted sum of squares for its number of segments; dynamic programming finds it
//! (Bai and Perron, Journal of Applied Econometrics 2003). The information criterion of Liu, Wu and Zidek (Statistica Sinica 1997)
//! chooses the number. Residuals are relative to the time, because the noise of a time is proportional to it.

use std::ops::Range;

use ombx_record::stats::median;

use crate::model::Estimate;

/// Minimum number of sizes of a segment. Two would fit any line without a residual.
pub(super) const LEAST_SIZES: usize = 3;
/// Maximum number of segments.
const MOST_SEGMENTS: usize = 8;
/// Relative distance from a line that is no reason for another segment, as a standard deviation. Times of real networks do not
/// lie on lines: packets, buffers and caches bend them.
const TOLERANCE: f64 = 0.02;
/// Parameters of a further segment: its fixed time, its time per byte, and its place.
const PARAMETERS: f64 = 3.0;
/// Constants of the criterion, as its authors recommend them.
const PENALTY: (f64, f64) = (0.299, 2.1);

/// A point of a curve: bytes beyond the first one, and a time above 0.
pub(super) type Point = (f64, f64);

/// A line: time = fixed + per byte x (bytes - 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) fixed: f64,
    pub(super) per_byte: f64,
}

impl Line {
    /// Returns the line with the smallest sum of squared relative residuals.
    pub(super) fn through(points: &[Point]) -> Line {
        let weight = |time: f64| 1.0 / (time * time);
        let total: f64 = points.iter().map(|(_, time)| weight(*time)).sum();
        let mean = |of: fn(&Point) -> f64| {
            points.iter().map(|point| weight(point.1) * of(point)).sum::<f64>() / total
        };
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let (mut products, mut squares) = (0.0, 0.0);
        for (bytes, time) in points {
            products += weight(*time) * (bytes - x) * (time - y);
            squares += weight(*time) * (bytes - x).powi(2);
        }
        let per_byte = if squares > 0.0 { products / squares } else { 0.0 };
        Line { fixed: y - per_byte * x, per_byte }
    }

    /// Returns the time of a message with this number of bytes beyond the first one.
    pub(super) fn at(self, bytes: f64) -> f64 {
        self.fixed + self.per_byte * bytes
    }
}

/// Returns the index of the first point of each segment after the first one. The points are in ascending order.
pub(super) fn switches(points: &[Point]) -> Vec<usize> {
    let n = points.len();
    let most = (n / LEAST_SIZES).min(MOST_SEGMENTS);
    if most < 2 {
        return Vec::new();
    }
    // best[k][end]: the least sum of squares of the first `end` points in k + 1 segments, and where the last segment starts.
    let mut best = vec![vec![(f64::INFINITY, 0); n + 1]; most];
    for end in LEAST_SIZES..=n {
        let mut last = Moments::default();
        for start in (0..end).rev() {
            last.add(points[start]);
            if end - start < LEAST_SIZES {
                continue;
            }
            let squares = last.squares();
            if start == 0 {
                best[0][end] = (squares, 0);
            }
            for k in 1..most {
                let sum = best[k - 1][start].0 + squares;
                // Of equal sums the earliest start counts, whatever the order of the search.
                if sum <= best[k][end].0 && sum.is_finite() {
                    best[k][end] = (sum, start);
                }
            }
        }
    }
    let count = (0..most)
        .min_by(|a, b| criterion(best[*a][n].0, n, *a).total_cmp(&criterion(best[*b][n].0, n, *b)))
        .unwrap_or(0);
    let (mut found, mut end) = (Vec::new(), n);
    for k in (1..=count).rev() {
        end = best[k][end].1;
        found.push(end);
    }
    found.reverse();
    found
}

/// Weighted moments of the points of a segment, to which points are added. Each update is that of West (Communications of the ACM 1979),
/// which loses no digits where the bytes are many and their differences few.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    weight: f64,
    bytes: f64,
    time: f64,
    bytes_squared: f64,
    product: f64,
    time_squared: f64,
}

impl Moments {
    fn add(&mut self, (bytes, time): Point) {
        let weight = 1.0 / (time * time);
        let (from_bytes, from_time) = (bytes - self.bytes, time - self.time);
        self.weight += weight;
        self.bytes += from_bytes * weight / self.weight;
        self.time += from_time * weight / self.weight;
        self.bytes_squared += weight * from_bytes * (bytes - self.bytes);
        self.product += weight * from_bytes * (time - self.time);
        self.time_squared += weight * from_time * (time - self.time);
    }

    /// Returns the sum of squared relative residuals of the best line: that of [`Line::through`].
    fn squares(&self) -> f64 {
        let explained =
            if self.bytes_squared > 0.0 { self.product * self.product / self.bytes_squared } else { 0.0 };
        (self.time_squared - explained).max(0.0)
    }
}

/// Returns the criterion of a segmentation with this number of switches; the smallest one wins.
fn criterion(squares: f64, points: usize, switches: usize) -> f64 {
    let n = points as f64;
    let (factor, power) = PENALTY;
    n * (squares / n + TOLERANCE * TOLERANCE).ln()
        + switches as f64 * PARAMETERS * factor * n.ln().powf(power)
}

/// What a switch looks like in the times of a ping-pong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The fixed time rises by at least the time of a short message, as the handshake of a rendezvous makes it rise. Only the
    /// first such switch of an MPI library has this name.
    Rendezvous,
    /// Times step up, without the signs of a rendezvous.
    StepUp,
    /// Times step down.
    StepDown,
    /// Each further byte takes longer.
    MorePerByte,
    /// Each further byte takes less time.
    LessPerByte,
}

impl Protocol {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Rendezvous => "eager to rendezvous",
            Protocol::StepUp => "times step up",
            Protocol::StepDown => "times step down",
            Protocol::MorePerByte => "more time per byte",
            Protocol::LessPerByte => "less time per byte",
        }
    }
}

/// Returns the name of each switch. `short` is the one-way time of a short message. The first switch with a handshake gets the name of
/// `handshake`; sockets have none.
pub(super) fn named_protocols(fit: &Fit, short: Estimate, mut handshake: Option<Protocol>) -> Vec<Protocol> {
    let names = fit.switches.iter().map(|switch| {
        let is_long = switch.fixed.value >= short.value && is_risen(&switch.fixed);
        if is_long
            && switch.step.value > 0.0
            && let Some(name) = handshake.take()
        {
            return name;
        }
        match switch.step {
            step if is_risen(&step) => Protocol::StepUp,
            step if step.sign() < 0 => Protocol::StepDown,
            _ if switch.per_byte.value > 0.0 => Protocol::MorePerByte,
            _ => Protocol::LessPerByte,
        }
    });
    names.collect()
}

/// Returns whether launches agree that a value rises. One launch has no interval, and its value decides.
fn is_risen(change: &Estimate) -> bool {
    change.sign() > 0 || change.interval.is_none() && change.value > 0.0
}

/// Times by message size, launch by launch.
#[derive(Debug, Clone, Default)]
pub(super) struct Curve {
    /// Message sizes in ascending order, at least 1 byte.
    pub(super) sizes: Vec<u64>,
    /// For each launch, the time of each size in nanoseconds, above 0.
    pub(super) launches: Vec<Vec<f64>>,
    /// Number of each launch.
    pub(super) numbers: Vec<usize>,
}

/// Part of a curve on one line.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Its smallest and largest measured message size.
    pub bytes: [u64; 2],
    /// Time of a message of 1 byte on the line, in microseconds.
    pub fixed: Estimate,
    /// Time per further byte, in nanoseconds.
    pub per_byte: Estimate,
    /// Largest distance of a measured time from the line, relative to it.
    pub residual: f64,
}

/// A place between two message sizes where the line of a curve changes.
#[derive(Debug, Clone)]
pub struct Switch {
    /// The sizes between which it is.
    pub between: [u64; 2],
    /// Time right after the switch minus time right before it, in microseconds.
    pub step: Estimate,
    /// Change of the fixed time, in microseconds.
    pub fixed: Estimate,
    /// Time per byte after the switch minus that before it, in nanoseconds.
    pub per_byte: Estimate,
}

/// A curve as lines.
#[derive(Debug, Clone)]
pub struct Fit {
    /// At least one.
    pub segments: Vec<Segment>,
    /// One between neighbouring segments.
    pub switches: Vec<Switch>,
    /// Message sizes and median times in microseconds.
    pub points: Vec<(u64, f64)>,
    /// Number of launches.
    pub launches: usize,
    /// Line of each segment in each launch.
    lines: Vec<Vec<Line>>,
}

impl Curve {
    /// Returns the lines; `None` if the curve has too few sizes for one.
    pub(super) fn fit(&self) -> Option<Fit> {
        if self.sizes.len() < LEAST_SIZES || self.launches.is_empty() {
            return None;
        }
        let typical = self.typical();
        let mut starts = switches(&typical);
        loop {
            let fit = self.fitted(&typical, &starts);
            // Without launches to compare nothing can be rejected.
            let chance =
                fit.switches.iter().position(|switch| !switch.is_shown()).filter(|_| fit.launches > 1);
            let Some(at) = chance else { return Some(fit) };
            starts.remove(at);
        }
    }

    /// Returns the bytes beyond the first one and the time of each size in a launch.
    fn points(&self, launch: usize) -> Vec<Point> {
        self.sizes
            .iter()
            .zip(&self.launches[launch])
            .map(|(bytes, time)| ((bytes - 1) as f64, *time))
            .collect()
    }

    /// Returns the typical curve: the median over launches of the curves, each divided by its own level. A factor that all sizes of
    /// a launch share thus adds no noise to the shape.
    fn typical(&self) -> Vec<Point> {
        let level = |times: &Vec<f64>| times.iter().map(|time| time.ln()).sum::<f64>() / times.len() as f64;
        let levels: Vec<f64> = self.launches.iter().map(level).collect();
        let middle = median(&levels).unwrap_or(0.0);
        let time = |at: usize| {
            let shapes: Vec<f64> =
                self.launches.iter().zip(&levels).map(|(times, level)| times[at].ln() - level).collect();
            (median(&shapes).unwrap_or(0.0) + middle).exp()
        };
        self.sizes.iter().enumerate().map(|(at, bytes)| ((bytes - 1) as f64, time(at))).collect()
    }

    /// Fits a line to each segment in each launch.
    fn fitted(&self, typical: &[Point], starts: &[usize]) -> Fit {
        let ends: Vec<(usize, usize)> = std::iter::once(0)
            .chain(starts.iter().copied())
            .zip(starts.iter().copied().chain([typical.len()]))
            .collect();
        let line = |launch: usize, (from, to): (usize, usize)| Line::through(&self.points(launch)[from..to]);
        let lines: Vec<Vec<Line>> = ends
            .iter()
            .map(|part| (0..self.launches.len()).map(|launch| line(launch, *part)).collect())
            .collect();
        let segments = ends.iter().zip(&lines);
        let segments = segments.map(|(part, lines)| self.segment(typical, part.0..part.1, lines)).collect();
        let switch = |(at, start): (usize, &usize)| self.switch(*start, &lines[at], &lines[at + 1]);
        Fit {
            segments,
            switches: starts.iter().enumerate().map(switch).collect(),
            points: self.sizes.iter().zip(typical).map(|(bytes, (_, time))| (*bytes, time / 1e3)).collect(),
            launches: self.launches.len(),
            lines,
        }
    }

    fn segment(&self, typical: &[Point], part: Range<usize>, lines: &[Line]) -> Segment {
        let points = &typical[part.clone()];
        let line = Line::through(points);
        let distance = |(bytes, time): &Point| (time / line.at(*bytes) - 1.0).abs();
        Segment {
            bytes: [self.sizes[part.start], self.sizes[part.end - 1]],
            fixed: Estimate::new(lines.iter().map(|line| line.fixed / 1e3)),
            per_byte: Estimate::new(lines.iter().map(|line| line.per_byte)),
            residual: points.iter().map(distance).fold(0.0, f64::max),
        }
    }

    fn switch(&self, start: usize, before: &[Line], after: &[Line]) -> Switch {
        let between = [self.sizes[start - 1], self.sizes[start]];
        let middle = ((between[0] - 1) as f64 * (between[1] - 1) as f64).sqrt();
        let change = |of: &dyn Fn(&Line) -> f64| {
            Estimate::new(before.iter().zip(after).map(|(before, after)| of(after) - of(before)))
        };
        Switch {
            between,
            step: change(&|line: &Line| line.at(middle) / 1e3),
            fixed: change(&|line: &Line| line.fixed / 1e3),
            per_byte: change(&|line: &Line| line.per_byte),
        }
    }
}

impl Segment {
    /// Returns the time of a message on the line, in microseconds.
    pub fn time_us(&self, bytes: f64) -> f64 {
        self.fixed.value + self.per_byte.value * (bytes - 1.0) / 1e3
    }
}

impl Switch {
    /// Returns whether launches agree that the line changes.
    fn is_shown(&self) -> bool {
        self.step.sign() != 0 || self.per_byte.sign() != 0
    }
}

impl Fit {
    /// Returns the time of a message of 1 byte on the first line in each launch, in microseconds.
    pub(super) fn short(&self) -> impl Iterator<Item = f64> {
        self.lines.first().into_iter().flatten().map(|line| line.fixed / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::segments::*;

    /// Returns the sum of squared relative residuals of a line.
    fn squares(line: Line, points: &[Point]) -> f64 {
        points.iter().map(|(bytes, time)| ((line.at(*bytes) - time) / time).powi(2)).sum()
    }

    #[test]
    fn a_line_is_found_exactly() {
        let line = Line { fixed: 1000.0, per_byte: 0.25 };
        let points: Vec<Point> = [0.0, 7.0, 1023.0, 4e6].map(|bytes| (bytes, line.at(bytes))).to_vec();
        let found = Line::through(&points);
        assert!((found.fixed - 1000.0).abs() < 1e-6 && (found.per_byte - 0.25).abs() < 1e-9, "{found:?}");
        assert!(squares(found, &points) < 1e-18);
        assert!(switches(&points).is_empty());
    }

    #[test]
    fn a_step_and_a_bend_are_found() {
        let time = |bytes: f64| match bytes {
            x if x < 8192.0 => 1000.0 + 0.5 * x,
            x if x < 400_000.0 => 9000.0 + 0.2 * x,
            x => 9000.0 - 400_000.0 * 0.6 + 0.8 * x,
        };
        let points: Vec<Point> = (0..23).map(|k| f64::from(1 << k)).map(|x| (x, time(x))).collect();
        assert_eq!(switches(&points), [13, 19]);
    }

    #[test]
    fn moments_give_the_residuals_of_the_line() {
        let points: Vec<Point> = (0..40)
            .map(|k| (4e6 + f64::from(k) * 64.0, 1e6 + f64::from(k) * 13.0 + f64::from(k % 3) * 900.0))
            .collect();
        let mut moments = Moments::default();
        points.iter().for_each(|point| moments.add(*point));
        let squares = squares(Line::through(&points), &points);
        assert!((moments.squares() / squares - 1.0).abs() < 1e-6, "{} {squares}", moments.squares());
    }

    #[test]
    fn thousands_of_sizes_have_their_switches() {
        let time = |bytes: f64| if bytes < 1_500_000.0 { 1000.0 + 0.5 * bytes } else { 9000.0 + 0.7 * bytes };
        let points: Vec<Point> = (0..3000).map(|k| f64::from(k) * 1000.0).map(|x| (x, time(x))).collect();
        assert_eq!(switches(&points), [1500]);
    }

    #[test]
    fn few_points_have_no_switches() {
        let points: Vec<Point> = (0..5).map(|k| (f64::from(k), 10.0 + f64::from(k % 2))).collect();
        assert!(switches(&points).is_empty());
    }
}
