//! Result files that commands read.

use std::{fs::File, io::BufReader, path::Path};

use ombx_core::error::{Error, Result};
use ombx_results::{
    compare::SideResults,
    file::{self, Records},
};

pub(crate) fn read(path: &Path) -> Result<file::ResultFile> {
    file::read(open(path)?).map_err(|e| named(path, &e))
}

/// Adds the runs of a result file to one side of a comparison, record by record.
pub(crate) fn add_to(launches: &mut SideResults, path: &Path) -> Result<()> {
    let mut records = Records::of(open(path)?);
    for record in &mut records {
        launches.record(record.map_err(|e| named(path, &e))?);
    }
    if records.cut_off() {
        stderr_line!(
            "ombx: {} was cut off in the middle of a record; all records before it are compared",
            path.display()
        );
    }
    Ok(())
}

fn open(path: &Path) -> Result<BufReader<File>> {
    File::open(path).map(BufReader::new).map_err(|e| named(path, &e))
}

fn named(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::storage(format!("{}: {why}", path.display()))
}
