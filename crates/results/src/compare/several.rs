//! What is left of a p when many questions were asked, and the test of a difference by means.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Holm's adjustment: each p times the number of hypotheses not yet refused, in ascending order, never below one before it.
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

/// How far the mean of `b` lies above that of `a`, with a 95 % interval and the two-sided p, by Student's t with one spread for
/// both; one of the two may be a single value. `None` where nothing tells of their spread.
pub fn student(a: &[f64], b: &[f64]) -> Option<([f64; 2], f64)> {
    let freedom =
        (a.len() + b.len()).checked_sub(2).filter(|f| *f > 0 && !a.is_empty() && !b.is_empty())? as f64;
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let squares = |x: &[f64]| x.iter().map(|v| (v - mean(x)).powi(2)).sum::<f64>();
    let spread = ((squares(a) + squares(b)) / freedom * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let shift = mean(b) - mean(a);
    let half = t.inverse_cdf(1.0 - super::TAIL) * spread;
    let p = match spread > 0.0 {
        true => 2.0 * t.sf(shift.abs() / spread),
        false if shift == 0.0 => 1.0,
        false => 0.0,
    };
    Some(([shift - half, shift + half], p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn holm_by_hand() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let by_hand = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(by_hand).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn student_by_hand() {
        // Means 2 and 5, spread 1: t = 3 / sqrt(2/3) = 3.674 with 4 degrees; p = 0.0213, quantile 2.776.
        let ([low, high], p) = student(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
        assert!((p - 0.021312).abs() < 1e-5, "{p}");
        assert!((low - 0.73313).abs() < 1e-4 && (high - 5.26687).abs() < 1e-4, "{low} {high}");
        assert_eq!(student(&[1.0], &[2.0]), None);
        assert!(student(&[1.0], &[2.0, 3.0]).is_some());
        assert_eq!(student(&[1.0, 1.0], &[1.0, 1.0]).unwrap().1, 1.0);
        assert_eq!(student(&[1.0, 1.0], &[2.0, 2.0]).unwrap().1, 0.0);
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
