//! Index of a directory: the contents of the files that were read before, one line per file.
//!
//! Every reader needs the whole index, so that it is a text that is read and replaced as a whole. Each line has a checksum. A damaged
//! line is dropped, and its file is read again.

use std::{collections::BTreeMap, fs::Metadata, os::unix::fs::MetadataExt};

use serde::{Deserialize, Serialize};

use super::dated::DatedResult;
use crate::file::seal::{self, Seal};

/// First line. Another version of ombx builds the index again.
const HEAD: &str =
    concat!("{\"index\":\"ombx.history\",\"version\":\"3 of ombx ", env!("CARGO_PKG_VERSION"), "\"}");

/// What changes if a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Length in bytes.
    pub length: u64,
    /// Seconds and nanoseconds of the last change.
    pub modified: [i64; 2],
    /// Number of the file in its file system.
    pub inode: u64,
}

impl Stamp {
    /// Returns the stamp of a file.
    pub fn of(file: &Metadata) -> Stamp {
        Stamp { length: file.len(), modified: [file.mtime(), file.mtime_nsec()], inode: file.ino() }
    }
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// Results of a result file.
    #[serde(rename = "results")]
    Results(Vec<DatedResult>),
    /// Why the file is not a result file.
    #[serde(rename = "refused")]
    Refused(String),
}

/// Contents of files by their paths in the directory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Index(BTreeMap<String, Entry>);

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    stamp: Stamp,
    content: Content,
}

#[derive(Deserialize)]
struct ReadLine {
    path: String,
    stamp: Stamp,
    content: Content,
}

#[derive(Serialize)]
struct WrittenLine<'a> {
    path: &'a str,
    stamp: Stamp,
    content: &'a Content,
}

impl Index {
    /// Reads an index. Whatever is damaged is left out.
    pub fn parse(text: &[u8]) -> Index {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Index::default();
        }
        let intact = lines.filter(|line| seal::of(line) == Seal::Intact);
        let parsed = intact.filter_map(|line| serde_json::from_str::<ReadLine>(line).ok());
        Index(parsed.map(|ReadLine { path, stamp, content }| (path, Entry { stamp, content })).collect())
    }

    /// Removes and returns the content of a file, if the file has not changed since.
    pub fn take(&mut self, path: &str, stamp: &Stamp) -> Option<Content> {
        self.0.remove(path).filter(|entry| entry.stamp == *stamp).map(|entry| entry.content)
    }

    /// Adds the content of a file.
    pub fn insert(&mut self, path: String, stamp: Stamp, content: Content) {
        self.0.insert(path, Entry { stamp, content });
    }

    /// Returns whether no file is in the index.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the contents in the order of paths.
    pub fn into_contents(self) -> impl Iterator<Item = (String, Content)> {
        self.0.into_iter().map(|(path, entry)| (path, entry.content))
    }

    /// Returns the text of the index.
    pub fn text(&self) -> Vec<u8> {
        let mut text = format!("{HEAD}\n").into_bytes();
        for (path, Entry { stamp, content }) in &self.0 {
            // A line that cannot be written is left out, and its file is read again.
            let Ok(mut line) = serde_json::to_vec(&WrittenLine { path, stamp: *stamp, content }) else {
                continue;
            };
            seal::add(&mut line);
            text.append(&mut line);
            text.push(b'\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::read;

    const STAMP: Stamp = Stamp { length: 7, modified: [1, 2], inode: 3 };

    fn index() -> Index {
        let results = read(include_bytes!("../../tests/golden/three_launches.jsonl").as_slice()).unwrap();
        let mut index = Index::default();
        index.insert("a.jsonl".into(), STAMP, Content::Results(results));
        index.insert("b.jsonl".into(), STAMP, Content::Refused("it is a poem".into()));
        index
    }

    #[test]
    fn an_index_survives_its_text() {
        assert_eq!(Index::parse(&index().text()), index());
    }

    #[test]
    fn a_file_that_changed_is_not_in_the_index() {
        assert!(index().take("a.jsonl", &STAMP).is_some());
        for changed in
            [Stamp { length: 8, ..STAMP }, Stamp { modified: [1, 3], ..STAMP }, Stamp { inode: 4, ..STAMP }]
        {
            assert_eq!(index().take("a.jsonl", &changed), None);
        }
        assert_eq!(index().take("c.jsonl", &STAMP), None);
    }

    #[test]
    fn damaged_lines_and_other_versions_are_left_out() {
        let text = String::from_utf8(index().text()).unwrap();
        let damaged = Index::parse(text.replace("poem", "song").as_bytes());
        assert_eq!(damaged.into_contents().map(|(path, _)| path).collect::<Vec<_>>(), ["a.jsonl"]);
        let cut = Index::parse(&text.as_bytes()[..text.len() / 2]);
        assert!(cut.is_empty(), "{cut:?}");
        assert!(Index::parse(text.replacen("\"3 of", "\"2 of", 1).as_bytes()).is_empty());
        assert!(Index::parse(b"\xff\x00 no index").is_empty());
    }
}
