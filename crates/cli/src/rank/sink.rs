//! Where the rows of a rank go. Every call also tells the watchdog that the rank makes progress.

use std::fs::File;

use ombx_core::{
    benchmark::Case,
    error::Result,
    measure::{intervals::Interval, sink::Sink},
    result::{Measurement, Run, Tally},
    system::watchdog,
};
use ombx_results::{
    file::{self, Record, RunOutcome},
    units::Units,
};

use crate::{
    build,
    output::{
        Output, intervals,
        relay::{self, Message},
    },
};

pub(super) enum RankSink {
    /// Rank 0 of the user's launcher prints rows and writes the result file.
    Output(Box<Output>),
    /// Rank 0 of the launching process sends records to it.
    Relay(File),
    /// All other ranks.
    None,
}

impl RankSink {
    fn record(&mut self, record: impl FnOnce() -> Record) -> Result<()> {
        match self {
            RankSink::Output(output) => output.record(&record()),
            RankSink::Relay(pipe) => file::write(pipe, &record()).map_err(|e| relay::broken(&e)),
            RankSink::None => Ok(()),
        }
    }
}

impl Sink for RankSink {
    fn run(&mut self, run: &Run) -> Result<()> {
        self.record(|| {
            let mut run = run.clone();
            run.software.extend(build::facts());
            Record::Run(Box::new(run))
        })
    }

    fn starting(&mut self, bench: &str, case: &Case) {
        watchdog::enter(&format!("{bench}, {} bytes", case.bytes));
        if let RankSink::Relay(pipe) = self {
            let _ = Message::Progress { bench: bench.into(), bytes: case.bytes.0 }.write(pipe);
        }
    }

    fn alive(&self) {
        watchdog::progress();
    }

    fn status(&mut self, _: u32, line: &str) {
        watchdog::progress();
        match self {
            RankSink::Output(_) => stderr_line!("ombx: {line}"),
            RankSink::Relay(pipe) => _ = Message::Status { line: line.into() }.write(pipe),
            RankSink::None => {}
        }
    }

    fn interval(&self, interval: &Interval) {
        match self {
            RankSink::Output(_) => stderr_line!("ombx: {}", intervals::line(interval, Units::default())),
            RankSink::Relay(pipe) => _ = Message::Interval(interval.clone()).write(&mut &*pipe),
            RankSink::None => {}
        }
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        match self {
            // A row with raw samples is large: it is written without a copy.
            RankSink::Relay(pipe) => file::write_launch(pipe, row).map_err(|e| relay::broken(&e)),
            _ => self.record(|| Record::Launch(Box::new(row.clone()))),
        }
    }

    fn end(&mut self, tally: &Tally) -> Result<()> {
        self.record(|| Record::End(RunOutcome::Complete, *tally))
    }
}
