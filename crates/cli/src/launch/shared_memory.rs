//! Files in shared memory that ranks have created and not removed when a job is told to end. MPICH removes its files while MPI starts,
//! once all ranks have opened them; ranks that end before that leave them behind.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, getpid, getuid};

use super::orphans::children_of;

const DIRECTORY: &str = "/dev/shm/";

/// Files in shared memory that the descendants of this process have mapped.
#[derive(Debug, Default)]
pub(super) struct OfRanks(BTreeSet<PathBuf>);

impl OfRanks {
    pub(super) fn now() -> OfRanks {
        let (mut family, mut at) = (children_of(getpid()), 0);
        while let Some(pid) = family.get(at).copied() {
            family.extend(children_of(pid));
            at += 1;
        }
        OfRanks(family.into_iter().flat_map(|pid| mapped(&proc(pid))).collect())
    }

    /// Removes the files that still exist, belong to this user, and that no process has mapped any more.
    pub(super) fn remove(self) {
        if self.0.is_empty() {
            return;
        }
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let in_use: BTreeSet<PathBuf> = processes.flat_map(|entry| mapped(&entry.path())).collect();
        let user = getuid().as_raw();
        let ours = |path: &&PathBuf| {
            fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.uid() == user)
        };
        for path in self.0.difference(&in_use).filter(ours) {
            let _ = fs::remove_file(path);
        }
    }
}

fn proc(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()))
}

/// Returns the files in shared memory that a process has mapped.
fn mapped(process: &Path) -> Vec<PathBuf> {
    let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
    let path = |line: &str| Some(PathBuf::from(&line[line.find(DIRECTORY)?..]));
    maps.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

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
