//! Grids of ranks, in which the last coordinate varies fastest.

/// Returns the lengths of the dimensions of a grid that is as cubic as possible, the largest first.
pub(crate) fn grid<const D: usize>(ranks: u32) -> [u32; D] {
    let (mut lengths, mut left) = ([1; D], u64::from(ranks.max(1)));
    for at in (0..D).rev() {
        let at_most_a_root = (1..=left).take_while(|n: &u64| n.saturating_pow(at as u32 + 1) <= left);
        let largest = at_most_a_root.filter(|n| left.is_multiple_of(*n)).last().unwrap_or(1);
        (lengths[at], left) = (largest as u32, left / largest);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_as_cubic_as_possible() {
        let grids = [1, 2, 3, 4, 6, 7, 8, 12].map(grid::<2>);
        assert_eq!(grids, [[1, 1], [2, 1], [3, 1], [2, 2], [3, 2], [7, 1], [4, 2], [4, 3]]);
        let grids = [1, 2, 4, 6, 7, 8, 12, 27, 64].map(grid::<3>);
        let expected = [
            [1, 1, 1],
            [2, 1, 1],
            [2, 2, 1],
            [3, 2, 1],
            [7, 1, 1],
            [2, 2, 2],
            [3, 2, 2],
            [3, 3, 3],
            [4, 4, 4],
        ];
        assert_eq!(grids, expected);
    }
}
