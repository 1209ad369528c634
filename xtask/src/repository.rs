//! The text files of the repository, as git lists them.

use std::{fs, path::Path, process::Command};

use ombx_toolchain::{Result, output};

/// Options of [`files`] for what a clone would have if everything were committed.
pub(crate) const NOT_IGNORED: &[&str] = &["--cached", "--others", "--exclude-standard"];

/// Returns path and text of each file that `git ls-files` lists with these options, sorted; without options, what git tracks. Paths are
/// relative to the root. Leaves out binary files, links, and files that are removed in the work tree.
pub(crate) fn files(root: &Path, options: &[&str]) -> Result<Vec<(String, String)>> {
    let paths = output(Command::new("git").args(["ls-files", "-z"]).args(options).current_dir(root))?;
    let read = |path: &str| Some((path.to_owned(), text(&root.join(path))?));
    let mut found: Vec<(String, String)> = paths.split('\0').filter_map(read).collect();
    found.sort();
    Ok(found)
}

/// Returns the text of a file; `None` for a link, a binary file, and a file that does not exist.
fn text(file: &Path) -> Option<String> {
    let is_file = fs::symlink_metadata(file).is_ok_and(|found| found.is_file());
    is_file.then(|| fs::read_to_string(file).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_that_belongs_to_the_repository_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        output(Command::new("git").args(["init", "--quiet"]).current_dir(root)).unwrap();
        for directory in ["a", "out"] {
            fs::create_dir(root.join(directory)).unwrap();
            fs::write(root.join(directory).join("f.rs"), "x").unwrap();
        }
        fs::write(root.join(".git/info/exclude"), "/out\n").unwrap();
        fs::write(root.join("picture"), [0xff, 0xfe, 0x00]).unwrap();
        assert_eq!(files(root, NOT_IGNORED).unwrap(), [("a/f.rs".to_owned(), "x".to_owned())]);
        assert!(files(root, &[]).unwrap().is_empty());
    }
}
