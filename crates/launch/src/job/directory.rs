//! The directory of files that benchmarks of MPI-IO write: checked before anything starts, and empty of them afterwards.

use std::{
    collections::BTreeSet,
    fs,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    process::Command,
};

use ombx_core::{
    benchmark::Choice,
    measure::{
        plan::Plan,
        runner::Part,
        session::{sizes_of, streams},
    },
};
use ombx_mpi::file::{FILES_VARIABLE, files_of};
use ombx_record::error::{Error, Result};

use crate::job::{Job, Work};

/// Name of the parameter with the directory of files.
const DIRECTORY: &str = "directory";

/// The files of a job, which are removed when this is dropped. Ranks remove them earlier, unless they are killed.
pub(crate) struct FilesOfJob {
    directories: BTreeSet<PathBuf>,
    /// Number in their names.
    job: u64,
}

impl FilesOfJob {
    pub(crate) fn new(job: &Job) -> FilesOfJob {
        let parts = if let Work::Benchmarks(parts) = &job.work { &parts[..] } else { &[] };
        let directories = parts.iter().filter_map(|part| part.plan.chosen.named(DIRECTORY));
        FilesOfJob {
            directories: directories.map(PathBuf::from).collect(),
            job: RandomState::new().hash_one(0),
        }
    }

    /// Lets the ranks of a command put the number into the names.
    pub(crate) fn name(&self, command: &mut Command) {
        if !self.directories.is_empty() {
            command.env(FILES_VARIABLE, format!("{:016x}", self.job));
        }
    }
}

impl Drop for FilesOfJob {
    fn drop(&mut self) {
        let name = files_of(self.job);
        for directory in &self.directories {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let found = entry.file_name();
                // ROMIO has hidden files beside a file.
                let found = found.to_str().map(|found| found.strip_prefix('.').unwrap_or(found));
                if found.is_some_and(|found| found.starts_with(&name)) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }
}

/// Checks that benchmarks with files have a directory. If `is_here`, the directory must exist on this host, and have the space that
/// the files of `ranks` ranks need.
///
/// # Errors
/// Usage error with what is missing.
pub(crate) fn check(parts: &[Part], ranks: u32, is_here: bool) -> Result<()> {
    for Part { choices, plan } in parts {
        let with_files = |choice: &&Choice| choice.bench.parameter(DIRECTORY).is_some();
        for choice in choices.iter().filter(with_files) {
            let name = choice.bench.name;
            if plan.batch.is_some_and(|batch| batch > 1) {
                return Err(Error::usage(format!("a sample of {name} is one iteration: leave out --batch")));
            }
            let directory = plan.chosen.named(DIRECTORY).map(Path::new);
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
    let depth = if streams(choice, plan) { plan.depths().into_iter().max().unwrap_or(1) } else { 1 };
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

#[cfg(test)]
mod tests {
    use crate::job::directory::*;

    #[test]
    fn only_files_of_the_job_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let kept = ["ombx-io-0000000000000008-1", "mine"];
        for name in
            ["ombx-io-0000000000000007-1", ".ombx-io-0000000000000007-1.shfp.3"].into_iter().chain(kept)
        {
            fs::write(directory.path().join(name), "").unwrap();
        }
        drop(FilesOfJob { directories: [directory.path().to_path_buf()].into(), job: 7 });
        let left: BTreeSet<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, kept.map(Into::into).into());
    }
}
