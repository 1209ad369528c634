//! Session directory and shared memory of an Open MPI job whose launcher was killed before it could remove them.

use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ombx_core::system::file::read_found_text;
use rustix::process::getuid;

const SHARED_MEMORY: &str = "/dev/shm";
/// Variables in which Open MPI looks for the parent of its session directory.
const BASES: [&str; 4] = ["OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP", "TMP"];

/// Removes the files that the launcher with this process ID left on this host, if any.
pub(super) fn remove(launcher: u32) {
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
