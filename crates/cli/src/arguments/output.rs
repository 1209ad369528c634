//! Arguments that choose where rows go and how they are printed.

use std::path::{Path, PathBuf};

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use ombx_core::error::{Error, Result};
use ombx_results::render::{ImbProgram, OsuColumns};

use super::shown::ShownArgs;

/// Where rows go and what else is printed.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Format of the printed rows
    #[arg(long, value_enum, default_value_t = Format::Table, help_heading = "Output")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// File for the textfile collector of Prometheus to write beside what is printed; it is replaced at the end
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) openmetrics: Option<PathBuf>,
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
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
    /// Use of colours: auto (on a terminal), always or never
    #[arg(long, value_enum, default_value_t = Color::Auto, hide_possible_values = true, help_heading = "Output")]
    pub(crate) color: Color,
    /// JUnit report to write; only `ombx links` sets it
    #[arg(skip)]
    pub(crate) junit: Option<PathBuf>,
    /// Whether the map of links is shown while it fills; only `ombx links` sets it
    #[arg(skip)]
    pub(crate) follow: bool,
    /// Columns of the OSU format; only `ombx osu` sets them
    #[arg(skip)]
    pub(crate) osu: Option<OsuColumns>,
    /// Figures of samples; only `ombx osu` sets them
    #[arg(skip)]
    pub(crate) graphs: Option<GraphRequest>,
    /// Program of IMB whose output is printed; only `ombx imb` sets it
    #[arg(skip)]
    pub(crate) imb: Option<ImbProgram>,
}

/// The result file.
#[derive(Debug, Default, Args)]
pub(crate) struct FileArgs {
    /// New result file with all raw data; - for standard output
    ///
    /// It has JSON Lines; each row is written once it is measured.
    #[arg(short, long = "output", value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the result file if it exists
    #[arg(long, requires = "out", conflicts_with = "append", help_heading = "Output")]
    pub(crate) force: bool,
    /// Add to the result file if it exists: launches of the same setup count as launches of one result
    #[arg(long, requires = "out", help_heading = "Output")]
    pub(crate) append: bool,
}

/// What happens to a result file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Refuse,
    Replace,
    Append,
}

impl FileArgs {
    pub(crate) fn existing(&self) -> Existing {
        match (self.force, self.append) {
            (true, _) => Existing::Replace,
            (_, true) => Existing::Append,
            _ => Existing::Refuse,
        }
    }

    /// Returns whether the file is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.out.as_deref() == Some(Path::new("-"))
    }
}

impl OutputArgs {
    /// Returns whether the output is that of another suite, which has no column for marks.
    pub(crate) fn is_of_other_suite(&self) -> bool {
        self.osu.is_some() || self.imb.is_some()
    }

    /// Gives `-o -` its meaning: the lines of the result file instead of a table.
    pub(crate) fn settled(mut self) -> Result<OutputArgs> {
        if !self.file.is_stdout() {
            return Ok(self);
        }
        if self.file.existing() != Existing::Refuse {
            return Err(Error::usage("-o - writes no file: leave out --force and --append"));
        }
        if !matches!(self.format, Format::Table | Format::Jsonl) || self.plot {
            return Err(Error::usage(
                "-o - writes the lines of a result file to standard output: leave it out, or --format and --plot",
            ));
        }
        (self.format, self.file.out) = (Format::Jsonl, None);
        Ok(self)
    }
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
    /// Output of the Intel MPI Benchmarks; only of `ombx imb`
    #[value(skip)]
    Imb,
    /// CSV, one line per row
    Csv,
    /// Lines of the result file
    Jsonl,
    /// Text for Prometheus, for example through its textfile collector
    #[value(name = "openmetrics")]
    OpenMetrics,
    /// One JSON object
    #[value(skip)]
    Json,
    /// One line for monitoring
    #[value(skip)]
    Nagios,
    /// Report for CI systems
    #[value(skip)]
    Junit,
}

/// Formats of a command: their names, what they are, and their values.
pub(crate) type Formats = [(&'static str, &'static str, Format)];

/// Returns a parser that accepts these formats only.
pub(crate) fn some_of(formats: &'static Formats) -> impl TypedValueParser<Value = Format> {
    let names = formats.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).map(|typed| {
        let found = formats.iter().find(|(name, ..)| *name == typed);
        found.map_or(Format::Table, |(.., format)| *format)
    })
}

/// Form of figures of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphForm {
    /// Characters below the table
    Tty,
    /// File in the current directory
    Png,
    /// File in the current directory
    Pdf,
}

/// Figures of the samples of each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GraphRequest {
    /// Program that the figures and their files are named after.
    pub(crate) program: &'static str,
    pub(crate) forms: Vec<GraphForm>,
}

impl GraphRequest {
    /// Returns the file of a form; `None` of characters.
    pub(crate) fn file(&self, form: GraphForm) -> Option<PathBuf> {
        match form {
            GraphForm::Tty => None,
            GraphForm::Png => Some(format!("{}.png", self.program).into()),
            GraphForm::Pdf => Some(format!("{}.pdf", self.program).into()),
        }
    }
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
