//! Where rows go while a run is under way.

use crate::{
    benchmark::case::Case,
    error::Result,
    result::{Measurement, Run, Tally},
};

/// Takes a run as it is measured. Called on rank 0, except for [`Sink::starting`] and [`Sink::alive`], which every rank calls.
pub trait Sink {
    /// The run begins.
    fn run(&mut self, run: &Run) -> Result<()>;
    /// A case begins; its iterations have not started.
    fn starting(&mut self, _bench: &str, _case: &Case) {}
    /// A round of samples has ended: the rank makes progress.
    fn alive(&self) {}
    /// A row is complete.
    fn case(&mut self, row: &Measurement) -> Result<()>;
    /// The run is complete.
    fn end(&mut self, tally: &Tally) -> Result<()>;
}

/// Keeps everything in memory; for tests and for programs that embed ombx.
#[derive(Debug, Default)]
pub struct Memory {
    /// The run, once begun.
    pub run: Option<Run>,
    /// The rows.
    pub rows: Vec<Measurement>,
    /// The tally, once ended.
    pub tally: Option<Tally>,
}

impl Sink for Memory {
    fn run(&mut self, run: &Run) -> Result<()> {
        self.run = Some(run.clone());
        Ok(())
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        self.rows.push(row.clone());
        Ok(())
    }

    fn end(&mut self, tally: &Tally) -> Result<()> {
        self.tally = Some(*tally);
        Ok(())
    }
}
