//! Two groups of launches.

use ombx_core::{result::LaunchMode, stats::median};

/// Minimum number of launches in which groups are distinguished.
const LEAST_LAUNCHES: usize = 9;
/// Minimum number of launches of a group.
const LEAST_IN_GROUP: usize = 2;
/// Minimum gap between the groups as a part of the median.
const LEAST_GAP: f64 = 0.05;
/// The gap must exceed the widest group by this factor. In one normal group of 9 to 30 launches it does so in fewer than 1 of 100.
const GAP_TO_WIDTH: f64 = 1.5;

/// Returns the two groups of the launches, the faster first; `None` if there is only one.
pub(super) fn modes(medians: &[f64]) -> Option<[LaunchMode; 2]> {
    let n = medians.len();
    if n < LEAST_LAUNCHES {
        return None;
    }
    let mut sorted = medians.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gaps = (LEAST_IN_GROUP..=n - LEAST_IN_GROUP).map(|at| (sorted[at] - sorted[at - 1], at));
    let (gap, at) = gaps.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (fast, slow) = sorted.split_at(at);
    let width = |group: &[f64]| group[group.len() - 1] - group[0];
    let separate = gap > LEAST_GAP * median(&sorted)? && gap > GAP_TO_WIDTH * width(fast).max(width(slow));
    let mode =
        |group: &[f64]| Some(LaunchMode { median_ns: median(group)?, share: group.len() as f64 / n as f64 });
    separate.then(|| Some([mode(fast)?, mode(slow)?])).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_have_their_medians_and_shares() {
        let medians = [100.0, 180.0, 101.0, 99.0, 182.0, 100.0, 100.0, 181.0, 102.0];
        let [fast, slow] = modes(&medians).unwrap();
        assert_eq!((fast.median_ns, slow.median_ns), (100.0, 181.0));
        assert!((fast.share - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(modes(&medians[..8]), None);
    }

    #[test]
    fn one_group_has_no_modes() {
        let even: Vec<f64> = (0..15).map(|i| 100.0 + f64::from(i)).collect();
        assert_eq!(modes(&even), None);
        // A single launch far away is not a group.
        let mut outlier = vec![100.0; 14];
        outlier.push(300.0);
        assert_eq!(modes(&outlier), None);
        assert_eq!(modes(&[100.0; 9]), None);
    }
}
