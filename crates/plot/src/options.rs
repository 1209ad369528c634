//! How a figure is drawn, and the reasons why it cannot be drawn.

use ombx_results::verdict::{Component, LinkSweep};

use crate::{
    axis::Quantity,
    drawing::Drawing,
    kind,
    series::{self, Abscissa, Input},
};

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

/// What a figure shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Medians by message size, with their intervals.
    Curve,
    /// Medians and 99th percentiles of requests by the rate at which they were offered.
    Rate,
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
    let abscissa = if kind == Kind::Rate { Abscissa::OfferedRate } else { Abscissa::Size };
    let series = series::collect(inputs, abscissa, options)?;
    if kind != Kind::Curve && options.quantity.is_some() {
        return Err(PlotError::Unfit(
            "samples have the unit of their rows: only a curve shows another quantity".into(),
        ));
    }
    match kind {
        Kind::Model => kind::curve::draw_model(series, options),
        Kind::Curve | Kind::Rate => kind::curve::draw(series, options),
        Kind::Violin => kind::distribution::violin(series, options),
        Kind::Cdf => kind::distribution::cdf(&series::by_size(series, MAX_SERIES, options)?, options),
        Kind::Histogram => {
            kind::distribution::histogram(&series::by_size(series, MAX_SERIES, options)?, options)
        }
        Kind::Samples => {
            kind::order::samples(&series::by_size(series, kind::order::MOST_OF_SAMPLES, options)?, options)
        }
        Kind::Launches => {
            kind::order::launches(&series::by_size(series, kind::order::MOST_OF_LAUNCHES, options)?, options)
        }
    }
}

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
    kind::heat_map::draw(sweep, slow, bytes, options)
}
