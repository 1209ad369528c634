//! Result files that commands read.

use std::{
    collections::HashMap,
    io::BufRead,
    path::{Path, PathBuf},
};

use ombx_core::{
    error::{Error, Result},
    result::Run,
};
use ombx_results::{
    compare::SideResults,
    file::{self, Record, Records, RunWithRows},
    verdict::LinkSweep,
};

/// Runs that a command has read. Each run counts once, because a copy of a launch is no further launch.
#[derive(Debug, Default)]
pub(crate) struct KnownRuns(HashMap<(String, String), PathBuf>);

impl KnownRuns {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or it repeats a run.
    pub(crate) fn read(&mut self, path: &Path) -> Result<file::ResultFile> {
        let file = read(path)?;
        file.runs.iter().try_for_each(|run| self.add(&run.run, path))?;
        Ok(file)
    }

    /// Adds the runs of a result file to one side of a comparison, record by record.
    ///
    /// # Errors
    /// The file cannot be read, or it repeats a run.
    pub(crate) fn add_to(&mut self, launches: &mut SideResults, path: &Path) -> Result<()> {
        let mut records = Records::of(open(path)?);
        let mut runs = 0;
        for record in &mut records {
            let record = record.map_err(|e| named(path, &e))?;
            if let Record::Run(run) = &record {
                self.add(run, path)?;
                runs += 1;
            }
            launches.record(record);
        }
        if runs == 0 {
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
        match self.0.insert((run.id.clone(), run.fabric.clone()), path.to_owned()) {
            None => Ok(()),
            Some(first) => Err(Error::usage(format!(
                "{} repeats run {} of {}: give each run once, because a copy of a launch is no further launch",
                path.display(),
                run.id,
                first.display()
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

/// Opens a file, which may be compressed; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    file::source(path).map_err(|e| named(path, &e))
}

fn empty(path: &Path) -> Error {
    named(path, &"the file has no results: it is empty, or was cut off in its first record")
}

fn named(path: &Path, why: &dyn std::fmt::Display) -> Error {
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
