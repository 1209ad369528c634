//! Figures of results, fit for papers: SVG and PDF with vector text, and PNG.
//!
//! A figure has a white background, colours that colour-blind readers distinguish, and a symbol and a dash for each series. It does
//! not depend on fonts of the machine: letters are outlines in SVG, an embedded font in PDF, and pixels in PNG.
//!
//! ```
//! use ombx_plot::{Input, Kind, Options, draw};
//! use ombx_results::{file, samples::SampleStore};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut store = SampleStore::default();
//! file::open("../results/tests/golden/one_launch.jsonl")?.runs.iter().for_each(|run| store.launch(run));
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
mod error;
mod figure;
mod font;
mod frame;
mod kind;
mod legend;
mod options;
mod quantity;
mod series;
mod style;

pub use self::{
    drawing::Drawing,
    error::PlotError,
    figure::{Kind, draw, heat_map},
    options::{Options, Scale, Width},
    quantity::Quantity,
    series::Input,
    style::MAX_SERIES,
};
