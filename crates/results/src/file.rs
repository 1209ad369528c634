//! Result files: JSON Lines, one record per line. A truncated file is readable up to its last complete line.

mod records;
mod v1;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
};

pub use self::records::Records;
use ombx_core::result::{Measurement, Run, Tally};

/// Name, major and minor version of the schema that this version writes. It reads all minor versions of the same major
/// version.
pub const SCHEMA: (&str, u32, u32) = ("ombx.result", v1::MAJOR, v1::MINOR);

/// One record of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// First record of a run: where, when and how it was measured.
    Run(Box<Run>),
    /// One row.
    Case(Box<Measurement>),
    /// Last record of a run.
    End(RunOutcome, Tally),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Where, when and how it was measured.
    pub run: Run,
    /// Its rows.
    pub rows: Vec<Measurement>,
    /// How it ended. `None` if the run was killed.
    pub end: Option<(RunOutcome, Tally)>,
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

/// Writes one record and a line end in a single call.
pub fn write(out: &mut dyn Write, record: &Record) -> std::io::Result<()> {
    write_line(out, v1::to_json(record))
}

/// Writes the record of a row without a copy of the row.
pub fn write_row(out: &mut dyn Write, row: &Measurement) -> std::io::Result<()> {
    write_line(out, v1::row_to_json(row))
}

fn write_line(out: &mut dyn Write, line: Result<Vec<u8>, String>) -> std::io::Result<()> {
    let mut line = line.map_err(std::io::Error::other)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// Parses one line. Returns `None` for a kind of record that a later minor version added.
pub fn parse(line: &str, number: usize) -> Result<Option<Record>, ReadError> {
    v1::from_json(line, number)
}

/// Reads a result file.
pub fn open(path: impl AsRef<Path>) -> Result<ResultFile, ReadError> {
    read(BufReader::new(std::fs::File::open(path)?))
}

/// Reads the contents of a result file. An incomplete last line is ignored. Any other malformed line is an error.
pub fn read(input: impl BufRead) -> Result<ResultFile, ReadError> {
    let mut file = ResultFile::default();
    let mut records = Records::of(input);
    for record in &mut records {
        match (record?, file.runs.last_mut()) {
            (Record::Run(run), _) => file.runs.push(RunWithRows { run: *run, rows: Vec::new(), end: None }),
            (Record::Case(row), Some(last)) => last.rows.push(*row),
            (Record::End(outcome, tally), Some(last)) => last.end = Some((outcome, tally)),
            (_, None) => {}
        }
    }
    file.cut_off = records.cut_off();
    Ok(file)
}

/// Returns the JSON Schema of one line.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    v1::schema()
}

/// Documentation of the format. Its example is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../FORMAT.md")]
pub struct FormatDocument;
