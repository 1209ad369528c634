//! Where the rows of a job go, and what else is printed, as the user has chosen it.

use std::path::PathBuf;

use ombx_drop_in::{imb::ImbProgram, osu::OsuColumns};
use ombx_estimate::number::Units;
use ombx_show::Shown;

/// Where the rows of a job go, and what else is printed.
#[derive(Debug, Default)]
pub struct Destination {
    /// What standard output gets.
    pub screen: Screen,
    /// Whether text is coloured.
    pub color: Color,
    /// New result file.
    pub file: Option<PathBuf>,
    /// What happens to a file that exists.
    pub existing: Existing,
    /// File for Prometheus, written at the end.
    pub openmetrics: Option<PathBuf>,
    /// Whether skipped cases count as success.
    pub allow_skips: bool,
    /// Whether there is no progress.
    pub quiet: bool,
    /// Whether the launcher's command line and all of its messages are printed, and notes beside rows.
    pub verbose: bool,
}

/// What the screen shows.
#[derive(Debug)]
pub enum Screen {
    /// Rows of benchmarks, and a chart below each table if `plot`.
    Rows {
        /// Their format.
        format: Format,
        /// Whether charts are drawn below a table.
        plot: bool,
        /// Units and percentiles.
        shown: Shown,
    },
    /// Links. `follow` shows their map while it fills.
    Links {
        /// Their format.
        format: Format,
        /// Whether their map is shown while it fills.
        follow: bool,
        /// Files that are written beside.
        files: LinksFiles,
    },
    /// What a program of OMB prints.
    Osu {
        /// Columns of the tables.
        columns: OsuColumns,
        /// Figures of the samples.
        graphs: Option<GraphRequest>,
    },
    /// What a program of IMB prints.
    Imb(ImbProgram),
}

impl Default for Screen {
    fn default() -> Screen {
        Screen::Rows { format: Format::Table, plot: false, shown: Shown::default() }
    }
}

impl Screen {
    /// Returns the format; `None` for the output of another suite, which has no column for marks.
    pub(crate) fn format(&self) -> Option<Format> {
        match self {
            Screen::Rows { format, .. } | Screen::Links { format, .. } => Some(*format),
            Screen::Osu { .. } | Screen::Imb(_) => None,
        }
    }

    /// Returns the units of figures.
    pub(crate) fn units(&self) -> Units {
        if let Screen::Rows { shown, .. } = self { shown.units } else { Units::default() }
    }

    /// Returns the files that are written beside links.
    pub(crate) fn links_files(&self) -> Option<&LinksFiles> {
        if let Screen::Links { files, .. } = self { Some(files) } else { None }
    }
}

/// Files that are written at the end of a sweep over links.
#[derive(Debug, Clone, Default)]
pub struct LinksFiles {
    /// JUnit report.
    pub junit: Option<PathBuf>,
    /// List of the hosts in which nothing wrong was found.
    pub fit: Option<PathBuf>,
    /// List of the others, with reasons.
    pub unfit: Option<PathBuf>,
}

impl LinksFiles {
    /// Returns the files, each with its option.
    pub fn by_option(&self) -> [(&'static str, Option<&PathBuf>); 3] {
        [("--junit", self.junit.as_ref()), ("--fit", self.fit.as_ref()), ("--unfit", self.unfit.as_ref())]
    }
}

/// Format of rows on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table for people.
    Table,
    /// A table in Markdown.
    Markdown,
    /// A table in LaTeX.
    Latex,
    /// The tables of OMB.
    Osu,
    /// Comma-separated values.
    Csv,
    /// The records of a result file.
    Jsonl,
    /// Metrics for Prometheus.
    OpenMetrics,
    /// One JSON object.
    Json,
    /// The line of a monitoring plugin.
    Nagios,
    /// A JUnit report.
    Junit,
}

/// When text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    /// On a terminal only.
    Auto,
    /// Also in pipes.
    Always,
    /// Not even on a terminal.
    #[default]
    Never,
}

/// What happens to a result file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It is an error.
    #[default]
    Refuse,
    /// It is replaced.
    Replace,
    /// Rows are added to it.
    Append,
}

/// Form of figures of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphForm {
    /// Characters below the table.
    Tty,
    /// File in the current directory.
    Png,
    /// File in the current directory.
    Pdf,
}

/// Figures of the samples of each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphRequest {
    /// Program that the figures and their files are named after.
    pub program: &'static str,
    /// Forms of the figures.
    pub forms: Vec<GraphForm>,
}

impl GraphRequest {
    /// Returns the file of a form; `None` of characters.
    pub fn file(&self, form: GraphForm) -> Option<PathBuf> {
        match form {
            GraphForm::Tty => None,
            GraphForm::Png => Some(format!("{}.png", self.program).into()),
            GraphForm::Pdf => Some(format!("{}.pdf", self.program).into()),
        }
    }
}
