//! The output of a job: the screen and the result file.

pub(crate) mod progress;
pub(crate) mod relay;
pub(crate) mod renderers;
pub(crate) mod stdout;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ombx_core::{
    error::{Error, Result},
    result::Tally,
};
use ombx_results::{
    file::{self, Record},
    render::{Overhead, Renderer},
};

use self::{renderers::Notes, stdout::is_closed};
use crate::{
    arguments::output::Format,
    job::{Job, Work},
};

/// The screen and an optional result file. Each row is written to the file before it is printed.
pub(crate) struct Output {
    renderer: Box<dyn Renderer>,
    file: Option<(PathBuf, File)>,
    /// The reader of standard output has closed it; nothing more is printed.
    stdout_closed: bool,
    /// Rows of the current run.
    tally: Tally,
    /// Number of rows of earlier runs.
    earlier_rows: u64,
    /// A run has begun and has not ended.
    in_run: bool,
    /// Overhead of MPI over sockets, printed below tables.
    overhead: Option<Overhead>,
    /// Trust notices by code, for the OSU format, which has no column for them.
    notices: Option<BTreeMap<String, String>>,
}

impl Output {
    /// Opens the result file. A path that cannot be written is an error before anything starts.
    pub(crate) fn open(job: &Job) -> Result<Output> {
        let args = &job.output;
        let (format, color) = (args.format, args.color);
        let file = match &args.out {
            None => None,
            Some(path) => Some((path.clone(), File::create(path).map_err(|e| unwritable(path, &e))?)),
        };
        let renderer = match (&job.work, &args.osu) {
            (Work::Links(..), _) => renderers::links(format, color),
            (_, Some(columns)) => renderers::osu(columns.clone()),
            _ if job.launches.count > 1 => renderers::launches(format, color),
            _ => renderers::rows(
                format,
                color,
                Notes::if_verbose(args.verbose),
                renderers::plot_columns(format, args.plot)?,
            ),
        };
        Ok(Output {
            renderer,
            file,
            stdout_closed: false,
            tally: Tally::default(),
            earlier_rows: 0,
            in_run: false,
            overhead: (format == Format::Table && args.osu.is_none()).then(Overhead::default),
            notices: args.osu.as_ref().map(|_| BTreeMap::new()),
        })
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Begins the tally of another run.
    pub(crate) fn next_run(&mut self) {
        self.earlier_rows += std::mem::take(&mut self.tally).cases;
    }

    /// Returns the number of rows of all runs.
    pub(crate) fn rows(&self) -> u64 {
        self.earlier_rows + self.tally.cases
    }

    /// Writes a record to the file, then to the screen.
    pub(crate) fn record(&mut self, record: &Record) -> Result<()> {
        // A launch may fail before its run begins. The file then has nothing to end.
        let ends = matches!(record, Record::End(..));
        let stray = ends && !self.in_run;
        self.in_run = !ends;
        if let Some((path, file)) = self.file.as_mut().filter(|_| !stray) {
            file::write(file, record).and_then(|()| file.flush()).map_err(|e| unwritable(path, &e))?;
        }
        match record {
            Record::Run(_) => self.next_run(),
            Record::Case(row) => {
                self.tally.add(row);
                self.overhead.iter_mut().for_each(|overhead| overhead.add(row));
                if let Some(notices) = &mut self.notices {
                    notices.extend(row.doubts().map(|n| (n.code.clone(), n.short.clone())));
                }
            }
            Record::End(..) => {}
        }
        self.print(|renderer, screen| match record {
            Record::Run(run) => renderer.run(screen, run),
            Record::Case(row) => renderer.case(screen, row),
            Record::End(outcome, tally) => renderer.end(screen, *outcome, tally),
        })?;
        if ends {
            let notices: Vec<String> = self.notices.take().unwrap_or_default().into_values().collect();
            if !notices.is_empty() {
                stderr_line!(
                    "ombx: rows have marks: {}. ombx run prints advice for each",
                    notices.join(", ")
                );
            }
        }
        Ok(())
    }

    /// Prints what follows the last record of the last launch. Fails if the result file was removed.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let overhead = self.overhead.take();
        self.print(|renderer, screen| {
            renderer.finish(screen)?;
            overhead.map_or(Ok(()), |overhead| overhead.write(screen))
        })?;
        match &self.file {
            // A removed file still accepts all writes, but no program can open it.
            Some((path, file)) if file.metadata().is_ok_and(|file| file.is_file() && file.nlink() == 0) => {
                Err(Error::storage(format!(
                    "results are lost: {} was removed while it was written",
                    path.display()
                )))
            }
            _ => Ok(()),
        }
    }

    fn print(
        &mut self,
        print: impl FnOnce(&mut dyn Renderer, &mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        if !self.stdout_closed {
            let mut screen = io::stdout().lock();
            let printed = print(&mut *self.renderer, &mut screen).and_then(|()| screen.flush());
            self.stdout_closed = is_closed(printed)?;
        }
        Ok(())
    }
}

/// Returns the error that a result file cannot be written.
pub(crate) fn unwritable(path: &Path, why: &io::Error) -> Error {
    Error::storage(format!("cannot write results to {}: {why}", path.display()))
}
