//! Medians by message size, or times by offered rate: lines, symbols, and intervals as bands.

use ombx_core::result::Headline;
use ombx_results::plot::extent;

use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::Frame,
    legend::{self, Sample},
    options::{Options, Scale},
    series::{Abscissa, Case, Collected},
    style::{self, Fill},
};

pub(crate) fn draw(collected: Collected<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let names = collected.names(options)?;
    let curves: Vec<Vec<(f64, Headline, Fill)>> =
        collected.series.iter().map(|series| series.cases.iter().map(point).collect()).collect();
    let points = || curves.iter().flatten();
    let x = match collected.abscissa {
        Abscissa::Size => Axis::sizes(points().map(|(bytes, ..)| *bytes as u64), options.x),
        Abscissa::OfferedRate => {
            let scale = if options.x == Scale::Auto { Scale::Log } else { options.x };
            Axis::values(points().map(|(rate, ..)| *rate), scale)
        }
    };
    // A curve shows factors between sizes, so that Auto is logarithmic.
    let scale = if options.y == Scale::Auto { Scale::Log } else { options.y };
    let y = Axis::values(points().flat_map(|(_, figure, _)| extent(figure)), scale);
    let several =
        |curve: &Vec<(f64, Headline, Fill)>| curve.first().map(|p| p.0) != curve.last().map(|p| p.0);
    let (Some(x), Some(y), true) = (x, y, curves.iter().any(several)) else {
        return Err(PlotError::Unfit(match collected.abscissa {
            Abscissa::Size => "a curve needs rows of several message sizes: draw a violin instead".into(),
            Abscissa::OfferedRate => "a curve needs rows of several rates: measure more with --rate".into(),
        }));
    };
    let title = match collected.abscissa {
        Abscissa::Size => "message size in bytes",
        Abscissa::OfferedRate => "offered requests per second",
    };
    let frame = Frame {
        axes: (x, y),
        titles: (title.into(), collected.quantity.axis_title().into()),
        keys: legend::keys(&names, Sample::LineAndSymbol),
        square: false,
    };
    frame.draw(options, |plane| {
        for (series, curve) in curves.iter().enumerate() {
            for band in bands(curve) {
                style::faint(plane, band, series)?;
            }
        }
        for (series, curve) in curves.iter().enumerate() {
            style::line(
                plane,
                curve.iter().map(|(bytes, figure, _)| (*bytes, figure.value)).collect(),
                series,
            )?;
            for (bytes, figure, fill) in curve {
                style::symbol(plane, (*bytes, figure.value), series, *fill)?;
            }
        }
        Ok(())
    })
}

/// Returns the position on the horizontal axis, the figure, and how the symbol of a row is filled.
pub(super) fn point(case: &Case<'_>) -> (f64, Headline, Fill) {
    let fill = if case.row.doubts().next().is_some() { Fill::Hollow } else { Fill::Full };
    (case.x, case.figure, fill)
}

/// Returns the outlines of the bands: one for each sequence of points with intervals.
pub(super) fn bands(curve: &[(f64, Headline, Fill)]) -> Vec<Vec<(f64, f64)>> {
    let parts = curve.split(|(_, figure, _)| figure.ci95.is_none()).filter(|part| part.len() > 1);
    let side = |part: &[(f64, Headline, Fill)], end: usize| {
        part.iter().filter_map(|(bytes, figure, _)| Some((*bytes, figure.ci95?[end]))).collect::<Vec<_>>()
    };
    parts.map(|part| side(part, 1).into_iter().chain(side(part, 0).into_iter().rev()).collect()).collect()
}
