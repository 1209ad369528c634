//! Holm's correction of p values for multiple testing.

/// Returns adjusted p values in the order of `p`: the smallest times n, the next times n - 1, and so on, never descending.
///
/// Source: S. Holm, "A simple sequentially rejective multiple test procedure", 1979.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 0.0f64;
    for (refused, at) in order.into_iter().enumerate() {
        least = least.max((p[at] * (p.len() - refused) as f64).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn holm_matches_values_computed_by_hand() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let by_hand = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(by_hand).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn adjusting_never_lowers_a_p_nor_changes_the_order(p in prop::collection::vec(0.0..1.0f64, 1..30)) {
            let adjusted = holm(&p);
            for (i, a) in p.iter().enumerate() {
                prop_assert!(adjusted[i] >= *a && adjusted[i] <= 1.0);
                prop_assert!(p.iter().zip(&adjusted).all(|(b, adj)| b < a || *adj >= adjusted[i]));
            }
        }
    }
}
