//! What a comparison could have found: the smallest detectable difference, and the launches that a difference needs.

use std::sync::LazyLock;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{comparison::MIN_LAUNCHES, shift::Stratum};

/// Quantile of a normal distribution: the chance to find the smallest detectable difference is 81 %.
const POWER: f64 = 0.88;
/// Largest number of launches per side that is suggested.
const MAX_LAUNCHES: usize = 100;

/// Returns the standard deviation within the groups of all strata, or `None` if no group has two values or a side has none.
pub(super) fn pooled_deviation(strata: &[Stratum]) -> Option<f64> {
    let groups = || strata.iter().flatten().filter(|group| !group.is_empty());
    let squares = |x: &Vec<f64>| {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        x.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
    };
    let compared = strata.iter().any(|[a, b]| !a.is_empty() && !b.is_empty());
    let freedom: usize = groups().map(|group| group.len() - 1).sum();
    (compared && freedom > 0).then(|| (groups().map(squares).sum::<f64>() / freedom as f64).sqrt())
}

/// Returns the smallest difference, a logarithm, that groups of these sizes would have shown.
pub(super) fn detectable(deviation: f64, a: usize, b: usize) -> Option<f64> {
    let t = t975((a + b).checked_sub(2)?)?;
    Some((t + POWER) * deviation * (1.0 / a as f64 + 1.0 / b as f64).sqrt())
}

/// Returns the quantile 0.975 of Student's distribution with these degrees of freedom. Every case needs some hundred of them, and each
/// takes microseconds to compute.
fn t975(freedom: usize) -> Option<f64> {
    static KNOWN: LazyLock<Vec<Option<f64>>> =
        LazyLock::new(|| (0..2 * MAX_LAUNCHES).map(computed_t975).collect());
    KNOWN.get(freedom).copied().unwrap_or_else(|| computed_t975(freedom))
}

fn computed_t975(freedom: usize) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom as f64).ok()?.inverse_cdf(0.975))
}

/// Returns the smallest number of launches per side that shows a difference, a logarithm. `None` if it is above 100.
pub(super) fn launches_for(deviation: f64, difference: f64) -> Option<usize> {
    (MIN_LAUNCHES..=MAX_LAUNCHES).find(|n| detectable(deviation, *n, *n).is_some_and(|d| d <= difference))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_launches_match_values_computed_by_hand() {
        let s = pooled_deviation(&[[vec![1.0, 2.0, 3.0], vec![4.0, 6.0, 8.0]]]).unwrap();
        assert!((s - 2.5_f64.sqrt()).abs() < 1e-12, "{s}");
        assert_eq!(pooled_deviation(&[[vec![1.0], vec![2.0]]]), None);
        let states = [[vec![1.0, 2.0, 3.0], vec![]], [vec![14.0], vec![24.0, 26.0, 28.0]]];
        assert_eq!(pooled_deviation(&states), Some(s));
        // t(0.975, 10) = 2.228.
        let d = detectable(0.17, 6, 6).unwrap();
        assert!((d - (2.228 + 0.88) * 0.17 * (2.0_f64 / 6.0).sqrt()).abs() < 1e-3, "{d}");
        assert_eq!(launches_for(0.0, 0.05), Some(4));
        let n = launches_for(0.05, 0.05).unwrap();
        assert!(detectable(0.05, n, n).unwrap() <= 0.05 && detectable(0.05, n - 1, n - 1).unwrap() > 0.05);
        assert_eq!(launches_for(1.0, 0.05), None);
    }
}
