//! Sections of the page, each a function from results to markup.

pub(crate) mod answer;
pub(crate) mod comparison;
pub(crate) mod curves;
pub(crate) mod distributions;
mod finding;
pub(crate) mod history;
pub(crate) mod links;
pub(crate) mod pipeline;
pub(crate) mod provenance;
pub(crate) mod rows;
