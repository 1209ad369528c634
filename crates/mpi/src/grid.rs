//! Grids of ranks, in which the last coordinate varies fastest.

/// Returns the lengths of the dimensions of a grid that is as cubic as possible, whose sum is the smallest, the largest first.
pub(crate) fn grid<const D: usize>(ranks: u32) -> [u32; D] {
    let mut lengths = [1; D];
    for (length, best) in lengths.iter_mut().zip(cubic(u64::from(ranks.max(1)), D as u32)) {
        *length = best as u32;
    }
    lengths.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
    lengths
}

/// Returns lengths whose product is `ranks` and whose sum is the smallest. Only divisors up to the root can be the smallest length.
fn cubic(ranks: u64, dimensions: u32) -> Vec<u64> {
    if dimensions <= 1 {
        return vec![ranks];
    }
    let at_most_a_root = (1..=ranks).take_while(|least: &u64| least.saturating_pow(dimensions) <= ranks);
    let divisors = at_most_a_root.filter(|least| ranks.is_multiple_of(*least));
    let grids = divisors.map(|least| [cubic(ranks / least, dimensions - 1), vec![least]].concat());
    grids.min_by_key(|lengths| lengths.iter().sum::<u64>()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_as_cubic_as_possible() {
        let grids = [1, 2, 3, 4, 6, 7, 8, 12].map(grid::<2>);
        assert_eq!(grids, [[1, 1], [2, 1], [3, 1], [2, 2], [3, 2], [7, 1], [4, 2], [4, 3]]);
        let grids = [1, 2, 4, 6, 10, 27, 30, 68, 72].map(grid::<3>);
        let expected = [
            [1, 1, 1],
            [2, 1, 1],
            [2, 2, 1],
            [3, 2, 1],
            [5, 2, 1],
            [3, 3, 3],
            [5, 3, 2],
            [17, 2, 2],
            [6, 4, 3],
        ];
        assert_eq!(grids, expected);
    }

    #[test]
    fn no_other_grid_has_a_smaller_sum() {
        for ranks in 1..=120_u32 {
            let [a, b, c] = grid::<3>(ranks);
            assert!(a >= b && b >= c && a * b * c == ranks, "{ranks}");
            let divisors = || (1..=ranks).filter(|n| ranks.is_multiple_of(*n));
            let pairs = divisors().flat_map(|x| divisors().map(move |y| (x, y)));
            let sums =
                pairs.filter(|(x, y)| ranks.is_multiple_of(x * y)).map(|(x, y)| x + y + ranks / (x * y));
            assert_eq!(sums.min(), Some(a + b + c), "{ranks}");
        }
    }
}
