//! Logarithmic axes, colour scales, and charts for terminals.

mod canvas;
pub(crate) mod curve;
pub(crate) mod heat_map;
mod histogram;
mod log_axis;
pub mod samples;
mod shades;
mod sparkline;
mod value_axis;

pub use self::{
    canvas::Characters,
    heat_map::{Cell, HeatMap},
    histogram::Histogram,
    log_axis::{LogAxis, Ticks},
    shades::Shades,
    sparkline::sparkline,
    value_axis::{LinearAxis, ValueAxis, counts, value_label},
};
use ombx_core::result::Headline;

/// Returns the interval that an axis must cover for a figure: its 95 % interval and its value.
pub fn extent(headline: &Headline) -> [f64; 2] {
    let value = headline.value;
    headline.ci95.map_or([value; 2], |[low, high]| [low.min(value), high.max(value)])
}
