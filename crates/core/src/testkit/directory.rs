//! Temporary directory of one test.

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Empty directory that no other program uses. Dropping it removes it with its files.
pub struct Directory(PathBuf);

impl Directory {
    /// Creates a directory whose name contains `name`.
    ///
    /// # Panics
    /// The directory for temporary files is not writable.
    pub fn new(name: &str) -> Directory {
        // A killed process of the same number may have left a directory.
        for number in 0.. {
            let path = env::temp_dir().join(format!("ombx-{name}-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Directory(path),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => panic!("{}: {e}", path.display()),
            }
        }
        unreachable!("numbers do not end")
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in the directory and returns its path.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
