//! Intervals of proportions.

/// Normal quantile of intervals of 95 %.
const Z95: f64 = 1.959_964;

/// Returns the 95 % interval of the probability of success after `part` successes in `all` independent trials (Wilson 1927); `None`
/// without trials.
pub fn proportion_interval(part: u64, all: u64) -> Option<[f64; 2]> {
    let (n, p) = (all as f64, part.min(all) as f64 / all as f64);
    let square = Z95 * Z95 / n;
    let (middle, width) = (p + square / 2.0, Z95 * (p * (1.0 - p) / n + square / (4.0 * n)).sqrt());
    // Rounding must not leave the share outside.
    let ends = [(middle - width) / (1.0 + square), (middle + width) / (1.0 + square)];
    (all > 0).then(|| [ends[0].clamp(0.0, p), ends[1].clamp(p, 1.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_proportions_are_wilsons() {
        // Brown, Cai and DasGupta (2001): 10 of 100.
        let [low, high] = proportion_interval(10, 100).unwrap();
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        assert_eq!(proportion_interval(0, 0), None);
        assert!(proportion_interval(0, 5).unwrap()[0] == 0.0 && proportion_interval(5, 5).unwrap()[1] == 1.0);
    }
}
