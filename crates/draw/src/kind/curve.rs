//! Medians by message size, offered rate or alignment, with their intervals, and the lines of the model through them.

use ombx_compare::model::{self, Fit, Segment, Switch};
use ombx_record::result::Headline;

use crate::{
    axis::{Axis, Unit},
    drawing::Drawing,
    error::PlotError,
    frame::{self, Frame, Plane, Sample},
    options::{Options, Scale},
    series::{Abscissa, Collected, PlottedCase, Series},
    style::{Fill, INK},
    terminal::extent,
};

/// Number of points that draw a line of the model, which a logarithmic axis bends.
const POINTS: i32 = 40;

/// A row at its place on the horizontal axis, and how its symbol is filled.
type Point = (f64, Headline, Fill);
/// One ping-pong: its points and its lines.
type Fitted = (Vec<Point>, Fit);

/// Draws a curve for each series.
pub(crate) fn draw(collected: Collected<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let curves: Vec<Vec<Point>> =
        collected.series.iter().map(|series| series.cases.iter().map(point).collect()).collect();
    let several = |curve: &Vec<Point>| curve.first().map(|p| p.0) != curve.last().map(|p| p.0);
    if !curves.iter().any(several) {
        return Err(PlotError::Unfit(match collected.abscissa {
            Abscissa::Size => "a curve needs rows of several message sizes: draw a violin instead".into(),
            Abscissa::OfferedRate => "a curve needs rows of several rates: measure more with --rate".into(),
            Abscissa::Alignment => {
                "a curve needs rows of several alignments: measure with --alignment 0..63".into()
            }
        }));
    }
    let frame = frame(&collected, curves.iter().flatten(), options)?;
    Ok(frame.draw(options, |plane| {
        for (series, curve) in curves.iter().enumerate() {
            plane.line(curve.iter().map(|(x, figure, _)| (*x, figure.value)).collect(), series);
            points(plane, curve, series);
        }
    }))
}

/// Draws the times of ping-pongs as symbols, the lines of the model through them, and the sizes between which lines change.
pub(crate) fn draw_model(collected: Collected<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let fitted: Option<Vec<Fitted>> = collected.series.iter().map(fit).collect();
    let Some(all) = fitted else {
        return Err(PlotError::Unfit(
            "a model needs rows of p2p.latency or sockets.latency of at least 3 message sizes: choose them"
                .into(),
        ));
    };
    let of_rows = || all.iter().flat_map(|(points, _)| points);
    let [low, high] = [f64::min, f64::max].map(|pick: fn(f64, f64) -> f64| {
        of_rows().flat_map(|(_, figure, _)| extent(figure)).reduce(pick).unwrap_or(1.0)
    });
    let frame = frame(&collected, of_rows(), options)?;
    Ok(frame.draw(options, |plane| {
        for (series, (of_rows, fit)) in all.iter().enumerate() {
            for switch in &fit.switches {
                let at = middle(switch);
                plane.thin_line(vec![(at, low), (at, high)], INK);
            }
            for segment in &fit.segments {
                plane.line(outline(segment), series);
            }
            points(plane, of_rows, series);
        }
    }))
}

/// Returns the axes, which are logarithmic unless the user chose others: a curve shows factors.
fn frame<'a>(
    collected: &Collected<'_>,
    points: impl Iterator<Item = &'a Point> + Clone,
    options: &Options<'_>,
) -> Result<Frame, PlotError> {
    let (unit, title) = match collected.abscissa {
        Abscissa::Size => (Unit::Bytes, "message size in bytes"),
        Abscissa::OfferedRate => (Unit::Number, "offered requests per second"),
        Abscissa::Alignment => (Unit::Number, "earlier messages, from where the row started"),
    };
    // Rings are periodic, and their levels lie within a factor of two.
    let usual = if collected.abscissa == Abscissa::Alignment { Scale::Linear } else { Scale::Log };
    let [across, scale] =
        [options.x, options.y].map(|chosen| if chosen == Scale::Auto { usual } else { chosen });
    let x = Axis::points(points.clone().map(|(x, ..)| *x), unit, across);
    let y = Axis::values(points.flat_map(|(_, figure, _)| extent(figure)), scale);
    let (Some(x), Some(y)) = (x, y) else {
        return Err(PlotError::Unfit("there are no measured rows to draw".into()));
    };
    Ok(Frame {
        axes: (x, y),
        titles: (title.into(), collected.quantity.axis_title()),
        keys: frame::keys(&collected.names(options)?, Sample::LineAndSymbol),
        square: false,
    })
}

/// Draws intervals and symbols.
fn points(plane: &mut Plane<'_>, points: &[Point], series: usize) {
    for (x, figure, fill) in points {
        if let Some(ends) = figure.ci95 {
            plane.interval(*x, ends, series);
        }
        plane.symbol((*x, figure.value), series, *fill);
    }
}

fn point(case: &PlottedCase<'_>) -> Point {
    let fill = if case.row.doubts().next().is_some() { Fill::Hollow } else { Fill::Full };
    (case.x, case.headline, fill)
}

/// Returns the points and lines of a series; `None` if it is no ping-pong of several sizes.
fn fit(series: &Series<'_>) -> Option<Fitted> {
    let samples: Vec<_> = series.cases.iter().map(|case| case.samples).collect();
    let fit = model::one_way(&samples)?;
    Some((series.cases.iter().filter(|case| case.bytes() > 0).map(point).collect(), fit))
}

/// Returns the size in the middle of a switch on a logarithmic axis.
fn middle(switch: &Switch) -> f64 {
    let [before, after] = switch.between.map(|bytes| bytes as f64);
    (before * after).sqrt()
}

/// Returns points of the line of a segment.
fn outline(segment: &Segment) -> Vec<(f64, f64)> {
    let [from, to] = segment.bytes.map(|bytes| bytes as f64);
    let size = |k: i32| from * (to / from).powf(f64::from(k) / f64::from(POINTS));
    (0..=POINTS).map(size).map(|bytes| (bytes, segment.time_us(bytes))).filter(|(_, us)| *us > 0.0).collect()
}
