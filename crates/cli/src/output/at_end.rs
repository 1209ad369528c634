//! The file of `--openmetrics`, which replaces the one of an earlier run as a whole.

use std::{
    io,
    path::{Path, PathBuf},
};

use ombx_core::error::{Error, Result};
use ombx_results::{
    estimate::{self, Group},
    file::Record,
    render::{OpenMetrics, Renderer},
};

/// Returns an error if a file for Prometheus could not be written at the end.
pub(crate) fn check_path(path: &Path) -> Result<()> {
    let directory = std::path::absolute(path).ok().and_then(|path| path.parent().map(PathBuf::from));
    match path.is_dir() || !directory.is_some_and(|directory| directory.is_dir()) {
        true => Err(Error::usage(format!(
            "--openmetrics: {} is not a file in a directory that exists",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Gauges of a job, and the file that gets them.
pub(crate) struct Gauges {
    pub(super) path: PathBuf,
    gauges: OpenMetrics,
    /// Whether a run began. Otherwise the file of the earlier run stays.
    has_run: bool,
}

impl Gauges {
    /// Fails if the file could not be written at the end.
    pub(crate) fn open(path: PathBuf, gauges: OpenMetrics) -> Result<Gauges> {
        check_path(&path)?;
        Ok(Gauges { path, gauges, has_run: false })
    }

    /// Takes a record of a launch.
    pub(crate) fn record(&mut self, record: &Record) -> io::Result<()> {
        let out = &mut io::sink();
        match record {
            Record::Run(run) => {
                self.has_run = true;
                self.gauges.run(out, run)
            }
            Record::Launch(row) | Record::Case(row) => self.gauges.case(out, row),
            Record::End(outcome, tally) => self.gauges.end(out, *outcome, tally),
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
        self.gauges.finish(&mut text).map(|()| self.has_run.then_some(text))
    }
}
