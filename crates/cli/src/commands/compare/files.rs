//! The files that the user names as one side of a comparison.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ombx_core::error::{Error, Result};
use ombx_results::{compare::SideResults, file::is_named_as_result};

use crate::result_file::KnownRuns;

/// Returns the files that arguments name.
pub(super) fn of(names: &[String]) -> Result<Vec<PathBuf>> {
    Ok(names.iter().map(|name| expand(name)).collect::<Result<Vec<_>>>()?.concat())
}

/// Reads the files that arguments name as one side.
pub(super) fn side(names: &[String], paths: &[PathBuf]) -> Result<SideResults> {
    let mut launches = SideResults::named(names.join(" "));
    let mut known = KnownRuns::default();
    paths.iter().try_for_each(|path| known.add_to(&mut launches, path))?;
    Ok(launches)
}

/// Returns the files of an argument: a file, the result files of a directory, a list with commas, or a glob.
fn expand(name: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(name);
    let none = |what: &str| Err(Error::storage(format!("{name}: {what}")));
    if path.is_dir() {
        let escaped = PathBuf::from(glob::Pattern::escape(name)).join("*");
        // Another user may have put links and pipes there.
        let is_plain = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|file| file.is_file());
        let mut found = matches(&escaped.to_string_lossy())?;
        found.retain(|path| is_named_as_result(path) && is_plain(path));
        return if found.is_empty() { none("the directory has no *.jsonl files") } else { Ok(found) };
    }
    if !path.exists() && name.contains(',') {
        let parts = name.split(',').filter(|part| !part.is_empty()).map(expand);
        return Ok(parts.collect::<Result<Vec<_>>>()?.concat());
    }
    if !path.exists() && name.contains(['*', '?', '[']) {
        let found = matches(name)?;
        return if found.is_empty() { none("no file matches") } else { Ok(found) };
    }
    Ok(vec![path.to_owned()])
}

fn matches(pattern: &str) -> Result<Vec<PathBuf>> {
    let paths = glob::glob(pattern).map_err(|e| Error::usage(format!("{pattern}: {e}")))?;
    Ok(paths.filter_map(std::result::Result::ok).collect())
}
