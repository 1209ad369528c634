//! Result files that commands read.

use std::{
    collections::HashMap,
    io::BufRead,
    path::{Path, PathBuf},
};

use ombx_core::{
    error::{Error, Result},
    result::{Measurement, Run},
};
use ombx_results::{
    compare::SideResults,
    file::{self, Record, Records, RunWithRows},
    run_info::KnownRows,
    verdict::LinkSweep,
};

/// Runs that a command has read. Each run counts once, because a copy of a launch is no further launch.
#[derive(Debug, Default)]
pub(crate) struct KnownRuns {
    paths: HashMap<(String, String), PathBuf>,
    rows: KnownRows,
}

impl KnownRuns {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or it repeats a run.
    pub(crate) fn read(&mut self, path: &Path) -> Result<file::ResultFile> {
        self.known(read(path)?, path)
    }

    /// Reads a file that the user did not name.
    ///
    /// # Errors
    /// Those of [`KnownRuns::read`], and it is a link or no regular file.
    pub(crate) fn read_found(&mut self, path: &Path) -> Result<file::ResultFile> {
        self.known(file::read_found(path).map_err(|e| named(path, &e))?, path)
    }

    fn known(&mut self, file: file::ResultFile, path: &Path) -> Result<file::ResultFile> {
        for RunWithRows { run, rows, .. } in &file.runs {
            self.add(run, path)?;
            rows.iter().try_for_each(|row| self.add_row(run, row, path))?;
        }
        Ok(file)
    }

    /// Adds the runs of a result file to one side of a comparison, record by record.
    ///
    /// # Errors
    /// The file cannot be read, or it repeats a run.
    pub(crate) fn add_to(&mut self, launches: &mut SideResults, path: &Path) -> Result<()> {
        let mut records = records(path)?;
        let mut current = None;
        for record in &mut records {
            let record = record.map_err(|e| named(path, &e))?;
            match (&record, &current) {
                (Record::Run(run), _) => {
                    self.add(run, path)?;
                    current = Some(run.clone());
                }
                (Record::Launch(row), Some(run)) => self.add_row(run, row, path)?,
                _ => {}
            }
            launches.record(record);
        }
        if current.is_none() {
            return Err(empty(path));
        }
        if records.cut_off() {
            stderr_line!(
                "ombx: {} was cut off in the middle of a record; all records before it are compared",
                path.display()
            );
        }
        Ok(())
    }

    fn add(&mut self, run: &Run, path: &Path) -> Result<()> {
        match self.paths.insert((run.id.clone(), run.fabric.clone()), path.to_owned()) {
            None => Ok(()),
            Some(first) => Err(Error::usage(format!(
                "{} repeats run {} of {}: give each run once, because a copy of a launch is no further launch",
                path.display(),
                run.id,
                first.display()
            ))),
        }
    }

    fn add_row(&mut self, run: &Run, row: &Measurement, path: &Path) -> Result<()> {
        match self.rows.add(&run.id, row) {
            None => Ok(()),
            Some(first) => Err(Error::usage(format!(
                "{}: run {} has the samples of run {first} in {}: give each launch once, because a copy is no further launch",
                path.display(),
                run.id,
                row.key
            ))),
        }
    }
}

/// Reads a file; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or it has no results.
pub(crate) fn read(path: &Path) -> Result<file::ResultFile> {
    let file = file::read(open(path)?).map_err(|e| named(path, &e))?;
    if file.runs.is_empty() { Err(empty(path)) } else { Ok(file) }
}

/// Returns the records of a file that the user names.
pub(crate) fn records(path: &Path) -> Result<Records<Box<dyn BufRead>>> {
    open(path).map(Records::of)
}

/// Opens a file, which may be compressed; `-` is standard input.
fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    file::source(path).map_err(|e| named(path, &e))
}

fn empty(path: &Path) -> Error {
    named(path, &"the file has no results: it is empty, or was cut off in its first record")
}

/// Returns the error of a result file.
pub(crate) fn named(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::storage(format!("{}: {why}", path.display()))
}

/// Returns the sweep over links of these runs, which are launches of one result.
pub(crate) fn only_sweep(runs: &[RunWithRows]) -> Result<LinkSweep> {
    let mut sweep = LinkSweep::default().keeping_all();
    for RunWithRows { run, rows, .. } in runs {
        if sweep.hosts.ranks() > 0 && !sweep.continues_with(run) {
            return Err(Error::usage("there are several results of ombx links: give one"));
        }
        sweep.begin(run);
        rows.iter().for_each(|row| sweep.add(row));
    }
    match runs {
        [] => Err(Error::usage("there are no links: give a result file of ombx links")),
        _ => Ok(sweep),
    }
}
