//! Quantiles of Student's t distribution.

/// Returns the value that a t-distributed variable with `df` degrees of freedom exceeds with probability `p` (below 0.5).
pub(crate) fn upper_quantile(df: usize, p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..120 {
        let middle = 0.5 * (low + high);
        if upper_tail(df, middle) > p { low = middle } else { high = middle }
    }
    high
}

/// Returns the probability of a larger value, by the finite series for whole degrees of freedom (Abramowitz and Stegun, 26.7.3
/// and 26.7.4).
fn upper_tail(df: usize, t: f64) -> f64 {
    let theta = (t / (df as f64).sqrt()).atan();
    let (sine, cosine) = theta.sin_cos();
    let (odd, first) = (df % 2 == 1, if df % 2 == 1 { cosine } else { 1.0 });
    let (mut term, mut sum) = (first, 0.0);
    let mut k = if odd { 3 } else { 2 };
    while k <= df {
        sum += term;
        term *= cosine * cosine * (k - 1) as f64 / k as f64;
        k += 2;
    }
    let inside = if odd { std::f64::consts::FRAC_2_PI * (theta + sine * sum) } else { sine * sum };
    0.5 * (1.0 - inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (df, p, t) in [
            (1, 0.025, 12.706),
            (2, 0.025, 4.303),
            (3, 0.005, 5.841),
            (4, 0.001, 7.173),
            (7, 0.05, 1.895),
            (30, 0.0005, 3.646),
        ] {
            assert!((upper_quantile(df, p) - t).abs() < 1e-3, "{df} {p}: {}", upper_quantile(df, p));
        }
    }
}
