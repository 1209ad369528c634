//! Files that a command writes: none may be another file of the same command, and opening one ends within a time limit.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::{self, Path},
    thread,
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    system::clock::Since,
};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};

/// Maximum wait for a reader of a FIFO.
const READER: Duration = Duration::from_secs(10);
/// Interval between two attempts to open a FIFO.
const POLL: Duration = Duration::from_millis(20);

/// Refuses to write a file that the same command uses otherwise. Each other file has a description.
pub(crate) fn check<'p>(
    out: &Path,
    option: &str,
    others: impl IntoIterator<Item = (&'static str, &'p Path)>,
) -> Result<()> {
    match others.into_iter().find(|(_, other)| is_same(out, other)) {
        None => Ok(()),
        Some((what, _)) => {
            let out = out.display();
            Err(Error::usage(format!("{out} is {what}: give another name after {option}")))
        }
    }
}

/// Returns whether two paths are one regular file, or the same path of a file that does not exist yet.
fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => {
            path::absolute(one).ok().zip(path::absolute(other).ok()).is_some_and(|(a, b)| a == b)
        }
        _ => false,
    }
}

/// Creates a file, or empties it. A FIFO must get a reader within the time limit.
pub(crate) fn create(path: &Path, limit: Duration) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Otherwise the call waits for a reader of a FIFO.
    options.write(true).create(true).truncate(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let since = Since::now();
    let file = loop {
        match options.open(path) {
            Err(e) if Errno::from_io_error(&e) == Some(Errno::NXIO) && is_fifo(path) => {
                if since.elapsed() > limit.min(READER) {
                    return Err(io::Error::other("no program reads this FIFO"));
                }
                thread::sleep(POLL);
            }
            opened => break opened?,
        }
    };
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn is_fifo(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn another_file_is_known_by_device_and_inode() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("suite"), "text").unwrap();
        fs::hard_link(at("suite"), at("hard")).unwrap();
        std::os::unix::fs::symlink(at("suite"), at("soft")).unwrap();
        fs::write(at("other"), "text").unwrap();
        let refused = |out: &str, other: &str| {
            let others = [at("other"), at(other)];
            check(&at(out), "-o", others.iter().map(|other| ("the suite", other.as_path()))).is_err()
        };
        for (out, other) in [("suite", "suite"), ("hard", "suite"), ("soft", "hard"), ("new", "new")] {
            assert!(refused(out, other), "{out} {other}");
        }
        for (out, other) in [("new", "suite"), ("suite", "new"), ("suite", "newer")] {
            assert!(!refused(out, other), "{out} {other}");
        }
        let null = Path::new("/dev/null");
        assert!(check(null, "-o", [("the sink", null)]).is_ok());
    }

    #[test]
    fn a_fifo_needs_a_reader() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let error = create(&path, Duration::from_millis(100)).unwrap_err();
        assert!(error.to_string().contains("no program reads"), "{error}");
        let there = path.clone();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            File::open(there).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
        });
        create(&path, Duration::from_secs(10)).unwrap().write_all(b"row").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), "row");
    }
}
