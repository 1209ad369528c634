//! What a figure shows.

use ombx_results::verdict::{Component, LinkSweep};

use crate::{
    drawing::Drawing,
    kind,
    options::{MAX_SERIES, Options, PlotError},
    series::{self, Abscissa, Input},
};

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
