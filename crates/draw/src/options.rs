//! How a figure is drawn.

use ombx_estimate::number::Units;

use crate::quantity::Quantity;

/// Maximum number of series in one figure. There is one colour, symbol and dash for each.
pub const MAX_SERIES: usize = 7;

/// Width of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Width {
    /// 85 mm: one column of a page with two.
    #[default]
    OneColumn,
    /// 178 mm: both columns.
    TwoColumns,
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Logarithmic for message sizes, for curves, and for values that differ by a factor of 10; else linear.
    #[default]
    Auto,
    /// Logarithmic.
    Log,
    /// Linear.
    Linear,
}

/// How a figure is drawn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Width on paper.
    pub width: Width,
    /// Scale of the horizontal axis.
    pub x: Scale,
    /// Scale of the vertical axis.
    pub y: Scale,
    /// Text above the figure.
    pub title: Option<&'a str>,
    /// What a curve shows. `None`: what its rows are about, time or bandwidth.
    pub quantity: Option<Quantity>,
    /// Units of times and bandwidths, unless `quantity` has one. Lines of the model and heat maps have the usual ones.
    pub units: Units,
    /// Texts of the legend, one per series, instead of names made from the rows. Empty: made from the rows.
    pub labels: &'a [String],
}
