//! Dependence between consecutive values: by which factor it raises the variance of their mean.

/// Minimum number of blocks from which a variance is estimated.
const FEWEST_BLOCKS: usize = 16;
/// Standard errors by which a variance must exceed that of independent values to count.
const SIGNIFICANT: f64 = 2.5;

/// Returns the factor by which dependence raises the variance of the mean of values; at least 1.
///
/// Fast dependence shows in the lag-1 autocorrelation. Slow dependence shows in sums of blocks of 2, 4, 8 ... values, which vary more
/// than sums of independent values.
pub(super) fn inflation(mut values: Vec<f64>) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter_mut().for_each(|x| *x -= mean);
    let power = values.iter().map(|x| x * x).sum::<f64>() / n;
    if power.is_nan() || power <= 0.0 {
        return 1.0;
    }
    let excess = values.iter().map(|x| x.powi(4)).sum::<f64>() / n / (power * power) - 3.0;
    let joint: f64 = values.windows(2).map(|w| w[0] * w[1]).sum();
    let mut largest = inflation_by_lag1(joint / (n * power), values.len());
    let (mut sums, mut block) = (values, 1.0);
    while sums.len() / 2 >= FEWEST_BLOCKS {
        let blocks = sums.len() / 2;
        (0..blocks).for_each(|at| sums[at] = sums[2 * at] + sums[2 * at + 1]);
        sums.truncate(blocks);
        block *= 2.0;
        let freedom = (blocks - 1) as f64;
        let ratio = sums.iter().map(|sum| sum * sum).sum::<f64>() / freedom / (block * power);
        // Variance of a variance, with the excess kurtosis of a sum of `block` independent values.
        let by_chance = ((2.0 + excess / block).max(0.0) / freedom).sqrt();
        if ratio > 1.0 + SIGNIFICANT * by_chance {
            let joint: f64 = sums.windows(2).map(|w| w[0] * w[1]).sum();
            let lag1 = joint / sums.iter().map(|sum| sum * sum).sum::<f64>();
            largest = largest.max(ratio * inflation_by_lag1(lag1, blocks));
        }
    }
    largest
}

/// Returns the factor for a first-order autoregression of `n` values with lag-1 autocorrelation `r`; 1 if `r` can be chance.
pub(super) fn inflation_by_lag1(r: f64, n: usize) -> f64 {
    let n = n.max(1) as f64;
    // The estimate of the correlation of n values is biased by about -1/n.
    let r = r + 1.0 / n;
    match r > 1.0 / n.sqrt() {
        true if r < 1.0 => (1.0 + r) / (1.0 - r),
        true => f64::INFINITY,
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_values_do_not_narrow_an_interval() {
        assert_eq!(inflation((0..1000).map(|i| f64::from(i % 2)).collect()), 1.0);
        assert_eq!(inflation(vec![3.0; 100]), 1.0);
        assert_eq!(inflation(Vec::new()), 1.0);
    }

    #[test]
    fn a_lag_counts_only_beyond_chance() {
        assert_eq!(inflation_by_lag1(0.08, 100), 1.0);
        assert!((inflation_by_lag1(0.49, 100) - 3.0).abs() < 1e-12);
        assert_eq!(inflation_by_lag1(0.999, 100), f64::INFINITY);
    }

    #[test]
    fn slow_changes_show_in_long_blocks() {
        // Runs of 64 equal values: a mean of n of them varies like one of n / 64.
        let mut state = 1u64;
        let mut coin = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((state >> 60) as u8 & 1)
        };
        let runs: Vec<f64> = (0..256).flat_map(|_| [coin(); 64]).collect();
        assert!(inflation(runs) > 50.0);
    }
}
