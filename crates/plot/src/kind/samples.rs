//! Samples in the order of measurement, launch after launch.

use super::values;
use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::Frame,
    legend::{self, Sample},
    options::Options,
    series::Curves,
    style::{self, Fill, GRID},
};

/// Number of curves from which sizes are chosen. More of them hide each other.
pub(crate) const MOST_CURVES: usize = 3;
/// Samples up to which each one is drawn.
const MOST_SYMBOLS: usize = 120;
/// Number of groups of more samples. A group is drawn as its range and its median.
const GROUPS: usize = 240;

pub(crate) fn draw(curves: &Curves<'_>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    let all: Vec<Vec<f64>> = curves.curves.iter().map(|curve| curve.case.samples.batches()).collect();
    let longest = all.iter().map(Vec::len).max().unwrap_or(0);
    let Some(y) = Axis::values(all.iter().flatten().copied(), options.y) else {
        return Err(values::no_samples());
    };
    let frame = Frame {
        axes: (Axis::exact(0.0, longest.max(2) as f64, step(longest)), y),
        titles: ("sample, in the order of measurement".into(), curves.quantity.axis_title().into()),
        keys: legend::keys(curves.curves.iter().map(|curve| &curve.name), Sample::Band),
        square: false,
    };
    let drawn = frame.draw(options, |plane| {
        if let [only] = &curves.curves[..] {
            let range = values::range(all[0].iter().copied());
            for start in starts(
                &only.case.samples.launches.iter().map(|launch| launch.batches.len()).collect::<Vec<_>>(),
            ) {
                style::thin_line(plane, vec![(start, range[0]), (start, range[1])], GRID)?;
            }
        }
        for (series, values) in all.iter().enumerate() {
            if values.len() <= MOST_SYMBOLS {
                for (at, value) in values.iter().enumerate() {
                    style::symbol(plane, ((at + 1) as f64, *value), series, Fill::Hollow)?;
                }
                continue;
            }
            let groups = groups(values);
            let low = groups.iter().map(|group| (group.at, group.low));
            let high = groups.iter().rev().map(|group| (group.at, group.high));
            style::faint(plane, low.chain(high).collect(), series)?;
            // Dashes of a restless line are not visible.
            style::thin_line(
                plane,
                groups.iter().map(|group| (group.at, group.median)).collect(),
                style::color(series),
            )?;
        }
        Ok(())
    });
    Ok(drawn?.of_cases(curves.drawn))
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
        let sorted = values::sorted(chunk.to_vec());
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

#[cfg(test)]
mod tests {
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
