//! Histogram: the share of samples in ranges of equal width.

use ombx_results::plot::{LinearAxis, ValueAxis, counts};

use super::values;
use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::Frame,
    legend::{self, Sample},
    options::{Options, Scale},
    series::Curves,
    style,
};

/// Number of ranges.
const RANGES: usize = 40;

pub(crate) fn draw(curves: &Curves<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let all: Vec<Vec<f64>> =
        curves.curves.iter().map(|curve| values::sorted(curve.case.samples.distribution())).collect();
    let values = || all.iter().flatten().copied();
    let Some(Axis::Values(x)) = Axis::values(values(), options.x) else { return Err(values::no_samples()) };
    let [low, high] = values::range(values());
    let ends = x.ranges(low, high, RANGES);
    let shares: Vec<Vec<f64>> = all.iter().map(|values| shares(values, &ends)).collect();
    let most = shares.iter().flatten().copied().fold(0.0, f64::max);
    let y = match options.y {
        Scale::Log => Axis::values(shares.iter().flatten().copied().filter(|share| *share > 0.0), Scale::Log),
        Scale::Auto | Scale::Linear => Some(Axis::Values(ValueAxis::Linear(LinearAxis::covering(0.0, most)))),
    };
    let Some(y) = y else { return Err(values::no_samples()) };
    // A logarithmic axis has no 0: the lowest share is its lower end.
    let floor = if y.is_log() { y.ticks(2)[0] } else { 0.0 };
    let frame = Frame {
        axes: (Axis::Values(x), y),
        titles: (curves.quantity.axis_title().into(), "share of samples in %".into()),
        keys: legend::keys(curves.curves.iter().map(|curve| &curve.name), Sample::Area),
        square: false,
    };
    let drawn = frame.draw(options, |plane| {
        for (series, shares) in shares.iter().enumerate().filter(|(at, _)| !all[*at].is_empty()) {
            let outline = outline(shares, &ends, floor);
            style::faint(plane, outline.clone(), series)?;
            style::line(plane, outline, series)?;
        }
        Ok(())
    });
    Ok(drawn?.of_cases(curves.drawn))
}

/// Returns the percentage of sorted values in each range.
fn shares(values: &[f64], ends: &[f64]) -> Vec<f64> {
    let total = values.len().max(1) as f64;
    counts(values, ends).into_iter().map(|count| count as f64 / total * 100.0).collect()
}

/// Returns the outline of the bars, from the axis to the axis.
fn outline(shares: &[f64], ends: &[f64], floor: f64) -> Vec<(f64, f64)> {
    let bars = shares.iter().zip(ends.windows(2)).flat_map(|(share, ends)| {
        let height = share.max(floor);
        [(ends[0], height), (ends[1], height)]
    });
    let (first, last) = (ends[0], ends[ends.len() - 1]);
    std::iter::once((first, floor)).chain(bars).chain(std::iter::once((last, floor))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_the_axis() {
        let (values, ends) = ([1.0, 1.5, 2.5, 4.0], [1.0, 2.0, 3.0, 4.0]);
        let shares = shares(&values, &ends);
        assert_eq!(shares, [50.0, 25.0, 25.0]);
        let outline = outline(&shares, &ends, 0.0);
        assert_eq!(outline[..4], [(1.0, 0.0), (1.0, 50.0), (2.0, 50.0), (2.0, 25.0)]);
        assert_eq!(outline.last(), Some(&(4.0, 0.0)));
    }
}
