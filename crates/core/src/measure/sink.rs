//! Sinks: receivers of rows during a run.

use crate::{
    benchmark::{Case, Role},
    error::Result,
    measure::{intervals::Interval, opened::OpenKernel},
    result::{Growth, Measurement, Run, Tally},
};

/// Receives a run while it is measured.
///
/// Every rank calls [`Sink::entering`], [`Sink::starting`], [`Sink::alive`] and [`Sink::takes`]; only rank 0 calls the other functions.
pub trait Sink {
    /// Receives the description of a run, first.
    fn run(&mut self, run: &Run) -> Result<()>;
    /// Announces a benchmark, with its number in the order of the run.
    fn entering(&mut self, _number: usize, _bench: &str) {}
    /// Announces a case before its iterations start, by its row without samples.
    fn starting(&mut self, _row: &Measurement) {}
    /// Reports progress after each round of samples, for watchdogs.
    fn alive(&self) {}
    /// Receives the figure of an interval of a row that is still measured; on rank 0, between rounds of samples.
    fn interval(&self, _interval: &Interval) {}
    /// Returns the counters of this host's devices that grew since the last call; nothing on a rank that does not watch them. Every rank
    /// calls it, at the end of a row.
    fn grown(&self) -> Vec<Growth> {
        Vec::new()
    }
    /// Receives what a process of a benchmark says about its progress: the number of the process and a line of text.
    fn status(&mut self, _process: u32, _line: &str) {}
    /// Measures an open kernel instead of the engine, and returns whether it did; the row then has no samples. Every rank calls it.
    ///
    /// Programs that compare kernels with other loops implement it.
    fn takes(&self, _kernel: &mut dyn OpenKernel, _case: &Case, _role: Role) -> Result<bool> {
        Ok(false)
    }
    /// Receives a complete row.
    fn case(&mut self, row: &Measurement) -> Result<()>;
    /// Receives the numbers of rows when the run is complete.
    fn end(&mut self, tally: &Tally) -> Result<()>;
}

/// A sink that keeps everything in memory, for tests and for programs that embed ombx.
#[derive(Debug, Default)]
pub struct Memory {
    /// Description of the run, once it began.
    pub run: Option<Run>,
    /// Rows, in order of measurement.
    pub rows: Vec<Measurement>,
    /// Numbers of rows, once the run ended.
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
