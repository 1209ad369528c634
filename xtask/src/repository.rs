//! The text files of the repository, as a fresh clone would have them.

use std::{fs, path::Path};

use ombx_toolchain::failure::{Failure, Result};

/// Returns path and text of each file, sorted. Paths are relative to the root; build output and binary files are left out.
pub(crate) fn files(root: &Path) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    walk(root, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(root: &Path, below: &str, found: &mut Vec<(String, String)>) -> Result<()> {
    let directory = root.join(below);
    let fail = |source| Failure::File { path: directory.clone(), source };
    for entry in fs::read_dir(&directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            // Cargo marks target directories, which may have any name.
            let ignored = [".git", "target", "runs"].contains(&name.as_str());
            if !ignored && !entry.path().join("CACHEDIR.TAG").exists() {
                walk(root, &path, found)?;
            }
        } else if kind.is_file() {
            // Skips files that are not text, and files that were removed meanwhile.
            if let Ok(text) = fs::read_to_string(entry.path()) {
                found.push((path, text));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_that_belongs_to_the_repository_is_read() {
        let root = tempfile::tempdir().unwrap();
        for directory in ["a", ".git", "target", "out"] {
            fs::create_dir(root.path().join(directory)).unwrap();
            fs::write(root.path().join(directory).join("f.rs"), "x").unwrap();
        }
        fs::write(root.path().join("out/CACHEDIR.TAG"), "").unwrap();
        fs::write(root.path().join("picture"), [0xff, 0xfe, 0x00]).unwrap();
        assert_eq!(files(root.path()).unwrap(), [("a/f.rs".to_owned(), "x".to_owned())]);
    }
}
