//! Figures of results, fit for papers: SVG and PDF with vector text, and PNG.
//!
//! A figure has a white background, colours that colour-blind readers tell apart, and a symbol and a dash for each series. It does
//! not depend on fonts of the machine: letters are outlines in SVG, an embedded font in PDF, and pixels in PNG.
//!
//! ```
//! use ombx_plot::{Input, Kind, Options, draw};
//! use ombx_results::{file, samples::SampleStore};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut store = SampleStore::default();
//! file::open("../results/tests/golden/v1.jsonl")?.runs.iter().for_each(|run| store.launch(run));
//! let mut cases = store.into_cases();
//! cases.retain(|case| case.row().bench == "p2p.latency");
//! let inputs = [Input { label: "cluster", cases: &cases }];
//! let drawing = draw(Kind::Violin, &inputs, &Options::default())?;
//! assert!(drawing.pdf()?.starts_with(b"%PDF"));
//! # Ok(())
//! # }
//! ```

mod axis;
mod drawing;
mod font;
mod frame;
mod kind;
mod legend;
mod quantity;
mod series;
mod style;

use ombx_results::{samples::CaseSamples, verdict::LinkSweep};

pub use self::{drawing::Drawing, quantity::Quantity, style::MAX_SERIES};

/// Results under one name: those of a file, or of several files.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Name in the legend.
    pub label: &'a str,
    /// Cases in the order of [`ombx_results::samples::SampleStore::into_cases`].
    pub cases: &'a [CaseSamples],
}

/// What a figure shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Medians by message size, with intervals as bands.
    Curve,
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
}

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
    #[error("{0} series are more than the {MAX_SERIES} that readers can tell apart: choose fewer rows")]
    TooMany(usize),
    /// A library failed.
    #[error("the figure cannot be drawn: {0}")]
    Library(String),
}

/// Draws a figure of rows.
///
/// # Errors
/// The rows do not fit the kind: there are none, they have different metrics, or there are too many.
pub fn draw(kind: Kind, inputs: &[Input<'_>], options: &Options<'_>) -> Result<Drawing, PlotError> {
    let series = series::collect(inputs)?;
    match kind {
        Kind::Curve => kind::curve::draw(series, options),
        Kind::Violin => kind::violin::draw(series, options),
        Kind::Cdf => kind::cdf::draw(&series::by_size(series, MAX_SERIES, options)?, options),
        Kind::Histogram => kind::histogram::draw(&series::by_size(series, MAX_SERIES, options)?, options),
        Kind::Samples => {
            kind::samples::draw(&series::by_size(series, kind::samples::MOST_CURVES, options)?, options)
        }
        Kind::Launches => {
            kind::launches::draw(&series::by_size(series, kind::launches::MOST_CURVES, options)?, options)
        }
    }
}

/// Draws the links of one message size as a heat map; without a size, of the largest.
///
/// # Errors
/// There are no links of this size.
pub fn heat_map(sweep: &LinkSweep, bytes: Option<u64>, options: &Options<'_>) -> Result<Drawing, PlotError> {
    kind::heat_map::draw(sweep, bytes, options)
}
