//! JSON Lines: the format of result files.

use std::io::{Result, Write};

use super::Renderer;
use crate::file::{self, Record, RunOutcome};
use ombx_core::result::{Measurement, Run, Tally};

/// Writes records as in a result file and flushes after each.
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
        // A launch can fail before its run record. It then gets no end record.
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        file::write(out, &Record::End(outcome, *tally))?;
        out.flush()
    }
}
