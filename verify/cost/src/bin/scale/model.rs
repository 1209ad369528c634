//! Extrapolation of measured constants to large machines.

use ombx_links::verdict::MOST_ROWS;

use crate::{job::Line, simulated::Swept};

/// Constants measured on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Constants {
    /// Bytes of a row of `links`.
    pub(crate) row_bytes: f64,
    /// Bytes of the first record per rank.
    pub(crate) place_bytes: f64,
    /// Bytes that ombx adds to the memory of a bare rank: constant part, and growth per rank of the job.
    pub(crate) own_bytes: f64,
    pub(crate) own_growth: f64,
}

/// Bytes that rank 0 keeps of a row of `links`: two ranks and a time.
const KEPT_BYTES: f64 = 12.0;
/// Number of rows per rank that a sample has at most, and bytes of a rank's slowest links outside it: 8 inside its host and 8 between.
const SAMPLE_PER_RANK: f64 = 32.0;
const SLOWEST_BYTES: f64 = 2.0 * 8.0 * 32.0;
/// Bytes that each rank sends to rank 0 in each step: a length.
const LENGTH_BYTES: f64 = 8.0;
/// Least time of a row of `links` by default: a hundredth of `--max-time`, warm-up and verification.
const ROW_S: f64 = 0.015;
/// Bytes per second that rank 0 receives, parses and writes.
const ROOT_BYTES_PER_S: f64 = 200e6;

/// Extrapolation to one number of ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Modelled {
    pub(crate) ranks: f64,
    pub(crate) rows: f64,
    pub(crate) result_bytes: f64,
    pub(crate) root_bytes: f64,
    pub(crate) gather_bytes: f64,
    pub(crate) places_bytes: f64,
    pub(crate) hours: f64,
}

impl Constants {
    /// Returns the constants of these measurements.
    ///
    /// Bytes of a row are those of the largest simulated sweep: what a record of a round has besides is spread over its many links.
    pub(crate) fn new(lines: &[Line], swept: &[Swept]) -> Constants {
        let widest = lines.iter().filter(|line| line.tasks[0].rows > 0).max_by_key(|line| line.ranks);
        let largest = swept.iter().max_by_key(|swept| swept.shape.ranks);
        let row_bytes = largest.map_or(0.0, |swept| swept.result_bytes as f64 / swept.rows as f64);
        let place_bytes = widest.map_or(0.0, |line| line.tasks[0].run_bytes as f64 / f64::from(line.ranks));
        // Few ranks share the code of libraries among few: such jobs are left out of the growth.
        let many = |line: &&Line| line.ranks >= 16 || lines.len() < 4;
        let points: Vec<(f64, f64)> = lines.iter().filter(many).filter_map(own_point).collect();
        let (own_growth, own_bytes) = line_through(&points);
        Constants { row_bytes, place_bytes, own_bytes, own_growth }
    }

    /// Returns a sweep of all pairs, in both directions at one size.
    pub(crate) fn all_pairs(&self, ranks: f64) -> Modelled {
        self.of_rounds(ranks, ranks - 1.0)
    }

    /// Returns a bisection: one round.
    pub(crate) fn bisection(&self, ranks: f64) -> Modelled {
        self.of_rounds(ranks, 1.0)
    }

    fn of_rounds(&self, ranks: f64, rounds: f64) -> Modelled {
        let rows = rounds * ranks;
        let most = (MOST_ROWS as f64).max(SAMPLE_PER_RANK * ranks);
        let step = ranks / 2.0 * self.row_bytes + ranks * LENGTH_BYTES;
        Modelled {
            ranks,
            rows,
            result_bytes: rows * self.row_bytes,
            root_bytes: if rows <= most {
                rows * KEPT_BYTES
            } else {
                most * KEPT_BYTES + ranks * SLOWEST_BYTES
            },
            gather_bytes: step,
            places_bytes: ranks * self.place_bytes,
            hours: 2.0 * rounds * (ROW_S + step / ROOT_BYTES_PER_S) / 3600.0,
        }
    }
}

/// Returns the number of ranks of a job, and the bytes that ombx adds to a bare rank.
fn own_point(line: &Line) -> Option<(f64, f64)> {
    let ours =
        line.tasks[1].rank_bytes.checked_sub(line.bare.rank_bytes).filter(|_| line.bare.rank_bytes > 0);
    ours.map(|bytes| (f64::from(line.ranks), bytes as f64))
}

/// Returns slope and intercept of the least-squares line.
pub(crate) fn line_through(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let joint: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let slope = if spread > 0.0 { joint / spread } else { 0.0 };
    (slope, y - slope * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_grow_with_the_square_and_a_bisection_does_not() {
        let constants = Constants { row_bytes: 400.0, place_bytes: 50.0, own_bytes: 2e6, own_growth: 0.0 };
        let (small, large) = (constants.all_pairs(1000.0), constants.all_pairs(2000.0));
        assert!((large.result_bytes / small.result_bytes - 4.0).abs() < 0.01);
        assert_eq!(constants.bisection(1000.0).rows, 1000.0);
        assert_eq!(small.root_bytes, 999_000.0 * 12.0);
        assert_eq!(large.root_bytes, f64::from(1 << 20) * 12.0 + 2000.0 * SLOWEST_BYTES);
        assert_eq!(line_through(&[(1.0, 3.0), (2.0, 5.0)]), (2.0, 1.0));
    }
}
