//! What the result format promises: it reads back, survives being cut off, and refuses what it cannot know.

mod broken_files;
mod comparing;
mod golden;
mod records;
mod round_trip;
#[cfg(feature = "schema")]
mod schema;

use ombx_results::file::{self, ResultFile, ReadError, Record};

fn line(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    file::write(&mut out, record).unwrap();
    out
}

fn read(bytes: impl AsRef<[u8]>) -> Result<ResultFile, ReadError> {
    file::read(bytes.as_ref())
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}
