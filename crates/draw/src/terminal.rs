//! Logarithmic axes, colour scales, and charts for terminals.

pub mod curve;
pub mod heat_map;
pub mod samples;
mod value_axis;

use ombx_record::result::Headline;

pub use self::{
    curve::{Characters, sparkline},
    heat_map::{Cell, HeatMap, Shades},
    value_axis::{Histogram, LinearAxis, LogAxis, Ticks, ValueAxis, counts, value_label},
};

/// Returns the interval that an axis must cover for a figure: its 95 % interval and its value.
pub fn extent(headline: &Headline) -> [f64; 2] {
    let value = headline.value;
    headline.ci95.map_or([value; 2], |[low, high]| [low.min(value), high.max(value)])
}
