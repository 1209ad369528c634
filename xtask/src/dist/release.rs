//! The version that is published: a tagged commit without changes.

use std::{path::Path, process::Command};

use ombx_toolchain::{Failure, Result, output};

use crate::install::prefix::VERSION;

/// Commit that is published.
#[derive(Debug)]
pub(super) struct Release {
    /// Version of the packages and of the archive.
    pub(super) version: String,
    /// Full hash.
    pub(super) commit: String,
    /// Date of the commit, in the form of RFC 2822.
    pub(super) date: String,
    /// The same date in seconds since 1970.
    pub(super) seconds: String,
}

impl Release {
    /// Returns the release of the last commit. An error if files have changed since, or if it has no tag and `untagged` is not set.
    pub(super) fn read(root: &Path, untagged: bool) -> Result<Self> {
        let git = |words: &[&str]| {
            output(Command::new("git").args(words).current_dir(root)).map(|text| text.trim().to_owned())
        };
        let changed = git(&["status", "--porcelain"])?;
        if let Some(file) = changed.lines().next() {
            return Err(Failure::Usage(format!("{} is not committed: commit or remove it", file.trim())));
        }
        let tag = format!("v{VERSION}");
        let commit = git(&["rev-parse", "HEAD"])?;
        let is_tagged = git(&["tag", "--points-at", "HEAD"])?.lines().any(|line| line == tag);
        let version = match (is_tagged, untagged) {
            (true, _) => VERSION.to_owned(),
            // Package managers sort a version with a tilde before the version without it.
            (false, true) => format!("{VERSION}~g{}", &commit[..12]),
            (false, false) => {
                return Err(Failure::Usage(format!(
                    "the last commit has no tag {tag}: run `git tag {tag}`, or give --untagged for a trial"
                )));
            }
        };
        let (date, seconds) = (git(&["log", "-1", "--format=%cD"])?, git(&["log", "-1", "--format=%ct"])?);
        Ok(Self { version, commit, date, seconds })
    }

    /// Returns the name of the archive and of its only directory.
    pub(super) fn name(&self) -> String {
        format!("ombx-{}", self.version)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn git(root: &Path, line: &str) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        output(Command::new("git").args(identity).args(line.split(' ')).current_dir(root)).unwrap();
    }

    #[test]
    fn only_a_tagged_commit_without_changes_is_a_release() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        git(root, "init --quiet");
        fs::write(root.join("file"), "1").unwrap();
        assert!(Release::read(root, true).unwrap_err().to_string().contains("file is not committed"));
        git(root, "add file");
        git(root, "commit --quiet -m one");
        assert!(Release::read(root, false).unwrap_err().to_string().contains(&format!("git tag v{VERSION}")));
        let trial = Release::read(root, true).unwrap();
        assert!(trial.version.starts_with(&format!("{VERSION}~g")), "{trial:?}");
        git(root, &format!("tag v{VERSION}"));
        let release = Release::read(root, false).unwrap();
        assert_eq!((release.version.as_str(), release.name()), (VERSION, format!("ombx-{VERSION}")));
        assert!(release.seconds.parse::<u64>().is_ok());
    }
}
