//! The index of a directory: what series need of files that were read before.
//!
//! It is a text of lines with checksums. A fact of provenance has a line of its own, with a number by which results name it: most files of a
//! directory have the same facts.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fs::Metadata,
    os::unix::fs::MetadataExt,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::dated::{DatedResult, NamedFact, SharedFacts};
use crate::file::lines::{self, Checksum};

/// Maximum length of an index in bytes: enough for 100,000 files of a hundred rows each. What ombx writes is never longer, so that it is read
/// again; a longer one is damaged, or of somebody else. A run reads only a shorter one, see `indexed`.
pub(super) const LONGEST_INDEX: u64 = 1 << 30;

/// First line. Another version of ombx builds the index again.
const HEAD: &str =
    concat!("{\"index\":\"ombx.history\",\"version\":\"4 of ombx ", env!("CARGO_PKG_VERSION"), "\"}");

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
    pub fn new(file: &Metadata) -> Stamp {
        Stamp { length: file.len(), modified: [file.mtime(), file.mtime_nsec()], inode: file.ino() }
    }
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// Results of a result file.
    #[serde(rename = "results")]
    Results(Vec<DatedResult>),
    /// Why the file was not read to its end: it is no result file, or too long.
    #[serde(rename = "refused")]
    Refused(String),
}

/// Contents of files by their paths in the directory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Index(BTreeMap<String, (Stamp, Content)>);

/// Line of a fact.
#[derive(Serialize, Deserialize)]
struct FactLine<'a> {
    /// Number by which results name it. It is the first field, which tells these lines from others.
    fact: usize,
    name: Cow<'a, str>,
    value: Cow<'a, str>,
}

/// Beginning of the line of a fact.
const FACT: &str = "{\"fact\":";

/// Line of a file. The lines of its facts precede it.
#[derive(Serialize, Deserialize)]
struct FileLine<'a> {
    path: Cow<'a, str>,
    stamp: Stamp,
    content: Cow<'a, Content>,
    /// Numbers of the facts of each result.
    facts: Vec<Vec<usize>>,
}

impl Index {
    /// Reads an index. Whatever is damaged is left out.
    pub fn parse(text: &[u8]) -> Index {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Index::default();
        }
        let mut index = Index::default();
        let mut facts: HashMap<usize, Arc<NamedFact>> = HashMap::new();
        for line in lines.filter(|line| lines::checksum_of(line) == Checksum::Intact) {
            if line.starts_with(FACT) {
                facts.extend(serde_json::from_str::<FactLine<'_>>(line).ok().map(numbered_fact));
            } else if let Ok(line) = serde_json::from_str::<FileLine<'_>>(line) {
                index.0.extend(entry(line, &facts));
            }
        }
        index
    }

    /// Removes and returns the content of a file, if the file has not changed since.
    pub fn take(&mut self, path: &str, stamp: &Stamp) -> Option<Content> {
        self.0.remove(path).filter(|(known, _)| known == stamp).map(|(_, content)| content)
    }

    /// Adds the content of a file.
    pub fn insert(&mut self, path: String, stamp: Stamp, content: Content) {
        self.0.insert(path, (stamp, content));
    }

    /// Returns whether no file is in the index.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the contents in the order of paths.
    pub fn into_contents(self) -> impl Iterator<Item = (String, Content)> {
        self.0.into_iter().map(|(path, (_, content))| (path, content))
    }

    /// Returns the text of the index.
    pub fn text(&self) -> Vec<u8> {
        self.text_of_at_most(LONGEST_INDEX as usize)
    }

    /// Returns a text of at most this many bytes. Files that do not fit are left out, and are read again.
    fn text_of_at_most(&self, longest: usize) -> Vec<u8> {
        let mut text = format!("{HEAD}\n").into_bytes();
        let mut numbers = HashMap::new();
        for (path, (stamp, content)) in &self.0 {
            let before = text.len();
            let facts = match content {
                Content::Results(results) => {
                    results.iter().map(|result| numbers_of(&result.facts, &mut numbers, &mut text)).collect()
                }
                Content::Refused(_) => Vec::new(),
            };
            let content = Cow::Borrowed(content);
            add_line(&mut text, &FileLine { path: path.into(), stamp: *stamp, content, facts });
            if text.len() > longest {
                text.truncate(before);
                break;
            }
        }
        text
    }
}

/// Returns a fact with its number.
fn numbered_fact(FactLine { fact, name, value }: FactLine<'_>) -> (usize, Arc<NamedFact>) {
    (fact, Arc::new(NamedFact { name: name.into_owned(), value: value.into_owned() }))
}

/// Returns the entry of a line; `None` if a fact of its results is not known.
fn entry(line: FileLine<'_>, known: &HashMap<usize, Arc<NamedFact>>) -> Option<(String, (Stamp, Content))> {
    let mut content = line.content.into_owned();
    if let Content::Results(results) = &mut content {
        if results.len() != line.facts.len() {
            return None;
        }
        for (result, numbers) in results.iter_mut().zip(&line.facts) {
            let facts = numbers.iter().map(|number| known.get(number).cloned());
            result.facts = SharedFacts::new(facts.collect::<Option<Vec<_>>>()?);
        }
    }
    Some((line.path.into_owned(), (line.stamp, content)))
}

/// Returns the numbers of facts. Adds the lines of those that have no number yet.
fn numbers_of<'a>(
    facts: &'a SharedFacts,
    numbers: &mut HashMap<&'a NamedFact, usize>,
    text: &mut Vec<u8>,
) -> Vec<usize> {
    let mut all = Vec::new();
    for fact in facts.each() {
        let new = numbers.len();
        let number = *numbers.entry(fact).or_insert(new);
        if number == new {
            let (name, value) = (fact.name.as_str().into(), fact.value.as_str().into());
            add_line(text, &FactLine { fact: number, name, value });
        }
        all.push(number);
    }
    all
}

/// Adds a line with its checksum. A line that cannot be written is left out, and its file is read again.
fn add_line(text: &mut Vec<u8>, line: &impl Serialize) {
    let Ok(mut line) = serde_json::to_vec(line) else { return };
    lines::add_checksum(&mut line);
    text.append(&mut line);
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::read;

    const STAMP: Stamp = Stamp { length: 7, modified: [1, 2], inode: 3 };

    fn results() -> Vec<DatedResult> {
        read(include_bytes!("../../tests/golden/three_launches.jsonl").as_slice()).unwrap()
    }

    fn index() -> Index {
        let mut index = Index::default();
        index.insert("a.jsonl".into(), STAMP, Content::Results(results()));
        index.insert("b.jsonl".into(), STAMP, Content::Refused("it is a poem".into()));
        index
    }

    /// Returns the number of lines of facts.
    fn fact_lines(index: &Index) -> usize {
        String::from_utf8(index.text()).unwrap().lines().filter(|line| line.starts_with(FACT)).count()
    }

    /// Returns the paths of the files of a text.
    fn paths(text: &[u8]) -> Vec<String> {
        Index::parse(text).into_contents().map(|(path, _)| path).collect()
    }

    #[test]
    fn an_index_survives_its_text() {
        assert_eq!(Index::parse(&index().text()), index());
    }

    #[test]
    fn results_name_the_facts_that_they_share() {
        let mut several = index();
        let facts = fact_lines(&several);
        assert_eq!(facts, results()[0].facts.each().count());
        assert!(facts > 0);
        several.insert("c.jsonl".into(), STAMP, Content::Results(results()));
        assert_eq!(fact_lines(&several), facts);
        let mut other = results();
        other[0].facts = [("kernel".to_owned(), "Linux 0.1".to_owned())].into();
        several.insert("d.jsonl".into(), STAMP, Content::Results(other));
        assert_eq!(fact_lines(&several), facts + 1);
        assert_eq!(Index::parse(&several.text()), several);
    }

    #[test]
    fn a_file_with_a_fact_that_is_lost_is_left_out() {
        let text = String::from_utf8(index().text()).unwrap();
        let lost = text.lines().find(|line| line.starts_with(FACT)).unwrap();
        assert_eq!(paths(text.replace(&format!("{lost}\n"), "").as_bytes()), ["b.jsonl"]);
    }

    #[test]
    fn no_text_is_longer_than_what_is_read() {
        let whole = index().text();
        assert_eq!(index().text_of_at_most(whole.len()), whole);
        let short = index().text_of_at_most(whole.len() - 1);
        assert!(short.len() < whole.len());
        assert_eq!(paths(&short), ["a.jsonl"]);
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
        assert_eq!(paths(text.replace("poem", "song").as_bytes()), ["a.jsonl"]);
        let cut = Index::parse(&text.as_bytes()[..text.len() / 2]);
        assert!(cut.is_empty(), "{cut:?}");
        assert!(Index::parse(text.replacen("\"4 of", "\"3 of", 1).as_bytes()).is_empty());
        assert!(Index::parse(b"\xff\x00 no index").is_empty());
    }
}
