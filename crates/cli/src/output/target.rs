//! Files that a command writes. None may be another file of the same command. A result file is never lost to another run: it is new
//! unless the user says otherwise, and has one writer. Pages and reports, which are derived, are replaced as a whole.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{self, Path},
    thread,
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    system::clock::Since,
};
use ombx_results::file::{self, Record};
use rustix::{
    fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock},
    io::Errno,
};

use super::unwritable;
use crate::arguments::output::Existing;

/// Maximum wait for a reader of a FIFO.
const READER: Duration = Duration::from_secs(10);
/// Longest run record in bytes.
const LONGEST_FIRST_LINE: u64 = 1 << 24;
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

/// Refuses a result file that exists and has contents, unless the user chose what happens to it.
pub(crate) fn check_existing(path: &Path, existing: Existing) -> Result<()> {
    if !is_filled(path) {
        return Ok(());
    }
    match existing {
        Existing::Replace => Ok(()),
        Existing::Append => check_results(path),
        Existing::Refuse => Err(Error::usage(format!(
            "{} exists: give another name after -o, or choose --append to add to it or --force to replace it",
            path.display()
        ))),
    }
}

/// Refuses to replace a derived file that exists and has contents.
pub(crate) fn check_new(path: &Path) -> Result<()> {
    if is_filled(path) {
        let path = path.display();
        return Err(Error::usage(format!(
            "{path} exists: give another name after -o, or choose --force to replace it"
        )));
    }
    Ok(())
}

fn is_filled(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0)
}

/// Refuses to append to a file that does not begin with a run, or that was cut off in the middle of a record.
fn check_results(path: &Path) -> Result<()> {
    let read = || -> io::Result<(String, [u8; 1])> {
        let mut lines = BufReader::new(File::open(path)?);
        let (mut first, mut last) = (String::new(), [0]);
        (&mut lines).take(LONGEST_FIRST_LINE).read_line(&mut first)?;
        lines.seek(SeekFrom::End(-1))?;
        lines.read_exact(&mut last)?;
        Ok((first, last))
    };
    let why = match read() {
        Err(error) => error.to_string(),
        Ok((first, _)) if !matches!(file::parse(first.trim_end(), 1), Ok(Some(Record::Run(_)))) => {
            "it does not begin as a result file of ombx does".into()
        }
        Ok((_, [b'\n'])) => return Ok(()),
        Ok(_) => "it was cut off in the middle of a record".into(),
    };
    Err(Error::usage(format!("cannot append to {}: {why}. Give another name after -o", path.display())))
}

/// Opens a result file. No other process of ombx may write it. A FIFO must get a reader within the time limit.
pub(crate) fn open(path: &Path, existing: Existing, limit: Duration) -> Result<File> {
    let failed = |why: io::Error| unwritable(path, &why);
    let mut file = create(path, limit).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Ok(file);
    }
    // Some shared file systems have no locks.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(Error::usage(format!(
            "another process of ombx writes {}: give another name after -o",
            path.display()
        )));
    }
    check_existing(path, existing)?;
    match existing {
        Existing::Append => file.seek(SeekFrom::End(0)).map(drop),
        Existing::Refuse | Existing::Replace => file.set_len(0),
    }
    .map_err(failed)?;
    Ok(file)
}

/// Writes a whole file, such as a page; `-` is standard output. Readers see the old file or the new one, and a failure keeps the old one.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    if path == Path::new("-") {
        return io::stdout().lock().write_all(contents);
    }
    let old = fs::metadata(path);
    if old.as_ref().is_ok_and(|old| !old.is_file()) {
        return File::options().write(true).open(path)?.write_all(contents);
    }
    // A symbolic link stays, and the file that it leads to is replaced.
    let place = fs::canonicalize(path).or_else(|_| path::absolute(path))?;
    let directory = place.parent().ok_or(io::ErrorKind::IsADirectory)?;
    let mode = old.map_or(0o666, |old| old.mode() & 0o7777);
    let mut builder = tempfile::Builder::new();
    let mut new =
        builder.prefix(".ombx-").permissions(Permissions::from_mode(mode)).tempfile_in(directory)?;
    new.write_all(contents)?;
    new.persist(&place)?;
    Ok(())
}

/// Opens a file for writing, and creates it if necessary.
fn create(path: &Path, limit: Duration) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Otherwise the call waits for a reader of a FIFO.
    options.write(true).create(true).truncate(false).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
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
    use ombx_core::error::Kind;
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

    const RUN: &str = include_str!("../../../results/tests/golden/one_launch.jsonl");

    #[test]
    fn a_result_file_is_not_overwritten_unasked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        let write = |existing, text: &str| {
            open(&path, existing, Duration::ZERO).map(|mut file| file.write_all(text.as_bytes()).unwrap())
        };
        let contents = || fs::read_to_string(&path).unwrap();
        write(Existing::Append, RUN).unwrap();
        let refused = write(Existing::Refuse, "x").unwrap_err();
        assert!(refused.to_string().contains("--append") && refused.to_string().contains("--force"));
        assert_eq!((refused.kind(), contents()), (Kind::Usage, RUN.to_owned()));
        write(Existing::Append, RUN).unwrap();
        assert_eq!(contents(), RUN.repeat(2));
        write(Existing::Replace, "").unwrap();
        assert_eq!(contents(), "");
        write(Existing::Refuse, "an empty file has nothing to lose").unwrap();
        let refused = write(Existing::Append, RUN).unwrap_err().to_string();
        assert!(refused.contains("does not begin as a result file"), "{refused}");
        write(Existing::Replace, RUN.trim_end()).unwrap();
        let refused = write(Existing::Append, RUN).unwrap_err().to_string();
        assert!(refused.contains("cut off"), "{refused}");
        assert_eq!(contents(), RUN.trim_end());
    }

    #[test]
    fn a_result_file_has_one_writer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        let first = open(&path, Existing::Refuse, Duration::ZERO).unwrap();
        for existing in [Existing::Refuse, Existing::Replace, Existing::Append] {
            let refused = open(&path, existing, Duration::ZERO).unwrap_err();
            assert!(refused.to_string().contains("another process of ombx writes"), "{refused}");
            assert_eq!(refused.kind(), Kind::Usage);
        }
        drop(first);
        open(&path, Existing::Refuse, Duration::ZERO).unwrap();
        let null = Path::new("/dev/null");
        let _both = [(); 2].map(|()| open(null, Existing::Refuse, Duration::ZERO).unwrap());
    }

    #[test]
    fn a_page_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("page"), "old").unwrap();
        fs::set_permissions(at("page"), Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("page", at("link")).unwrap();
        let reader = File::open(at("page")).unwrap();
        replace(&at("link"), b"new").unwrap();
        replace(&at("other"), b"new").unwrap();
        assert_eq!(io::read_to_string(reader).unwrap(), "old");
        assert_eq!(fs::read_to_string(at("page")).unwrap(), "new");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::metadata(at("page")).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "no temporary file is left");
        assert!(replace(directory.path(), b"new").is_err() && replace(&at("no/page"), b"new").is_err());
        replace(Path::new("/dev/null"), b"new").unwrap();
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
