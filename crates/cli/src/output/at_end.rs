//! Files of `--openmetrics` and `--junit`, which replace those of an earlier run as a whole.

use std::{
    io,
    path::{Path, PathBuf},
};

use ombx_core::error::{Error, Result};
use ombx_results::{
    estimate::{self, Group},
    file::Record,
    render::Renderer,
};

/// Returns an error if the file of an option could not be written at the end. `-` is standard output.
pub(crate) fn check_path(option: &str, path: &Path) -> Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    let directory = std::path::absolute(path).ok().and_then(|path| path.parent().map(PathBuf::from));
    match path.is_dir() || !directory.is_some_and(|directory| directory.is_dir()) {
        true => Err(Error::usage(format!(
            "{option}: {} is not a file in a directory that exists",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Renderer of a job, and the file that gets its text.
pub(crate) struct FileAtEnd {
    pub(super) path: PathBuf,
    pub(super) renderer: Box<dyn Renderer>,
    /// Whether a run began. Otherwise the file of the earlier run stays.
    has_run: bool,
}

impl FileAtEnd {
    /// Fails if the file could not be written at the end.
    pub(crate) fn open(option: &str, path: PathBuf, renderer: Box<dyn Renderer>) -> Result<FileAtEnd> {
        check_path(option, &path)?;
        Ok(FileAtEnd { path, renderer, has_run: false })
    }

    /// Takes a record of a launch.
    pub(crate) fn record(&mut self, record: &Record) -> io::Result<()> {
        let out = &mut io::sink();
        match record {
            Record::Run(run) => {
                self.has_run = true;
                self.renderer.run(out, run)
            }
            Record::Launch(row) | Record::Case(row) => self.renderer.case(out, row),
            Record::End(outcome, tally) => self.renderer.end(out, *outcome, tally),
            Record::Verdict(_) | Record::Launched(_) => Ok(()),
        }
    }

    /// Takes the rows over all launches of a setup.
    pub(crate) fn estimates(&mut self, group: &Group) -> io::Result<()> {
        let rows = group.estimates();
        let end = Record::End(group.outcome(), estimate::tally(&rows));
        self.record(&Record::Run(Box::new(group.described())))?;
        rows.into_iter().try_for_each(|row| self.record(&Record::Case(Box::new(row))))?;
        self.record(&end)
    }

    /// Returns the text of the file; `None` if it stays as it is.
    pub(crate) fn finish(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        self.renderer.finish(&mut text).map(|()| self.has_run.then_some(text))
    }
}
