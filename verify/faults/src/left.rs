//! Leftovers of a job: processes, files in shared memory, and files in its temporary directory.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use ombx_host::since::Since;
use ombx_toolchain::process::Mark;

/// Time within which the leftovers of an ended job must disappear.
const GONE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
const SHARED_MEMORY: &str = "/dev/shm";

/// Files in shared memory before a job.
pub(crate) struct Before(BTreeSet<PathBuf>);

impl Before {
    pub(crate) fn now() -> Self {
        Self(shared_memory())
    }

    /// Returns what is left of a job with this mark after [`GONE`], and kills its processes. `temporary` is the directory for
    /// temporary files of the job, which must be empty at the end.
    pub(crate) fn left(&self, mark: &Mark, temporary: &Path) -> Vec<String> {
        let since = Since::now();
        let mut empty = 0;
        loop {
            let left = self.look(mark, temporary);
            // A process has no environment for a moment during exec.
            empty = if left.is_empty() { empty + 1 } else { 0 };
            if empty == 2 || since.elapsed() > GONE {
                mark.kill();
                return left;
            }
            thread::sleep(POLL);
        }
    }

    fn look(&self, mark: &Mark, temporary: &Path) -> Vec<String> {
        let processes = mark.processes().into_iter().map(|p| format!("process {p}"));
        let shared = shared_memory().into_iter().filter(|path| !self.0.contains(path));
        // A file that a running process has mapped belongs to another job.
        let shared = shared.filter(|path| !is_mapped(path)).map(|path| format!("file {}", path.display()));
        let files = files(temporary).into_iter().map(|path| format!("file {}", path.display()));
        processes.chain(shared).chain(files).collect()
    }
}

fn shared_memory() -> BTreeSet<PathBuf> {
    files(Path::new(SHARED_MEMORY)).into_iter().collect()
}

/// Returns files, sockets and pipes below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}

fn is_mapped(path: &Path) -> bool {
    let name = path.to_string_lossy().into_owned();
    let maps = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path().join("maps"));
    maps.filter_map(|maps| fs::read_to_string(maps).ok()).any(|maps| maps.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_stays_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let before = Before::now();
        let mark = Mark { variable: "OMBX_FAULT_JOB", value: "no such mark".into() };
        // Other programs may use shared memory meanwhile.
        let ours = |one: &String| one.contains(&*directory.path().to_string_lossy());
        let look =
            || -> Vec<String> { before.look(&mark, directory.path()).into_iter().filter(ours).collect() };
        fs::create_dir(directory.path().join("empty")).unwrap();
        assert_eq!(look(), Vec::<String>::new());
        fs::write(directory.path().join("lock"), "").unwrap();
        let left = look();
        assert!(left.len() == 1 && left[0].ends_with("lock"), "{left:?}");
    }
}
