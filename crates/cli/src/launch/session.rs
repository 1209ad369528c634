//! The files of an Open MPI job whose launcher was killed: it can no longer remove them itself.

use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::getuid;

const SHARED_MEMORY: &str = "/dev/shm";
/// Where Open MPI looks for a place for its files.
const BASES: [&str; 4] = ["OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP", "TMP"];

/// Removes what the ended launcher with this process number left on this host; nothing, most of the time.
pub(super) fn remove(launcher: u32) {
    let bases = BASES.iter().filter_map(env::var_os).map(PathBuf::from);
    for base in bases.chain([PathBuf::from("/tmp")]) {
        remove_below(&base, Path::new(SHARED_MEMORY), launcher);
    }
}

/// The session of a launcher is in `BASE/ompi.HOST.USER/pid.LAUNCHER`, and its `contact.txt` begins with the number of the job
/// family, which is in the names of shared memory.
fn remove_below(base: &Path, shared: &Path, launcher: u32) {
    let user = getuid().as_raw();
    let ours = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|file| file.uid() == user);
    let named = |path: &PathBuf, name: &dyn Fn(&str) -> bool| {
        path.file_name().and_then(|own| own.to_str()).is_some_and(name)
    };
    let of_user = |own: &str| own.starts_with("ompi.") && own.ends_with(&format!(".{user}"));
    for room in entries(base).filter(|path| named(path, &of_user) && ours(path)) {
        let session = room.join(format!("pid.{launcher}"));
        let contact = fs::read_to_string(session.join("contact.txt")).unwrap_or_default();
        let family = contact.split('.').next().and_then(|number| number.trim().parse::<u32>().ok());
        if let Some(family) = family {
            // The first job of the family: a launcher of ours has no other.
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
    fn what_a_launcher_left_is_removed_and_nothing_else() {
        let (base, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let room = base.path().join(format!("ompi.somewhere.{}", getuid().as_raw()));
        for (launcher, family) in [(17, 0x24_0000), (18, 0x25_0000)] {
            let session = room.join(format!("pid.{launcher}"));
            fs::create_dir_all(session.join("0")).unwrap();
            fs::write(session.join("contact.txt"), format!("{family}.0;tcp://1.2.3.4:5\n{launcher}\n"))
                .unwrap();
        }
        let kept = ["vader_segment.somewhere.0.250001.0", "something.240001.0"];
        for name in kept.into_iter().chain(["vader_segment.somewhere.0.240001.1"]) {
            fs::write(shared.path().join(name), "").unwrap();
        }
        remove_below(base.path(), shared.path(), 17);
        assert!(!room.join("pid.17").exists() && room.join("pid.18/contact.txt").exists());
        let left = entries(shared.path()).filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let mut left: Vec<String> = left.collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(left, kept);
    }
}
