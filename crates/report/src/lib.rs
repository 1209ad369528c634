//! Result files as one HTML page.
//!
//! The page is one file: it needs no network and no other file. Without its script, only the theme switch and the arrow keys in
//! heat maps are missing. Of raw samples, the page contains figures only.
//!
//! ```
//! use ombx_report::{Report, Source, page};
//!
//! # fn main() -> Result<(), ombx_record::file::ReadError> {
//! let file = ombx_record::file::open("../record/tests/golden/one_launch.jsonl")?.into();
//! let sources = [Source { name: "v1.jsonl", file: &file }];
//! let html = page(&Report { sources: &sources, ..Report::default() });
//! assert!(html.starts_with("<!DOCTYPE html>") && html.contains("p2p.latency"));
//! # Ok(())
//! # }
//! ```

mod page;
mod plot;
mod run_list;
mod section;

use ombx_compare::{Comparison, history::History};
pub use ombx_draw::Input as Samples;
use ombx_estimate::number::Units;
use ombx_links::verdict::SweptFile;

pub use self::{page::page, section::distributions::MAX_BENCHMARKS};

/// Result file of a page.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Name on the page.
    pub name: &'a str,
    /// Contents of the file.
    pub file: &'a SweptFile,
}

/// Results of a directory over time.
#[derive(Debug, Clone, Copy)]
pub struct Timeline<'a> {
    /// Name of the directory on the page.
    pub name: &'a str,
    /// Its cases.
    pub history: &'a History,
}

/// Contents of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report<'a> {
    /// Result files. The page shows all of their rows.
    pub sources: &'a [Source<'a>],
    /// Samples of the rows; with a comparison, those of each side under its name. The page draws those of the first
    /// [`MAX_BENCHMARKS`] benchmarks, and needs no others.
    pub samples: &'a [Samples<'a>],
    /// Number of all benchmarks with samples, if `samples` has not those of all.
    pub benchmarks: usize,
    /// Units of times and bandwidths of files. Those of a history are the usual ones, and a comparison has its own.
    pub units: Units,
    /// Comparison of two groups of these files.
    pub comparison: Option<&'a Comparison>,
    /// Results over time. Without result files, the page shows nothing else.
    pub history: Option<Timeline<'a>>,
}
