//! Where the rows of a job go, and what else is printed, as the user has chosen it.

use std::path::PathBuf;

use ombx_drop_in::{imb::ImbProgram, osu::OsuColumns};
use ombx_estimate::number::Units;
use ombx_show::Shown;

/// Where the rows of a job go, and what else is printed.
#[derive(Debug, Default)]
pub(crate) struct Destination {
    pub(crate) screen: Screen,
    pub(crate) color: Color,
    /// New result file.
    pub(crate) file: Option<PathBuf>,
    pub(crate) existing: Existing,
    /// File for Prometheus, written at the end.
    pub(crate) openmetrics: Option<PathBuf>,
    /// Whether skipped cases count as success.
    pub(crate) allow_skips: bool,
    /// Whether there is no progress.
    pub(crate) quiet: bool,
    /// Whether the launcher's command line and all of its messages are printed, and notes beside rows.
    pub(crate) verbose: bool,
}

/// What the screen shows.
#[derive(Debug)]
pub(crate) enum Screen {
    /// Rows of benchmarks, and a chart below each table if `plot`.
    Rows { format: Format, plot: bool, shown: Shown },
    /// Links. `follow` shows their map while it fills; `junit` is a report to write beside.
    Links { format: Format, follow: bool, junit: Option<PathBuf> },
    /// What a program of OMB prints.
    Osu { columns: OsuColumns, graphs: Option<GraphRequest> },
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

    /// Returns the JUnit report to write.
    pub(crate) fn junit(&self) -> Option<&PathBuf> {
        if let Screen::Links { junit, .. } = self { junit.as_ref() } else { None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Markdown,
    Latex,
    Osu,
    Csv,
    Jsonl,
    OpenMetrics,
    Json,
    Nagios,
    Junit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Color {
    /// On a terminal only.
    Auto,
    Always,
    #[default]
    Never,
}

/// What happens to a result file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Existing {
    #[default]
    Refuse,
    Replace,
    Append,
}

/// Form of figures of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GraphForm {
    /// Characters below the table.
    Tty,
    /// File in the current directory.
    Png,
    /// File in the current directory.
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
