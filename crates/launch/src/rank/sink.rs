//! Where the rows of a rank go. Every call also tells the watchdog that the rank makes progress.

use std::{cell::Cell, fs::File, time::Duration};

use ombx_core::measure::session::Sink;
use ombx_estimate::number::Units;
use ombx_host::{since::Since, watchdog};
use ombx_record::{
    error::Result,
    file::{self, Record, RunOutcome},
    result::{Growth, Interval, Measurement, Run, Tally},
    unit::Bytes,
};

use crate::{
    build,
    output::{
        Output,
        relay::{self, Message},
    },
    rank::failure,
};

/// Interval of signs of progress within a case: each wakes the launching process.
const SIGN: Duration = Duration::from_secs(4);

pub(super) enum RankSink {
    /// Rank 0 of the user's launcher prints rows and writes the result file.
    Output(Box<Output>),
    /// Rank 0 of the launching process sends records to it, and signs of progress: the time since the last one.
    Relay(File, Cell<Since>),
    /// All other ranks.
    None,
}

impl RankSink {
    fn record(&mut self, record: impl FnOnce() -> Record) -> Result<()> {
        match self {
            RankSink::Output(output) => output.record(&record()),
            RankSink::Relay(pipe, _) => file::write(pipe, &record()).map_err(|e| relay::broken(&e)),
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

    fn entering(&mut self, number: usize, bench: &str) {
        failure::enter();
        watchdog::progress();
        if let RankSink::Relay(pipe, _) = self {
            let _ = Message::Benchmark { number, bench: bench.into() }.write(pipe);
        }
    }

    fn starting(&mut self, row: &Measurement) {
        watchdog::enter(&format!("{}, {} bytes", row.bench, Bytes(row.bytes.unwrap_or(0))));
        if let RankSink::Relay(pipe, sent) = self {
            let _ = Message::Starting { row: Box::new(row.clone()) }.write(pipe);
            sent.set(Since::now());
        }
    }

    fn alive(&self) {
        watchdog::progress();
        if let RankSink::Relay(pipe, sent) = self
            && sent.get().elapsed() > SIGN
        {
            let _ = Message::Alive.write(&mut &*pipe);
            sent.set(Since::now());
        }
    }

    fn status(&mut self, _: u32, line: &str) {
        watchdog::progress();
        match self {
            RankSink::Output(_) => stderr_line!("ombx: {line}"),
            RankSink::Relay(pipe, _) => _ = Message::Status { line: line.into() }.write(pipe),
            RankSink::None => {}
        }
    }

    fn interval(&self, interval: &Interval) {
        match self {
            RankSink::Output(output) => output.interval(interval, Units::default()),
            RankSink::Relay(pipe, _) => _ = Message::Interval(interval.clone()).write(&mut &*pipe),
            RankSink::None => {}
        }
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        match self {
            // A row with raw samples is large: it is written without a copy.
            RankSink::Relay(pipe, _) => file::write_launch(pipe, row).map_err(|e| relay::broken(&e)),
            _ => self.record(|| Record::Launch(Box::new(row.clone()))),
        }
    }

    fn grown_after_rows(&mut self, grown: Vec<Growth>) -> Result<()> {
        self.record(|| Record::Grown(grown))
    }

    fn end(&mut self, tally: &Tally) -> Result<()> {
        self.record(|| Record::End(RunOutcome::Complete, *tally))
    }
}
