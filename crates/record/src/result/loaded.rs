//! Program and libraries that a rank has loaded, known by their contents.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Files that rank 0 has loaded when its transport is initialised.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedFiles {
    /// The program.
    pub program: LoadedFile,
    /// Libraries that communicate: MPI, and those that it sends by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<LoadedFile>,
    /// Files that `LD_PRELOAD` or `/etc/ld.so.preload` names and the loader has loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloads: Vec<LoadedFile>,
    /// All other files with code.
    pub others: OtherFiles,
}

/// A loaded file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedFile {
    /// Path, without symbolic links.
    pub path: String,
    /// GNU build ID, in hexadecimal digits; `None` for a file without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Its contents; `None` if the file was unreadable, or was removed or replaced since it was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
}

/// Length and checksum of a file. Two different files of one length have the same by chance once in 2^32.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contents {
    /// Length.
    pub bytes: u64,
    /// CRC-32 as in gzip, in eight hexadecimal digits.
    pub crc32: String,
}

/// Files that are not listed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherFiles {
    /// Number of files.
    pub count: u64,
    /// CRC-32 of their build IDs, in the order of the names of the files. A file without a build ID has length and CRC-32 of its contents.
    pub crc32: String,
}

impl LoadedFiles {
    /// Returns program, libraries and preloads.
    pub fn listed(&self) -> impl Iterator<Item = &LoadedFile> {
        [&self.program].into_iter().chain(&self.libraries).chain(&self.preloads)
    }

    /// Returns whether these are the same files as `other`, wherever they lie. Files whose contents are unknown are not.
    pub fn are_equal(&self, other: &LoadedFiles) -> bool {
        self.others == other.others
            && self.program.is_equal(&other.program)
            && are_all_equal(&self.libraries, &other.libraries)
            && are_all_equal(&self.preloads, &other.preloads)
    }

    /// Returns the files of both that have the same path and other contents, each as `self` and as `other` loaded it.
    pub fn replaced<'a>(&'a self, other: &'a LoadedFiles) -> Vec<(&'a LoadedFile, &'a LoadedFile)> {
        let later = |file: &LoadedFile| other.listed().find(|later| later.path == file.path);
        let pairs = self.listed().filter_map(|file| Some((file, later(file)?)));
        pairs.filter(|(file, later)| file.is_other(later)).collect()
    }
}

/// Returns whether both lists have the same contents, in any order.
fn are_all_equal(one: &[LoadedFile], other: &[LoadedFile]) -> bool {
    let mut rest: Vec<&LoadedFile> = other.iter().collect();
    let is_found = one.iter().all(|file| {
        let at = rest.iter().position(|other| file.is_equal(other));
        at.map(|at| rest.swap_remove(at)).is_some()
    });
    is_found && rest.is_empty()
}

impl LoadedFile {
    /// Returns whether both are known to have the same contents.
    fn is_equal(&self, other: &LoadedFile) -> bool {
        self.contents.is_some() && self.contents == other.contents
    }

    /// Returns whether both are known to have other contents.
    fn is_other(&self, other: &LoadedFile) -> bool {
        let differ = |one: Option<bool>| one.unwrap_or(false);
        let contents = self.contents.as_ref().zip(other.contents.as_ref()).map(|(a, b)| a != b);
        let builds = self.build_id.as_ref().zip(other.build_id.as_ref()).map(|(a, b)| a != b);
        differ(contents) || differ(builds)
    }

    /// Returns what identifies the contents: `build ID 0123abcd, CRC-32 89abcdef`.
    pub fn identity(&self) -> String {
        let build = self.build_id.as_ref().map(|id| format!("build ID {id}"));
        let contents = self.contents.as_ref().map(|Contents { crc32, .. }| format!("CRC-32 {crc32}"));
        let parts: Vec<String> = build.into_iter().chain(contents).collect();
        if parts.is_empty() { "contents unknown".into() } else { parts.join(", ") }
    }
}

impl fmt::Display for LoadedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path, self.identity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, build_id: Option<&str>, crc32: Option<&str>) -> LoadedFile {
        LoadedFile {
            path: path.into(),
            build_id: build_id.map(str::to_owned),
            contents: crc32.map(|crc32| Contents { bytes: 8, crc32: crc32.into() }),
        }
    }

    fn loaded(libraries: Vec<LoadedFile>) -> LoadedFiles {
        LoadedFiles { program: file("/ombx", None, Some("1")), libraries, ..LoadedFiles::default() }
    }

    #[test]
    fn equal_files_are_known_by_their_contents() {
        let (mpi, copy) =
            (file("/a/libmpi.so", Some("ab"), Some("2")), file("/b/x.so", Some("ab"), Some("2")));
        let ucx = file("/a/libucp.so", None, Some("3"));
        let one = loaded(vec![mpi.clone(), ucx.clone()]);
        assert!(one.are_equal(&loaded(vec![ucx.clone(), copy.clone()])));
        assert!(!one.are_equal(&loaded(vec![copy.clone()])));
        assert!(!loaded(vec![copy.clone()]).are_equal(&one));
        // One build ID can be that of two files, as after patchelf, and two unknown files may differ.
        assert!(!one.are_equal(&loaded(vec![ucx.clone(), file("/a/libmpi.so", Some("ab"), Some("4"))])));
        let unknown = loaded(vec![file("/a/libmpi.so", Some("ab"), None)]);
        assert!(!unknown.are_equal(&unknown));
        let more = OtherFiles { count: 1, crc32: "5".into() };
        assert!(!one.are_equal(&LoadedFiles { others: more, ..one.clone() }));
    }

    #[test]
    fn a_replaced_file_has_its_old_path_and_other_contents() {
        let (mpi, ucx) = (file("/a/libmpi.so", Some("ab"), Some("2")), file("/a/libucp.so", None, Some("3")));
        let before = loaded(vec![mpi.clone(), ucx.clone()]);
        let rebuilt = loaded(vec![file("/a/libmpi.so", Some("cd"), None), ucx.clone()]);
        let replaced = before.replaced(&rebuilt);
        assert_eq!(replaced, [(&mpi, &rebuilt.libraries[0])]);
        let patched = loaded(vec![file("/a/libmpi.so", Some("ab"), Some("4"))]);
        assert_eq!(before.replaced(&patched).len(), 1);
        let moved = loaded(vec![file("/b/libmpi.so", Some("cd"), Some("4"))]);
        assert!(before.replaced(&moved).is_empty() && before.replaced(&before).is_empty());
        assert!(before.replaced(&loaded(vec![file("/a/libmpi.so", None, None)])).is_empty());
        assert_eq!(mpi.to_string(), "/a/libmpi.so (build ID ab, CRC-32 2)");
        assert_eq!(file("/x", None, None).to_string(), "/x (contents unknown)");
    }
}
