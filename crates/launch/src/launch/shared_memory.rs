//! Files in shared memory that ranks have created and not removed when ombx ends a job. MPICH and UCX remove their files while MPI
//! starts, once all ranks have opened them, Open MPI at the end; ranks that end before that leave them behind.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ombx_record::regular_file::read_found_text;
use rustix::process::{Pid, getpid, getuid};

use crate::launch::orphans::descendants;

const DIRECTORY: &str = "/dev/shm/";
/// Starts of the names of files by which ranks of MPICH, UCX and Open MPI find each other's memory, and of the file by which a rank of
/// Open MPI tests whether shared memory works.
const OF_MPI: [&str; 5] = ["mpich_shar_tmp", "ucx_shm_posix_", "vader_segment.", "osc_rdma.", "open_mpi."];

/// Files in shared memory of the ranks of a job.
#[derive(Debug, Default)]
pub(super) struct OfRanks {
    /// Files that descendants of this process have mapped.
    mapped: BTreeSet<PathBuf>,
    /// Numbers of jobs of Open MPI, as in the names of their files.
    jobs: BTreeSet<String>,
}

impl OfRanks {
    /// Adds the files that the descendants of this process have mapped now.
    pub(super) fn look(&mut self) {
        let family = descendants(getpid());
        self.mapped.extend(family.into_iter().flat_map(|pid| mapped(&proc(pid), is_own)));
        self.jobs.extend(self.mapped.iter().filter_map(|path| job_of_open_mpi(path)));
    }

    /// Adds the job of a launcher of Open MPI that is running. When it ends, it removes the directory that has the number.
    pub(super) fn add_job(&mut self, launcher: u32) {
        self.jobs.extend(sessions(launcher).filter_map(|session| job_of_session(&session)));
    }

    /// Removes the files that still exist, belong to this user, and that no process uses any more. Ranks of Open MPI may have created
    /// others of the same job since.
    pub(super) fn remove(self) {
        let is_of_job = |path: &PathBuf| job_of_open_mpi(path).is_some_and(|job| self.jobs.contains(&job));
        let later = entries(Path::new(DIRECTORY)).filter(is_of_job);
        remove_unused(&self.mapped.iter().cloned().chain(later).collect());
    }
}

/// Returns the number of a job of Open MPI from the name of a file: `vader_segment.HOST.USER.JOB.RANK`, `osc_rdma.HOST.JOB.NUMBER` or
/// `osc_sm.HOST.JOB.RANK.NUMBER`. Names of hosts have dots too.
fn job_of_open_mpi(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let from_end = [("vader_", 1), ("osc_rdma.", 1), ("osc_sm.", 2)];
    let (_, from_end) = from_end.into_iter().find(|(start, _)| name.starts_with(start))?;
    name.rsplit('.').nth(from_end).map(str::to_owned)
}

/// Files of ranks before a job.
pub(super) struct OfOthers(pub(super) BTreeSet<PathBuf>);

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
    let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|file| file.is_file());
    for path in files.difference(&in_use).filter(|path| is_file(path) && is_ours(path)) {
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

/// Variables in which Open MPI looks for the parent of its session directory.
const BASES: [&str; 4] = ["OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP", "TMP"];

/// Returns where the session directory of a launcher of Open MPI with this process ID can be, if it has one.
fn sessions(launcher: u32) -> impl Iterator<Item = PathBuf> {
    let bases = BASES.iter().filter_map(env::var_os).map(PathBuf::from);
    bases.chain([PathBuf::from("/tmp")]).flat_map(move |base| sessions_below(&base, launcher))
}

/// Returns the directories `BASE/ompi.HOST.USER/pid.LAUNCHER` of this user.
fn sessions_below(base: &Path, launcher: u32) -> Vec<PathBuf> {
    let user = getuid().as_raw();
    let is_of_user = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("ompi.") && name.ends_with(&format!(".{user}")) && is_ours(path)
    };
    entries(base).filter(is_of_user).map(|path| path.join(format!("pid.{launcher}"))).collect()
}

fn is_ours(path: &PathBuf) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.uid() == getuid().as_raw())
}

/// Returns the number of the job in a session directory. Its `contact.txt` begins with the number of the family of jobs; the launcher
/// has the first of them, and no other.
fn job_of_session(session: &Path) -> Option<String> {
    let contact = read_found_text(&session.join("contact.txt"), 1 << 12).ok()?;
    let family: u32 = contact.split('.').next()?.trim().parse().ok()?;
    Some(format!("{:x}", family | 1))
}

/// Removes the files that the launcher with this process ID left on this host, if any.
pub(super) fn remove_session_directory(launcher: u32) {
    sessions(launcher).for_each(|session| remove_session(&session, Path::new(DIRECTORY)));
}

/// Removes a session directory and the shared memory of its job.
fn remove_session(session: &Path, shared: &Path) {
    if let Some(job) = job_of_session(session) {
        let is_of_job = |path: &PathBuf| job_of_open_mpi(path).as_ref() == Some(&job) && is_ours(path);
        for file in entries(shared).filter(is_of_job) {
            let _ = fs::remove_file(file);
        }
    }
    let _ = fs::remove_dir_all(session);
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use crate::launch::shared_memory::*;

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
        let [later, other] =
            ["a", "b"].map(|one| PathBuf::from(DIRECTORY).join(format!("osc_sm.host.{job}{one}.0.3")));
        [&later, &other].iter().for_each(|path| fs::write(path, "").unwrap());
        OfRanks { jobs: [format!("{job}a")].into(), ..OfRanks::default() }.remove();
        assert!(!later.exists() && other.exists());
        fs::remove_file(other).unwrap();
    }

    #[test]
    fn names_of_files_have_the_number_of_the_job() {
        for (name, expected) in [
            ("vader_segment.n01.site.0.41d10001.3", Some("41d10001")),
            ("osc_rdma.n01.site.41d10001.5", Some("41d10001")),
            ("osc_sm.n01.site.41d10001.0.3", Some("41d10001")),
            ("open_mpi.0000", None),
            ("something.41d10001.5", None),
        ] {
            let path = Path::new(DIRECTORY).join(name);
            assert_eq!(job_of_open_mpi(&path).as_deref(), expected, "{name}");
        }
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
        let mut found = OfRanks::default();
        found.look();
        assert!(
            !is_own("7f0-7f1 r-xp 00000000 00:1a 5 /dev/shm/lib.so")
                && !is_own("7f0-7f1 rw-s 0 00:1a 5 /dev/shm/a/b")
        );
        assert!(found.mapped.contains(&own) && !found.mapped.contains(&other), "{found:?}");
        // A file in use stays.
        let mut again = OfRanks::default();
        again.look();
        again.remove();
        assert!(own.exists());
        child.kill().unwrap();
        child.wait().unwrap();
        found.remove();
        assert!(!own.exists() && other.exists());
        fs::remove_file(other).unwrap();
    }

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
        let kept =
            ["vader_segment.somewhere.0.250001.0", "something.240001.0", "osc_sm.somewhere.250001.0.3"];
        let removed = [
            "vader_segment.somewhere.0.240001.1",
            "osc_rdma.somewhere.240001.5",
            "osc_sm.somewhere.240001.0.3",
        ];
        for name in kept.into_iter().chain(removed) {
            fs::write(shared.path().join(name), "").unwrap();
        }
        let [session] = sessions_below(base.path(), 17).try_into().unwrap();
        assert_eq!(job_of_session(&session).as_deref(), Some("240001"));
        remove_session(&session, shared.path());
        assert!(!directory.join("pid.17").exists() && directory.join("pid.18/contact.txt").exists());
        let left = entries(shared.path()).filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let mut left: Vec<String> = left.collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(left, kept);
    }
}
