//! Student's t test for the means of two groups.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Returns the 95 % interval of mean(b) - mean(a) and the two-sided p value, by Student's t test with pooled variance.
///
/// One of the groups may have a single value. Returns `None` if both have, or if one is empty.
pub fn student(a: &[f64], b: &[f64]) -> Option<([f64; 2], f64)> {
    let freedom =
        (a.len() + b.len()).checked_sub(2).filter(|f| *f > 0 && !a.is_empty() && !b.is_empty())? as f64;
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let squares = |x: &[f64]| x.iter().map(|v| (v - mean(x)).powi(2)).sum::<f64>();
    let spread = ((squares(a) + squares(b)) / freedom * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let shift = mean(b) - mean(a);
    let half = t.inverse_cdf(1.0 - super::comparison::TAIL) * spread;
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

    #[test]
    fn student_matches_values_computed_by_hand() {
        // Means 2 and 5, spread 1: t = 3 / sqrt(2/3) = 3.674 with 4 degrees; p = 0.0213, quantile 2.776.
        let ([low, high], p) = student(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
        assert!((p - 0.021312).abs() < 1e-5, "{p}");
        assert!((low - 0.73313).abs() < 1e-4 && (high - 5.26687).abs() < 1e-4, "{low} {high}");
        assert_eq!(student(&[1.0], &[2.0]), None);
        assert!(student(&[1.0], &[2.0, 3.0]).is_some());
        assert_eq!(student(&[1.0, 1.0], &[1.0, 1.0]).unwrap().1, 1.0);
        assert_eq!(student(&[1.0, 1.0], &[2.0, 2.0]).unwrap().1, 0.0);
    }
}
