//! Arguments that choose where rows go and how they are printed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ombx_results::render::OsuColumns;

/// Where rows go and what else is printed.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Format of the printed rows
    #[arg(long, value_enum, default_value_t = Format::Table, help_heading = "Output")]
    pub(crate) format: Format,
    /// Result file in JSON Lines with all raw data; each row is written once it is measured
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Count skipped cases as success
    #[arg(long, help_heading = "Output")]
    pub(crate) allow_skips: bool,
    /// Show no progress
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Show the launcher's command line and all of its messages, and notes beside rows
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Draw a chart below each table
    #[arg(long, help_heading = "Output")]
    pub(crate) plot: bool,
    /// Use of colours
    #[arg(long, value_enum, default_value_t = Color::Auto, help_heading = "Output")]
    pub(crate) color: Color,
    /// Columns of the OSU format; only `ombx osu` sets them
    #[arg(skip)]
    pub(crate) osu: Option<OsuColumns>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Table for people
    Table,
    /// Tables for a document in Markdown
    Markdown,
    /// Tables for a document in LaTeX, with the package booktabs
    Latex,
    /// Output of the OSU benchmarks
    Osu,
    /// CSV, one line per row
    Csv,
    /// Lines of the result file
    Jsonl,
    /// Text for Prometheus, for example through its textfile collector
    #[value(name = "openmetrics")]
    OpenMetrics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal only
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
