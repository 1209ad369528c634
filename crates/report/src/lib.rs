//! Results as one self-contained HTML page: pure functions from results to text.
//!
//! [`page()`] takes result files as they were read and gives a page that needs no network, no other file and, but for the switch of
//! theme and arrow keys in heat maps, no script. Raw samples are not part of it.

mod book;
mod chart;
mod comparison;
mod curves;
mod dots;
mod heat;
mod links;
mod page;
mod pipeline;
mod provenance;
mod rows;
mod summary;
mod svg;

use ombx_results::{compare::Comparison, wire};

pub use self::page::page;

/// A result file.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// What the page calls it.
    pub name: &'a str,
    /// What was read.
    pub file: &'a wire::File,
}

/// What a page is made of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report<'a> {
    /// Result files, all of whose rows are shown.
    pub sources: &'a [Source<'a>],
    /// What two sides of them have in common and how they differ.
    pub comparison: Option<&'a Comparison>,
}
