//! Times of ping-pongs by message size as symbols, the lines of the model through them, and the sizes between which lines change.

use ombx_core::result::Headline;
use ombx_results::{
    model::{self, Fit, Segment, Switch},
    plot::extent,
};

use super::curve::{bands, point};
use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::Frame,
    legend::{self, Sample},
    options::{Options, Scale},
    series::{Collected, Series},
    style::{self, Fill, INK},
};

/// Number of points that draw a line, which a logarithmic axis bends.
const POINTS: i32 = 40;

/// One ping-pong: its points and its lines.
type Fitted = (Vec<(f64, Headline, Fill)>, Fit);

pub(crate) fn draw(collected: Collected<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let names = collected.names(options)?;
    let fitted: Option<Vec<Fitted>> = collected.series.iter().map(fit).collect();
    let Some(all) = fitted else {
        return Err(PlotError::Unfit(
            "a model needs rows of p2p.latency or sockets.latency of at least 3 message sizes: choose them"
                .into(),
        ));
    };
    let points = || all.iter().flat_map(|(points, _)| points);
    let x = Axis::sizes(points().map(|(bytes, ..)| *bytes as u64), options.x);
    let scale = if options.y == Scale::Auto { Scale::Log } else { options.y };
    let y = Axis::values(points().flat_map(|(_, figure, _)| extent(figure)), scale);
    let (Some(x), Some(y)) = (x, y) else {
        return Err(PlotError::Unfit("there are no measured rows to draw".into()));
    };
    let [low, high] = [f64::min, f64::max].map(|pick: fn(f64, f64) -> f64| {
        points().flat_map(|(_, figure, _)| extent(figure)).reduce(pick).unwrap_or(1.0)
    });
    let frame = Frame {
        axes: (x, y),
        titles: ("message size in bytes".into(), collected.quantity.axis_title().into()),
        keys: legend::keys(&names, Sample::LineAndSymbol),
        square: false,
    };
    frame.draw(options, |plane| {
        for (series, (points, fit)) in all.iter().enumerate() {
            for band in bands(points) {
                style::faint(plane, band, series)?;
            }
            for switch in &fit.switches {
                let at = middle(switch);
                style::thin_line(plane, vec![(at, low), (at, high)], INK)?;
            }
            for segment in &fit.segments {
                style::line(plane, outline(segment), series)?;
            }
            for (bytes, figure, fill) in points {
                style::symbol(plane, (*bytes, figure.value), series, *fill)?;
            }
        }
        Ok(())
    })
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
