//! Change points of a series: the places where its level changes for good.
//!
//! The segmentation minimizes the sum of the losses of all values plus a penalty per change, as PELT does (Killick, Fearnhead and
//! Eckley, JASA 2012). The loss is the biweight loss of Fearnhead and Rigaill (JASA 2019): the squared distance from the level
//! of the segment in units of the noise, but at most [`MOST_LOSS`]. An outlier is thus cheaper than a change. The minimum is found by
//! their recursion over levels (R-FPOP), on a grid of levels: the values themselves, and the middles between neighbours.

use ombx_record::{
    order::sort,
    stats::{median, quantile},
};

/// Minimum number of values in which a look searches for changes. Fewer do not show how much the values scatter.
const LEAST_IN_LOOK: usize = 10;
/// Minimum number of values of a series that is judged: enough for the looks that confirm a change.
pub const LEAST_RUNS: usize = LEAST_IN_LOOK + CONFIRMED_BY - 1;
/// Maximum loss of a value: a distance of 4 standard deviations.
const MOST_LOSS: f64 = 16.0;
/// Penalty of a change of independent values, in units of the logarithm of the number of values: the smallest whole number with which a
/// year of daily looks at a series alarms falsely in at most one of twenty series, also of skewed values and with outliers
/// (`cargo xtask coverage verdicts`).
const PENALTY: f64 = 7.0;
/// Largest lag-1 autocorrelation that is believed.
const MOST_CORRELATED: f64 = 0.8;
/// Growth of the autocorrelation below which a series is not segmented again.
const SETTLED: f64 = 0.01;
/// Maximum number of segmentations.
const MOST_PASSES: usize = 6;
/// Residuals are bounded at this number of standard deviations, so that outliers say nothing about autocorrelation.
const MOST_RESIDUAL: f64 = 3.0;
/// Number of consecutive looks that must find a change: at all values, and without the last ones.
pub const CONFIRMED_BY: usize = 3;
/// Number of values by which the place of a change may differ between two looks.
const SAME_PLACE: usize = 2;
/// Smallest standard deviation, in natural logarithms. Values that are nearly equal do not make tiny differences important.
const LEAST_NOISE: f64 = 1e-3;
/// Standard deviation of normal values in units of their median absolute deviation.
const NORMAL: f64 = 1.4826;
/// Maximum number of levels of the grid.
const MOST_LEVELS: usize = 1024;

/// Returns the changes that [`CONFIRMED_BY`] consecutive looks find, each after one more value. One look could be unlucky, and a series
/// is looked at every day.
pub fn confirmed_changes(values: &[f64]) -> Vec<usize> {
    let mut found = change_points(values);
    for fewer in 1..CONFIRMED_BY {
        if found.is_empty() {
            break;
        }
        let before = change_points(&values[..values.len().saturating_sub(fewer)]);
        found.retain(|at| before.iter().any(|other| at.abs_diff(*other) <= SAME_PLACE));
    }
    found
}

/// Returns the index of the first value after each change, in ascending order; none for fewer than ten values.
///
/// The values are logarithms in the order of time. Where the residuals have a lag-1 autocorrelation r, levels of chance differ by
/// (1 + r) / (1 - r) times the variance of independent values, and so does the penalty. A segmentation with a higher penalty leaves
/// residuals that are more correlated, so that both are repeated until they agree.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    if values.len() < LEAST_IN_LOOK {
        return Vec::new();
    }
    let (noise, levels) = (noise(values), levels(values));
    let penalty = |r: f64| PENALTY * (values.len() as f64).ln() * (1.0 + r) / (1.0 - r);
    let mut correlation = 0.0;
    let mut found = segmentation(values, &levels, noise, penalty(correlation));
    for _ in 1..MOST_PASSES {
        let next = autocorrelation(values, &found, noise);
        if next <= correlation + SETTLED {
            break;
        }
        correlation = next;
        found = segmentation(values, &levels, noise, penalty(correlation));
    }
    found
}

/// Returns the lag-1 autocorrelation of the distances of values from the medians of their segments, at least 0.
fn autocorrelation(values: &[f64], changes: &[usize], noise: f64) -> f64 {
    let ends = changes.iter().copied().chain([values.len()]);
    let starts = [0].into_iter().chain(changes.iter().copied());
    let (mut products, mut squares) = (0.0, 0.0);
    for (start, end) in starts.zip(ends) {
        let middle = median(&values[start..end]).unwrap_or(0.0);
        let bound = MOST_RESIDUAL * noise;
        let left: Vec<f64> =
            values[start..end].iter().map(|value| (value - middle).clamp(-bound, bound)).collect();
        squares += left.iter().map(|x| x * x).sum::<f64>();
        products += left.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
    }
    if squares > 0.0 { (products / squares).clamp(0.0, MOST_CORRELATED) } else { 0.0 }
}

/// Returns the changes of the segmentation with the least sum of losses and penalties.
fn segmentation(values: &[f64], levels: &[f64], noise: f64, penalty: f64) -> Vec<usize> {
    // Cost of all values so far if the last segment has this level, and where this segment starts.
    let mut paths = vec![(0.0_f64, 0_usize); levels.len()];
    // Start of the last segment of the best segmentation of the first n + 1 values.
    let mut starts = Vec::with_capacity(values.len());
    let mut least = f64::INFINITY;
    for (at, value) in values.iter().enumerate() {
        let (changed, mut best) = (least + penalty, (f64::INFINITY, 0));
        for ((cost, start), level) in paths.iter_mut().zip(levels) {
            if changed < *cost {
                (*cost, *start) = (changed, at);
            }
            *cost += ((value - level) / noise).powi(2).min(MOST_LOSS);
            if *cost < best.0 {
                best = (*cost, *start);
            }
        }
        least = best.0;
        starts.push(best.1);
    }
    let mut found = Vec::new();
    let mut start = starts[values.len() - 1];
    while start > 0 {
        found.push(start);
        start = starts[start - 1];
    }
    found.reverse();
    found
}

/// Returns the standard deviation of the values around their levels, from the differences of neighbours, which few changes disturb.
fn noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    (NORMAL * median(&steps).unwrap_or(0.0) / 2.0_f64.sqrt()).max(LEAST_NOISE)
}

/// Returns the levels that a segment may have: the values and the middles between neighbours; of many values, quantiles.
fn levels(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sort(&mut sorted);
    let count = (2 * sorted.len() - 1).min(MOST_LEVELS);
    (0..count).filter_map(|at| quantile(&sorted, at as f64 / (count - 1) as f64)).collect()
}

#[cfg(test)]
mod tests {
    use crate::history::change_point::*;

    /// Number of simulated series of each kind.
    const SERIES: usize = 300;
    /// Scatter of a series, as a standard deviation of logarithms.
    const SCATTER: f64 = 0.03;

    /// Shape of the noise of simulated series.
    #[derive(Debug, Clone, Copy)]
    enum Noise {
        Normal,
        /// Log-normal: long times are farther from the median than short ones.
        Skewed,
        /// First-order autoregression with a coefficient of 0.3.
        Autocorrelated,
        /// One value in twenty is 1.35 to 2.5 times too long.
        Outliers,
    }

    const ALL: [Noise; 4] = [Noise::Normal, Noise::Skewed, Noise::Autocorrelated, Noise::Outliers];

    fn normal(random: &mut fastrand::Rng) -> f64 {
        (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
    }

    /// Returns a series without a change, with standard deviation [`SCATTER`].
    fn series(noise: Noise, runs: usize, random: &mut fastrand::Rng) -> Vec<f64> {
        let mut last = normal(random);
        let mut value = |random: &mut fastrand::Rng| match noise {
            Noise::Normal => normal(random),
            Noise::Skewed => (0.6 * normal(random)).exp() / 0.79,
            Noise::Autocorrelated => {
                last = 0.3 * last + 0.91_f64.sqrt() * normal(random);
                last
            }
            Noise::Outliers if random.f64() < 0.05 => 10.0 + 20.0 * random.f64(),
            Noise::Outliers => normal(random),
        };
        (0..runs).map(|_| SCATTER * value(random)).collect()
    }

    /// Returns the number of runs of the i-th series: 30 to 60.
    fn runs(i: usize) -> usize {
        30 + i % 31
    }

    #[test]
    fn at_most_one_series_in_twenty_without_a_change_has_a_false_alarm() {
        for noise in ALL {
            let mut random = fastrand::Rng::with_seed(1);
            let alarm = |i: &usize| !confirmed_changes(&series(noise, runs(*i), &mut random)).is_empty();
            let alarms = (0..SERIES).filter(alarm).count();
            assert!(alarms * 20 <= SERIES, "{noise:?}: {alarms} of {SERIES} series have a false alarm");
        }
    }

    #[test]
    fn short_series_have_no_more_false_alarms() {
        for noise in ALL {
            let mut random = fastrand::Rng::with_seed(2);
            let alarm = |_: &usize| !confirmed_changes(&series(noise, LEAST_RUNS, &mut random)).is_empty();
            let alarms = (0..1000).filter(alarm).count();
            assert!(alarms <= 50, "{noise:?}: {alarms} of 1000 series have a false alarm");
        }
    }

    #[test]
    fn a_step_of_20_percent_is_found_within_one_run_of_its_place() {
        for noise in ALL {
            let mut random = fastrand::Rng::with_seed(3);
            let mut found = 0;
            for i in 0..SERIES {
                let mut values = series(noise, runs(i), &mut random);
                let step = random.usize(5..=values.len() - 5);
                values[step..].iter_mut().for_each(|value| *value += 1.2_f64.ln());
                found += usize::from(change_points(&values).iter().any(|at| at.abs_diff(step) <= 1));
            }
            assert!(found * 20 >= SERIES * 19, "{noise:?}: {found} of {SERIES} steps are found");
        }
    }

    #[test]
    fn every_one_of_several_steps_is_found() {
        let mut random = fastrand::Rng::with_seed(4);
        let mut values = series(Noise::Normal, 60, &mut random);
        values[20..40].iter_mut().for_each(|value| *value += 0.2);
        values[40..].iter_mut().for_each(|value| *value -= 0.2);
        assert_eq!(change_points(&values), [20, 40]);
    }

    #[test]
    fn one_look_alarms_nobody() {
        let mut random = fastrand::Rng::with_seed(6);
        let mut values = series(Noise::Normal, 40, &mut random);
        values[35..].iter_mut().for_each(|value| *value += 1.0);
        let after = |runs: usize| confirmed_changes(&values[..runs]);
        let first = (36..=40).find(|runs| !change_points(&values[..*runs]).is_empty()).unwrap();
        assert!(after(first).is_empty() && after(first + 1).is_empty(), "{first}");
        assert_eq!(after(first + CONFIRMED_BY - 1), [35]);
    }

    #[test]
    fn constant_values_outliers_and_few_values_have_no_change() {
        assert!(change_points(&[1.0; 40]).is_empty());
        let mut values = vec![1.0; 40];
        (values[7], values[20], values[39]) = (3.0, 0.2, 9.0);
        assert!(change_points(&values).is_empty());
        assert!(change_points(&[0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0, 9.0]).is_empty());
        assert!(change_points(&[]).is_empty());
    }

    #[test]
    fn a_long_series_has_a_grid_of_limited_size() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut values = series(Noise::Normal, 3000, &mut random);
        values[2900..].iter_mut().for_each(|value| *value += 0.2);
        assert_eq!(levels(&values).len(), MOST_LEVELS);
        let found = change_points(&values);
        assert!(found.len() == 1 && found[0].abs_diff(2900) <= 1, "{found:?}");
    }
}
