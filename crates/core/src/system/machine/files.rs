//! Files of a kernel, below any directory.

use std::{fs, path::PathBuf};

/// A file system with the `/proc` and `/sys` of a kernel.
pub(super) struct Files {
    pub(super) root: PathBuf,
}

impl Files {
    /// Returns the trimmed text of a file; `None` if it cannot be read or is empty.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let text = fs::read(self.path(path)).ok()?;
        let text = String::from_utf8_lossy(&text);
        // Files of firmware end with a zero byte.
        let text = text.replace(|c: char| c.is_control() && !c.is_whitespace(), " ");
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the last part of what a link points to.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        target.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Returns the names in a directory, sorted.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
