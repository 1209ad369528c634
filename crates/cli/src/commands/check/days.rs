//! Directories of dated result files: good days that were learnt, and the history of checks.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use ombx_core::{
    error::{Error, Result},
    system::environment::{hostname, timestamp},
};
use ombx_results::baseline::Baseline;

use crate::result_file::KnownRuns;

/// Ending of result files.
const ENDING: &str = "jsonl";

/// Reads the good days of a directory. Returns `None` if it has none.
pub(super) fn read(directory: &Path) -> Result<Option<Baseline>> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(None) };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == ENDING)).collect();
    paths.sort();
    let (mut baseline, mut known) = (Baseline::default(), KnownRuns::default());
    for path in &paths {
        baseline.add(&known.read_found(path)?.runs);
    }
    Ok((!paths.is_empty()).then_some(baseline))
}

/// Creates a directory, unless it exists.
pub(super) fn create(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(|e| unwritable(directory, &e))
}

/// Writes a new file of a directory, named after time and host, and returns its path.
pub(super) fn add(directory: &Path, contents: &[u8]) -> Result<PathBuf> {
    let failed = |e: std::io::Error| unwritable(directory, &e);
    let mut file = tempfile::Builder::new().prefix(".ombx-").tempfile_in(directory).map_err(failed)?;
    file.write_all(contents).map_err(failed)?;
    let stem = format!("{}-{}", timestamp().replace(':', ""), hostname());
    for number in 1.. {
        let name = if number == 1 { format!("{stem}.{ENDING}") } else { format!("{stem}-{number}.{ENDING}") };
        let path = directory.join(name);
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(path),
            Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => file = e.file,
            Err(e) => return Err(failed(e.error)),
        }
    }
    unreachable!("some name is free")
}

fn unwritable(directory: &Path, why: &std::io::Error) -> Error {
    Error::storage(format!("cannot write into the directory {}: {why}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = include_str!("../../../../results/tests/golden/one_launch.jsonl");

    #[test]
    fn files_of_a_second_have_different_names() {
        let directory = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..3).map(|_| add(directory.path(), b"x").unwrap()).collect();
        assert!(paths[0] != paths[1] && paths[1] != paths[2] && paths.iter().all(|path| path.exists()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "no temporary file is left");
        assert!(add(&directory.path().join("none"), b"x").is_err());
    }

    #[test]
    fn a_directory_without_results_is_no_baseline() {
        let directory = tempfile::tempdir().unwrap();
        assert!(read(&directory.path().join("none")).unwrap().is_none());
        fs::write(directory.path().join("notes.txt"), "x").unwrap();
        assert!(read(directory.path()).unwrap().is_none());
        add(directory.path(), RUN.as_bytes()).unwrap();
        assert!(read(directory.path()).unwrap().is_some());
        // A copy of a day is no further day.
        add(directory.path(), RUN.as_bytes()).unwrap();
        assert!(read(directory.path()).is_err());
    }
}
