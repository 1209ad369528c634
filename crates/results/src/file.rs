//! The result file: JSON Lines, one object a line, written row by row and readable however it was cut off.

mod records;
mod v1;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
};

pub use self::records::Records;
use ombx_core::result::{Measurement, Run, Tally};

/// Schema version that this ombx writes: it reads every minor version of the same major one.
pub const SCHEMA: (&str, u32, u32) = ("ombx.result", v1::MAJOR, v1::MINOR);

/// One record of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The first: where, when and how.
    Run(Box<Run>),
    /// A row.
    Case(Box<Measurement>),
    /// The last: the run ended, and how.
    End(RunOutcome, Tally),
}

/// How a run ended, as its last record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// Every case was run or skipped.
    Complete,
    /// A signal ended it.
    Interrupted,
    /// A rank, a launcher or a connection failed.
    Broken,
}

/// A file as far as it could be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultFile {
    /// Every run with its rows; more than one if files were joined.
    pub runs: Vec<RunWithRows>,
    /// Whether the file stopped in the middle of a record.
    pub cut_off: bool,
}

/// A run and what it measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWithRows {
    /// Where, when and how.
    pub run: Run,
    /// Its rows.
    pub rows: Vec<Measurement>,
    /// How it ended, if it came to write that.
    pub end: Option<(RunOutcome, Tally)>,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file itself.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It holds something else.
    #[error("line {line} is no record of ombx results: {why}")]
    NotAResult {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A newer ombx wrote it.
    #[error("written in version {found} of the result format; this ombx reads version {known}")]
    Future {
        /// Its major version.
        found: u64,
        /// The one read here.
        known: u32,
    },
}

/// Writes one record and its line end, in one call.
pub fn write(out: &mut dyn Write, record: &Record) -> std::io::Result<()> {
    write_line(out, v1::to_json(record))
}

/// Writes the record of a row, as [`write`] does, without a copy of it.
pub fn write_row(out: &mut dyn Write, row: &Measurement) -> std::io::Result<()> {
    write_line(out, v1::row_to_json(row))
}

fn write_line(out: &mut dyn Write, line: Result<Vec<u8>, String>) -> std::io::Result<()> {
    let mut line = line.map_err(std::io::Error::other)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// Reads one line.
pub fn parse(line: &str, number: usize) -> Result<Option<Record>, ReadError> {
    v1::from_json(line, number)
}

/// Reads a result file by its path: the beginning of every program that does something with results.
pub fn open(path: impl AsRef<Path>) -> Result<ResultFile, ReadError> {
    read(BufReader::new(std::fs::File::open(path)?))
}

/// Reads a file; a last line that is cut off is left out, everything else must be well-formed.
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

/// The JSON Schema of one line.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    v1::schema()
}

/// The document of the format; its example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../FORMAT.md")]
pub struct FormatDocument;
