//! A directory of result files, read with its index.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    num::NonZero,
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use ombx_core::system::file::{self, read_found};

use super::{
    dated::{DatedResult, results_of},
    index::{Content, Index, LONGEST_INDEX, Stamp},
};
use crate::{
    file::{Records, is_named_as_result},
    verdict,
};

/// Name of the index in the directory.
pub const INDEX: &str = ".ombx-index";

/// Maximum length in bytes of an index that is read before a run, which looks for at most some 20 earlier files. The longest index would take
/// seconds, and more than a gigabyte of memory, on a host that is about to measure. If the index is longer, the run finds only files that are
/// in the directory itself.
const LONGEST_BEFORE_RUN: u64 = 32 << 20;

/// Results of all files of a directory and of the directories in it.
#[derive(Debug, Default)]
pub struct Store {
    /// Results, in the order of paths.
    pub results: Vec<DatedResult>,
    /// Path in the directory of the file of each result.
    pub paths: Vec<String>,
    /// Path of each file that was not read to its end, and the reason. It may be no result file, or too long.
    pub refused: Vec<(String, String)>,
    /// Number of files whose names end like those of result files.
    pub files: usize,
    /// Number of files that were not in the index.
    pub read: usize,
    /// New text of the index; `None` if it did not change.
    pub index: Option<Vec<u8>>,
}

impl Store {
    /// Reads a directory. Files with hidden names and files that are in the index are not read.
    ///
    /// # Errors
    /// The directory cannot be read. A directory in it that cannot be read counts as a refused file.
    pub fn open(directory: &Path) -> io::Result<Store> {
        Store::with_index(directory, index(directory, LONGEST_INDEX))
    }

    /// Reads a directory whose index the caller has.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn with_index(directory: &Path, mut known: Index) -> io::Result<Store> {
        let mut store = Store::default();
        let found = found(directory, &mut store.refused)?;
        store.files = found.len();
        let (mut index, mut unknown) = (Index::default(), Vec::new());
        for file in found {
            match known.take(&file.name, &file.stamp) {
                Some(content) => index.insert(file.name, file.stamp, content),
                None => unknown.push(file),
            }
        }
        store.read = unknown.len();
        for (at, content) in contents(&unknown) {
            let Found { name, stamp, .. } = &unknown[at];
            index.insert(name.clone(), *stamp, content);
        }
        // What is left in the old index belongs to files that were removed.
        store.index = (store.read > 0 || !known.is_empty()).then(|| index.text());
        for (path, content) in index.into_contents() {
            match content {
                Content::Results(results) => {
                    store.paths.extend(std::iter::repeat_n(path, results.len()));
                    store.results.extend(results);
                }
                Content::Refused(why) => store.refused.push((path, why)),
            }
        }
        Ok(store)
    }
}

/// Returns the paths of the newest result of each benchmark on the same hosts, the newest first. Of sweeps over links it is the newest of
/// each fabric: a verdict is about all hosts of its sweep.
///
/// Both slices are those of a store.
pub fn newest<'a>(results: &[DatedResult], paths: &'a [String]) -> Vec<&'a str> {
    let mut newest: BTreeMap<(&str, &str, &str), (&str, &'a str)> = BTreeMap::new();
    for (result, path) in results.iter().zip(paths) {
        for row in &result.rows {
            let bench = row.key.split('/').next().unwrap_or(&row.key);
            let hosts = if bench == verdict::BENCH { "" } else { result.hosts.as_str() };
            let found = (result.started.as_str(), path.as_str());
            let entry = newest.entry((&result.fabric, hosts, bench)).or_insert(found);
            *entry = found.max(*entry);
        }
    }
    let mut found: Vec<(&str, &str)> = newest.into_values().collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.dedup();
    let mut known = BTreeSet::new();
    found.into_iter().map(|(_, path)| path).filter(|path| known.insert(*path)).collect()
}

/// Returns the paths of the files with results of one of these benchmarks that the index of a directory has, the newest first; empty without
/// an index, or if it has more than 32 MiB. Nothing else is read.
pub fn indexed(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    indexed_within(directory, LONGEST_BEFORE_RUN, is_wanted)
}

/// Returns what [`indexed`] does, for an index of at most this many bytes.
fn indexed_within(directory: &Path, longest: u64, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let contents = index(directory, longest).into_contents();
    let mut found: Vec<(String, PathBuf)> =
        contents.filter_map(|(path, content)| last_wanted(directory, &path, &content, &is_wanted)).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the start of the last wanted result of a file, and the path of the file; `None` without one.
fn last_wanted(
    directory: &Path,
    path: &str,
    content: &Content,
    is_wanted: impl Fn(&str) -> bool,
) -> Option<(String, PathBuf)> {
    let Content::Results(results) = content else { return None };
    let has = |result: &&DatedResult| {
        result.rows.iter().any(|row| is_wanted(row.key.split('/').next().unwrap_or(&row.key)))
    };
    // The index may be of somebody else: its files are in this directory, and not behind links.
    let is_within = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let is_plain = |parent: &Path| {
        parent.as_os_str().is_empty()
            || fs::symlink_metadata(directory.join(parent)).is_ok_and(|file| file.is_dir())
    };
    if !is_within || !Path::new(path).ancestors().skip(1).all(is_plain) {
        return None;
    }
    let started = results.iter().filter(has).map(|result| result.started.clone()).max()?;
    Some((started, directory.join(path)))
}

/// Reads the index of a directory; empty if there is none that can be read, or if it is longer than this.
fn index(directory: &Path, longest: u64) -> Index {
    read_found(&directory.join(INDEX), longest).map_or_else(|_| Index::default(), |text| Index::parse(&text))
}

/// Replaces the index of a directory.
///
/// # Errors
/// The directory cannot be written.
pub fn write_index(directory: &Path, text: &[u8]) -> io::Result<()> {
    file::replace_found(&directory.join(INDEX), text)
}

/// File whose name ends like that of a result file.
struct Found {
    path: PathBuf,
    /// Path in the directory. Bytes that are not UTF-8 are replaced.
    name: String,
    stamp: Stamp,
}

/// Finds the files of a directory and of the directories in it. Links are not followed.
fn found(directory: &Path, refused: &mut Vec<(String, String)>) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut waiting = vec![(directory.to_owned(), fs::read_dir(directory)?)];
    while let Some((_, entries)) = waiting.pop() {
        for entry in entries.flatten() {
            let path = entry.path();
            let name = || path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                match fs::read_dir(&path) {
                    Ok(entries) => waiting.push((path, entries)),
                    Err(why) => refused.push((name(), why.to_string())),
                }
            } else if is_named_as_result(&path) {
                match fs::symlink_metadata(&path) {
                    Ok(file) if file.is_symlink() => refused.push((name(), "it is a link".into())),
                    Ok(file) if !file.is_file() => {}
                    Ok(file) => {
                        let name = name();
                        found.push(Found { path, name, stamp: Stamp::new(&file) });
                    }
                    Err(why) => refused.push((name(), why.to_string())),
                }
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Reads files on all CPUs. Returns the content of each with its place in the list.
fn contents(files: &[Found]) -> Vec<(usize, Content)> {
    let next = AtomicUsize::new(0);
    let work = || contents_from(files, &next);
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(files.len().max(1));
    thread::scope(|scope| {
        let workers: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut contents = work();
        for worker in workers {
            match worker.join() {
                Ok(more) => contents.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        contents
    })
}

/// Reads one file after the other, beginning with the next that no other CPU has taken.
fn contents_from(files: &[Found], next: &AtomicUsize) -> Vec<(usize, Content)> {
    let mut contents = Vec::new();
    while let Some((at, file)) =
        Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, files.get(at)?)))
    {
        contents.push((at, content(&file.path)));
    }
    contents
}

fn content(path: &Path) -> Content {
    let results = Records::found_in_stream(path).map_err(|e| e.to_string()).and_then(results_of);
    results.map_or_else(Content::Refused, Content::Results)
}

#[cfg(test)]
mod tests {
    use ombx_core::benchmark::Metric;

    use super::*;

    const GOLDEN: &[u8] = include_bytes!("../../tests/golden/three_launches.jsonl");

    /// Reads a directory and writes its index, as the command does.
    fn open(directory: &Path) -> Store {
        let store = Store::open(directory).unwrap();
        if let Some(text) = &store.index {
            write_index(directory, text).unwrap();
        }
        store
    }

    #[test]
    fn only_files_that_changed_are_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("march")).unwrap();
        fs::write(root.join("a.jsonl"), GOLDEN).unwrap();
        fs::write(root.join("march/b.jsonl"), GOLDEN).unwrap();
        fs::write(root.join("march/notes.txt"), "no result").unwrap();
        fs::write(root.join(".hidden.jsonl"), "no result").unwrap();
        fs::write(root.join("poem.jsonl"), "no result\n").unwrap();
        let counts = |store: &Store| (store.files, store.read, store.results.len(), store.refused.len());
        let first = open(root);
        assert_eq!(counts(&first), (3, 3, 2, 1));
        assert!(first.refused[0].0 == "poem.jsonl" && first.refused[0].1.contains("line 1"), "{first:?}");
        let second = open(root);
        assert_eq!(counts(&second), (3, 0, 2, 1));
        assert!(second.index.is_none() && second.results == first.results);
        fs::write(root.join("a.jsonl"), &GOLDEN[..GOLDEN.len() / 2]).unwrap();
        assert_eq!(counts(&open(root)), (3, 1, 2, 1));
        fs::remove_file(root.join("march/b.jsonl")).unwrap();
        let removed = open(root);
        assert_eq!(counts(&removed), (2, 0, 1, 1));
        assert!(removed.index.is_some());
        fs::write(root.join(INDEX), "damaged").unwrap();
        assert_eq!(counts(&open(root)), (2, 2, 1, 1));
        fs::remove_file(root.join(INDEX)).unwrap();
        assert_eq!(counts(&open(root)), (2, 2, 1, 1));
    }

    #[test]
    fn an_index_tells_which_files_have_a_benchmark() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("a.jsonl"), GOLDEN).unwrap();
        assert!(indexed(root, |_| true).is_empty(), "there is no index");
        let key = open(root).results[0].rows[0].key.clone();
        let bench = key.split('/').next().unwrap();
        assert_eq!(indexed(root, |name| name == bench), [root.join("a.jsonl")]);
        assert!(indexed(root, |name| name == "p2p.none").is_empty());
        let length = fs::metadata(root.join(INDEX)).unwrap().len();
        assert_eq!(indexed_within(root, length, |_| true).len(), 1);
        assert!(indexed_within(root, length - 1, |_| true).is_empty(), "a longer index is not read");
        fs::create_dir(root.join("below")).unwrap();
        fs::rename(root.join("a.jsonl"), root.join("below/a.jsonl")).unwrap();
        open(root);
        assert_eq!(indexed(root, |_| true), [root.join("below/a.jsonl")]);
        fs::rename(root.join("below"), root.join("other")).unwrap();
        std::os::unix::fs::symlink("other", root.join("below")).unwrap();
        assert!(indexed(root, |_| true).is_empty(), "a directory is behind a link");
        fs::rename(root.join(INDEX), root.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join(INDEX)).unwrap();
        assert!(indexed(root, |_| true).is_empty(), "a link is not followed");
    }

    #[test]
    fn the_newest_result_of_each_setup_is_found() {
        let result = |day: usize, key: &str| crate::history::result(day, key, 1.0, Metric::Latency);
        let mut results = vec![
            result(2, "p2p.a/bytes=8"),
            result(1, "p2p.a/bytes=8"),
            result(3, "p2p.b/bytes=8"),
            result(1, "p2p.a/bytes=8"),
        ];
        results[3].hosts = "n[03-04]".into();
        let paths = ["2", "1", "3", "other hosts"].map(str::to_owned);
        assert_eq!(newest(&results, &paths), ["3", "2", "other hosts"]);
        results.iter_mut().for_each(|result| result.rows[0].key = "links/bytes=8".into());
        assert_eq!(newest(&results, &paths), ["3"]);
        assert!(newest(&[], &[]).is_empty());
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Store::open(&directory.path().join("absent")).is_err());
    }
}
