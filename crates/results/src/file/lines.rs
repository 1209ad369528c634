//! Lines of a result file: the types of results with a kind, and their checks.

use ombx_core::result::{Measurement, Rates, Run, Tally};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    record::{Launched, ReadError, Record, RunOutcome, SCHEMA},
    validity,
};
use crate::verdict::Verdict;

/// One line. Each launch is a `run`, its rows (`launch`, or `case` if it is the only launch), an `end`, and `launched` once its ranks have
/// ended; a `case` per row or a `verdict` follows.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line<'a> {
    Run(VersionedRun<'a>),
    Launch(RowWithRates<'a>),
    Case(RowWithRates<'a>),
    End(End),
    Launched(Launched),
    Verdict(&'a Verdict),
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VersionedRun<'a> {
    schema: Schema,
    #[serde(flatten)]
    run: &'a Run,
}

/// Version of the format.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Schema {
    /// `ombx.result`.
    name: &'static str,
    /// Readers of another major version cannot read the file.
    major: u32,
    /// Counts additions that readers may ignore.
    minor: u32,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RowWithRates<'a> {
    #[serde(flatten)]
    row: &'a Measurement,
    /// Rates at the median time. Absent if there are none. Readers compute them again from the times.
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<Rates>,
}

/// How the run ended, and its numbers of rows.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct End {
    outcome: RunOutcome,
    #[serde(flatten)]
    tally: Tally,
}

/// The field of [`End`] that is no number of rows. A flattened field would keep all others in memory.
#[derive(Deserialize)]
struct Ending {
    outcome: RunOutcome,
}

/// First fields of every line: its kind, and its schema if it has one.
#[derive(Deserialize)]
struct Head {
    kind: String,
    schema: Option<Version>,
}

/// Fields that all versions of the schema have.
#[derive(Deserialize)]
struct Version {
    name: String,
    major: u64,
}

/// Returns a record as one line without its end. Returns an error for a row that no reader would accept.
pub(super) fn to_json(record: &Record) -> Result<Vec<u8>, String> {
    let (name, major, minor) = SCHEMA;
    let line = match record {
        Record::Run(run) => Line::Run(VersionedRun { schema: Schema { name, major, minor }, run }),
        Record::Launch(row) => return row_to_json(row, RowKind::Launch),
        Record::Case(row) => return row_to_json(row, RowKind::Case),
        Record::Verdict(verdict) => Line::Verdict(verdict),
        Record::Launched(launched) => Line::Launched(*launched),
        Record::End(outcome, tally) => Line::End(End { outcome: *outcome, tally: *tally }),
    };
    serde_json::to_vec(&line).map_err(|e| e.to_string())
}

/// Which record a row becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    /// Row of one of several launches.
    Launch,
    /// Row over all launches, or of the only one.
    Case,
}

/// Returns the line of a row without copying its samples.
pub(super) fn row_to_json(row: &Measurement, kind: RowKind) -> Result<Vec<u8>, String> {
    validity::row(row).map_err(|why| format!("{}: {why}", row.key))?;
    let row = RowWithRates { row, rates: row.rates() };
    let line = match kind {
        RowKind::Launch => Line::Launch(row),
        RowKind::Case => Line::Case(row),
    };
    serde_json::to_vec(&line).map_err(|e| e.to_string())
}

/// Decodes a line. Returns `None` for a kind of record that a later minor version added.
pub(super) fn from_json(text: &str, line: usize) -> Result<Option<Record>, ReadError> {
    let bad = |why: String| ReadError::NotAResult { line, why };
    let head: Head = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    let has_schema = head.schema.is_some();
    if let Some(Version { name, major }) = head.schema {
        if name != SCHEMA.0 {
            return Err(bad(format!("its schema is {name:?}")));
        }
        match major {
            0 => return Err(bad("its schema has version 0, which does not exist".into())),
            found if found > u64::from(SCHEMA.1) => {
                return Err(ReadError::NewerVersion { found, known: SCHEMA.1 });
            }
            _ => {}
        }
    }
    let record = match head.kind.as_str() {
        "run" if !has_schema => Err("missing field `schema`".into()),
        "run" => body(text).map(|run| Record::Run(Box::new(run))),
        "launch" => row(text).map(|row| Record::Launch(Box::new(row))),
        "case" => row(text).map(|row| match row.launches {
            Some(_) => Record::Case(Box::new(row)),
            None => Record::Launch(Box::new(row)),
        }),
        "end" => body(text).and_then(|Ending { outcome }| Ok(Record::End(outcome, body(text)?))),
        "launched" => {
            body(text).and_then(|launched| validity::launched(&launched).map(|()| Record::Launched(launched)))
        }
        "verdict" => body(text).map(|verdict| Record::Verdict(Box::new(verdict))),
        _ => return Ok(None),
    };
    record.map(Some).map_err(bad)
}

fn body<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn row(text: &str) -> Result<Measurement, String> {
    let row = body(text)?;
    validity::row(&row)?;
    Ok(row)
}

/// Returns the JSON Schema of one line.
#[cfg(feature = "schema")]
pub(super) fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Line<'static>).to_value();
    schema["title"] = "One line of an ombx result file, format 1".into();
    schema
}

const START: &str = ",\"checksum\":\"";
const END: &str = "\"}";
/// Digits seal_of the checksum.
const DIGITS: usize = 8;

/// Adds the checksum seal_of the bytes before its closing brace to a JSON object, as its last field.
pub(crate) fn add_seal(line: &mut Vec<u8>) {
    if line.pop_if(|last| *last == b'}').is_some() {
        let sum = crc32fast::hash(line);
        line.extend(format!("{START}{sum:08x}{END}").into_bytes());
    }
}

/// What the checksum seal_of a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seal {
    Intact,
    Broken,
    /// Other programs may write none.
    Absent,
}

/// Compares a line with its checksum.
pub(crate) fn seal_of(line: &str) -> Seal {
    let split = || {
        let (content, end) =
            line.split_at_checked(line.len().checked_sub(START.len() + DIGITS + END.len())?)?;
        let digits = end.strip_prefix(START)?.strip_suffix(END)?;
        Some((content, u32::from_str_radix(digits, 16).ok()?))
    };
    match split() {
        None => Seal::Absent,
        Some((content, sum)) if crc32fast::hash(content.as_bytes()) == sum => Seal::Intact,
        Some(_) => Seal::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_noticed() {
        let mut line = br#"{"kind":"end","cases":3}"#.to_vec();
        assert_eq!(seal_of(std::str::from_utf8(&line).unwrap()), Seal::Absent);
        add_seal(&mut line);
        let line = String::from_utf8(line).unwrap();
        assert!(seal_of(&line) == Seal::Intact && serde_json::from_str::<serde_json::Value>(&line).is_ok());
        assert_eq!(seal_of(&line.replace(":3", ":4")), Seal::Broken);
        assert_eq!([seal_of(""), seal_of("{}")], [Seal::Absent; 2]);
    }
}
