//! Earlier runs that a run is compared with.

use std::{
    fs,
    io::BufRead,
    path::{Path, PathBuf},
    time::SystemTime,
};

use ombx_core::error::{Error, Result};
use ombx_results::{
    file::{self, Records},
    history,
    runs::EarlierRuns,
};

use crate::{
    job::{Job, Work},
    result_file,
};

/// Maximum number of files that are read unasked. More than 20 runs narrow the interval of the next one by less than a tenth.
const NEWEST: usize = 20;

/// Reads the earlier runs that the user names, or the newest ones in the directory of the result file. `None` without any.
///
/// # Errors
/// A file that the user names cannot be read, or is no result file.
pub(super) fn read(job: &Job) -> Result<Option<EarlierRuns>> {
    let Work::Benchmarks(parts) = &job.work else { return Ok(None) };
    if job.launches.is_one() {
        return Ok(None);
    }
    // The index of `ombx history` has the files of directories below too.
    let is_wanted =
        |bench: &str| parts.iter().flat_map(|part| &part.choices).any(|choice| choice.bench.name == bench);
    let indexed = |directory: &Path| -> Vec<PathBuf> {
        history::indexed(directory, is_wanted).into_iter().take(NEWEST).collect()
    };
    if let Some(path) = &job.against {
        return of_path(path, indexed(path)).map(Some);
    }
    let mut earlier = EarlierRuns::default();
    let Some(out) = &job.output.file.out else { return Ok(None) };
    let directory = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files = of_directory(directory);
    files.sort_by_cached_key(|file| {
        let changed = fs::symlink_metadata(file).and_then(|data| data.modified());
        std::cmp::Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH))
    });
    files.truncate(NEWEST);
    let known = indexed(directory).into_iter().filter(|file| !files.contains(file));
    files.extend(known.collect::<Vec<_>>());
    files.truncate(NEWEST);
    // Nobody named these files, which may be of other programs, or gone.
    for file in files.iter().filter(|file| is_plain(file)) {
        drop(add_found(&mut earlier, file));
    }
    Ok(Some(earlier))
}

/// Reads the earlier runs in a file, or in a directory and in these files of directories below it.
///
/// # Errors
/// A file cannot be read, or is no result file.
pub(crate) fn of_path(path: &Path, below: Vec<PathBuf>) -> Result<EarlierRuns> {
    if path.is_dir()
        && let Err(why) = fs::read_dir(path)
    {
        return Err(Error::storage(format!("cannot read the directory {}: {why}", path.display())));
    }
    let mut earlier = EarlierRuns::default();
    let mut files = if path.is_dir() { of_directory(path) } else { Vec::new() };
    if !path.is_dir() {
        add(&mut earlier, path, result_file::records(path)?)?;
    }
    let known: Vec<PathBuf> =
        below.into_iter().filter(|file| !files.contains(file) && is_plain(file)).collect();
    files.extend(known);
    files.iter().try_for_each(|file| add_found(&mut earlier, file))?;
    Ok(earlier)
}

/// Returns whether a path is a regular file, and no link to one.
fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// Returns the files of a directory whose names end like those of result files, sorted.
fn of_directory(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| file::is_named_as_result(path) && is_plain(path)).collect();
    files.sort();
    files
}

fn add_found(earlier: &mut EarlierRuns, path: &Path) -> Result<()> {
    let records = Records::found(path).map_err(|e| result_file::named(path, &e))?;
    add(earlier, path, records)
}

fn add(earlier: &mut EarlierRuns, path: &Path, mut records: Records<impl BufRead>) -> Result<()> {
    let added = records.try_for_each(|record| {
        earlier.record(&record.map_err(|e| result_file::named(path, &e))?);
        Ok(())
    });
    earlier.end();
    added
}
