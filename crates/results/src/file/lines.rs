//! The lines of the result format. Its types are private: nothing else may depend on how records are written.

mod decode;
mod encode;

mod line;
mod validity;

pub(super) use self::{
    decode::from_json,
    encode::{RowKind, row_to_json, to_json},
};

#[cfg(feature = "schema")]
pub(super) fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(line::Line<'static>).to_value();
    schema["title"] = "One line of an ombx result file, format 1".into();
    schema
}
