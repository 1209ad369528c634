//! Result files: JSON Lines, one record per line. A truncated file is readable up to its last complete line.

pub(crate) mod lines;
mod records;
mod round;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::{BufRead, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    file::lines::{Checksum, Line},
    link,
    result::{Growth, Interval, Measurement, Run, Tally},
    runs::is_same_launch,
    verdict::Verdict,
};

pub use crate::file::{
    records::{ENDING, Records, is_named_as_result, source},
    round::{Round, RoundMark, Rounds},
};

/// Writes one record and a line end in a single call.
pub fn write(out: &mut dyn Write, record: &Record) -> std::io::Result<()> {
    write_line(out, lines::to_json(record))
}

/// Writes the row of one of several launches without a copy of the row.
pub fn write_launch(out: &mut dyn Write, row: &Measurement) -> std::io::Result<()> {
    write_line(out, lines::row_to_json(row, Line::Launch))
}

/// Writes the row over all launches. If there is only one launch, this is the row of that launch, with its raw samples.
pub fn write_case(out: &mut dyn Write, row: &Measurement) -> std::io::Result<()> {
    write_line(out, lines::row_to_json(row, Line::Case))
}

/// Writes the figure of an interval of a row that is still measured. Readers of result files skip it.
pub fn write_interval(out: &mut dyn Write, interval: &Interval) -> std::io::Result<()> {
    write_line(out, lines::interval_to_json(interval))
}

fn write_line(out: &mut dyn Write, line: Result<Vec<u8>, String>) -> std::io::Result<()> {
    let mut line = line.map_err(std::io::Error::other)?;
    lines::add_checksum(&mut line);
    line.push(b'\n');
    out.write_all(&line)
}

/// Parses one line. Returns `None` for a kind of record that a later minor version added.
pub fn parse(line: &str, number: usize) -> Result<Option<Record>, ReadError> {
    let record = lines::from_json(line, number)?;
    match lines::checksum_of(line.trim_end()) {
        Checksum::Broken => Err(ReadError::NotAResult {
            line: number,
            why: "its checksum does not match: the line was changed or damaged after it was written".into(),
        }),
        Checksum::Intact | Checksum::Absent => Ok(record),
    }
}

/// Reads a result file, which may be compressed by gzip or zstd; `-` is standard input.
pub fn open(path: impl AsRef<Path>) -> Result<ResultFile, ReadError> {
    read(source(path.as_ref())?)
}

/// Reads the contents of a result file. The plans of runs have what is known of the end of their launch. An incomplete last line is ignored. Any other malformed line is an error.
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
        file.record(record?);
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
    /// Adds the next record. The plans of runs get what is known of the end of their launch.
    pub fn record(&mut self, record: Record) {
        let runs = &mut self.file.runs;
        match (record, runs.last_mut()) {
            (Record::Launched(launched), _) => {
                // Runs of a launch that was killed have no such record.
                let mut last: Option<Run> = None;
                for run in runs[self.first..].iter_mut().rev() {
                    let last = last.get_or_insert_with(|| run.run.clone());
                    if last.id != run.run.id && !is_same_launch(last, &run.run) {
                        break;
                    }
                    launched.add_to(&mut run.run.plan);
                }
                self.first = runs.len();
            }
            (Record::Run(run), _) => runs.push(RunWithRows::new(*run)),
            (Record::Launch(row), Some(last)) => last.rows.push(*row),
            (Record::Round(round), Some(last)) => last.rounds.push(*round),
            (Record::Grown(grown), Some(last)) => last.grown = grown,
            (Record::End(outcome, tally), Some(last)) => last.end = Some((outcome, tally)),
            (Record::Verdict(verdict), Some(last)) => last.verdict = Some(verdict),
            // Rows over all launches are computed again from the rows of the launches.
            (Record::Case(_), _) | (_, None) => {}
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

/// Name, major and minor version of the schema that this version writes. It reads all minor versions of this major version.
pub const SCHEMA: (&str, u32, u32) = ("ombx.result", 1, 0);

/// One record of a file. A run is one launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// First record of a run: where, when and how it was measured.
    Run(Box<Run>),
    /// Row of one launch, with raw samples.
    Launch(Box<Measurement>),
    /// Links of a sweep that were measured at the same time.
    Round(Box<Round>),
    /// Counters of devices that grew after they were read in a row.
    Grown(Vec<Growth>),
    /// Last record of a run.
    End(RunOutcome, Tally),
    /// What is known when all ranks of a launch have ended. It follows the last run of the launch.
    Launched(Launched),
    /// Row over all launches. It follows the last run and is derived from the rows of the launches.
    Case(Box<Measurement>),
    /// Verdict on a sweep over links. It follows the last launch and is derived from its rows.
    Verdict(Box<Verdict>),
}

/// What the launching process knows when all ranks of a launch have ended.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launched {
    /// Time of a cache line between two cores just after the launch, in nanoseconds; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub core_to_core_ns: Option<f64>,
    /// Time since the first launch of the command began, in seconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub elapsed_s: f64,
    /// Why no launch follows; `None` if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// Why the launches of a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// The reason.
    pub why: Ending,
    /// Half width of intervals at which the command would end, as a fraction of the median.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub precision: f64,
    /// Whether the user asked for this precision.
    pub is_asked: bool,
}

/// Why no more launches are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// The interval of every row had the requested precision at two looks at it in a row.
    Precise,
    /// The maximum number of launches.
    Most,
    /// Another launch would exceed the time that is enough for a first answer.
    Enough,
    /// Another launch would exceed the budget.
    Budget,
    /// The user chose the number of launches.
    Fixed,
}

/// Name of [`Launched::core_to_core_ns`] in the plan of a run, into which readers of whole files put it, as they do with the other parts.
pub const CORE_TO_CORE_AFTER: &str = "core_to_core_after_ns";
const ELAPSED: &str = "elapsed_s";
const ENDED: &str = "ended";
const GOAL: &str = "goal";
const ASKED: &str = "asked";

impl Launched {
    /// Names in the plan of a run.
    pub const OPTIONS: [&str; 5] = [CORE_TO_CORE_AFTER, ELAPSED, ENDED, GOAL, ASKED];

    /// Adds what is known to the plan of a run of the launch.
    pub fn add_to(&self, plan: &mut BTreeMap<String, String>) {
        let mut set = |option: &str, value: String| drop(plan.insert(option.to_owned(), value));
        if let Some(ns) = self.core_to_core_ns {
            set(CORE_TO_CORE_AFTER, ns.to_string());
        }
        set(ELAPSED, self.elapsed_s.to_string());
        if let Some(Ended { why, precision, is_asked }) = self.ended {
            set(ENDED, json!(why).as_str().unwrap_or_default().to_owned());
            set(GOAL, precision.to_string());
            set(ASKED, is_asked.to_string());
        }
    }

    /// Returns what the plan of a run has; `None` if it has nothing.
    pub fn of_plan(plan: &BTreeMap<String, String>) -> Option<Launched> {
        let number =
            |option: &str| plan.get(option)?.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0);
        let ended = || {
            let why = serde_json::from_value(json!(plan.get(ENDED)?)).ok()?;
            Some(Ended { why, precision: number(GOAL)?, is_asked: plan.get(ASKED)? == "true" })
        };
        Some(Launched {
            core_to_core_ns: number(CORE_TO_CORE_AFTER).filter(|ns| *ns > 0.0),
            elapsed_s: number(ELAPSED)?,
            ended: ended(),
        })
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// All cases ran or were skipped.
    Complete,
    /// A signal ended the run.
    Interrupted,
    /// A rank, a launcher or a connection failed.
    Broken,
}

/// Contents of a result file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultFile {
    /// Runs with their rows. Joined files have several.
    pub runs: Vec<RunWithRows>,
    /// Whether the file ends inside a record.
    pub cut_off: bool,
}

/// A run and its rows.
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

    /// Returns the number of all rows.
    pub fn row_count(&self) -> usize {
        self.rows.len() + self.rounds.iter().map(Round::len).sum::<usize>()
    }
}

/// Error of reading a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
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
