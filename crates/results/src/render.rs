//! Results to text: pure functions from rows to a writer, one module per format.

pub mod compare;
mod csv;
mod jsonl;
mod launches;
mod links;
mod openmetrics;
mod osu;
mod overhead;
mod pipeline;
mod plot;
mod table;

use std::io::{Result, Write};

pub use self::{
    csv::Csv,
    jsonl::JsonLines,
    launches::Launches,
    links::{Links, LinksCsv},
    openmetrics::OpenMetrics,
    osu::{OsuColumns, OsuTable},
    overhead::Overhead,
    table::{Paint, Row, Table, figure, head, heading, library, measured},
};
use crate::wire::Outcome;
use ombx_core::result::{Measurement, Run, Tally};

/// Turns a run into text, row by row or in groups of rows; [`Renderer::end`] prints what is left.
pub trait Renderer {
    /// The run begins.
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()>;
    /// A row.
    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()>;
    /// No more rows of this run.
    fn end(&mut self, out: &mut dyn Write, outcome: Outcome, tally: &Tally) -> Result<()>;
    /// No more runs.
    fn finish(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}

/// Text from a file without the control characters that would move a terminal's cursor or begin a line of their own.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
