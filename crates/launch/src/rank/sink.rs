//! Where the rows of a rank go. Every call also tells the watchdog that the rank makes progress.

use std::{borrow::Cow, cell::Cell, fs::File, time::Duration};

use ombx_core::measure::session::Sink;
use ombx_host::{loaded, since::Since, watchdog};
use ombx_record::{error::Result, event::Event, file, unit::Bytes};

use crate::{
    build,
    output::{Output, relay},
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

impl Sink for RankSink {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(run) => {
                let mut run = run.clone().into_owned();
                run.software.extend(build::facts());
                run.loaded = loaded::files();
                return self.send(&Event::Run(Cow::Owned(run)));
            }
            Event::Benchmark { .. } => {
                failure::enter();
                watchdog::progress();
            }
            Event::Starting(row) => {
                watchdog::enter(&format!("{}, {} bytes", row.bench, Bytes(row.bytes.unwrap_or(0))));
                if let RankSink::Relay(_, sent) = self {
                    sent.set(Since::now());
                }
            }
            Event::Alive => {
                watchdog::progress();
                match self {
                    RankSink::Relay(_, sent) if sent.get().elapsed() > SIGN => sent.set(Since::now()),
                    _ => return Ok(()),
                }
            }
            Event::Status { .. } => watchdog::progress(),
            _ => {}
        }
        let sent = self.send(event);
        // Without a launching process, the next row finds out.
        if event.is_kept() { sent } else { Ok(()) }
    }
}

impl RankSink {
    fn send(&mut self, event: &Event<'_>) -> Result<()> {
        match self {
            RankSink::Output(output) => output.event(event),
            RankSink::Relay(pipe, _) => file::write(pipe, event).map_err(|e| relay::broken(&e)),
            RankSink::None => Ok(()),
        }
    }
}
