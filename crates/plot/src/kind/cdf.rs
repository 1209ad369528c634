//! Cumulative distribution: the share of samples that are at most a value.

use super::values;
use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::Frame,
    legend::{self, Sample},
    options::Options,
    series::Curves,
    style,
};

/// Number of points of a curve, and of single values at its end, where a tail is.
const POINTS: usize = 200;
const LAST: usize = 20;

pub(crate) fn draw(curves: &Curves<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let sorted: Vec<Vec<f64>> =
        curves.curves.iter().map(|curve| values::sorted(curve.case.samples.distribution())).collect();
    let Some(x) = Axis::values(sorted.iter().flatten().copied(), options.x) else {
        return Err(values::no_samples());
    };
    let frame = Frame {
        axes: (x, Axis::exact(0.0, 1.0, 0.2)),
        titles: (curves.quantity.axis_title().into(), "share of samples".into()),
        keys: legend::keys(curves.curves.iter().map(|curve| &curve.name), Sample::Line),
        square: false,
    };
    let drawn = frame.draw(options, |plane| {
        for (series, values) in sorted.iter().enumerate().filter(|(_, values)| !values.is_empty()) {
            style::line(plane, steps(values), series)?;
        }
        Ok(())
    });
    Ok(drawn?.of_cases(curves.drawn))
}

/// Returns the points of a curve from sorted values.
fn steps(values: &[f64]) -> Vec<(f64, f64)> {
    let n = values.len();
    let every = n.div_ceil(POINTS);
    let chosen = (0..n).filter(|at| at % every == 0 || n - at <= LAST);
    let rising = chosen.map(|at| (values[at], (at + 1) as f64 / n as f64));
    std::iter::once((values[0], 0.0)).chain(rising).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_rises_from_0_to_1_and_keeps_its_tail() {
        let values: Vec<f64> = (1..=10_000).map(f64::from).collect();
        let steps = steps(&values);
        assert!(steps.len() <= POINTS + LAST + 1);
        assert_eq!((steps[0], *steps.last().unwrap()), ((1.0, 0.0), (10_000.0, 1.0)));
        assert!(steps.windows(2).all(|pair| pair[0].1 < pair[1].1));
        assert!(steps.contains(&(9_990.0, 0.999)));
    }
}
