//! Axes of figures: values, message sizes, or one slot per name.

use std::ops::Range;

use ombx_core::unit::Bytes;
use ombx_results::{
    plot::{LinearAxis, LogAxis, Ticks, ValueAxis, value_label},
    render::plain,
};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::options::Scale;

/// Part of a logarithmic axis for messages of 0 bytes, which have no position on it.
const ZERO: f64 = 0.08;
/// Part of an axis of sizes that is left free at each end.
const PAD: f64 = 0.02;

/// An axis: it maps values to positions and has ticks.
#[derive(Debug, Clone)]
pub(crate) enum Axis {
    Values(ValueAxis),
    /// Message sizes on a logarithmic axis, which may have a place for 0.
    Sizes(LogAxis, bool),
    /// Message sizes on a linear axis.
    LinearSizes(LinearAxis),
    /// One slot for each name. The value of a slot is its number from 0.
    Slots(Vec<String>),
    /// The same from the end to the start.
    ReversedSlots(Vec<String>),
}

impl Axis {
    /// Returns an axis for times and rates; `None` without values.
    pub(crate) fn values(values: impl Iterator<Item = f64>, scale: Scale) -> Option<Axis> {
        let axis = match scale {
            Scale::Auto => ValueAxis::covering(values),
            Scale::Log => ValueAxis::log(values),
            Scale::Linear => ValueAxis::linear(values),
        };
        axis.map(Axis::Values)
    }

    /// Returns an axis for message sizes; `None` without values.
    pub(crate) fn sizes(sizes: impl Iterator<Item = u64> + Clone, scale: Scale) -> Option<Axis> {
        let (low, high) = (sizes.clone().min()?, sizes.clone().max()?);
        let log = LogAxis::covering(sizes.map(|bytes| bytes as f64), Ticks::Binary);
        Some(match log.filter(|_| scale != Scale::Linear) {
            Some(axis) => Axis::Sizes(axis, low == 0),
            None => Axis::LinearSizes(LinearAxis::covering(low as f64, high as f64)),
        })
    }

    /// Returns a linear axis with these ends, and a tick at each multiple of `step`.
    pub(crate) fn exact(low: f64, high: f64, step: f64) -> Axis {
        Axis::Values(ValueAxis::Linear(LinearAxis::exact(low, high, step)))
    }

    pub(crate) fn is_log(&self) -> bool {
        matches!(self, Axis::Values(ValueAxis::Log(_)) | Axis::Sizes(..))
    }

    /// Returns the position of a value: 0 at the start of the axis, 1 at its end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let padded = |place: f64| PAD + place * (1.0 - 2.0 * PAD);
        match self {
            Axis::Values(axis) => axis.position(value),
            Axis::Sizes(axis, false) => padded(axis.position(value)),
            Axis::Sizes(_, true) if value == 0.0 => padded(0.0),
            Axis::Sizes(axis, true) => padded(ZERO + axis.position(value) * (1.0 - ZERO)),
            Axis::LinearSizes(axis) => padded(axis.position(value)),
            Axis::Slots(names) => (value + 0.5) / names.len().max(1) as f64,
            Axis::ReversedSlots(names) => 1.0 - (value + 0.5) / names.len().max(1) as f64,
        }
    }

    /// Returns at most `max` values that have a tick; one more if 0 bytes have a place.
    pub(crate) fn ticks(&self, max: usize) -> Vec<f64> {
        match self {
            Axis::Values(axis) => axis.ticks(max),
            Axis::Sizes(axis, zero) => zero.then_some(0.0).into_iter().chain(axis.ticks(max)).collect(),
            Axis::LinearSizes(axis) => axis.ticks(max),
            Axis::Slots(names) | Axis::ReversedSlots(names) => {
                let every = names.len().div_ceil(max.max(1)).max(1);
                (0..names.len()).step_by(every).map(|slot| slot as f64).collect()
            }
        }
    }

    /// Returns the label of a tick.
    pub(crate) fn label(&self, value: f64) -> String {
        match self {
            Axis::Values(_) => value_label(value),
            Axis::Sizes(..) => Bytes(value as u64).to_string(),
            // Ticks of a linear axis are no multiples of 1024.
            Axis::LinearSizes(_) => value_label(value),
            Axis::Slots(names) | Axis::ReversedSlots(names) => {
                names.get(value as usize).map(|name| plain(name)).unwrap_or_default()
            }
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.position(*value) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        self.ticks(hint.bold_points())
    }

    fn range(&self) -> Range<f64> {
        0.0..1.0
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.label(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, max: usize) -> Vec<String> {
        axis.ticks(max).into_iter().map(|value| axis.label(value)).collect()
    }

    #[test]
    fn sizes_have_binary_ticks_and_a_place_for_zero() {
        let axis = Axis::sizes([0, 1, 8, 64].into_iter(), Scale::Auto).unwrap();
        assert_eq!(labels(&axis, 9), ["0", "1", "2", "4", "8", "16", "32", "64"]);
        assert!(axis.position(0.0) < axis.position(1.0) && axis.position(64.0) <= 1.0);
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
