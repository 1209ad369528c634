//! Files that a command writes. None may be another file of the same command. A result file is never lost to another run: it is new
//! unless the user says otherwise, and has one writer. Pages and reports, which are derived, are replaced as a whole.

use std::{
    borrow::Cow,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{self, Path, PathBuf},
    thread,
    time::Duration,
};

use ombx_estimate::launches::Group;
use ombx_host::since::Since;
use ombx_record::{
    error::{Error, Result},
    event::Event,
    file,
};
use ombx_show::Renderer;
use rustix::{
    fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock},
    io::Errno,
};
use tempfile::NamedTempFile;

use crate::output::{destination::Existing, unwritable};

/// Maximum wait for a reader of a FIFO.
const READER: Duration = Duration::from_secs(10);
/// Beginning of a result file.
const FIRST_RECORD: &[u8; 13] = b"{\"kind\":\"run\"";
/// Longest run record in bytes.
const LONGEST_FIRST_LINE: u64 = 1 << 24;
/// Interval between two attempts to open a FIFO.
const POLL: Duration = Duration::from_millis(20);

/// Description of a file that a command reads, for [`check`].
pub const READ: &str = "a result file that is read";

/// Refuses to write a file that the same command uses otherwise. Each other file has a description.
pub fn check<'p>(
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

/// Refuses a file that a command would use twice: options that write need a file each, and none of those that are `used` otherwise.
/// Each used file has a description.
pub fn check_all(written: &[(&str, Option<&PathBuf>)], used: &[(&'static str, PathBuf)]) -> Result<()> {
    let written: Vec<_> =
        written.iter().filter_map(|(option, path)| Some((*option, path.as_ref()?.as_path()))).collect();
    for (number, (option, path)) in written.iter().enumerate() {
        check(path, option, used.iter().map(|(what, other)| (*what, other.as_path())))?;
        if let Some((other, _)) = written[..number].iter().find(|(_, other)| is_same(path, other)) {
            let path = path.display();
            return Err(Error::usage(format!(
                "{path} is also the file of {other}: give another name after {option}"
            )));
        }
    }
    Ok(())
}

/// Returns whether two paths are one regular file, or one place for a file that does not exist yet. Standard input and output are
/// no files.
fn is_same(one: &Path, other: &Path) -> bool {
    if [one, other].contains(&Path::new("-")) {
        return false;
    }
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => place(one).is_some_and(|one| Some(one) == place(other)),
        _ => false,
    }
}

/// Returns the path at which a new file would appear, without links to directories; `None` without its directory.
fn place(path: &Path) -> Option<PathBuf> {
    let path = path::absolute(path).ok()?;
    Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?))
}

/// Refuses a result file that exists and has contents, unless the user chose what happens to it.
pub fn check_existing(path: &Path, existing: Existing) -> Result<()> {
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
pub fn check_new(path: &Path) -> Result<()> {
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
    let why = match read_ends(path) {
        Err(error) => error.to_string(),
        Ok((first, _)) if !matches!(file::parse(first.trim_end(), 1), Ok(Some(Event::Run(_)))) => {
            "it does not begin as a result file of ombx does".into()
        }
        Ok((_, [b'\n'])) => return Ok(()),
        Ok(_) => "it was cut off in the middle of a record".into(),
    };
    Err(Error::usage(format!("cannot append to {}: {why}. Give another name after -o", path.display())))
}

/// Reads the first line and the last byte of a file.
fn read_ends(path: &Path) -> io::Result<(String, [u8; 1])> {
    let mut lines = BufReader::new(File::open(path)?);
    let (mut first, mut last) = (String::new(), [0]);
    (&mut lines).take(LONGEST_FIRST_LINE).read_line(&mut first)?;
    lines.seek(SeekFrom::End(-1))?;
    lines.read_exact(&mut last)?;
    Ok((first, last))
}

/// A result file that is written. A file that it replaces stays until the first record is there.
pub struct ResultTarget {
    path: PathBuf,
    file: File,
    /// Whether the file is the old one, which is locked and not written.
    is_old: bool,
    /// Length of a regular file after the last record; `None` after a record that could not be written.
    length: Option<u64>,
}

impl ResultTarget {
    /// Opens a result file. No other process of ombx may write it. A FIFO must get a reader within the time limit.
    pub fn open(path: &Path, existing: Existing, limit: Duration) -> Result<ResultTarget> {
        let failed = |why: io::Error| unwritable(path, &why);
        let mut file = create(path, limit).map_err(failed)?;
        let (mut is_old, mut length) = (false, None);
        let data = file.metadata().map_err(failed)?;
        if data.is_file() {
            length = Some(data.len());
            // Some shared file systems have no locks.
            if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
                return Err(Error::usage(format!(
                    "another process of ombx writes {}: give another name after -o",
                    path.display()
                )));
            }
            check_existing(path, existing)?;
            match existing {
                Existing::Append => drop(file.seek(SeekFrom::End(0)).map_err(failed)?),
                Existing::Refuse | Existing::Replace => is_old = data.len() > 0,
            }
        }
        Ok(ResultTarget { path: path.to_owned(), file, is_old, length })
    }

    /// Writes records.
    ///
    /// # Errors
    /// They cannot be written, or another program has written or removed the file.
    pub fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        self.check_unchanged()?;
        let written = if self.is_old {
            let replaced = self.replace(write);
            self.is_old = replaced.is_err();
            replaced
        } else {
            write(&mut self.file).and_then(|()| self.file.flush())
        };
        let measured = written.and_then(|()| self.measure());
        // A part of the record may be in the file, which has not been changed by another program for that.
        self.length = self.length.filter(|_| measured.is_ok());
        measured.map_err(|e| unwritable(&self.path, &e))
    }

    /// Takes note of the length of the file.
    fn measure(&mut self) -> io::Result<()> {
        if let Some(length) = &mut self.length {
            *length = self.file.stream_position()?;
        }
        Ok(())
    }

    /// Fails if another program has written, replaced or removed the file: what follows would not be readable there.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let Some(length) = self.length else { return Ok(()) };
        let path = self.path.display();
        let lost = |how: &str| {
            Err(Error::storage(format!("results are lost: {path} was {how} while it was written")))
        };
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(file), _) if file.nlink() == 0 => lost("removed"),
            (Ok(file), _) if file.len() != length => lost("changed by another program"),
            (Ok(file), Ok(there)) if (file.dev(), file.ino()) != (there.dev(), there.ino()) => {
                Err(Error::storage(format!(
                    "results are not in {path}: it was replaced by another file while it was written"
                )))
            }
            (Ok(_), Err(e)) if e.kind() == ErrorKind::NotFound => {
                Err(Error::storage(format!("results are not in {path}: it was moved while it was written")))
            }
            _ => Ok(()),
        }
    }

    /// Writes the first records to a new file, which takes the place of the old one.
    fn replace(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let place = fs::canonicalize(&self.path)?;
        let mut new = match beside(&place, self.file.metadata()?.mode()) {
            Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
                // The directory cannot be written, but the file can.
                self.file.set_len(0)?;
                return write(&mut self.file);
            }
            new => new?,
        };
        write(&mut new)?;
        let _ = flock(&new, FlockOperation::NonBlockingLockExclusive);
        match new.persist(&place) {
            Ok(file) => self.file = file,
            // A file that is mounted by itself cannot be replaced.
            Err(e) if matches!(e.error.kind(), ErrorKind::ResourceBusy | ErrorKind::CrossesDevices) => {
                let records = fs::read(e.file.path())?;
                self.file.set_len(0)?;
                self.file.write_all(&records)?;
            }
            Err(e) => return Err(e.error),
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Creates a file in the directory of another one.
fn beside(place: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let directory = place.parent().ok_or(io::ErrorKind::IsADirectory)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ombx-").permissions(Permissions::from_mode(mode & 0o7777)).tempfile_in(directory)
}

/// Writes a whole file, such as a page; `-` is standard output. Readers see the old file or the new one, and a failure keeps the old one.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    replace_by(path, |out| out.write_all(contents))
}

/// Writes a whole file as [`replace`] does, by a function.
pub fn replace_by(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let buffered = |file: &mut dyn Write| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    };
    if path == Path::new("-") {
        return buffered(&mut io::stdout().lock());
    }
    let old = fs::metadata(path);
    if old.as_ref().is_ok_and(|old| !old.is_file()) {
        return buffered(&mut File::options().write(true).open(path)?);
    }
    // A symbolic link stays, and the file that it leads to is replaced.
    let place = fs::canonicalize(path).or_else(|_| path::absolute(path))?;
    let mut new = beside(&place, old.map_or(0o666, |old| old.mode()))?;
    buffered(&mut new)?;
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

/// Refuses a derived file that could not be written at the end, or that would replace a result file. `-` is standard output.
pub fn check_path(option: &str, path: &Path) -> Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    let directory = std::path::absolute(path).ok().and_then(|path| path.parent().map(PathBuf::from));
    let path_shown = path.display();
    if path.is_dir() || !directory.is_some_and(|directory| directory.is_dir()) {
        return Err(Error::storage(format!(
            "{option}: {path_shown} is not a file in a directory that exists"
        )));
    }
    if is_result(path) {
        return Err(Error::usage(format!(
            "{path_shown} is a result file, which {option} would replace: give another name after {option}"
        )));
    }
    Ok(())
}

/// Returns whether a file has the name of a result file, or begins as one does.
fn is_result(path: &Path) -> bool {
    let mut first = [0; FIRST_RECORD.len()];
    let mut begins = || File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok();
    is_filled(path) && (file::is_named_as_result(path) || begins() && first == *FIRST_RECORD)
}

/// Renderer of a job, and the file that gets its text.
pub(crate) struct FileAtEnd {
    pub(super) path: PathBuf,
    pub(super) renderer: Box<dyn Renderer>,
    /// Whether a run began. Otherwise the file of the earlier run stays.
    has_run: bool,
}

impl FileAtEnd {
    /// Fails if the file could not be written at the end.
    pub(crate) fn open(option: &str, path: PathBuf, renderer: Box<dyn Renderer>) -> Result<FileAtEnd> {
        check_path(option, &path)?;
        Ok(FileAtEnd { path, renderer, has_run: false })
    }

    /// Takes an event of a launch.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.has_run |= matches!(event, Event::Run(_));
        self.renderer.event(&mut io::sink(), event)
    }

    /// Takes the rows over all launches of a setup.
    pub(crate) fn estimates(&mut self, group: &Group) -> io::Result<()> {
        let rows = group.estimates();
        let end = Event::End { outcome: group.outcome(), tally: ombx_estimate::launches::tally(&rows) };
        self.event(&Event::Run(Cow::Owned(group.described())))?;
        rows.into_iter().try_for_each(|row| self.event(&Event::Case(Cow::Owned(row))))?;
        self.event(&end)
    }

    /// Returns the text of the file; `None` if it stays as it is.
    pub(crate) fn finish(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        self.renderer.finish(&mut text).map(|()| self.has_run.then_some(text))
    }
}

#[cfg(test)]
mod tests {
    use ombx_record::error::Kind;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use crate::output::target::*;

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
        for name in ["/dev/null", "-"] {
            assert!(check(Path::new(name), "-o", [("the sink", Path::new(name))]).is_ok(), "{name}");
        }
    }

    #[test]
    fn each_option_writes_a_file_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("old"), "text").unwrap();
        fs::create_dir(at("sub")).unwrap();
        std::os::unix::fs::symlink("sub", at("link")).unwrap();
        let refused = |one: &Path, other: &Path| {
            let (one, other) = (one.to_owned(), other.to_owned());
            check_all(&[("-o", Some(&one)), ("--none", None), ("--junit", Some(&other))], &[]).is_err()
        };
        for (one, other) in [("new", "new"), ("old", "./old"), ("new", "sub/../new"), ("sub/new", "link/new")]
        {
            assert!(refused(&at(one), &at(other)), "{one} {other}");
        }
        for (one, other) in [("new", "old"), ("new", "sub/new"), ("absent/new", "absent/new")] {
            assert!(!refused(&at(one), &at(other)), "{one} {other}");
        }
        for name in ["-", "/dev/null"].map(Path::new) {
            assert!(!refused(name, name), "{name:?}");
        }
        let read = [("the suite", at("old"))];
        assert!(check_all(&[("--junit", Some(&at("old")))], &read).is_err());
        assert!(check_all(&[("--junit", Some(&at("new")))], &read).is_ok());
    }

    const RUN: &str = include_str!("../../../record/tests/golden/one_launch.jsonl");

    #[test]
    fn a_derived_file_replaces_no_result_file() {
        let directory = tempfile::tempdir().unwrap();
        for (name, contents, is_refused) in [
            ("r.jsonl", RUN, true),
            ("results", RUN, true),
            ("r.jsonl.gz", "compressed", true),
            ("empty.jsonl", "", false),
            ("report.xml", "<?xml", false),
            ("short", "{", false),
        ] {
            let path = directory.path().join(name);
            fs::write(&path, contents).unwrap();
            assert_eq!(check_path("--junit", &path).is_err(), is_refused, "{name}");
        }
        assert!(check_path("--junit", &directory.path().join("new.jsonl")).is_ok());
        assert!(check_path("--junit", Path::new("-")).is_ok());
    }

    #[test]
    fn a_result_file_is_not_overwritten_unasked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        let write = |existing, text: &str| {
            let opened = ResultTarget::open(&path, existing, Duration::ZERO);
            opened.map(|mut file| file.write(|out| out.write_all(text.as_bytes())).unwrap())
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
        let open = |path: &Path, existing| ResultTarget::open(path, existing, Duration::ZERO);
        let has_writer = || {
            for existing in [Existing::Refuse, Existing::Replace, Existing::Append] {
                let refused = open(&path, existing).err().unwrap();
                assert!(refused.to_string().contains("another process of ombx writes"), "{refused}");
                assert_eq!(refused.kind(), Kind::Usage);
            }
        };
        let mut first = open(&path, Existing::Refuse).unwrap();
        has_writer();
        first.write(|out| out.write_all(b"old")).unwrap();
        drop(first);
        let mut second = open(&path, Existing::Replace).unwrap();
        has_writer();
        second.write(|out| out.write_all(b"new")).unwrap();
        has_writer();
        drop(second);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let null = Path::new("/dev/null");
        let _both = [(); 2].map(|()| open(null, Existing::Refuse).unwrap());
    }

    #[test]
    fn an_old_file_stays_until_the_first_record() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("r.jsonl", directory.path().join("link")).unwrap();
        let contents = || fs::read_to_string(&path).unwrap();
        let open =
            || ResultTarget::open(&directory.path().join("link"), Existing::Replace, Duration::ZERO).unwrap();
        drop(open());
        assert_eq!(contents(), "old", "nothing was written");
        let mut file = open();
        assert!(file.write(|_| Err(io::Error::other("no space"))).is_err());
        drop(file);
        assert_eq!(contents(), "old", "a record cannot be written");
        let mut file = open();
        for text in ["a", "b"] {
            file.write(|out| out.write_all(text.as_bytes())).unwrap();
        }
        assert_eq!(contents(), "ab");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "no temporary file is left");
        fs::remove_file(&path).unwrap();
        assert!(file.check_unchanged().unwrap_err().to_string().contains("was removed"));
        // A part of a record is in the file if the disk becomes full.
        let mut file = ResultTarget::open(&path, Existing::Replace, Duration::ZERO).unwrap();
        let part = file.write(|out| out.write_all(b"part").and(Err(io::ErrorKind::StorageFull.into())));
        assert!(part.unwrap_err().to_string().contains("the disk is full"));
        assert!(file.check_unchanged().is_ok(), "no other program has changed it");
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
