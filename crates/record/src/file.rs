//! Result files: JSON Lines, one record per line. A truncated file is readable up to its last complete line.

pub(crate) mod lines;
mod records;

use std::{
    borrow::Cow,
    io::{BufRead, Write},
    path::{Path, PathBuf},
};

use crate::{
    event::{Event, Round, Rounds},
    file::lines::Checksum,
    link,
    result::{Growth, Measurement, Run, RunOutcome, Tally},
    runs::is_same_launch,
    verdict::Verdict,
};

pub use crate::file::records::{ENDING, RecordOrder, Records, is_named_as_result, source};

/// Writes one event and a line end in a single call.
pub fn write(out: &mut dyn Write, event: &Event<'_>) -> std::io::Result<()> {
    let mut line = lines::to_json(event).map_err(std::io::Error::other)?;
    lines::add_checksum(&mut line);
    line.push(b'\n');
    out.write_all(&line)
}

/// Parses one line. Returns `None` for a kind of record that a later minor version added.
pub fn parse(line: &str, number: usize) -> Result<Option<Event<'static>>, ReadError> {
    let event = lines::from_json(line, number)?;
    match lines::checksum_of(line.trim_end()) {
        Checksum::Broken => Err(ReadError::NotAResult {
            line: number,
            why: "its checksum does not match: the line was changed or damaged after it was written".into(),
        }),
        Checksum::Intact | Checksum::Absent => Ok(event),
    }
}

/// Reads a result file, which may be compressed by gzip or zstd; `-` is standard input.
///
/// # Errors
/// [`ReadError::File`] with the path, if the file cannot be read or is no result file.
pub fn open(path: impl AsRef<Path>) -> Result<ResultFile, ReadError> {
    let path = path.as_ref();
    let opened = source(path).map_err(ReadError::from).and_then(read);
    opened.map_err(|why| ReadError::File { path: path.into(), source: Box::new(why) })
}

/// Reads the contents of a result file. Runs have what is known of the end of their launch. An incomplete last line is ignored. Any other malformed line is an error.
pub fn read(input: impl BufRead) -> Result<ResultFile, ReadError> {
    file_of(Records::new(input))
}

/// Reads a result file that the user did not name, as [`read`] does.
///
/// # Errors
/// It is a link or no regular file, is too long, or is no result file.
pub fn read_found(path: &Path) -> Result<ResultFile, ReadError> {
    file_of(Records::found(path)?)
}

fn file_of(mut records: Records<impl BufRead>) -> Result<ResultFile, ReadError> {
    let mut file = Collector::default();
    records.try_for_each(|record| {
        file.event(record?);
        Ok::<(), ReadError>(())
    })?;
    Ok(ResultFile { cut_off: records.cut_off(), ..file.end() })
}

/// Collects the records of a file.
#[derive(Debug, Default)]
pub struct Collector {
    file: ResultFile,
    /// The first run of the launch that is read.
    first: usize,
}

impl Collector {
    /// Adds the next event. Runs get what is known of the end of their launch.
    pub fn event(&mut self, event: Event<'_>) {
        let runs = &mut self.file.runs;
        match (event, runs.last_mut()) {
            (Event::Launched(launched), _) => {
                // Runs of a launch that was killed have no such event.
                let mut last: Option<Run> = None;
                for run in runs[self.first..].iter_mut().rev() {
                    let last = last.get_or_insert_with(|| run.run.clone());
                    if last.id != run.run.id && !is_same_launch(last, &run.run) {
                        break;
                    }
                    run.run.launched = Some(launched);
                }
                self.first = runs.len();
            }
            (Event::Run(run), _) => runs.push(RunWithRows::new(run.into_owned())),
            (Event::Row(row), Some(last)) => last.rows.push(row.into_owned()),
            (Event::Round(round), Some(last)) => last.rounds.push(round.into_owned()),
            (Event::Grown { grown }, Some(last)) => last.grown = grown.into_owned(),
            (Event::End { outcome, tally }, Some(last)) => last.end = Some((outcome, tally)),
            (Event::Verdict(verdict), Some(last)) => last.verdict = Some(Box::new(verdict.into_owned())),
            // Rows over all launches are computed again from the rows of the launches.
            _ => {}
        }
    }

    /// Returns the run of which records are read.
    pub fn last(&self) -> Option<&RunWithRows> {
        self.file.runs.last()
    }

    /// Returns what was collected, as of a file that ends after a record.
    pub fn end(self) -> ResultFile {
        self.file
    }
}

/// Returns the JSON Schema of one line.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    lines::schema()
}

/// Contents of a result file.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ResultFile {
    /// Runs with their rows. Joined files have several.
    pub runs: Vec<RunWithRows>,
    /// Whether the file ends inside a record.
    pub cut_off: bool,
}

impl From<Vec<RunWithRows>> for ResultFile {
    fn from(runs: Vec<RunWithRows>) -> ResultFile {
        ResultFile { runs, cut_off: false }
    }
}

/// A run and its rows. A later version may add fields: make one by [`RunWithRows::new`].
#[derive(Debug, Clone, PartialEq)]
pub struct RunWithRows {
    /// Record of the run: where, when and how it was measured.
    pub run: Run,
    /// Its rows. Of a sweep over links those that are not in rounds: of links that were measured again, or that failed.
    pub rows: Vec<Measurement>,
    /// Links of a sweep, by the round in which they were measured.
    pub rounds: Vec<Round>,
    /// Counters of devices that grew after they were read in a row.
    pub grown: Vec<Growth>,
    /// How the run ended. `None` if it was killed.
    pub end: Option<(RunOutcome, Tally)>,
    /// Verdict on the links of a sweep that ends with this run.
    pub verdict: Option<Box<Verdict>>,
}

impl RunWithRows {
    /// Returns a run without rows that has not ended.
    pub fn new(run: Run) -> RunWithRows {
        RunWithRows { run, rows: Vec::new(), rounds: Vec::new(), grown: Vec::new(), end: None, verdict: None }
    }

    /// Returns whether the run is a sweep over links.
    pub fn is_sweep(&self) -> bool {
        (!self.rounds.is_empty() || !self.rows.is_empty())
            && self.rows.iter().all(|row| row.bench == link::BENCH)
    }

    /// Returns all rows, with those of the links in rounds.
    pub fn each_row(&self) -> impl Iterator<Item = Cow<'_, Measurement>> {
        let of_rounds = self.rounds.iter().flat_map(Round::rows).map(Cow::Owned);
        of_rounds.chain(self.rows.iter().map(Cow::Borrowed))
    }

    /// Returns the events that make up the run: its rounds and rows, what grew after them, the verdict, and the end.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let rounds = self.rounds.iter().map(|round| Event::Round(Cow::Borrowed(round)));
        let rows = self.rows.iter().map(Event::row);
        let grown = (!self.grown.is_empty()).then(|| Event::Grown { grown: Cow::Borrowed(&self.grown) });
        let verdict = self.verdict.as_deref().map(|verdict| Event::Verdict(Cow::Borrowed(verdict)));
        let end = self.end.map(|(outcome, tally)| Event::End { outcome, tally });
        let run = Event::Run(Cow::Borrowed(&self.run));
        std::iter::once(run).chain(rounds).chain(rows).chain(grown).chain(verdict).chain(end)
    }

    /// Returns the run as a file keeps it: ordinary links without samples, in rounds.
    #[must_use]
    pub fn in_rounds(mut self) -> RunWithRows {
        let mut rounds = Rounds::default();
        for row in std::mem::take(&mut self.rows) {
            let (ended, taken) = rounds.add(&row);
            self.rounds.extend(ended);
            self.rows.extend((!taken).then_some(row));
        }
        self.rounds.extend(rounds.end());
        self
    }

    /// Returns the number of all rows.
    pub fn row_count(&self) -> usize {
        self.rows.len() + self.rounds.iter().map(Round::len).sum::<usize>()
    }
}

/// Error of reading a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// [`open`] could not read a file.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<ReadError>,
    },
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A line is not a record of ombx.
    #[error("line {line} is not a record of ombx results: {why}")]
    NotAResult {
        /// Line number from 1.
        line: usize,
        /// Reason.
        why: String,
    },
    /// A newer version of ombx wrote the file.
    #[error(
        "the file has version {found} of the result format, but this ombx reads up to version {known}: use a newer ombx"
    )]
    NewerVersion {
        /// Major version of the file.
        found: u64,
        /// Newest major version that can be read.
        known: u32,
    },
}
