//! Lines of a result file: events as JSON, with a checksum.

use std::borrow::Cow;

use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    event::{Event, Round, SCHEMA},
    file::ReadError,
    result::{
        Growth, Measurement, RunOutcome,
        valid::{check_launched, check_row},
    },
};

/// The field of the line `end` that is no number of rows. A flattened field would keep all others in memory.
#[derive(Deserialize)]
struct OutcomeOfEnd {
    outcome: RunOutcome,
}

/// First fields of every line: its kind, and its schema if it has one.
#[derive(Deserialize)]
struct Head {
    kind: String,
    schema: Option<Version>,
}

/// Returns the first fields of a line. Those of a long line that ombx has written are read without all others.
fn head(text: &str) -> serde_json::Result<Head> {
    let kind = text.strip_prefix(r#"{"kind":""#).and_then(|rest| rest.split_once('"'));
    match kind {
        Some((kind @ ("launch" | "case" | "round"), _)) => Ok(Head { kind: kind.to_owned(), schema: None }),
        _ => serde_json::from_str(text),
    }
}

/// Fields that all versions of the schema have.
#[derive(Deserialize)]
struct Version {
    name: String,
    major: u64,
}

/// Returns an event as one line without its end. Returns an error for a row that no reader would accept.
pub(super) fn to_json(event: &Event<'_>) -> Result<Vec<u8>, String> {
    match event {
        Event::Row(row) | Event::Case(row) => {
            check_row(row).map_err(|why| format!("{}: {why}", row.key))?;
        }
        Event::Round(round) => round.check()?,
        Event::Launched(launched) => check_launched(launched)?,
        _ => {}
    }
    serde_json::to_vec(event).map_err(|e| e.to_string())
}

/// Decodes a line. Returns `None` for a kind of record that a later minor version added.
pub(super) fn from_json(text: &str, line: usize) -> Result<Option<Event<'static>>, ReadError> {
    let bad = |why: String| ReadError::NotAResult { line, why };
    let head = head(text).map_err(|e| bad(e.to_string()))?;
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
    let event = match head.kind.as_str() {
        "run" if !has_schema => Err("missing field `schema`".into()),
        "run" => decoded(text).map(|run| Event::Run(Cow::Owned(run))),
        "launch" => row(text).map(|row| Event::Row(Cow::Owned(row))),
        "case" => row(text).map(|row| match row.launches {
            Some(_) => Event::Case(Cow::Owned(row)),
            None => Event::Row(Cow::Owned(row)),
        }),
        "round" => decoded(text).and_then(|round: Round| {
            round.check()?;
            Ok(Event::Round(Cow::Owned(round)))
        }),
        "grown" => decoded(text).map(|AfterRows { grown }| Event::Grown { grown: Cow::Owned(grown) }),
        "end" => decoded(text)
            .and_then(|OutcomeOfEnd { outcome }| Ok(Event::End { outcome, tally: decoded(text)? })),
        "launched" => {
            decoded(text).and_then(|launched| check_launched(&launched).map(|()| Event::Launched(launched)))
        }
        "verdict" => decoded(text).map(|verdict| Event::Verdict(Cow::Owned(verdict))),
        kind if TOLD.contains(&kind) => decoded(text),
        _ => return Ok(None),
    };
    event.map(Some).map_err(bad)
}

/// Kinds of events that no file has.
const TOLD: [&str; 8] =
    ["interval", "benchmark", "starting", "alive", "status", "started", "ranks", "failed"];

/// Counters of a line `grown`.
#[derive(Deserialize)]
struct AfterRows {
    grown: Vec<Growth>,
}

fn decoded<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn row(text: &str) -> Result<Measurement, String> {
    let row = decoded(text)?;
    check_row(&row)?;
    Ok(row)
}

/// Returns the JSON Schema of one line.
#[cfg(feature = "schema")]
pub(super) fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Event<'static>).to_value();
    schema["title"] = "One line of an ombx result file, format 1".into();
    schema
}

/// What the checksum of a line follows, and what follows it.
const CHECKSUM_START: &str = ",\"checksum\":\"";
const CHECKSUM_END: &str = "\"}";

/// Returns the digits of the checksum of these bytes.
fn digits_of(content: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(content))
}

/// Adds the checksum of the bytes before its closing brace to a JSON object, as its last field.
pub(crate) fn add_checksum(line: &mut Vec<u8>) {
    if line.pop_if(|last| *last == b'}').is_some() {
        let digits = digits_of(line);
        line.extend(format!("{CHECKSUM_START}{digits}{CHECKSUM_END}").into_bytes());
    }
}

/// What the checksum of a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    Intact,
    Broken,
    /// Other programs may write none.
    Absent,
}

/// Compares a line with its checksum, its last field.
pub(crate) fn checksum_of(line: &str) -> Checksum {
    let found = line.strip_suffix(CHECKSUM_END).and_then(|line| line.rsplit_once(CHECKSUM_START));
    // A value with a quote is no last field: it belongs to an object inside the line.
    match found.filter(|(_, digits)| !digits.contains('"')) {
        None => Checksum::Absent,
        Some((content, digits)) if digits.eq_ignore_ascii_case(&digits_of(content.as_bytes())) => {
            Checksum::Intact
        }
        Some(_) => Checksum::Broken,
    }
}

#[cfg(test)]
mod tests {
    use crate::{file::lines::*, result::Launched};

    #[test]
    fn a_changed_line_is_noticed() {
        let mut line = br#"{"kind":"end","cases":3}"#.to_vec();
        assert_eq!(checksum_of(std::str::from_utf8(&line).unwrap()), Checksum::Absent);
        add_checksum(&mut line);
        let line = String::from_utf8(line).unwrap();
        assert_eq!(checksum_of(&line), Checksum::Intact);
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok());
        assert_eq!(checksum_of(&line.replace(":3", ":4")), Checksum::Broken);
        assert_eq!([checksum_of(""), checksum_of("{}")], [Checksum::Absent; 2]);
    }

    #[test]
    fn a_changed_checksum_is_noticed() {
        let of =
            |digits: &str| checksum_of(&format!("{{\"kind\":\"end\"{CHECKSUM_START}{digits}{CHECKSUM_END}"));
        let right = digits_of(b"{\"kind\":\"end\"");
        assert_eq!([of(&right), of(&right.to_uppercase())], [Checksum::Intact; 2]);
        for wrong in ["12g45678", "+1234567", &right[1..], "", &format!("{right}0")] {
            assert_eq!(of(wrong), Checksum::Broken, "{wrong}");
        }
        let of_other = r#"{"copied":{"file":"a","checksum":"0"},"kind":"note"}"#;
        assert_eq!(checksum_of(of_other), Checksum::Absent);
    }

    #[test]
    fn no_line_is_written_that_is_not_read() {
        let launched =
            |elapsed_s| Event::Launched(Launched { core_to_core_ns: None, elapsed_s, ended: None });
        assert!(to_json(&launched(1.0)).is_ok());
        assert!(to_json(&launched(-1.0)).is_err());
    }
}
