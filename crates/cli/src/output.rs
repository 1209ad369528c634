//! Sinks of rank 0 and of the process that starts ranks: the screen, the result file, and the relay between the two.

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use ombx_core::{
    case::Case,
    error::{Error, Result},
    registry::{Osu, Registry},
    render::{Csv, JsonLines, Links, LinksCsv, OsuTable, Paint, Renderer, Table},
    result::{Measurement, Run, Tally},
    sink::Sink,
    wire::{self, Outcome, Record},
};
use serde_json::json;

use crate::{
    args::{Color, Format, OutputArgs, Relay},
    job::Work,
    watchdog,
};

/// The renderer of a format.
pub(crate) fn renderer(format: Format, color: Color) -> Box<dyn Renderer> {
    let coloured = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    match format {
        Format::Table => Box::new(Table::painted(if coloured { Paint::Coloured } else { Paint::Plain })),
        Format::Osu => Box::new(OsuTable::new(osu_of)),
        Format::Csv => Box::new(Csv::default()),
        Format::Jsonl => Box::new(JsonLines),
    }
}

/// The same for a run of `ombx links`.
pub(crate) fn links_renderer(format: Format, color: Color) -> Box<dyn Renderer> {
    match format {
        Format::Table => Box::new(Links::default()),
        Format::Csv => Box::new(LinksCsv::default()),
        Format::Osu | Format::Jsonl => renderer(format, color),
    }
}

fn osu_of(bench: &str) -> Option<Osu> {
    let registry = Registry::load().ok()?;
    registry.all().iter().find(|b| b.name == bench).and_then(|b| b.osu[0])
}

/// The screen and, if asked for, a result file. Rows are in the file before they are on the screen.
pub(crate) struct Output {
    renderer: Box<dyn Renderer>,
    file: Option<(PathBuf, File)>,
    /// A reader that has gone away is no error; nothing more is printed.
    deaf: bool,
    tally: Tally,
}

impl Output {
    /// Opens the result file, so that a path that cannot be written is told before anything starts.
    pub(crate) fn open(args: &OutputArgs, work: &Work) -> Result<Output> {
        let file = match &args.out {
            None => None,
            Some(path) => Some((path.clone(), File::create(path).map_err(|e| unwritable(path, &e))?)),
        };
        let renderer = match work {
            Work::Links(_) => links_renderer(args.format, args.color),
            Work::Benchmarks(_) => renderer(args.format, args.color),
        };
        Ok(Output { renderer, file, deaf: false, tally: Tally::default() })
    }

    /// What has been written so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// A record, as it comes from the ranks.
    pub(crate) fn record(&mut self, record: &Record) -> Result<()> {
        if let Some((path, file)) = &mut self.file {
            wire::write(file, record).and_then(|()| file.flush()).map_err(|e| unwritable(path, &e))?;
        }
        if let Record::Case(row) = record {
            self.tally.add(row);
        }
        let Output { renderer, deaf, .. } = self;
        let mut screen = io::stdout().lock();
        let shown = match record {
            _ if *deaf => Ok(()),
            Record::Run(run) => renderer.run(&mut screen, run),
            Record::Case(row) => renderer.case(&mut screen, row),
            Record::End(outcome, tally) => renderer.end(&mut screen, *outcome, tally),
        };
        match shown.and_then(|()| screen.flush()) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => *deaf = true,
            Err(e) => return Err(Error::storage(format!("standard output: {e}"))),
            Ok(()) => {}
        }
        Ok(())
    }
}

fn unwritable(path: &Path, why: &io::Error) -> Error {
    Error::storage(format!("results cannot be written to {}: {why}", path.display()))
}

impl Sink for Output {
    fn run(&mut self, run: &Run) -> Result<()> {
        self.record(&Record::Run(Box::new(run.clone())))
    }

    fn starting(&mut self, bench: &str, case: &Case) {
        watchdog::alive_in(bench, case);
    }

    fn alive(&self) {
        watchdog::alive();
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        self.record(&Record::Case(Box::new(row.clone())))
    }

    fn end(&mut self, tally: &Tally) -> Result<()> {
        self.record(&Record::End(Outcome::Complete, *tally))
    }
}

/// Takes standard output for records alone: what a library prints there would end up inside one. From now on this process's
/// words on standard output go to standard error.
pub(crate) fn claim_stdout() -> Result<File> {
    let claimed = rustix::io::dup(rustix::stdio::stdout()).and_then(|pipe| {
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(File::from(pipe))
    });
    claimed.map_err(|e| Error::fabric(format!("standard output: {e}")))
}

/// Rank 0 under a process of ours: records go to a pipe that that process reads.
pub(crate) struct RelaySink {
    pub(crate) relay: Relay,
    pub(crate) pipe: File,
}

/// The kind of a line that tells which case starts; only ever in a relay, never in a file.
pub(crate) const PROGRESS: &str = "progress";

impl RelaySink {
    fn send(&mut self, record: &Record) -> Result<()> {
        let sent = wire::write(&mut self.pipe, record);
        sent.map_err(|e| Error::fabric(format!("the process that started this job is gone: {e}")))
    }
}

impl Sink for RelaySink {
    fn run(&mut self, run: &Run) -> Result<()> {
        self.send(&Record::Run(Box::new(run.clone())))
    }

    fn starting(&mut self, bench: &str, case: &Case) {
        watchdog::alive_in(bench, case);
        if self.relay == Relay::Progress {
            let line = json!({"kind": PROGRESS, "bench": bench, "bytes": case.bytes.0});
            let _ = self.pipe.write_all(format!("{line}\n").as_bytes());
        }
    }

    fn alive(&self) {
        watchdog::alive();
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        self.send(&Record::Case(Box::new(row.clone())))
    }

    fn end(&mut self, tally: &Tally) -> Result<()> {
        self.send(&Record::End(Outcome::Complete, *tally))
    }
}

/// Every other rank: nothing but signs of life.
pub(crate) struct Silent;

impl Sink for Silent {
    fn run(&mut self, _: &Run) -> Result<()> {
        Ok(())
    }

    fn starting(&mut self, bench: &str, case: &Case) {
        watchdog::alive_in(bench, case);
    }

    fn alive(&self) {
        watchdog::alive();
    }

    fn case(&mut self, _: &Measurement) -> Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &Tally) -> Result<()> {
        Ok(())
    }
}
