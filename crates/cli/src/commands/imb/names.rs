//! Names of the programs of IMB: lists, links, and the command line that their output repeats.

use std::{fs, os::unix::fs::symlink, path::Path};

use ombx_core::error::{Error, Result};
use ombx_results::render::ImbTable;

use super::suites::{self, Suite};
use crate::arguments::argv;

/// Returns the text that `ombx imb` without a name prints.
pub(super) fn programs() -> String {
    let line = |suite: &'static Suite| {
        let name = suite.name;
        format!("{name:<12} {} benchmarks: ombx imb {name} -list\n", suite.entries().count())
    };
    suites::all().map(line).collect()
}

/// Returns the text of `-list`.
pub(super) fn benchmarks(suite: &Suite) -> String {
    let mut text = format!("{}\nList of benchmarks:\n{}:\n", ImbTable::title(), suite.name);
    let mut entries: Vec<_> = suite.entries().collect();
    entries.sort_by_key(|entry| entry.name);
    for entry in entries {
        text += &match entry.is_default {
            true => format!("    {}\n", entry.name),
            false => format!("    {} (non-default)\n", entry.name),
        };
    }
    text
}

/// Returns the command line as a user of IMB types it.
pub(super) fn calling(suite: &Suite) -> String {
    let words = argv::as_typed(argv::typed());
    let as_imb = |word: &String| match word.strip_prefix("--") {
        Some(name) if !name.contains('=') => format!("-{}", name.replace('-', "_")),
        _ => word.clone(),
    };
    let options = words.iter().skip(3).map(as_imb);
    [suite.name.to_owned()].into_iter().chain(options).collect::<Vec<_>>().join(" ")
}

/// Creates a link to ombx for each program that it has. Replaces links, but no other files.
pub(super) fn install(directory: &Path) -> Result<String> {
    let failed = |path: &Path, e: &dyn std::fmt::Display| Error::storage(format!("{}: {e}", path.display()));
    let program = argv::executable()?;
    fs::create_dir_all(directory).map_err(|e| failed(directory, &e))?;
    let names: Vec<&str> = suites::all().map(|suite| suite.name).collect();
    for name in &names {
        let link = directory.join(name);
        match fs::symlink_metadata(&link) {
            Ok(found) if found.is_symlink() => fs::remove_file(&link).map_err(|e| failed(&link, &e))?,
            Ok(_) => {
                let why = "the file exists and is not a link: remove it or choose another directory";
                return Err(failed(&link, &why));
            }
            Err(_) => {}
        }
        symlink(&program, &link).map_err(|e| failed(&link, &e))?;
    }
    Ok(format!("{} links to {} in {}\n", names.len(), program.display(), directory.display()))
}
