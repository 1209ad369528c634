//! Files that another user may have put where ombx looks, and files that may have no end.
//!
//! A file that ombx finds, such as an index, is opened without following a link and without waiting. It must be a regular file of a
//! bounded length. A file that the user names may be a link, a pipe or a device; only its length is bounded.

use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io::{self, ErrorKind, Read, Seek, Write},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{OnceLock, mpsc},
    thread,
    time::Duration,
};

use rustix::{
    fs::{MemfdFlags, OFlags, memfd_create},
    io::Errno,
};

/// Maximum length in bytes of a text that the user names, such as a suite, an inventory or a list.
pub const LONGEST_TEXT: u64 = 16 << 20;
/// Maximum wait for a program that writes a FIFO.
const WRITER: Duration = Duration::from_secs(10);

/// Opens a regular file that the user did not name, and reads at most `longest` bytes of it.
///
/// # Errors
/// It cannot be opened, is a link, is not a regular file, or is longer.
pub fn open_found(path: &Path, longest: u64) -> io::Result<io::Take<File>> {
    // A FIFO would block without O_NONBLOCK.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|e| {
        if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
            io::Error::other("it is a link")
        } else {
            e
        }
    })?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if about.len() > longest {
        return Err(too_long(longest));
    }
    Ok(file.take(longest))
}

/// Reads a whole file that the user did not name.
///
/// # Errors
/// Those of [`open_found`], and it cannot be read.
pub fn read_found(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    open_found(path, longest)?.read_to_end(&mut contents)?;
    Ok(contents)
}

/// Reads a whole text that the user did not name.
///
/// # Errors
/// Those of [`read_found`], and it is not UTF-8.
pub fn read_found_text(path: &Path, longest: u64) -> io::Result<String> {
    String::from_utf8(read_found(path, longest)?).map_err(|_| io::Error::other("it is not a text in UTF-8"))
}

/// Opens a file that the user names. A FIFO must get a writer within ten seconds.
///
/// # Errors
/// It cannot be opened, or no program writes this FIFO.
pub fn open_named(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.file_type().is_fifo() {
        return File::open(path);
    }
    let (sender, opened) = mpsc::channel();
    let fifo = path.to_owned();
    thread::Builder::new().name("fifo".into()).spawn(move || drop(sender.send(File::open(fifo))))?;
    opened.recv_timeout(WRITER).unwrap_or_else(|_| Err(io::Error::other("no program writes this FIFO")))
}

/// Path that means standard input.
const DASH: &str = "-";

/// Text on standard input, which can be read once.
static STANDARD_INPUT: OnceLock<String> = OnceLock::new();

/// Returns the name of a file of the user in messages.
pub fn shown_name(path: &Path) -> String {
    if path == Path::new(DASH) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Reads a text that the user names, of at most [`LONGEST_TEXT`] bytes. `-` is standard input: only for a text that ranks do not read.
///
/// # Errors
/// Those of [`open_named`]; it cannot be read, is longer, or is not UTF-8; standard input is empty.
pub fn read_named(path: &Path) -> io::Result<String> {
    if path != Path::new(DASH) {
        return text_of(open_named(path)?);
    }
    if let Some(text) = STANDARD_INPUT.get() {
        return Ok(text.clone());
    }
    let text = text_of(io::stdin())?;
    if text.is_empty() {
        return Err(io::Error::other("nothing is on standard input"));
    }
    Ok(STANDARD_INPUT.get_or_init(|| text).clone())
}

/// Reads a text that the user names and that each rank reads. Ranks have other standard inputs, so that `-` is an error.
///
/// # Errors
/// Those of [`read_named`], and the path is `-`.
pub fn read_named_on_ranks(path: &Path) -> io::Result<String> {
    if path == Path::new(DASH) {
        return Err(io::Error::other("each rank reads this text: give a file that every host has"));
    }
    read_named(path)
}

/// Returns the standard input of a child that reads the same texts: what [`read_named`] has read there, or nothing.
///
/// # Errors
/// There is no memory for the text.
pub fn standard_input_again() -> io::Result<Stdio> {
    STANDARD_INPUT
        .get()
        .map_or_else(|| Ok(Stdio::null()), |text| file_in_memory(text.as_bytes()).map(Stdio::from))
}

/// Returns a file without a name that has these contents, as the standard input of a child.
///
/// # Errors
/// There is no memory for the file.
pub fn file_in_memory(contents: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("ombx-input", MemfdFlags::CLOEXEC)?);
    file.write_all(contents)?;
    file.rewind()?;
    Ok(file)
}

fn text_of(input: impl Read) -> io::Result<String> {
    let mut contents = Vec::new();
    input.take(LONGEST_TEXT + 1).read_to_end(&mut contents)?;
    if contents.len() as u64 > LONGEST_TEXT {
        return Err(too_long(LONGEST_TEXT));
    }
    String::from_utf8(contents).map_err(|_| io::Error::other("it is not a text in UTF-8"))
}

fn too_long(longest: u64) -> io::Error {
    io::Error::other(format!("it is longer than {} KiB", longest >> 10))
}

/// Writes a file that the user did not name. Readers see the old file or the new one. A link is replaced, not followed.
///
/// # Errors
/// A file of the directory cannot be written or renamed.
pub fn replace_found(path: &Path, contents: &[u8]) -> io::Result<()> {
    let new = NewFile::beside(path)?;
    new.file().write_all(contents)?;
    new.rename_to(path)
}

/// A new file of a directory, which is removed unless it gets its name.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    is_named: bool,
}

impl NewFile {
    /// Creates a file with a name of its own in the directory of a path.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn beside(path: &Path) -> io::Result<NewFile> {
        loop {
            let path = path.with_file_name(format!(".ombx-{:016x}", RandomState::new().hash_one(0)));
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                opened => return Ok(NewFile { file: opened?, path, is_named: false }),
            }
        }
    }

    /// Returns the open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, in the same directory.
    ///
    /// # Errors
    /// The name is that of a directory, or the directory cannot be written.
    pub fn rename_to(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.is_named = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_named {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use ombx_testkit::Directory;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    /// Returns a directory with a file, a link to it, a FIFO, and a file without an end worth mentioning.
    fn directory(name: &str) -> Directory {
        let directory = Directory::new(name);
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        File::create(at("endless")).unwrap().set_len(1 << 40).unwrap();
        directory
    }

    #[test]
    fn only_regular_files_of_a_bounded_length_are_found() {
        let directory = directory("found-files");
        let read = |name: &str| read_found_text(&directory.path().join(name), 4).map_err(|e| e.to_string());
        assert_eq!(read("file").unwrap(), "text");
        assert_eq!(read("link").unwrap_err(), "it is a link");
        assert_eq!(read("fifo").unwrap_err(), "it is not a regular file");
        assert_eq!(read(".").unwrap_err(), "it is not a regular file");
        assert_eq!(read("endless").unwrap_err(), "it is longer than 0 KiB");
        fs::write(directory.path().join("file"), [255]).unwrap();
        assert_eq!(read("file").unwrap_err(), "it is not a text in UTF-8");
    }

    #[test]
    fn a_link_is_replaced_and_its_target_stays() {
        let directory = directory("replaced-files");
        let at = |name: &str| directory.path().join(name);
        for name in ["link", "fifo", "new"] {
            replace_found(&at(name), b"new").unwrap();
            assert_eq!(read_found(&at(name), 3).unwrap(), b"new");
        }
        assert_eq!(fs::read(at("file")).unwrap(), b"text");
        fs::create_dir(at("directory")).unwrap();
        assert!(replace_found(&at("directory"), b"new").is_err());
        let hidden = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
        let left = fs::read_dir(directory.path()).unwrap().flatten().filter(hidden);
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_text_that_the_user_names_may_be_a_link_or_a_pipe_but_not_endless() {
        let directory = directory("named-files");
        let at = |name: &str| directory.path().join(name);
        assert_eq!(read_named(&at("link")).unwrap(), "text");
        let fifo = at("fifo");
        let writer = thread::spawn(move || fs::write(fifo, "piped").unwrap());
        assert_eq!(read_named(&at("fifo")).unwrap(), "piped");
        writer.join().unwrap();
        for endless in [Path::new("/dev/zero"), &at("endless")] {
            assert_eq!(read_named(endless).unwrap_err().to_string(), "it is longer than 16384 KiB");
        }
        assert!(read_named(&at("absent")).is_err());
    }
}
