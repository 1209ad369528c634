//! Result files: JSON Lines, one record per line. A truncated file is readable up to its last complete line.

pub(crate) mod lines;
mod record;
mod records;

use std::{
    io::{BufRead, Write},
    path::Path,
};

use ombx_core::result::{Measurement, Run};

use self::lines::{RowKind, Seal};
use crate::run_info::is_same_launch;

pub use self::{
    record::{Ended, Launched, ReadError, Record, ResultFile, RunOutcome, RunWithRows, SCHEMA},
    records::{Records, is_named_as_result, source},
};

/// Writes one record and a line end in a single call.
pub fn write(out: &mut dyn Write, record: &Record) -> std::io::Result<()> {
    write_line(out, lines::to_json(record))
}

/// Writes the row of one of several launches without a copy of the row.
pub fn write_launch(out: &mut dyn Write, row: &Measurement) -> std::io::Result<()> {
    write_line(out, lines::row_to_json(row, RowKind::Launch))
}

/// Writes the row over all launches. If there is only one launch, this is the row of that launch, with its raw samples.
pub fn write_case(out: &mut dyn Write, row: &Measurement) -> std::io::Result<()> {
    write_line(out, lines::row_to_json(row, RowKind::Case))
}

fn write_line(out: &mut dyn Write, line: Result<Vec<u8>, String>) -> std::io::Result<()> {
    let mut line = line.map_err(std::io::Error::other)?;
    lines::add_seal(&mut line);
    line.push(b'\n');
    out.write_all(&line)
}

/// Parses one line. Returns `None` for a kind of record that a later minor version added.
pub fn parse(line: &str, number: usize) -> Result<Option<Record>, ReadError> {
    let record = lines::from_json(line, number)?;
    match lines::seal_of(line.trim_end()) {
        Seal::Broken => Err(ReadError::NotAResult {
            line: number,
            why: "its checksum does not match: the line was changed or damaged after it was written".into(),
        }),
        Seal::Intact | Seal::Absent => Ok(record),
    }
}

/// Reads a result file, which may be compressed by gzip or zstd; `-` is standard input.
pub fn open(path: impl AsRef<Path>) -> Result<ResultFile, ReadError> {
    read(source(path.as_ref())?)
}

/// Reads the contents of a result file. The plans of runs have what is known of the end of their launch. An incomplete last line is ignored. Any other malformed line is an error.
pub fn read(input: impl BufRead) -> Result<ResultFile, ReadError> {
    file_of(Records::of(input))
}

/// Reads a result file that the user did not name, as [`read`] does.
///
/// # Errors
/// It is a link or no regular file, is too long, or is no result file.
pub fn read_found(path: &Path) -> Result<ResultFile, ReadError> {
    file_of(Records::found(path)?)
}

fn file_of(mut records: Records<impl BufRead>) -> Result<ResultFile, ReadError> {
    let mut file = ResultFile::default();
    // The first run of the launch that is read.
    let mut first = 0;
    for record in &mut records {
        match (record?, file.runs.last_mut()) {
            (Record::Launched(launched), _) => {
                // Runs of a launch that was killed have no such record.
                let mut last: Option<Run> = None;
                for run in file.runs[first..].iter_mut().rev() {
                    let last = last.get_or_insert_with(|| run.run.clone());
                    if last.id != run.run.id && !is_same_launch(last, &run.run) {
                        break;
                    }
                    launched.add_to(&mut run.run.plan);
                }
                first = file.runs.len();
            }
            (Record::Run(run), _) => {
                file.runs.push(RunWithRows { run: *run, rows: Vec::new(), end: None, verdict: None })
            }
            (Record::Launch(row), Some(last)) => last.rows.push(*row),
            (Record::End(outcome, tally), Some(last)) => last.end = Some((outcome, tally)),
            (Record::Verdict(verdict), Some(last)) => last.verdict = Some(verdict),
            // Rows over all launches are computed again from the rows of the launches.
            (Record::Case(_), _) | (_, None) => {}
        }
    }
    file.cut_off = records.cut_off();
    Ok(file)
}

/// Returns the JSON Schema of one line.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    lines::schema()
}

/// Documentation of the format. Its example is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../FORMAT.md")]
pub struct FormatDocument;
