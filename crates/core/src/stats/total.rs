//! Estimates of total time over total work, for the aggregate of several pairs.

use super::{Summary, order_bounds, sorted};

/// Number of groups of consecutive samples from which the interval is estimated.
const GROUPS: usize = 12;
/// Probability of the median of the groups.
const HALF: f64 = 0.5;

impl Summary {
    /// Summarises samples like [`Summary::of`], except that the headline (the field `median`) is their mean.
    ///
    /// The mean is total time over total work: a pause of one pair counts with its length, however rare it is. The interval is
    /// that of the median of 12 means of consecutive samples, and extends to the mean if that lies outside.
    pub fn of_total(samples: &[f64]) -> Option<Summary> {
        let summary = Summary::of(samples)?;
        let (n, groups) = (samples.len(), samples.len().min(GROUPS));
        let mean = |group: usize| {
            let part = &samples[group * n / groups..(group + 1) * n / groups];
            part.iter().sum::<f64>() / part.len() as f64
        };
        let means = sorted(&(0..groups).map(mean).collect::<Vec<f64>>());
        let ci95 = order_bounds(groups, HALF)
            .map(|(low, high)| [means[low - 1].min(summary.mean), means[high - 1].max(summary.mean)]);
        Some(Summary { median: summary.mean, ci95, ..summary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_is_the_total_and_lies_in_its_interval() {
        // Two of 60 samples contain a pause.
        let times: Vec<f64> = (0..60).map(|i| if i % 30 == 17 { 300.0 } else { 10.0 }).collect();
        let summary = Summary::of_total(&times).unwrap();
        let [low, high] = summary.ci95.unwrap();
        assert_eq!((summary.n, summary.median), (60, (58.0 * 10.0 + 600.0) / 60.0));
        assert!((low, high) == (10.0, summary.median), "{low} {high}");
        assert_eq!(Summary::of_total(&[1.0, 2.0, 3.0, 4.0, 5.0, 9.0]).unwrap().ci95, Some([1.0, 9.0]));
        assert_eq!(Summary::of_total(&[1.0; 5]).unwrap().ci95, None);
        assert_eq!(Summary::of_total(&[]), None);
    }
}
