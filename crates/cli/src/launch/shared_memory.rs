//! Files in shared memory that ranks have created and not removed when ombx ends a job. MPICH and UCX remove their files while MPI
//! starts, once all ranks have opened them, Open MPI at the end; ranks that end before that leave them behind.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ombx_core::system::file::read_found_text;
use rustix::process::{Pid, getpid, getuid};

use crate::launch::orphans::descendants;

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

    /// Removes the files that still exist, belong to this user, and that no process uses any more. Ranks of Open MPI may have created
    /// others of the same job since.
    pub(super) fn remove(self) {
        let jobs: BTreeSet<String> = self.0.iter().filter_map(|path| job_of_open_mpi(path)).collect();
        let is_of_job = |path: &PathBuf| job_of_open_mpi(path).is_some_and(|job| jobs.contains(&job));
        let later = entries(Path::new(DIRECTORY)).filter(is_of_job);
        remove_unused(&self.0.iter().cloned().chain(later).collect());
    }
}

/// Returns the number of a job of Open MPI, which is the word before the last one in the names of its files.
fn job_of_open_mpi(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let is_its = ["vader_", "osc_"].iter().any(|start| name.starts_with(start));
    name.rsplit('.').nth(1).filter(|_| is_its).map(str::to_owned)
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

const SHARED_MEMORY: &str = "/dev/shm";
/// Variables in which Open MPI looks for the parent of its session directory.
const BASES: [&str; 4] = ["OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP", "TMP"];

/// Removes the files that the launcher with this process ID left on this host, if any.
pub(super) fn remove_session_directory(launcher: u32) {
    let bases = BASES.iter().filter_map(env::var_os).map(PathBuf::from);
    for base in bases.chain([PathBuf::from("/tmp")]) {
        remove_below(&base, Path::new(SHARED_MEMORY), launcher);
    }
}

/// Removes the session directory of a launcher. The directory is `BASE/ompi.HOST.USER/pid.LAUNCHER`. Its `contact.txt` begins with the number of the job family, which is
/// also in the names of shared memory.
fn remove_below(base: &Path, shared: &Path, launcher: u32) {
    let user = getuid().as_raw();
    let ours = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|file| file.uid() == user);
    let named = |path: &PathBuf, name: &dyn Fn(&str) -> bool| {
        path.file_name().and_then(|own| own.to_str()).is_some_and(name)
    };
    let of_user = |own: &str| own.starts_with("ompi.") && own.ends_with(&format!(".{user}"));
    for directory in entries(base).filter(|path| named(path, &of_user) && ours(path)) {
        let session = directory.join(format!("pid.{launcher}"));
        let contact = read_found_text(&session.join("contact.txt"), 1 << 12).unwrap_or_default();
        let family = contact.split('.').next().and_then(|number| number.trim().parse::<u32>().ok());
        if let Some(family) = family {
            // Number of the first job of the family. This launcher has no other.
            let part = format!(".{:x}.", family | 1);
            let of_job =
                |own: &str| own.contains(&part) && (own.starts_with("vader_") || own.starts_with("osc_"));
            for file in entries(shared).filter(|path| named(path, &of_job) && ours(path)) {
                let _ = fs::remove_file(file);
            }
        }
        let _ = fs::remove_dir_all(session);
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
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
    fn later_files_of_the_same_job_are_removed() {
        let job = std::process::id();
        let [known, later, other] = [
            format!("vader_segment.host.0.{job}a.0"),
            format!("osc_rdma.host.{job}a.4"),
            format!("osc_rdma.host.{job}b.4"),
        ]
        .map(|name| PathBuf::from(DIRECTORY).join(name));
        [&known, &later, &other].iter().for_each(|path| fs::write(path, "").unwrap());
        OfRanks(BTreeSet::from([known.clone()])).remove();
        assert!(!known.exists() && !later.exists() && other.exists());
        fs::remove_file(other).unwrap();
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

#[cfg(test)]
mod session_directory_tests {
    use super::*;

    #[test]
    fn only_files_of_the_launcher_are_removed() {
        let (base, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let directory = base.path().join(format!("ompi.somewhere.{}", getuid().as_raw()));
        for (launcher, family) in [(17, 0x24_0000), (18, 0x25_0000)] {
            let session = directory.join(format!("pid.{launcher}"));
            fs::create_dir_all(session.join("0")).unwrap();
            fs::write(session.join("contact.txt"), format!("{family}.0;tcp://1.2.3.4:5\n{launcher}\n"))
                .unwrap();
        }
        let kept = ["vader_segment.somewhere.0.250001.0", "something.240001.0"];
        for name in kept.into_iter().chain(["vader_segment.somewhere.0.240001.1"]) {
            fs::write(shared.path().join(name), "").unwrap();
        }
        remove_below(base.path(), shared.path(), 17);
        assert!(!directory.join("pid.17").exists() && directory.join("pid.18/contact.txt").exists());
        let left = entries(shared.path()).filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let mut left: Vec<String> = left.collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(left, kept);
    }
}
