//! What a job has left behind: processes, files of shared memory, and files in its own directories.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use ombx_core::clock::Since;

use super::marked;

/// After a job has ended, all of it is gone within this time.
const GONE: Duration = Duration::from_secs(5);
const NAP: Duration = Duration::from_millis(20);
const SHARED_MEMORY: &str = "/dev/shm";

/// What there was before a job.
pub(crate) struct Before(BTreeSet<PathBuf>);

impl Before {
    pub(crate) fn now() -> Self {
        Self(shared_memory())
    }

    /// What is left of a job with this mark once it had time to go, by kind. `temporary` is its own directory for
    /// temporary files, which ends empty.
    pub(crate) fn left(&self, mark: &str, temporary: &Path) -> Vec<String> {
        let since = Since::now();
        let mut looks = 0;
        loop {
            let left = self.look(mark, temporary);
            // A process has no environment for a moment while it becomes another program.
            looks = if left.is_empty() { looks + 1 } else { 0 };
            if looks == 2 || since.elapsed() > GONE {
                marked::kill(mark);
                return left;
            }
            thread::sleep(NAP);
        }
    }

    fn look(&self, mark: &str, temporary: &Path) -> Vec<String> {
        let processes = marked::processes(mark).into_iter().map(|p| format!("process {p}"));
        let shared = shared_memory().into_iter().filter(|path| !self.0.contains(path));
        // A file that a live process has mapped is that of another job; ours has none any more.
        let shared = shared.filter(|path| !is_mapped(path)).map(|path| format!("file {}", path.display()));
        let files = files(temporary).into_iter().map(|path| format!("file {}", path.display()));
        processes.chain(shared).chain(files).collect()
    }
}

fn shared_memory() -> BTreeSet<PathBuf> {
    files(Path::new(SHARED_MEMORY)).into_iter().collect()
}

/// Files, sockets and pipes below a directory; directories alone are no loss.
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
        let room = tempfile::tempdir().unwrap();
        let before = Before::now();
        // Others may use this machine's shared memory meanwhile.
        let ours = |one: &String| one.contains(&*room.path().to_string_lossy());
        let look =
            || -> Vec<String> { before.look("no such mark", room.path()).into_iter().filter(ours).collect() };
        fs::create_dir(room.path().join("empty")).unwrap();
        assert_eq!(look(), Vec::<String>::new());
        fs::write(room.path().join("lock"), "").unwrap();
        let left = look();
        assert!(left.len() == 1 && left[0].ends_with("lock"), "{left:?}");
    }
}
