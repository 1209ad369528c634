//! Values of samples: their order, their range, and the error without any.

use crate::error::PlotError;

/// Returns values in ascending order.
pub(super) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the smallest and the largest value.
pub(super) fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::MAX, f64::MIN], |[low, high], value| [low.min(value), high.max(value)])
}

pub(super) fn no_samples() -> PlotError {
    PlotError::Unfit(
        "the rows have no raw samples: read a result file that ombx wrote, not a part of one".into(),
    )
}
