//! Piecewise lines through a curve of times over message sizes.
//!
//! The segmentation is the one that minimizes the weighted sum of squares for its number of segments; dynamic programming finds it
//! (Bai and Perron, Journal of Applied Econometrics 2003). The information criterion of Liu, Wu and Zidek (Statistica Sinica 1997)
//! chooses the number. Residuals are relative to the time, because the noise of a time is proportional to it.

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
    /// Returns the line with the smallest sum of squared relative residuals, and this sum.
    pub(super) fn through(points: &[Point]) -> (Line, f64) {
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
        let line = Line { fixed: y - per_byte * x, per_byte };
        let residual = |(bytes, time): &Point| ((line.at(*bytes) - time) / time).powi(2);
        (line, points.iter().map(residual).sum())
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
    let first = |end: usize| {
        if end < LEAST_SIZES { (f64::INFINITY, 0) } else { (Line::through(&points[..end]).1, 0) }
    };
    let mut best: Vec<Vec<(f64, usize)>> = vec![(0..=n).map(first).collect()];
    for k in 1..most {
        let row = (0..=n).map(|end| last_segment(points, &best[k - 1], end)).collect();
        best.push(row);
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

/// Returns the least sum of squares if the last segment ends before `end`, and where it starts.
fn last_segment(points: &[Point], shorter: &[(f64, usize)], end: usize) -> (f64, usize) {
    let starts = LEAST_SIZES..(end + 1).saturating_sub(LEAST_SIZES);
    let sum = |start: usize| (shorter[start].0 + Line::through(&points[start..end]).1, start);
    starts.map(sum).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
}

/// Returns the criterion of a segmentation with this number of switches; the smallest one wins.
fn criterion(squares: f64, points: usize, switches: usize) -> f64 {
    let n = points as f64;
    let (factor, power) = PENALTY;
    n * (squares / n + TOLERANCE * TOLERANCE).ln()
        + switches as f64 * PARAMETERS * factor * n.ln().powf(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_exactly() {
        let line = Line { fixed: 1000.0, per_byte: 0.25 };
        let points: Vec<Point> = [0.0, 7.0, 1023.0, 4e6].map(|bytes| (bytes, line.at(bytes))).to_vec();
        let (found, squares) = Line::through(&points);
        assert!((found.fixed - 1000.0).abs() < 1e-6 && (found.per_byte - 0.25).abs() < 1e-9, "{found:?}");
        assert!(squares < 1e-18);
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
    fn few_points_have_no_switches() {
        let points: Vec<Point> = (0..5).map(|k| (f64::from(k), 10.0 + f64::from(k % 2))).collect();
        assert!(switches(&points).is_empty());
    }
}
