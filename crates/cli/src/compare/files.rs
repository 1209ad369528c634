//! The files of a side, as a user names them, and what is in them.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

use ombx_core::error::{Error, Result};
use ombx_results::{compare::SideResults, file::Records};

/// Reads all files of a side.
pub(super) fn side(names: &[String]) -> Result<SideResults> {
    let mut paths = Vec::new();
    for name in names {
        paths.extend(expand(name)?);
    }
    let mut launches = SideResults::named(names.join(" "));
    paths.iter().try_for_each(|path| read(path, &mut launches))?;
    Ok(launches)
}

/// The files that a name stands for: itself, the result files of a directory, a list with commas, or a glob.
fn expand(name: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(name);
    let none = |what: &str| Err(Error::storage(format!("{name}: {what}")));
    if path.is_dir() {
        let escaped = PathBuf::from(glob::Pattern::escape(name)).join("*.jsonl");
        let found = matches(&escaped.to_string_lossy())?;
        return if found.is_empty() { none("no *.jsonl files are in this directory") } else { Ok(found) };
    }
    if !path.exists() && name.contains(',') {
        let parts = name.split(',').filter(|part| !part.is_empty()).map(expand);
        return Ok(parts.collect::<Result<Vec<_>>>()?.concat());
    }
    if !path.exists() && name.contains(['*', '?', '[']) {
        let found = matches(name)?;
        return if found.is_empty() { none("no file is named like this") } else { Ok(found) };
    }
    Ok(vec![path.to_owned()])
}

fn matches(pattern: &str) -> Result<Vec<PathBuf>> {
    let paths = glob::glob(pattern).map_err(|e| Error::usage(format!("{pattern}: {e}")))?;
    Ok(paths.filter_map(std::result::Result::ok).collect())
}

fn read(path: &Path, launches: &mut SideResults) -> Result<()> {
    let told = |e: &dyn std::fmt::Display| Error::storage(format!("{}: {e}", path.display()));
    let file = File::open(path).map_err(|e| told(&e))?;
    let mut records = Records::of(BufReader::new(file));
    for record in &mut records {
        launches.record(record.map_err(|e| told(&e))?);
    }
    if records.cut_off() {
        tell!(
            "ombx: {} was cut off in the middle of a record; everything before it is compared",
            path.display()
        );
    }
    Ok(())
}
