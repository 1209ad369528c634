//! Axes of figures, and of curves on the page: values, message sizes, or one slot per name.

use ombx_estimate::text::plain;
use ombx_record::{order::sort, unit::Bytes};

use crate::{
    options::Scale,
    terminal::{LinearAxis, LogAxis, Ticks, ValueAxis, value_label},
};

/// Part of a logarithmic axis for messages of 0 bytes, which have no position on it.
const ZERO: f64 = 0.135;
/// Part of an axis of sizes that is left free at each end.
const PAD: f64 = 0.02;

/// What the points of an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Message sizes.
    Bytes,
    /// Offered requests per second, or earlier messages.
    Number,
}

/// An axis: it maps values to positions and has ticks.
#[derive(Debug, Clone)]
pub enum Axis {
    /// Times, rates or other values.
    Values(ValueAxis),
    /// Values of points on a logarithmic axis, in ascending order. It has ticks where points are, and a place for 0 if a point is there.
    Points(LogAxis, Vec<f64>, Unit),
    /// Values of points on a linear axis.
    LinearPoints(LinearAxis),
    /// One slot for each name. The value of a slot is its number from 0.
    Slots(Vec<String>),
    /// The same from the end to the start.
    ReversedSlots(Vec<String>),
}

impl Axis {
    /// Returns an axis for times and rates; `None` without values.
    pub fn values(values: impl Iterator<Item = f64>, scale: Scale) -> Option<Axis> {
        let axis = match scale {
            Scale::Auto => ValueAxis::covering(values),
            Scale::Log => ValueAxis::log(values),
            Scale::Linear => ValueAxis::linear(values),
        };
        axis.map(Axis::Values)
    }

    /// Returns an axis with ticks where points are; `None` without points above 0.
    pub fn points(points: impl Iterator<Item = f64>, unit: Unit, scale: Scale) -> Option<Axis> {
        let mut points: Vec<f64> = points.collect();
        sort(&mut points);
        points.dedup();
        let ticks = if unit == Unit::Bytes { Ticks::Binary } else { Ticks::Decimal };
        let log = LogAxis::covering(points.iter().copied(), ticks);
        Some(match log.filter(|_| scale != Scale::Linear) {
            Some(axis) => Axis::Points(axis, points, unit),
            None => Axis::LinearPoints(LinearAxis::covering(*points.first()?, *points.last()?)),
        })
    }

    /// Returns a linear axis with these ends, and a tick at each multiple of `step`.
    pub(crate) fn exact(low: f64, high: f64, step: f64) -> Axis {
        Axis::Values(ValueAxis::Linear(LinearAxis::exact(low, high, step)))
    }

    pub(crate) fn is_log(&self) -> bool {
        matches!(self, Axis::Values(ValueAxis::Log(_)) | Axis::Points(..))
    }

    /// Returns the position of a value: 0 at the start of the axis, 1 at its end.
    pub fn position(&self, value: f64) -> f64 {
        let padded = |place: f64| PAD + place * (1.0 - 2.0 * PAD);
        match self {
            Axis::Values(axis) => axis.position(value),
            Axis::Points(..) if value == 0.0 => padded(0.0),
            Axis::Points(axis, points, _) if points.first() == Some(&0.0) => {
                padded(ZERO + axis.position(value) * (1.0 - ZERO))
            }
            Axis::Points(axis, ..) => padded(axis.position(value)),
            Axis::LinearPoints(axis) => padded(axis.position(value)),
            Axis::Slots(names) => (value + 0.5) / names.len().max(1) as f64,
            Axis::ReversedSlots(names) => 1.0 - (value + 0.5) / names.len().max(1) as f64,
        }
    }

    /// Returns at most `max` values that have a tick with a label.
    pub fn ticks(&self, max: usize) -> Vec<f64> {
        match self {
            Axis::Values(axis) => axis.ticks(max),
            Axis::Points(_, points, _) => {
                let apart = 1.0 / max.max(1) as f64;
                let mut last = f64::NEG_INFINITY;
                let mut ticks = Vec::new();
                for &value in points {
                    let at = self.position(value);
                    if at >= last + apart {
                        last = at;
                        ticks.push(value);
                    }
                }
                ticks
            }
            Axis::LinearPoints(axis) => axis.ticks(max),
            Axis::Slots(names) | Axis::ReversedSlots(names) => {
                let every = names.len().div_ceil(max.max(1)).max(1);
                (0..names.len()).step_by(every).map(|slot| slot as f64).collect()
            }
        }
    }

    /// Returns all values that have a tick, also without a label.
    pub(crate) fn marks(&self) -> Vec<f64> {
        match self {
            Axis::Points(_, points, _) => points.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns the label of a tick.
    pub fn label(&self, value: f64) -> String {
        match self {
            Axis::Points(_, _, Unit::Bytes) => Bytes(value as u64).to_string(),
            // Ticks of a linear axis are no multiples of 1024.
            Axis::Points(_, _, Unit::Number) | Axis::Values(_) | Axis::LinearPoints(_) => value_label(value),
            Axis::Slots(names) | Axis::ReversedSlots(names) => {
                names.get(value as usize).map(|name| plain(name)).unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, max: usize) -> Vec<String> {
        axis.ticks(max).into_iter().map(|value| axis.label(value)).collect()
    }

    #[test]
    fn ticks_are_where_points_are() {
        let axis = |points: &[f64]| Axis::points(points.iter().copied(), Unit::Bytes, Scale::Auto).unwrap();
        let zero = axis(&[0.0, 1.0, 8.0, 64.0]);
        assert_eq!(labels(&zero, 12), ["0", "1", "8", "64"]);
        assert!(zero.position(0.0) < zero.position(1.0) && zero.position(64.0) <= 1.0);
        let close = axis(&[1.0, 1000.0, 1024.0, 1_048_576.0]);
        assert_eq!(labels(&close, 8), ["1", "1000", "1M"]);
        assert_eq!(close.marks().len(), 4, "a tick without a label shows the other point");
        let many: Vec<f64> = (0..23).map(|power| f64::from(1 << power)).collect();
        assert_eq!(labels(&axis(&many), 8), ["1", "8", "64", "512", "4K", "32K", "256K", "2M"]);
    }

    #[test]
    fn slots_have_their_names() {
        let names = vec!["a".to_owned(), "b".to_owned()];
        let axis = Axis::Slots(names.clone());
        assert_eq!((axis.position(0.0), axis.position(1.0)), (0.25, 0.75));
        let axis = Axis::ReversedSlots(names.clone());
        assert_eq!((axis.position(0.0), labels(&axis, 9)), (0.75, names));
        assert_eq!(labels(&axis, 1), ["a"]);
    }
}
