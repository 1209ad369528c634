//! The kinds of figures, each a function from series to a drawing.

pub(crate) mod curve;
pub(crate) mod distribution;

use ombx_links::verdict::LinkSweep;
use ombx_record::{unit::Bytes, verdict::Component};

use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::{Frame, Key, Sample},
    options::{MAX_SERIES, Options},
    series::{self, Abscissa, Curve, Curves, Input, no_samples, range, sorted},
    style::{self, Fill, GRID, SHADES},
    terminal::{HeatMap, Shades, extent},
};

/// Number of curves of samples from which sizes are chosen. More of them hide each other.
const MOST_OF_SAMPLES: usize = 3;
/// Number of curves of launches from which sizes are chosen. Bands of more hide each other.
const MOST_OF_LAUNCHES: usize = 4;
/// Samples up to which each one is drawn.
const MOST_SYMBOLS: usize = 120;
/// Number of groups of more samples. A group is drawn as its range and its median.
const GROUPS: usize = 240;

/// What a figure shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Medians by message size, with their intervals.
    Curve,
    /// Medians and 99th percentiles of requests by the rate at which they were offered.
    Rate,
    /// Medians by the number of earlier messages.
    Alignment,
    /// Cumulative distribution of the samples.
    Cdf,
    /// Histogram of the samples.
    Histogram,
    /// Density of the samples by message size, with median and quartiles.
    Violin,
    /// Samples in the order of measurement.
    Samples,
    /// Median of each launch, with the interval over launches as a band.
    Launches,
    /// Medians of ping-pongs by message size, with the lines of the model and the places where they change.
    Model,
}

/// Draws a figure of rows.
///
/// # Errors
/// The rows do not fit the kind: there are none, they have different metrics, or there are too many.
pub fn draw(kind: Kind, inputs: &[Input<'_>], options: &Options<'_>) -> Result<Drawing, PlotError> {
    let abscissa = match kind {
        Kind::Rate => Abscissa::OfferedRate,
        Kind::Alignment => Abscissa::Alignment,
        _ => Abscissa::Size,
    };
    let series = series::collect(inputs, abscissa, options)?;
    if kind != Kind::Curve && options.quantity.is_some() {
        return Err(PlotError::Unfit(
            "samples have the unit of their rows: only a curve shows another quantity".into(),
        ));
    }
    match kind {
        Kind::Model => curve::draw_model(series, options),
        Kind::Curve | Kind::Rate | Kind::Alignment => curve::draw(series, options),
        Kind::Violin => distribution::violin(series, options),
        Kind::Cdf => distribution::cdf(&series::by_size(series, MAX_SERIES, options)?, options),
        Kind::Histogram => distribution::histogram(&series::by_size(series, MAX_SERIES, options)?, options),
        Kind::Samples => samples(&series::by_size(series, MOST_OF_SAMPLES, options)?, options),
        Kind::Launches => launches(&series::by_size(series, MOST_OF_LAUNCHES, options)?, options),
    }
}

/// Draws the median of each launch with its interval, and the interval over launches as a band.
fn launches(curves: &Curves<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let most = curves.curves.iter().map(|curve| curve.case.samples.launches.len()).max().unwrap_or(0);
    if most < 2 {
        return Err(PlotError::Unfit(
            "there is one launch only: draw samples, or measure more launches".into(),
        ));
    }
    let values = curves.curves.iter().flat_map(|curve| {
        let case = &curve.case;
        let launches =
            case.samples.launches.iter().filter_map(move |launch| case.quantity.headline(&launch.row));
        launches.chain([case.headline]).flat_map(|figure| extent(&figure))
    });
    let Some(y) = Axis::values(values, options.y) else { return Err(no_samples()) };
    let end = most as f64 + 0.5;
    let titles = ("launch".into(), curves.quantity.axis_title());
    let axes = (Axis::exact(0.5, end, 1.0), y);
    Ok(curves.draw(axes, titles, Sample::LineAndSymbol, options, |plane| {
        for (series, Curve { case, .. }) in curves.curves.iter().enumerate() {
            let figure = case.headline;
            if let Some([low, high]) = figure.ci95 {
                plane.faint(vec![(0.5, low), (end, low), (end, high), (0.5, high)], series);
            }
            plane.line(vec![(0.5, figure.value), (end, figure.value)], series);
        }
        for (series, Curve { case, .. }) in curves.curves.iter().enumerate() {
            // Launches of several series stand beside each other.
            let beside = 0.5 * ((series as f64 + 0.5) / curves.curves.len() as f64 - 0.5);
            for (at, launch) in case.samples.launches.iter().enumerate() {
                let Some(figure) = case.quantity.headline(&launch.row) else { continue };
                let x = (at + 1) as f64 + beside;
                if let Some(ends) = figure.ci95 {
                    plane.interval(x, ends, series);
                }
                let fill = if launch.row.doubts().next().is_some() { Fill::Hollow } else { Fill::Full };
                plane.symbol((x, figure.value), series, fill);
            }
        }
    }))
}

/// Draws samples in the order of measurement, launch after launch.
fn samples(curves: &Curves<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let all: Vec<Vec<f64>> = curves.curves.iter().map(|curve| curve.case.batches()).collect();
    let longest = all.iter().map(Vec::len).max().unwrap_or(0);
    let Some(y) = Axis::values(all.iter().flatten().copied(), options.y) else {
        return Err(no_samples());
    };
    let titles = ("sample, in the order of measurement".into(), curves.quantity.axis_title());
    let axes = (Axis::exact(0.0, longest.max(2) as f64, step(longest)), y);
    Ok(curves.draw(axes, titles, Sample::Band, options, |plane| {
        if let [only] = &curves.curves[..] {
            let range = range(all[0].iter().copied());
            for start in starts(
                &only.case.samples.launches.iter().map(|launch| launch.batches.len()).collect::<Vec<_>>(),
            ) {
                plane.thin_line(vec![(start, range[0]), (start, range[1])], GRID);
            }
        }
        for (series, values) in all.iter().enumerate() {
            if values.len() <= MOST_SYMBOLS {
                for (at, value) in values.iter().enumerate() {
                    plane.symbol(((at + 1) as f64, *value), series, Fill::Hollow);
                }
                continue;
            }
            let groups = groups(values);
            let low = groups.iter().map(|group| (group.at, group.low));
            let high = groups.iter().rev().map(|group| (group.at, group.high));
            plane.faint(low.chain(high).collect(), series);
            // Dashes of a restless line are not visible.
            plane.thin_line(
                groups.iter().map(|group| (group.at, group.median)).collect(),
                style::color(series),
            );
        }
    }))
}

/// Consecutive samples.
struct Group {
    /// Number of the middle sample, from 1.
    at: f64,
    low: f64,
    median: f64,
    high: f64,
}

fn groups(values: &[f64]) -> Vec<Group> {
    let each = values.len().div_ceil(GROUPS);
    let group = |(number, chunk): (usize, &[f64])| {
        let sorted = sorted(chunk.to_vec());
        let at = (number * each) as f64 + (chunk.len() + 1) as f64 / 2.0;
        Group { at, low: sorted[0], median: sorted[sorted.len() / 2], high: sorted[sorted.len() - 1] }
    };
    values.chunks(each).enumerate().map(group).collect()
}

/// Returns where each launch but the first starts.
fn starts(lengths: &[usize]) -> Vec<f64> {
    let ends = lengths.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum as f64 + 0.5)
    });
    ends.take(lengths.len().saturating_sub(1)).collect()
}

/// Returns a round distance of ticks for this many samples.
fn step(samples: usize) -> f64 {
    let power = 10f64.powf((samples.max(10) as f64 / 5.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|step| samples as f64 / step <= 6.0)
        .unwrap_or(power)
}

/// Maximum number of cells per side. With more ranks, a cell is the slowest time of a block of ranks: of a link, or of a row if the sweep is
/// sampled.
const MAX_CELLS: usize = 128;

/// Draws the links of one message size as a heat map; without a size, of the largest.
///
/// # Errors
/// There are no links of this size.
pub fn heat_map(
    sweep: &LinkSweep,
    slow: &[Component],
    bytes: Option<u64>,
    options: &Options<'_>,
) -> Result<Drawing, PlotError> {
    let averaged = sweep.averaged();
    let largest = averaged.iter().map(|times| times.bytes).max();
    let Some(times) = averaged.iter().find(|times| Some(times.bytes) == bytes.or(largest)) else {
        let sizes: Vec<String> = averaged.iter().map(|times| Bytes(times.bytes).to_string()).collect();
        let have = if sizes.is_empty() {
            "there are none".into()
        } else {
            format!("there are {}", sizes.join(", "))
        };
        return Err(PlotError::Unfit(format!("a heat map needs links of one message size: {have}")));
    };
    let map = HeatMap::new(times, &sweep.hosts, MAX_CELLS, slow);
    let Some(shades) = Shades::new(map.measured().map(|(.., cell)| cell.ns), SHADES.len()) else {
        return Err(PlotError::Unfit("no link was measured".into()));
    };
    let slowest =
        if map.block > 1 { format!(", slowest of {0} x {0} ranks", map.block) } else { String::new() };
    let title = Key {
        text: format!("time in µs at {} bytes{slowest}, from", Bytes(times.bytes)),
        sample: Sample::None,
    };
    let bounds = SHADES.iter().zip(shades.lower_bounds());
    let mut keys = vec![title];
    keys.extend(bounds.map(|(shade, ns)| Key { text: brief(ns / 1e3), sample: Sample::Shade(*shade) }));
    let names = |line: usize| sweep.hosts.label(map.ranks(line)[0]);
    let frame = Frame {
        axes: (
            Axis::Slots((0..map.side).map(names).collect()),
            Axis::ReversedSlots((0..map.side).map(names).collect()),
        ),
        titles: if times.directed { ("to".into(), "from".into()) } else { ("between".into(), "and".into()) },
        keys,
        square: true,
    };
    let corners = |from: usize, to: usize| {
        let (from, to) = (from as f64, to as f64);
        [(to - 0.5, from - 0.5), (to + 0.5, from + 0.5)]
    };
    let end = map.side as f64 - 0.5;
    Ok(frame.draw(options, |plane| {
        // A rank and itself, and links that were not measured.
        plane.rectangle([(-0.5, -0.5), (end, end)], GRID);
        for (from, to, cell) in map.measured() {
            plane.rectangle(corners(from, to), SHADES[shades.shade(cell.ns)]);
        }
        for (from, to, _) in
            map.measured().filter(|(from, to, _)| map.is_named(*from, *to, &sweep.hosts, slow))
        {
            plane.outline(corners(from, to));
        }
    }))
}

/// Formats a time with about three digits.
fn brief(us: f64) -> String {
    match us {
        us if us >= 100.0 => format!("{us:.0}"),
        us if us >= 10.0 => format!("{us:.1}"),
        us if us >= 1.0 => format!("{us:.2}"),
        us => format!("{us:.3}"),
    }
}

#[cfg(test)]
mod order_tests {
    use super::*;

    #[test]
    fn groups_keep_the_extremes() {
        let mut values = vec![1.0; 10_000];
        values[5000] = 99.0;
        let groups = groups(&values);
        assert!(groups.len() <= GROUPS);
        let high: Vec<&Group> = groups.iter().filter(|group| group.high > 50.0).collect();
        assert_eq!(high.len(), 1);
        assert!((high[0].at - 5000.0).abs() < 50.0 && high[0].median == 1.0);
    }

    #[test]
    fn launches_are_separated_and_ticks_are_round() {
        assert_eq!(starts(&[10, 20, 5]), [10.5, 30.5]);
        assert!(starts(&[10]).is_empty());
        assert_eq!([10, 100, 1234, 60_000].map(step), [2.0, 20.0, 500.0, 10_000.0]);
    }
}
