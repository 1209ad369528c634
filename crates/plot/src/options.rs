//! How a figure is drawn, and the reasons why it cannot be drawn.

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
    /// Texts of the legend, one per series, instead of names made from the rows. Empty: made from the rows.
    pub labels: &'a [String],
}

/// A figure that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The results do not fit the kind of figure.
    #[error("{0}")]
    Unfit(String),
    /// Times and rates have no common axis.
    #[error("some rows are times and some are rates, which have no common axis: choose rows of one kind")]
    Mixed,
    /// There are more series than colours and symbols.
    #[error("{0} series are more than the {MAX_SERIES} that readers can distinguish: choose fewer rows")]
    TooMany(usize),
    /// A library failed.
    #[error("the figure cannot be drawn: {0}")]
    Library(String),
    /// The program was built without files of figures.
    #[error(
        "this ombx writes no figures: `cargo xtask install` builds one that does, as does `cargo build -p ombx-cli --features figures`"
    )]
    NotBuilt,
}
