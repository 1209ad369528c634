//! Records of a result file, and errors of reading one.

use crate::conclusion::VerdictRecord;
use ombx_core::result::{Measurement, Run, Tally};

/// Name, major and minor version of the schema that this version writes. It reads all minor versions of this major
/// version and of earlier ones.
pub const SCHEMA: (&str, u32, u32) = ("ombx.result", 2, 1);

/// One record of a file. A run is one launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// First record of a run: where, when and how it was measured.
    Run(Box<Run>),
    /// Row of one launch, with raw samples.
    Launch(Box<Measurement>),
    /// Last record of a run.
    End(RunOutcome, Tally),
    /// Row over all launches. It follows the last run and is derived from the rows of the launches.
    Case(Box<Measurement>),
    /// Verdict on a sweep over links. It follows the last launch and is derived from its rows.
    Verdict(Box<VerdictRecord>),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// All cases ran or were skipped.
    Complete,
    /// A signal ended the run.
    Interrupted,
    /// A rank, a launcher or a connection failed.
    Broken,
}

/// Contents of a result file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultFile {
    /// Runs with their rows. Joined files have several.
    pub runs: Vec<RunWithRows>,
    /// Whether the file ends inside a record.
    pub cut_off: bool,
}

/// A run and its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWithRows {
    /// Record of the run: where, when and how it was measured.
    pub run: Run,
    /// Its rows.
    pub rows: Vec<Measurement>,
    /// How the run ended. `None` if it was killed.
    pub end: Option<(RunOutcome, Tally)>,
}

/// Error of reading a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A line is not a record of ombx.
    #[error("line {line} is not a record of ombx results: {why}")]
    NotAResult {
        /// Line number from 1.
        line: usize,
        /// Reason.
        why: String,
    },
    /// A newer version of ombx wrote the file.
    #[error(
        "the file has version {found} of the result format, but this ombx reads up to version {known}: use a newer ombx"
    )]
    NewerVersion {
        /// Major version of the file.
        found: u64,
        /// Newest major version that can be read.
        known: u32,
    },
}
