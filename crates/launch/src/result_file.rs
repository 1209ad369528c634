//! Result files that commands read.

use std::{
    collections::HashMap,
    fs,
    io::BufRead,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::SystemTime,
};

use ombx_compare::SideResults;
use ombx_estimate::runs::{EarlierRuns, KnownRows};
use ombx_links::verdict::{LinkSweep, SweptRun};
use ombx_record::{
    error::{Error, Result},
    event::{Event, Round},
    file::{self, Records, RunWithRows},
    link,
    regular_file::shown_name,
    result::{Measurement, Run},
};

/// Runs that a command has read. Each run counts once, because a copy of a launch is no further launch.
#[derive(Debug, Default)]
pub struct KnownRuns {
    paths: HashMap<(String, String), PathBuf>,
    rows: KnownRows,
}

impl KnownRuns {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or it repeats a run.
    pub fn read(&mut self, path: &Path) -> Result<file::ResultFile> {
        self.known(read(path)?, path)
    }

    /// Reads a file that the user did not name.
    ///
    /// # Errors
    /// Those of [`KnownRuns::read`], and it is a link or no regular file.
    pub fn read_found(&mut self, path: &Path) -> Result<file::ResultFile> {
        self.known(file::read_found(path).map_err(|e| named(path, &e))?, path)
    }

    fn known(&mut self, file: file::ResultFile, path: &Path) -> Result<file::ResultFile> {
        for RunWithRows { run, rows, rounds, .. } in &file.runs {
            self.add(run, path)?;
            rounds.iter().try_for_each(|round| self.add_round(run, round, path))?;
            rows.iter().try_for_each(|row| self.add_row(run, row, path))?;
        }
        Ok(file)
    }

    /// Adds the runs of a result file to one side of a comparison, record by record.
    ///
    /// # Errors
    /// The file cannot be read, or it repeats a run.
    pub fn add_to(&mut self, launches: &mut SideResults, path: &Path) -> Result<()> {
        let is_cut_off = self.each(records(path)?, path, |record| {
            launches.event(&record);
            Ok(())
        })?;
        launches.end();
        if is_cut_off {
            say_cut_off(path, "compared");
        }
        Ok(())
    }

    /// Passes on the records of a file one by one. Returns whether the file ends inside a record.
    ///
    /// # Errors
    /// The file cannot be read, or it repeats a run, or that of a record.
    pub fn each(
        &mut self,
        records: Records<impl BufRead>,
        path: &Path,
        mut take: impl FnMut(Event<'static>) -> Result<()>,
    ) -> Result<bool> {
        self.each_until(records, path, |record| take(record).map(ControlFlow::Continue))
    }

    /// Passes on records as [`KnownRuns::each`] does, until one is the last that is wanted.
    ///
    /// # Errors
    /// Those of [`KnownRuns::each`].
    pub fn each_until(
        &mut self,
        mut records: Records<impl BufRead>,
        path: &Path,
        mut take: impl FnMut(Event<'static>) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let mut current = None;
        for record in &mut records {
            let record = record.map_err(|e| named(path, &e))?;
            match (&record, &current) {
                (Event::Run(run), _) => {
                    self.add(run, path)?;
                    current = Some(run.clone());
                }
                (Event::Row(row), Some(run)) => self.add_row(run, row, path)?,
                (Event::Round(round), Some(run)) => self.add_round(run, round, path)?,
                _ => {}
            }
            if take(record)?.is_break() {
                break;
            }
        }
        if current.is_none() { Err(empty(path)) } else { Ok(records.cut_off()) }
    }

    fn add(&mut self, run: &Run, path: &Path) -> Result<()> {
        match self.paths.insert((run.id.clone(), run.fabric.clone()), path.to_owned()) {
            None => Ok(()),
            Some(first) => Err(Error::usage(format!(
                "{} repeats run {} of {}: give each run once, because a copy of a launch is no further launch",
                path.display(),
                run.id,
                first.display()
            ))),
        }
    }

    fn add_row(&mut self, run: &Run, row: &Measurement, path: &Path) -> Result<()> {
        let first = self.rows.add(&run.id, row);
        first.map_or(Ok(()), |first| {
            Err(copied(path, run, format!("the samples of run {first} in {}", row.key)))
        })
    }

    fn add_round(&mut self, run: &Run, round: &Round, path: &Path) -> Result<()> {
        let first = self.rows.add_round(&run.id, round);
        first.map_or(Ok(()), |first| Err(copied(path, run, format!("the times of links of run {first}"))))
    }
}

fn copied(path: &Path, run: &Run, what: String) -> Error {
    Error::usage(format!(
        "{}: run {} has {what}: give each launch once, because a copy is no further launch",
        path.display(),
        run.id
    ))
}

/// Says that records of a file are lost.
pub fn say_cut_off(path: &Path, used: &str) {
    stderr_line!(
        "ombx: {} was cut off in the middle of a record; all records before it are {used}",
        path.display()
    );
}

/// Tells the events of sweeps over links from those of benchmarks. That of a run is held back until its first row.
#[derive(Debug, Default)]
pub struct Sorter {
    held: Option<Event<'static>>,
    is_sweep: bool,
}

impl Sorter {
    /// Passes on an event, and whether it is of a sweep.
    pub fn take(
        &mut self,
        event: Event<'static>,
        mut pass: impl FnMut(Event<'static>, bool) -> Result<()>,
    ) -> Result<()> {
        let held = if matches!(event, Event::Run(_)) {
            self.is_sweep = false;
            self.held.replace(event).map(|run| (run, None))
        } else {
            let Some(run) = self.held.take() else { return pass(event, self.is_sweep) };
            self.is_sweep = match &event {
                Event::Round(_) => true,
                Event::Row(row) => row.bench == link::BENCH,
                _ => false,
            };
            Some((run, Some(event)))
        };
        let Some((run, next)) = held else { return Ok(()) };
        pass(run, self.is_sweep)?;
        next.map_or(Ok(()), |event| pass(event, self.is_sweep))
    }

    /// Passes on a run without rows at the end of a file.
    pub fn end(&mut self, mut pass: impl FnMut(Event<'static>, bool) -> Result<()>) -> Result<()> {
        self.held.take().map_or(Ok(()), |run| pass(run, false))
    }
}

/// Removes the times of samples, for a reader that shows the links of a sweep without them.
pub fn without_times(mut event: Event<'_>) -> Event<'_> {
    if let Event::Row(row) = &mut event {
        let row = row.to_mut();
        let samples = row.samples.iter_mut().chain(&mut row.tail);
        samples.for_each(|samples| samples.elapsed_ns = Vec::new());
    }
    event
}

/// Reads a file; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or it has no results.
pub fn read(path: &Path) -> Result<file::ResultFile> {
    let file = file::read(open(path)?).map_err(|e| named(path, &e))?;
    if file.runs.is_empty() { Err(empty(path)) } else { Ok(file) }
}

/// Records of a file, which may be compressed.
pub type FileRecords = Records<Box<dyn BufRead>>;

/// Returns the records of a file that the user names.
pub fn records(path: &Path) -> Result<FileRecords> {
    open(path).map(Records::new)
}

/// Returns the records of a file that the user did not name, for a reader that keeps no links of large sweeps.
pub fn found_records(path: &Path) -> Result<FileRecords> {
    Records::found_in_stream(path).map_err(|e| named(path, &e))
}

/// Opens a file, which may be compressed; `-` is standard input.
fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    file::source(path).map_err(|e| named(path, &e))
}

fn empty(path: &Path) -> Error {
    named(path, &"the file has no results: it is empty, or was cut off in its first record")
}

/// Returns the error of a result file.
pub(crate) fn named(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::storage(format!("{}: {why}", shown_name(path)))
}

/// Returns the sweep over links of these runs, which are launches of one result.
pub fn only_sweep(runs: &[SweptRun]) -> Result<LinkSweep> {
    let mut sweep = LinkSweep::default();
    for run in runs {
        if sweep.hosts.ranks() > 0 && !sweep.continues_with(&run.run.run) {
            return Err(several_sweeps());
        }
        sweep.add_swept(run);
    }
    match runs {
        [] => Err(no_sweep()),
        _ => Ok(sweep),
    }
}

/// Returns the error that a command shows one sweep.
pub fn several_sweeps() -> Error {
    Error::usage("there are several results of ombx links: give one")
}

/// Returns the error that files have no sweep.
pub fn no_sweep() -> Error {
    Error::usage("there are no links: give a result file of ombx links")
}

/// Maximum number of files that are read unasked. More than 20 runs narrow the interval of the next one by less than a tenth.
const NEWEST: usize = 20;

/// Reads the earlier runs that the user names, or the newest ones in the directory of the result file. `None` without any.
///
/// # Errors
/// A file that the user names cannot be read, or is no result file.
pub(super) fn read_earlier_runs(against: Option<&Path>, out: Option<&Path>) -> Result<Option<EarlierRuns>> {
    if let Some(path) = against {
        return earlier_runs(path).map(Some);
    }
    let mut earlier = EarlierRuns::default();
    let Some(out) = out else { return Ok(None) };
    let directory = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files = of_directory(directory);
    files.sort_by_cached_key(|file| {
        let changed = fs::symlink_metadata(file).and_then(|data| data.modified());
        std::cmp::Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH))
    });
    files.truncate(NEWEST);
    // Nobody named these files, which may be of other programs, or gone. Long ones would delay the job.
    for file in files.iter().filter(|file| is_plain(file)) {
        if let Ok(records) = Records::found(file) {
            drop(add(&mut earlier, file, records));
        }
    }
    Ok(Some(earlier))
}

/// Reads the earlier runs in a file, or in the files of a directory.
///
/// # Errors
/// A file cannot be read, or is no result file.
pub fn earlier_runs(path: &Path) -> Result<EarlierRuns> {
    if path.is_dir()
        && let Err(why) = fs::read_dir(path)
    {
        return Err(Error::storage(format!("cannot read the directory {}: {why}", path.display())));
    }
    let mut earlier = EarlierRuns::default();
    if path.is_dir() {
        of_directory(path).iter().try_for_each(|file| add(&mut earlier, file, found_records(file)?))?;
    } else {
        add(&mut earlier, path, records(path)?)?;
    }
    Ok(earlier)
}

/// Returns whether a path is a regular file, and no link to one.
fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// Returns the files of a directory whose names end like those of result files, sorted. Another user may have put links and pipes there.
pub fn of_directory(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| file::is_named_as_result(path) && is_plain(path)).collect();
    files.sort();
    files
}

fn add(earlier: &mut EarlierRuns, path: &Path, mut records: Records<impl BufRead>) -> Result<()> {
    let added = records.try_for_each(|record| {
        earlier.event(&record.map_err(|e| named(path, &e))?);
        Ok(())
    });
    earlier.end();
    added
}
