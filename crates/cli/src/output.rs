//! Sinks of rank 0 and of the process that starts ranks: the screen, the result file, and the relay between the two.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, IsTerminal, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ombx_core::{
    benchmark::{case::Case, preset::Osu, registry::Registry},
    error::{Error, Result},
    measure::sink::Sink,
    result::{Measurement, Run, Tally},
};
use ombx_results::{
    file::{self, Record, RunOutcome},
    render::{
        Csv, JsonLines, Launches, Links, LinksCsv, OpenMetrics, OsuTable, Overhead, Paint, Renderer, Table,
    },
};
use serde_json::json;

use crate::{
    args::{Color, Format},
    job::{Job, Work},
    watchdog,
};

/// Columns for charts, if they are wanted; they stand below tables alone.
pub(crate) fn plot_columns(format: Format, plot: bool) -> Result<Option<usize>> {
    if plot && format != Format::Table {
        return Err(Error::usage("--plot draws below tables; leave it out or choose --format table"));
    }
    let columns = || {
        let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let screen =
            || rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok().map(|size| size.ws_col.into());
        told.or_else(screen).filter(|columns| *columns > 0).unwrap_or(80)
    };
    Ok(plot.then(columns))
}

/// The renderer of a format, with charts in so many columns.
pub(crate) fn renderer(format: Format, color: Color, plot: Option<usize>) -> Box<dyn Renderer> {
    match format {
        Format::Table => {
            let table = Table::painted(paint(color));
            Box::new(match plot {
                Some(columns) => table.plotted(columns),
                None => table,
            })
        }
        Format::Osu => Box::new(OsuTable::new(osu_of)),
        Format::Csv => Box::new(Csv::default()),
        Format::Jsonl => Box::new(JsonLines::default()),
        Format::OpenMetrics => Box::new(OpenMetrics::default()),
    }
}

/// The same for several launches of one plan.
pub(crate) fn launches_renderer(format: Format, color: Color) -> Box<dyn Renderer> {
    match format {
        Format::Table => Box::new(Launches::painted(paint(color))),
        _ => renderer(format, color, None),
    }
}

/// Whether standard output is coloured.
pub(crate) fn paint(color: Color) -> Paint {
    let coloured = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    if coloured { Paint::Coloured } else { Paint::Plain }
}

/// The same for a run of `ombx links`.
pub(crate) fn links_renderer(format: Format, color: Color) -> Box<dyn Renderer> {
    match format {
        Format::Table => Box::new(Links::default()),
        Format::Csv => Box::new(LinksCsv::default()),
        Format::Osu | Format::Jsonl | Format::OpenMetrics => renderer(format, color, None),
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
    /// Rows of runs before this one.
    before: u64,
    /// Whether a run has begun and not ended.
    open: bool,
    /// Of MPI over sockets, where people look.
    overhead: Option<Overhead>,
    /// Of the drop-in, whose format has no column for them: notices by code.
    doubts: Option<BTreeMap<String, String>>,
}

impl Output {
    /// Opens the result file, so that a path that cannot be written is told before anything starts.
    pub(crate) fn open(job: &Job<'_>) -> Result<Output> {
        let args = job.output;
        let file = match &args.out {
            None => None,
            Some(path) => Some((path.clone(), File::create(path).map_err(|e| unwritable(path, &e))?)),
        };
        let renderer = match &job.work {
            Work::Benchmarks(_) if args.osu.is_some() => {
                Box::new(OsuTable::with(osu_of, args.osu.clone().unwrap_or_default()))
            }
            Work::Links(..) => links_renderer(args.format, args.color),
            Work::Benchmarks(_) if job.launches.count > 1 => launches_renderer(args.format, args.color),
            Work::Benchmarks(_) => renderer(args.format, args.color, plot_columns(args.format, args.plot)?),
        };
        let overhead = (args.format == Format::Table && args.osu.is_none()).then(Overhead::default);
        let doubts = args.osu.as_ref().map(|_| BTreeMap::new());
        Ok(Output {
            renderer,
            file,
            deaf: false,
            tally: Tally::default(),
            before: 0,
            open: false,
            overhead,
            doubts,
        })
    }

    /// What has been written of the run that is under way.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Another run begins, with a tally of its own.
    pub(crate) fn next_run(&mut self) {
        self.before += std::mem::take(&mut self.tally).cases;
    }

    /// Rows written so far, of all runs.
    pub(crate) fn rows(&self) -> u64 {
        self.before + self.tally.cases
    }

    /// A record, as it comes from the ranks.
    pub(crate) fn record(&mut self, record: &Record) -> Result<()> {
        // A launch may end before it has begun a run; the file has nothing to end then.
        let ends = matches!(record, Record::End(..));
        let stray = ends && !self.open;
        self.open = !ends;
        if let Some((path, file)) = self.file.as_mut().filter(|_| !stray) {
            file::write(file, record).and_then(|()| file.flush()).map_err(|e| unwritable(path, &e))?;
        }
        match record {
            Record::Run(_) => self.next_run(),
            Record::Case(row) => {
                self.tally.add(row);
                self.overhead.iter_mut().for_each(|overhead| overhead.add(row));
                if let Some(doubts) = &mut self.doubts {
                    doubts.extend(row.trust.iter().map(|n| (n.code.clone(), n.short.clone())));
                }
            }
            Record::End(..) => {}
        }
        let Output { renderer, deaf, .. } = self;
        let mut screen = io::stdout().lock();
        let shown = match record {
            _ if *deaf => Ok(()),
            Record::Run(run) => renderer.run(&mut screen, run),
            Record::Case(row) => renderer.case(&mut screen, row),
            Record::End(outcome, tally) => renderer.end(&mut screen, *outcome, tally),
        };
        *deaf |= gone(shown.and_then(|()| screen.flush()))?;
        if let Record::End(..) = record {
            let doubts = self.doubts.take().unwrap_or_default();
            let words: Vec<String> = doubts.into_values().collect();
            if !words.is_empty() {
                tell!("ombx: in doubt: {} (ombx run tells of each row what to do)", words.join(", "));
            }
        }
        Ok(())
    }

    /// After the last record of the last launch.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if !self.deaf {
            let mut screen = io::stdout().lock();
            let mut printed = self.renderer.finish(&mut screen);
            if let Some(overhead) = self.overhead.take() {
                printed = printed.and_then(|()| overhead.write(&mut screen));
            }
            self.deaf = gone(printed.and_then(|()| screen.flush()))?;
        }
        match &self.file {
            // What is written goes on into a file without a name, and is lost with it.
            Some((path, file)) if file.metadata().is_ok_and(|file| file.is_file() && file.nlink() == 0) => {
                Err(Error::storage(format!(
                    "results are lost: {} was removed while it was written",
                    path.display()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Whether the reader of standard output has gone away, which is no error.
pub(crate) fn gone(printed: io::Result<()>) -> Result<bool> {
    match printed {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(e) => Err(Error::storage(format!("standard output: {e}"))),
        Ok(()) => Ok(false),
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
        self.record(&Record::End(RunOutcome::Complete, *tally))?;
        self.finish()
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

/// The kind of a line that tells why a job failed; only ever in a relay, never in a file.
pub(crate) const LOST: &str = "lost";

/// Rank 0 under a process of ours: records go to a pipe that that process reads.
pub(crate) struct RelaySink {
    pub(crate) pipe: File,
}

/// The kind of a line that tells which process is which rank; only ever in a relay, never in a file.
pub(crate) const CREW: &str = "crew";

/// The kind of a line that tells which case starts; only ever in a relay, never in a file.
pub(crate) const PROGRESS: &str = "progress";

impl RelaySink {
    fn send(&mut self, record: &Record) -> Result<()> {
        let sent = file::write(&mut self.pipe, record);
        RelaySink::told(sent)
    }

    fn told(sent: io::Result<()>) -> Result<()> {
        sent.map_err(|e| Error::fabric(format!("the process that started this job is gone: {e}")))
    }
}

impl Sink for RelaySink {
    fn run(&mut self, run: &Run) -> Result<()> {
        self.send(&Record::Run(Box::new(run.clone())))
    }

    fn starting(&mut self, bench: &str, case: &Case) {
        watchdog::alive_in(bench, case);
        let line = json!({"kind": PROGRESS, "bench": bench, "bytes": case.bytes.0});
        let _ = self.pipe.write_all(format!("{line}\n").as_bytes());
    }

    fn alive(&self) {
        watchdog::alive();
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        RelaySink::told(file::write_row(&mut self.pipe, row))
    }

    fn end(&mut self, tally: &Tally) -> Result<()> {
        self.send(&Record::End(RunOutcome::Complete, *tally))
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
