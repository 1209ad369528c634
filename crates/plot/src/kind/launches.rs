//! Median of each launch with its interval, and the interval over launches as a band.

use ombx_results::plot::extent;

use super::values;
use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::Frame,
    legend::{self, Sample},
    options::Options,
    series::{Curve, Curves},
    style::{self, Fill},
};

/// Number of curves from which sizes are chosen. Bands of more hide each other.
pub(crate) const MOST_CURVES: usize = 4;

pub(crate) fn draw(curves: &Curves<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let most = curves.curves.iter().map(|curve| curve.case.samples.launches.len()).max().unwrap_or(0);
    if most < 2 {
        return Err(PlotError::Unfit(
            "there is one launch only: draw samples, or measure more launches".into(),
        ));
    }
    let values = curves.curves.iter().flat_map(|curve| {
        let launches = curve.case.samples.launches.iter().filter_map(|launch| launch.row.headline());
        launches.chain(curve.case.row.headline()).flat_map(|figure| extent(&figure))
    });
    let Some(y) = Axis::values(values, options.y) else { return Err(values::no_samples()) };
    let end = most as f64 + 0.5;
    let frame = Frame {
        axes: (Axis::exact(0.5, end, 1.0), y),
        titles: ("launch".into(), curves.quantity.axis_title().into()),
        keys: legend::keys(curves.curves.iter().map(|curve| &curve.name), Sample::LineAndSymbol),
        square: false,
    };
    let drawn = frame.draw(options, |plane| {
        for (series, Curve { case, .. }) in curves.curves.iter().enumerate() {
            let Some(figure) = case.row.headline() else { continue };
            if let Some([low, high]) = figure.ci95 {
                style::faint(plane, vec![(0.5, low), (end, low), (end, high), (0.5, high)], series)?;
            }
            style::line(plane, vec![(0.5, figure.value), (end, figure.value)], series)?;
        }
        for (series, Curve { case, .. }) in curves.curves.iter().enumerate() {
            // Launches of several series stand beside each other.
            let beside = 0.5 * ((series as f64 + 0.5) / curves.curves.len() as f64 - 0.5);
            for (at, launch) in case.samples.launches.iter().enumerate() {
                let Some(figure) = launch.row.headline() else { continue };
                let x = (at + 1) as f64 + beside;
                if let Some([low, high]) = figure.ci95 {
                    style::thin_line(plane, vec![(x, low), (x, high)], style::color(series))?;
                }
                let fill = if launch.row.doubts().next().is_some() { Fill::Hollow } else { Fill::Full };
                style::symbol(plane, (x, figure.value), series, fill)?;
            }
        }
        Ok(())
    });
    Ok(drawn?.of_cases(curves.drawn))
}
