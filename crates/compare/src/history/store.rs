//! A directory of result files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    num::NonZero,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use ombx_record::{
    file::{Records, is_named_as_result},
    link,
};

use crate::history::dated::{DatedResult, results_of};

/// Results of all files of a directory and of the directories in it.
#[derive(Debug, Default)]
pub struct Store {
    /// Results, in the order of paths.
    pub results: Vec<DatedResult>,
    /// Path in the directory of the file of each result.
    pub paths: Vec<String>,
    /// Path of each file that was not read to its end, and the reason. It may be no result file, or too long.
    pub refused: Vec<(String, String)>,
}

impl Store {
    /// Reads a directory, on all CPUs. Files with hidden names are not read.
    ///
    /// # Errors
    /// The directory cannot be read. A directory in it that cannot be read counts as a refused file.
    pub fn open(directory: &Path) -> io::Result<Store> {
        let mut store = Store::default();
        let files = found(directory, &mut store.refused)?;
        let mut contents = contents(&files);
        contents.sort_unstable_by_key(|(at, _)| *at);
        for (at, content) in contents {
            let path = &files[at].name;
            match content {
                Ok(results) => {
                    store.paths.extend(std::iter::repeat_n(path.clone(), results.len()));
                    store.results.extend(results);
                }
                Err(why) => store.refused.push((path.clone(), why)),
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
            let hosts = if bench == link::BENCH { "" } else { result.hosts.as_str() };
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

/// File whose name ends like that of a result file.
struct Found {
    path: PathBuf,
    /// Path in the directory. Bytes that are not UTF-8 are replaced.
    name: String,
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
                    Ok(_) => {
                        let name = name();
                        found.push(Found { path, name });
                    }
                    Err(why) => refused.push((name(), why.to_string())),
                }
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Results of a file, or why it was not read to its end.
type Content = Result<Vec<DatedResult>, String>;

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
    Records::found_in_stream(path).map_err(|e| e.to_string()).and_then(results_of)
}

#[cfg(test)]
mod tests {
    use ombx_record::result::Metric;

    use crate::history::store::*;

    const GOLDEN: &[u8] = include_bytes!("../../../record/tests/golden/three_launches.jsonl");

    #[test]
    fn files_of_a_directory_and_below_it_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("march")).unwrap();
        fs::write(root.join("z.jsonl"), GOLDEN).unwrap();
        fs::write(root.join("march/b.jsonl"), &GOLDEN[..GOLDEN.len() / 2]).unwrap();
        fs::write(root.join("march/notes.txt"), "no result").unwrap();
        fs::write(root.join(".hidden.jsonl"), "no result").unwrap();
        fs::write(root.join("poem.jsonl"), "no result\n").unwrap();
        std::os::unix::fs::symlink("z.jsonl", root.join("link.jsonl")).unwrap();
        let store = Store::open(root).unwrap();
        assert_eq!(store.paths, ["march/b.jsonl", "z.jsonl"]);
        assert_eq!(store.results.len(), 2);
        let mut refused: Vec<&str> = store.refused.iter().map(|(path, _)| path.as_str()).collect();
        refused.sort_unstable();
        assert_eq!(refused, ["link.jsonl", "poem.jsonl"]);
        assert!(store.refused.iter().any(|(_, why)| why.contains("line 1")), "{store:?}");
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
