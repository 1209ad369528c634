//! Distributions of samples: cumulative, as histograms, and as a density at each message size.

use ombx_record::{stats::quantile, unit::Bytes};

use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::{self, Frame, Plane, Sample},
    options::{Options, Scale, Width},
    series::{Collected, Curves, PlottedCase, no_samples, range, sorted},
    style::{self, Fill},
    terminal::{LinearAxis, ValueAxis, counts},
};

/// Number of points of a cumulative distribution, and of values at its end that each have a point, because a tail is there.
const POINTS: usize = 200;
const LAST: usize = 20;
/// Number of ranges of a histogram.
const RANGES: usize = 40;
/// Number of points of the outline of a density on each side, and maximum number of samples that it is computed from.
const OUTLINE: usize = 60;
const MOST_SAMPLES: usize = 2000;
/// Part of a slot that its densities fill.
const FILLED: f64 = 0.86;

/// Draws the share of samples that are at most a value.
pub(crate) fn cdf(curves: &Curves<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let all = sorted_samples(curves);
    let Some(x) = Axis::values(all.iter().flatten().copied(), options.x) else { return Err(no_samples()) };
    let titles = (curves.quantity.axis_title(), "share of samples".into());
    Ok(curves.draw((x, Axis::exact(0.0, 1.0, 0.2)), titles, Sample::Line, options, |plane| {
        for (series, values) in all.iter().enumerate().filter(|(_, values)| !values.is_empty()) {
            plane.line(steps(values), series);
        }
    }))
}

/// Returns the sorted samples of each curve.
fn sorted_samples(curves: &Curves<'_>) -> Vec<Vec<f64>> {
    curves.curves.iter().map(|curve| sorted(curve.case.distribution())).collect()
}

/// Returns the points of a curve from sorted values.
fn steps(values: &[f64]) -> Vec<(f64, f64)> {
    let n = values.len();
    let every = n.div_ceil(POINTS);
    let chosen = (0..n).filter(|at| at % every == 0 || n - at <= LAST);
    let rising = chosen.map(|at| (values[at], (at + 1) as f64 / n as f64));
    std::iter::once((values[0], 0.0)).chain(rising).collect()
}

/// Draws the share of samples in ranges of equal width.
pub(crate) fn histogram(curves: &Curves<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let all = sorted_samples(curves);
    let values = || all.iter().flatten().copied();
    let Some(Axis::Values(x)) = Axis::values(values(), options.x) else { return Err(no_samples()) };
    let [low, high] = range(values());
    let ends = x.ranges(low, high, RANGES);
    let shares: Vec<Vec<f64>> = all.iter().map(|values| shares(values, &ends)).collect();
    let most = shares.iter().flatten().copied().fold(0.0, f64::max);
    let y = match options.y {
        Scale::Log => Axis::values(shares.iter().flatten().copied().filter(|share| *share > 0.0), Scale::Log),
        Scale::Auto | Scale::Linear => Some(Axis::Values(ValueAxis::Linear(LinearAxis::covering(0.0, most)))),
    };
    let Some(y) = y else { return Err(no_samples()) };
    // A logarithmic axis has no 0: the lowest share is its lower end.
    let floor = if y.is_log() { y.ticks(2)[0] } else { 0.0 };
    let titles = (curves.quantity.axis_title(), "share of samples in %".into());
    Ok(curves.draw((Axis::Values(x), y), titles, Sample::Area, options, |plane| {
        for (series, shares) in shares.iter().enumerate().filter(|(at, _)| !all[*at].is_empty()) {
            let outline = bars(shares, &ends, floor);
            plane.faint(outline.clone(), series);
            plane.line(outline, series);
        }
    }))
}

/// Returns the percentage of sorted values in each range.
fn shares(values: &[f64], ends: &[f64]) -> Vec<f64> {
    let total = values.len().max(1) as f64;
    counts(values, ends).into_iter().map(|count| count as f64 / total * 100.0).collect()
}

/// Returns the outline of the bars, from the axis to the axis.
fn bars(shares: &[f64], ends: &[f64], floor: f64) -> Vec<(f64, f64)> {
    let bars = shares.iter().zip(ends.windows(2)).flat_map(|(share, ends)| {
        let height = share.max(floor);
        [(ends[0], height), (ends[1], height)]
    });
    let (first, last) = (ends[0], ends[ends.len() - 1]);
    std::iter::once((first, floor)).chain(bars).chain(std::iter::once((last, floor))).collect()
}

/// Draws the density of the samples at each message size, with median and quartiles.
pub(crate) fn violin(collected: Collected<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let names = collected.names(options)?;
    let all = || collected.series.iter().flat_map(|series| &series.cases);
    let mut sizes: Vec<u64> = all().map(PlottedCase::bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let count = collected.series.len().max(1);
    let every = sizes.len().div_ceil((most_violins(options.width) / count).max(1)).max(1);
    let sizes: Vec<u64> = sizes.into_iter().step_by(every).collect();
    let mut chosen = Vec::new();
    for (at, series) in collected.series.iter().enumerate() {
        for case in &series.cases {
            let Some(slot) = sizes.iter().position(|bytes| *bytes == case.bytes()) else { continue };
            chosen.push((at, slot, case, sorted(case.distribution())));
        }
    }
    let drawn = (every > 1).then(|| (chosen.len(), all().count()));
    let ends = chosen.iter().flat_map(|(.., values)| values.first().into_iter().chain(values.last()));
    let Some(y) = Axis::values(ends.copied(), options.y) else { return Err(no_samples()) };
    let wide = FILLED / count as f64;
    let mut violins = Vec::new();
    for (at, slot, case, values) in &chosen {
        let middle = *slot as f64 - FILLED / 2.0 + wide * (*at as f64 + 0.5);
        violins.extend(Violin::new(case, values, &y, (middle, wide / 2.0, *at)));
    }
    let frame = Frame {
        axes: (Axis::Slots(sizes.iter().map(|bytes| Bytes(*bytes).to_string()).collect()), y),
        titles: ("message size in bytes".into(), collected.quantity.axis_title()),
        keys: frame::keys(&names, Sample::Symbol),
        square: false,
    };
    let drawing = frame.draw(options, |plane| violins.iter().for_each(|violin| violin.draw(plane)));
    Ok(Drawing { drawn, ..drawing })
}

/// Returns the maximum number of violins beside each other in a figure. More of them would be as narrow as lines.
fn most_violins(width: Width) -> usize {
    match width {
        Width::OneColumn => 24,
        Width::TwoColumns => 48,
    }
}

/// Distribution of one case.
struct Violin {
    /// Middle and half of the largest width, on the axis of slots.
    middle: f64,
    half: f64,
    series: usize,
    /// Value and density, from 0 to 1.
    density: Vec<(f64, f64)>,
    quartiles: [f64; 3],
    fill: Fill,
}

impl Violin {
    /// Returns the violin of sorted values; `None` without values.
    fn new(
        case: &PlottedCase<'_>,
        values: &[f64],
        y: &Axis,
        (middle, half, series): (f64, f64, usize),
    ) -> Option<Violin> {
        let quartiles = [quantile(values, 0.25)?, quantile(values, 0.5)?, quantile(values, 0.75)?];
        let fill = if case.row.doubts().next().is_some() { Fill::Hollow } else { Fill::Full };
        Some(Violin {
            middle,
            half,
            series,
            density: density(values, if y.is_log() { Scale::Log } else { Scale::Linear }),
            quartiles,
            fill,
        })
    }

    fn draw(&self, plane: &mut Plane<'_>) {
        let side = |sign: f64| {
            let place =
                move |(value, density): &(f64, f64)| (self.middle + sign * self.half * density, *value);
            self.density.iter().map(place).collect::<Vec<_>>()
        };
        let outline: Vec<(f64, f64)> = side(1.0).into_iter().chain(side(-1.0).into_iter().rev()).collect();
        plane.faint(outline.clone(), self.series);
        plane.thin_line(outline.iter().chain(outline.first()).copied().collect(), style::color(self.series));
        let [low, median, high] = self.quartiles;
        let thin = self.half * 0.16;
        let corners = [(self.middle - thin, low), (self.middle + thin, high)];
        plane.rectangle(corners, style::color(self.series));
        plane.symbol((self.middle, median), self.series, self.fill);
    }
}

/// Returns the density of sorted values at points between the smallest and the largest, as a part of the largest density.
///
/// The kernel is a normal distribution, on the logarithms if the axis is logarithmic. Its width is that of Silverman (Density Estimation for
/// Statistics and Data Analysis, 1986, 3.4.2), but at least half the distance of two points, between which values would be lost.
fn density(values: &[f64], scale: Scale) -> Vec<(f64, f64)> {
    let is_log = scale == Scale::Log;
    let to = |x: f64| if is_log { x.ln() } else { x };
    let from = |x: f64| if is_log { x.exp() } else { x };
    let every = values.len().div_ceil(MOST_SAMPLES).max(1);
    let points: Vec<f64> = values.iter().step_by(every).map(|value| to(*value)).collect();
    let (low, high) = (to(values[0]), to(values[values.len() - 1]));
    let n = points.len() as f64;
    let mean = points.iter().sum::<f64>() / n;
    let deviation = (points.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    let quartile = |q: f64| quantile(&points, q).unwrap_or_default();
    let spread = (quartile(0.75) - quartile(0.25)) / 1.34;
    let spread = if spread > 0.0 { spread.min(deviation) } else { deviation };
    let width = (0.9 * spread * n.powf(-0.2)).max((high - low) / OUTLINE as f64 / 2.0);
    if high <= low || width <= 0.0 {
        return vec![(values[0], 1.0)];
    }
    let at = |x: f64| points.iter().map(|p| (-0.5 * ((x - p) / width).powi(2)).exp()).sum::<f64>();
    let curve: Vec<(f64, f64)> = (0..OUTLINE)
        .map(|i| low + (high - low) * i as f64 / (OUTLINE - 1) as f64)
        .map(|x| (from(x), at(x)))
        .collect();
    let most = curve.iter().map(|(_, density)| *density).fold(f64::MIN_POSITIVE, f64::max);
    curve.into_iter().map(|(value, density)| (value, density / most)).collect()
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

    #[test]
    fn bars_stand_on_the_axis() {
        let (values, ends) = ([1.0, 1.5, 2.5, 4.0], [1.0, 2.0, 3.0, 4.0]);
        let shares = shares(&values, &ends);
        assert_eq!(shares, [50.0, 25.0, 25.0]);
        let outline = bars(&shares, &ends, 0.0);
        assert_eq!(outline[..4], [(1.0, 0.0), (1.0, 50.0), (2.0, 50.0), (2.0, 25.0)]);
        assert_eq!(outline.last(), Some(&(4.0, 0.0)));
    }

    #[test]
    fn a_density_is_largest_where_most_values_are() {
        let mut values: Vec<f64> = (0..1000).map(|i| 10.0 + f64::from(i % 10) * 0.01).collect();
        values.extend((0..100).map(|i| 12.0 + f64::from(i % 10) * 0.01));
        values.sort_by(f64::total_cmp);
        for scale in [Scale::Linear, Scale::Log] {
            let density = density(&values, scale);
            let peak = density.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            let near =
                |x: f64| density.iter().min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs())).unwrap().1;
            assert!((10.0..10.2).contains(&peak.0) && peak.1 == 1.0, "{density:?}");
            assert!((0.03..0.4).contains(&near(12.05)) && near(11.0) < 0.01, "{density:?}");
        }
        assert_eq!(density(&[3.0; 9], Scale::Linear), [(3.0, 1.0)]);
    }
}
