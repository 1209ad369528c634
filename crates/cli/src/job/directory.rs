//! The directory of files that benchmarks of MPI-IO write: checked before anything starts.

use std::{fs, path::Path};

use ombx_core::{
    benchmark::Choice,
    error::{Error, Result},
    measure::{
        plan::Plan,
        runner::Part,
        session::{sizes_of, streams},
    },
};
use ombx_io::options::DIRECTORY;

/// Checks that benchmarks with files have a directory. If `is_here`, the directory must exist on this host, and have the space that
/// the files of `ranks` ranks need.
///
/// # Errors
/// Usage error with what is missing.
pub(crate) fn check(parts: &[Part], ranks: u32, is_here: bool) -> Result<()> {
    for Part { choices, plan } in parts {
        let with_files = |choice: &&Choice| choice.bench.settings.iter().any(|s| s.name == DIRECTORY.name);
        for choice in choices.iter().filter(with_files) {
            let name = choice.bench.name;
            if plan.batch.is_some_and(|batch| batch > 1) {
                return Err(Error::usage(format!("a sample of {name} is one iteration: leave out --batch")));
            }
            let directory = plan.settings.get(DIRECTORY.name).map(Path::new);
            let directory = directory.ok_or_else(|| {
                Error::usage(format!(
                    "{name} writes files: give a directory of the file system to be measured, as in --directory /scratch/me"
                ))
            })?;
            if is_here {
                check_local(directory, size(*choice, plan, ranks)?)?;
            }
        }
    }
    Ok(())
}

/// Returns the bytes of the largest files of a benchmark.
fn size(choice: Choice, plan: &Plan, ranks: u32) -> Result<u64> {
    let sizes = sizes_of(choice.bench, plan)?;
    let largest = sizes.iter().map(|size| size.0).max().unwrap_or(0);
    let depth = if streams(choice, plan) { plan.depths().max().unwrap_or(1) } else { 1 };
    let ranks = plan.ranks.unwrap_or(ranks);
    Ok(largest.saturating_mul(depth.into()).saturating_mul(ranks.into()))
}

/// Checks that a directory of this host takes files of this size.
fn check_local(directory: &Path, bytes: u64) -> Result<()> {
    let shown = directory.display();
    let wrong = |why: String| Err(Error::usage(format!("--directory {shown}: {why}")));
    match fs::metadata(directory) {
        Err(e) => return wrong(format!("{e}: give a directory that exists")),
        Ok(found) if !found.is_dir() => return wrong("it is not a directory".to_owned()),
        Ok(_) => {}
    }
    if let Err(e) = tempfile::tempfile_in(directory) {
        return wrong(format!("cannot create a file: {e}"));
    }
    match rustix::fs::statvfs(directory) {
        Ok(system) if system.f_bavail.saturating_mul(system.f_frsize) < bytes => wrong(format!(
            "the files need {} MiB, but {} MiB are free: choose smaller --sizes, a smaller --window or fewer ranks",
            bytes.div_ceil(1 << 20),
            system.f_bavail.saturating_mul(system.f_frsize) >> 20
        )),
        // A system that does not say how much is free ends the job with an error of MPI if it is full.
        _ => Ok(()),
    }
}
