//! Result files that commands read.

use std::{
    collections::HashMap,
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

use ombx_core::{
    error::{Error, Result},
    result::Run,
};
use ombx_results::{
    compare::SideResults,
    file::{self, Record, Records},
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
        for record in &mut records {
            let record = record.map_err(|e| named(path, &e))?;
            if let Record::Run(run) = &record {
                self.add(run, path)?;
            }
            launches.record(record);
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

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<file::ResultFile> {
    file::read(open(path)?).map_err(|e| named(path, &e))
}

fn open(path: &Path) -> Result<BufReader<File>> {
    File::open(path).map(BufReader::new).map_err(|e| named(path, &e))
}

fn named(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::storage(format!("{}: {why}", path.display()))
}
