//! Files in shared memory that ranks have created and not removed when ombx ends a job. MPICH and UCX remove their files while MPI
//! starts, once all ranks have opened them, Open MPI at the end; ranks that end before that leave them behind.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, getpid, getuid};

use super::orphans::descendants;

const DIRECTORY: &str = "/dev/shm/";
/// Starts of the names of files by which ranks of MPICH, UCX and Open MPI find each other's memory, and of the file by which a rank of
/// Open MPI tests whether shared memory works.
const OF_MPI: [&str; 4] = ["mpich_shar_tmp", "ucx_shm_posix_", "vader_segment.", "open_mpi."];

/// Files in shared memory that the descendants of this process have mapped.
#[derive(Debug, Default)]
pub(super) struct OfRanks(BTreeSet<PathBuf>);

impl OfRanks {
    pub(super) fn now() -> OfRanks {
        let family = descendants(getpid());
        OfRanks(family.into_iter().flat_map(|pid| mapped(&proc(pid), is_own)).collect())
    }

    /// Removes the files that still exist, belong to this user, and that no process uses any more.
    pub(super) fn remove(self) {
        remove_unused(&self.0);
    }
}

/// Files of ranks before a job.
pub(super) struct OfOthers(BTreeSet<PathBuf>);

impl OfOthers {
    pub(super) fn now() -> OfOthers {
        OfOthers(of_mpi())
    }

    /// Removes such files that are new, belong to this user, and that no process uses: a rank that was killed while MPI started has
    /// left them. A rank of another job has its file open or mapped for as long as the file has a name.
    pub(super) fn remove_new(&self) {
        remove_unused(&of_mpi().difference(&self.0).cloned().collect());
    }
}

fn of_mpi() -> BTreeSet<PathBuf> {
    let files = fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let starts = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        OF_MPI.iter().any(|start| name.to_string_lossy().starts_with(start))
    };
    files.filter(starts).map(|entry| entry.path()).collect()
}

fn remove_unused(files: &BTreeSet<PathBuf>) {
    if files.is_empty() {
        return;
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    // A process maps a file before it closes it.
    let used = |entry: fs::DirEntry| [opened(&entry.path()), mapped(&entry.path(), |_| true)].concat();
    let in_use: BTreeSet<PathBuf> = processes.flat_map(used).collect();
    let user = getuid().as_raw();
    let ours =
        |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.uid() == user);
    for path in files.difference(&in_use).filter(ours) {
        let _ = fs::remove_file(path);
    }
}

/// Returns the files that a process has open.
fn opened(process: &Path) -> Vec<PathBuf> {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}

fn proc(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()))
}

/// Returns the files in shared memory that a process has mapped, by lines of `/proc/PID/maps`.
fn mapped(process: &Path, counts: fn(&str) -> bool) -> Vec<PathBuf> {
    let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
    let path = |line: &str| Some(PathBuf::from(&line[line.find(DIRECTORY)?..]));
    maps.lines().filter(|line| counts(line)).filter_map(path).collect()
}

/// Returns whether a mapping can be that of a segment between ranks: shared, writable, and not in a directory of its own. A library may
/// lie in shared memory too.
fn is_own(line: &str) -> bool {
    let is_shared =
        line.split_whitespace().nth(1).is_some_and(|mode| mode.starts_with("rw") && mode.ends_with('s'));
    let name = line.split_once(DIRECTORY).map_or("", |(_, name)| name);
    is_shared && !name.contains('/')
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn new_files_of_starting_ranks_are_removed_unless_a_process_uses_them() {
        let [old, open, left] = ["old", "open", "left"].map(|name| {
            PathBuf::from(format!("{DIRECTORY}{}-test-{}-{name}", OF_MPI[1], std::process::id()))
        });
        fs::write(&old, "").unwrap();
        let before = OfOthers::now();
        let file = fs::File::create(&open).unwrap();
        fs::write(&left, "").unwrap();
        before.remove_new();
        assert!(old.exists() && open.exists() && !left.exists());
        drop(file);
        before.remove_new();
        assert!(old.exists() && !open.exists());
        fs::remove_file(old).unwrap();
    }

    #[test]
    fn files_of_ended_descendants_are_removed_and_others_kept() {
        let [own, other] =
            [0, 1].map(|n| PathBuf::from(format!("{DIRECTORY}ombx-test-{}-{n}", std::process::id())));
        [&own, &other].iter().for_each(|path| fs::write(path, [0; 8]).unwrap());
        // A child that maps the file, and says so.
        let script = "import mmap,sys,time; f=open(sys.argv[1],'r+b'); m=mmap.mmap(f.fileno(),8); print(flush=True); time.sleep(30)";
        let mut python = Command::new("python3");
        let child = python.args(["-c", script]).arg(&own).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            [own, other].iter().for_each(|path| fs::remove_file(path).unwrap());
            stderr_line!("skipped: python3 is not installed");
            return;
        };
        std::io::Read::read(&mut child.stdout.take().unwrap(), &mut [0; 1]).unwrap();
        let found = OfRanks::now();
        assert!(
            !is_own("7f0-7f1 r-xp 00000000 00:1a 5 /dev/shm/lib.so")
                && !is_own("7f0-7f1 rw-s 0 00:1a 5 /dev/shm/a/b")
        );
        assert!(found.0.contains(&own) && !found.0.contains(&other), "{found:?}");
        // A file in use stays.
        OfRanks::now().remove();
        assert!(own.exists());
        child.kill().unwrap();
        child.wait().unwrap();
        found.remove();
        assert!(!own.exists() && other.exists());
        fs::remove_file(other).unwrap();
    }
}
