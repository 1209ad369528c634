//! Figures of results, fit for papers: SVG and PDF with vector text, and PNG.
//!
//! A figure has a white background, colours that colour-blind readers distinguish, and a symbol and a dash for each series. It does
//! not depend on fonts of the machine: letters are outlines in SVG, an embedded font in PDF, and pixels in PNG. The feature `files`
//! writes these files; without it, a figure is a part of a page.
//!
//! ```
//! use ombx_draw::{Input, Kind, Options, draw};
//! use ombx_estimate::samples::SampleStore;
//! use ombx_record::file;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut store = SampleStore::default();
//! file::open("../record/tests/golden/one_launch.jsonl")?.runs.iter().for_each(|run| store.launch(run));
//! let mut cases = store.into_cases();
//! cases.retain(|case| case.row().bench == "p2p.latency");
//! let inputs = [Input { label: "cluster", cases: &cases }];
//! let drawing = draw(Kind::Violin, &inputs, &Options::default())?;
//! assert!(drawing.inline().starts_with("<svg"));
//! # Ok(())
//! # }
//! ```

mod axis;
mod drawing;
mod error;
mod file;
mod frame;
mod kind;
mod options;
mod quantity;
mod series;
mod style;
pub mod terminal;

pub use self::{
    axis::{Axis, Unit},
    drawing::{Anchor, Color, Drawing, Path, Point, Shape, n as coordinate},
    error::PlotError,
    file::FileFormat,
    kind::{Kind, draw, heat_map},
    options::{MAX_SERIES, Options, Scale, Width},
    quantity::Quantity,
    series::{Abscissa, Input, name_parts},
};
