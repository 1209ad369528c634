//! The kinds of figures, each a function from series to a drawing.

pub(crate) mod cdf;
pub(crate) mod curve;
pub(crate) mod heat_map;
pub(crate) mod histogram;
pub(crate) mod launches;
pub(crate) mod samples;
pub(crate) mod violin;

use crate::PlotError;

/// Returns values in ascending order.
fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the smallest and the largest value.
fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::MAX, f64::MIN], |[low, high], value| [low.min(value), high.max(value)])
}

fn no_samples() -> PlotError {
    PlotError::Unfit(
        "the rows have no raw samples: read a result file that ombx wrote, not a part of one".into(),
    )
}
