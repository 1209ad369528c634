//! A curve of times over message sizes in several launches, and its fit by lines.

use ombx_core::stats::median;

use super::{
    Estimate,
    segments::{self, LEAST_SIZES, Line, Point},
};

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
        let mut starts = segments::switches(&typical);
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
        let line =
            |launch: usize, (from, to): (usize, usize)| Line::through(&self.points(launch)[from..to]).0;
        let lines: Vec<Vec<Line>> = ends
            .iter()
            .map(|part| (0..self.launches.len()).map(|launch| line(launch, *part)).collect())
            .collect();
        let segments = ends.iter().zip(&lines);
        let segments = segments.map(|(part, lines)| self.segment(typical, *part, lines)).collect();
        let switch = |(at, start): (usize, &usize)| self.switch(*start, &lines[at], &lines[at + 1]);
        Fit {
            segments,
            switches: starts.iter().enumerate().map(switch).collect(),
            points: self.sizes.iter().zip(typical).map(|(bytes, (_, time))| (*bytes, time / 1e3)).collect(),
            launches: self.launches.len(),
            lines,
        }
    }

    fn segment(&self, typical: &[Point], (from, to): (usize, usize), lines: &[Line]) -> Segment {
        let points = &typical[from..to];
        let line = Line::through(points).0;
        let distance = |(bytes, time): &Point| (time / line.at(*bytes) - 1.0).abs();
        Segment {
            bytes: [self.sizes[from], self.sizes[to - 1]],
            fixed: Estimate::of(lines.iter().map(|line| line.fixed / 1e3)),
            per_byte: Estimate::of(lines.iter().map(|line| line.per_byte)),
            residual: points.iter().map(distance).fold(0.0, f64::max),
        }
    }

    fn switch(&self, start: usize, before: &[Line], after: &[Line]) -> Switch {
        let between = [self.sizes[start - 1], self.sizes[start]];
        let middle = ((between[0] - 1) as f64 * (between[1] - 1) as f64).sqrt();
        let change = |of: &dyn Fn(&Line) -> f64| {
            Estimate::of(before.iter().zip(after).map(|(before, after)| of(after) - of(before)))
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
