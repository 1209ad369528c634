//! Output formats: each module writes runs and rows to a writer in one format.

mod broadcasts;
pub mod compare;
mod csv;
mod document;
pub mod history;
mod imb;
mod links;
pub mod model;
pub mod monitoring;
mod openmetrics;
mod osu;
mod overhead;
mod pipeline;
mod shown;
mod table;

use std::io::{Result, Write};

use ombx_core::result::{Measurement, Run, Tally};

use crate::{file::RunOutcome, verdict::Verdict};

pub use self::{
    broadcasts::Broadcasts,
    csv::{Csv, LinksCsv},
    document::{Document, Markup},
    imb::{ImbBenchmark, ImbClass, ImbGroups, ImbHeader, ImbProgram, ImbTable},
    links::{
        Links, map_so_far,
        summary::{Form as LinksForm, LinksSummary, status as links_status},
    },
    openmetrics::{CheckedLimit, OpenMetrics},
    osu::{OsuAccelerator, OsuColumns, OsuTable},
    overhead::Overhead,
    shown::{Paint, Shown},
    table::{
        FormattedRow, ONE_LAUNCH, Scope, Table, column_titles, fit::wrapped, format_other_states, format_row,
        heading, title,
    },
};

/// Writes runs in one format, row by row or in groups of rows.
pub trait Renderer {
    /// Starts a run.
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()>;
    /// Takes a row of the run. The renderer may write it later.
    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()>;
    /// Takes the verdict on the links of a sweep, before its last run ends.
    fn verdict(&mut self, _verdict: &Verdict) {}
    /// Ends the run. Rows that were held back are written.
    fn end(&mut self, out: &mut dyn Write, _outcome: RunOutcome, _tally: &Tally) -> Result<()> {
        out.flush()
    }
    /// Ends the output. Formats that combine several runs write here.
    fn finish(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}

/// Replaces control characters, line separators and marks of writing direction by blanks: text of a file must not move the cursor,
/// start a line, or change the order in which a line is read.
pub fn plain(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|c| if hidden(c) { ' ' } else { c }).collect()
}
