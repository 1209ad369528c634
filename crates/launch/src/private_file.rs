//! Files with a secret that only this user may read.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use ombx_record::error::{Error, Result};
use rustix::{fs::OFlags, io::Errno, process::geteuid};

/// Maximum length in bytes of what is read.
const LONGEST: u64 = 1 << 16;

/// Writes a new file that only this user may read.
///
/// # Errors
/// Usage error: the file exists, or cannot be written.
pub fn create(file: &Path, text: &str) -> Result<()> {
    let failed = |e: io::Error| cannot_create(file, &e);
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(failed)?;
    to.write_all(text.as_bytes()).map_err(failed)
}

/// Returns the error about a file that cannot be created or written.
fn cannot_create(file: &Path, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            Error::usage(format!("{} already exists: remove it, or give another file", file.display()))
        }
        _ => Error::usage(format!("cannot write {}: {error}", file.display())),
    }
}

/// Reads the file of an option, or returns `None` if there is none that can be opened.
///
/// # Errors
/// Usage error: it is a link or no regular file, belongs to another user, or others have access to it.
pub(crate) fn read(option: &str, file: &Path) -> Result<Option<String>> {
    let refused = |why: &str| Err(refusal(option, file, why));
    // A FIFO would block without O_NONBLOCK.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let opened = match OpenOptions::new().read(true).custom_flags(flags).open(file) {
        Ok(opened) => opened,
        Err(e) if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return refused("it is a link"),
        Err(_) => return Ok(None),
    };
    let Ok(about) = opened.metadata() else { return Ok(None) };
    match () {
        () if !about.is_file() => return refused("it is not a regular file"),
        () if about.uid() != geteuid().as_raw() => return refused("it belongs to another user"),
        () if about.mode() & 0o077 != 0 => return refused("others have access to it"),
        () => {}
    }
    let mut text = String::new();
    Ok(opened.take(LONGEST).read_to_string(&mut text).is_ok().then_some(text))
}

/// Returns the error about a file that is not safe to read.
fn refusal(option: &str, file: &Path, why: &str) -> Error {
    Error::usage(format!(
        "{option} {}: {why}; remove it, or give a file in a directory that only you can write to",
        file.display()
    ))
}

/// Returns whether a file exists, whatever it is.
pub fn exists(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use crate::private_file::*;

    #[test]
    fn a_file_that_others_may_have_written_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        assert!(read("--rendezvous", &file).unwrap().is_none() && !exists(&file));
        create(&file, "secret\n").unwrap();
        assert_eq!(read("--rendezvous", &file).unwrap().unwrap(), "secret\n");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let refused = |path: &Path| read("--rendezvous", path).unwrap_err().to_string();
        assert!(refused(&link).contains("it is a link"));
        assert!(refused(directory.path()).contains("not a regular file"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(refused(&file).contains("others have access"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        // Only root may give a file to another user.
        if geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(12_345), None).unwrap();
            assert!(refused(&file).contains("another user"));
        }
    }
}
