//! Density of the samples at each message size, with median and quartiles.

use ombx_core::unit::Bytes;
use plotters::element::Rectangle;
use plotters::style::Color;

use super::values;
use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::Frame,
    legend::{self, Sample},
    options::{Options, Width},
    series::{Case, Collected},
    style::{self, Drawn, Fill, Plane},
};

/// Points of the outline on each side, and samples that a density is computed from.
const POINTS: usize = 60;
const MOST_SAMPLES: usize = 2000;
/// Part of a slot that its violins fill.
const FILLED: f64 = 0.86;

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

pub(crate) fn draw(collected: Collected<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let names = collected.names(options)?;
    let all = || collected.series.iter().flat_map(|series| &series.cases);
    let mut sizes: Vec<u64> = all().map(Case::bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let count = sizes.len();
    // Violins that are narrower than this are lines.
    let most = if options.width == Width::OneColumn { 24 } else { 48 } / collected.series.len().max(1);
    let most = most.max(1);
    let every = count.div_ceil(most);
    let sizes: Vec<u64> = sizes.into_iter().step_by(every).collect();
    let drawn =
        (every > 1).then(|| (all().filter(|case| sizes.contains(&case.bytes())).count(), all().count()));
    let values = |case: &Case<'_>| values::sorted(case.samples.distribution());
    let ends = all().filter(|case| sizes.contains(&case.bytes())).flat_map(|case| {
        let values = values(case);
        [values.first().copied(), values.last().copied()].into_iter().flatten().collect::<Vec<_>>()
    });
    let ends: Vec<f64> = ends.collect();
    let Some(y) = Axis::values(ends.iter().copied(), options.y) else { return Err(values::no_samples()) };
    let mut violins = Vec::new();
    let wide = FILLED / collected.series.len() as f64;
    for (at, series) in collected.series.iter().enumerate() {
        for case in &series.cases {
            let Some(slot) = sizes.iter().position(|bytes| *bytes == case.bytes()) else { continue };
            let middle = slot as f64 - FILLED / 2.0 + wide * (at as f64 + 0.5);
            violins.extend(Violin::of(case, &values(case), &y, (middle, wide / 2.0, at)));
        }
    }
    let frame = Frame {
        axes: (Axis::Slots(sizes.iter().map(|bytes| Bytes(*bytes).to_string()).collect()), y),
        titles: ("message size in bytes".into(), collected.quantity.axis_title().into()),
        keys: legend::keys(&names, Sample::Symbol),
        square: false,
    };
    let figure = frame.draw(options, |plane| violins.iter().try_for_each(|violin| violin.draw(plane)))?;
    Ok(figure.of_cases(drawn))
}

impl Violin {
    /// Returns the violin of sorted values; `None` without values.
    fn of(
        case: &Case<'_>,
        values: &[f64],
        y: &Axis,
        (middle, half, series): (f64, f64, usize),
    ) -> Option<Violin> {
        values.first()?;
        let at = |part: f64| values[((values.len() - 1) as f64 * part).round() as usize];
        let fill = if case.row.doubts().next().is_some() { Fill::Hollow } else { Fill::Full };
        let quartiles = [at(0.25), at(0.5), at(0.75)];
        Some(Violin { middle, half, series, density: density(values, y.is_log()), quartiles, fill })
    }

    fn draw(&self, plane: &Plane<'_>) -> Drawn {
        let side = |sign: f64| {
            let place =
                move |(value, density): &(f64, f64)| (self.middle + sign * self.half * density, *value);
            self.density.iter().map(place).collect::<Vec<_>>()
        };
        let outline: Vec<(f64, f64)> = side(1.0).into_iter().chain(side(-1.0).into_iter().rev()).collect();
        style::faint(plane, outline.clone(), self.series)?;
        style::thin_line(
            plane,
            outline.iter().chain(outline.first()).copied().collect(),
            style::color(self.series),
        )?;
        let [low, median, high] = self.quartiles;
        let thin = self.half * 0.16;
        let corners = [(self.middle - thin, low), (self.middle + thin, high)];
        plane.draw(&Rectangle::new(corners, style::color(self.series).filled()))?;
        style::symbol(plane, (self.middle, median), self.series, self.fill)
    }
}

/// Returns the density of sorted values at points between the smallest and the largest, as a part of the largest density.
/// The kernel is a normal distribution, with Silverman's width, on the logarithms if the axis is logarithmic.
fn density(values: &[f64], log: bool) -> Vec<(f64, f64)> {
    let to = |x: f64| if log { x.ln() } else { x };
    let from = |x: f64| if log { x.exp() } else { x };
    let every = values.len().div_ceil(MOST_SAMPLES).max(1);
    let points: Vec<f64> = values.iter().step_by(every).map(|value| to(*value)).collect();
    let (low, high) = (to(values[0]), to(values[values.len() - 1]));
    let n = points.len() as f64;
    let mean = points.iter().sum::<f64>() / n;
    let deviation = (points.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    let quartile = |part: f64| points[((points.len() - 1) as f64 * part) as usize];
    let spread = (quartile(0.75) - quartile(0.25)) / 1.34;
    let spread = if spread > 0.0 { spread.min(deviation) } else { deviation };
    let width = (0.9 * spread * n.powf(-0.2)).max((high - low) / POINTS as f64 / 2.0);
    if high <= low || width <= 0.0 {
        return vec![(values[0], 1.0)];
    }
    let at = |x: f64| points.iter().map(|p| (-0.5 * ((x - p) / width).powi(2)).exp()).sum::<f64>();
    let curve: Vec<(f64, f64)> = (0..POINTS)
        .map(|i| low + (high - low) * i as f64 / (POINTS - 1) as f64)
        .map(|x| (from(x), at(x)))
        .collect();
    let most = curve.iter().map(|(_, density)| *density).fold(f64::MIN_POSITIVE, f64::max);
    curve.into_iter().map(|(value, density)| (value, density / most)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_density_is_largest_where_most_values_are() {
        let mut values: Vec<f64> = (0..1000).map(|i| 10.0 + f64::from(i % 10) * 0.01).collect();
        values.extend((0..100).map(|i| 12.0 + f64::from(i % 10) * 0.01));
        values.sort_by(f64::total_cmp);
        for log in [false, true] {
            let density = density(&values, log);
            let peak = density.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            let near =
                |x: f64| density.iter().min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs())).unwrap().1;
            assert!((10.0..10.2).contains(&peak.0) && peak.1 == 1.0, "{density:?}");
            assert!((0.03..0.4).contains(&near(12.05)) && near(11.0) < 0.01, "{density:?}");
        }
        assert_eq!(density(&[3.0; 9], false), [(3.0, 1.0)]);
    }
}
