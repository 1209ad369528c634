//! Promises of the result format: round trips, truncated files, and rejection of invalid ones.

mod broken_files;
mod checksum;
mod comparing;
mod golden;
mod records;
mod round_trip;
#[cfg(feature = "schema")]
mod schema;

use ombx_record::{
    event::Event,
    file::{self, ReadError, ResultFile},
};

fn line(record: &Event<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    file::write(&mut out, record).unwrap();
    out
}

fn read(bytes: impl AsRef<[u8]>) -> Result<ResultFile, ReadError> {
    file::read(bytes.as_ref())
}

/// Returns a written line without its checksum.
fn json_without_checksum(line: &str) -> serde_json::Value {
    let mut value = json(line);
    assert!(value.as_object_mut().unwrap().remove("checksum").is_some());
    value
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}
