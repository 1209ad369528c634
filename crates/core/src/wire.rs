//! The result file: JSON Lines, one object a line, written row by row and readable however it was cut off.

mod v1;

use std::io::{BufRead, Read, Write};

use crate::result::{Measurement, Run, Tally};

/// Schema version that this ombx writes: it reads every minor version of the same major one.
pub const SCHEMA: (&str, u32, u32) = ("ombx.result", v1::MAJOR, v1::MINOR);
/// A longer line is not a record of ombx.
const LONGEST_LINE: u64 = 1 << 30;

/// One record of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The first: where, when and how.
    Run(Box<Run>),
    /// A row.
    Case(Box<Measurement>),
    /// The last: the run ended, and how.
    End(Outcome, Tally),
}

/// How a run ended, as its last record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every case was run or skipped.
    Complete,
    /// A signal ended it.
    Interrupted,
    /// A rank, a launcher or a connection failed.
    Broken,
}

/// A file as far as it could be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct File {
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
    pub end: Option<(Outcome, Tally)>,
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
    let mut line = v1::to_json(record).map_err(std::io::Error::other)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// Reads one line.
pub fn parse(line: &str, number: usize) -> Result<Option<Record>, ReadError> {
    v1::from_json(line, number)
}

/// Reads a file; a last line that is cut off is left out, everything else must be well-formed.
pub fn read(input: impl BufRead) -> Result<File, ReadError> {
    read_lines(input, LONGEST_LINE)
}

fn read_lines(mut input: impl BufRead, longest: u64) -> Result<File, ReadError> {
    let mut file = File::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if (&mut input).take(longest).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let bad = |why: String| ReadError::NotAResult { line: number, why };
        let whole = line.last() == Some(&b'\n');
        if !whole && line.len() as u64 == longest {
            return Err(bad(format!("it is longer than {longest} bytes")));
        }
        let record = std::str::from_utf8(&line)
            .map_err(|e| bad(e.to_string()))
            .and_then(|text| if text.trim().is_empty() { Ok(None) } else { parse(text, number) });
        match record {
            Err(ReadError::NotAResult { .. }) if !whole && number > 1 => {
                file.cut_off = true;
                break;
            }
            Err(e) => return Err(e),
            Ok(None) => {}
            Ok(Some(record)) => file.add(record).map_err(|why| bad(why.into()))?,
        }
    }
    if file.runs.is_empty() {
        return Err(ReadError::NotAResult { line: 1, why: "the file has no run record".into() });
    }
    Ok(file)
}

impl File {
    fn add(&mut self, record: Record) -> Result<(), &'static str> {
        if let Record::Run(run) = record {
            self.runs.push(RunWithRows { run: *run, rows: Vec::new(), end: None });
            return Ok(());
        }
        let last = self.runs.last_mut().ok_or("a run record must come first")?;
        if last.end.is_some() {
            return Err("its run has ended before");
        }
        match record {
            Record::Case(row) => last.rows.push(*row),
            Record::End(outcome, tally) => last.end = Some((outcome, tally)),
            Record::Run(_) => {}
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_memory() {
        let endless = std::io::BufReader::new(std::io::repeat(b'1'));
        let error = read_lines(endless, 1000).unwrap_err();
        assert_eq!(error.to_string(), "line 1 is no record of ombx results: it is longer than 1000 bytes");
    }
}
