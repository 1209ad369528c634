//! JSON Lines: the result file itself.

use std::io::{Result, Write};

use super::Renderer;
use crate::file::{self, Record, RunOutcome};
use ombx_core::result::{Measurement, Run, Tally};

/// Writes records as the file has them, flushed one by one.
#[derive(Debug, Default)]
pub struct JsonLines {
    open: bool,
}

impl Renderer for JsonLines {
    fn run(&mut self, out: &mut dyn Write, run: &Run) -> Result<()> {
        self.open = true;
        file::write(out, &Record::Run(Box::new(run.clone())))?;
        out.flush()
    }

    fn case(&mut self, out: &mut dyn Write, row: &Measurement) -> Result<()> {
        file::write_row(out, row)?;
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write, outcome: RunOutcome, tally: &Tally) -> Result<()> {
        // A launch may end before it has begun a run: then there is nothing to end.
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        file::write(out, &Record::End(outcome, *tally))?;
        out.flush()
    }
}
