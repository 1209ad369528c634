//! Arguments that choose where rows go and how they are printed.

use std::path::{Path, PathBuf};

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use ombx_core::{
    error::{Error, Result},
    unit::{self, Bytes},
};
use ombx_results::{
    number::{RateUnit, TimeUnit, Units},
    percentiles::Percentiles,
    render::{ImbProgram, OsuColumns, Shown},
    samples::CaseSamples,
};

use crate::arguments::launches::Sizes;

/// Where rows go and what else is printed.
#[derive(Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Format of the printed rows
    #[arg(long, value_enum, default_value_t = Format::Table, help_heading = "Output")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Also write the result to this file for Prometheus (textfile collector), replaced at the end
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
    /// Add to the result file if it exists; launches of the same setup become one result
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

    /// Refuses standard output of a command that prints something else there.
    pub(crate) fn refuse_stdout(&self, command: &str) -> Result<()> {
        let why = || format!("{command} prints its result: give a name after -o, as in -o rows.jsonl");
        if self.is_stdout() { Err(Error::usage(why())) } else { Ok(()) }
    }
}

impl OutputArgs {
    /// Returns the output in the format of another suite, without its columns.
    pub(crate) fn from_format(format: Format, file: FileArgs) -> OutputArgs {
        OutputArgs { format, file, quiet: true, color: Color::Never, ..OutputArgs::default() }
    }

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// Table for people
    #[default]
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

/// Formats that several commands have.
pub(crate) const JSON: (&str, &str, Format) = ("json", "One JSON object", Format::Json);
pub(crate) const NAGIOS: (&str, &str, Format) = (
    "nagios",
    "One line for monitoring, with its exit codes: 0 OK, 1 warning, 2 critical, 3 unknown",
    Format::Nagios,
);
pub(crate) const JUNIT: (&str, &str, Format) = ("junit", "Report for CI systems", Format::Junit);

/// Returns a parser that accepts these values only. Each has a name and a help text.
pub(crate) fn some_of<T: Copy + Send + Sync + 'static>(
    values: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = values.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).map(|typed| {
        let found = values.iter().find(|(name, ..)| name.eq_ignore_ascii_case(&typed));
        found.unwrap_or(&values[0]).2
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal only
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Which rows of result files are drawn.
#[derive(Debug, Args)]
pub(crate) struct RowArgs {
    /// Only these benchmarks or row keys, for example p2p.latency, 'p2p.*' or 'rma.put_bw/*sync=lock*'; may be repeated
    #[arg(long, value_name = "PATTERN", value_parser = row_pattern)]
    rows: Vec<glob::Pattern>,
    /// Only these message sizes: 1..4M (doubling), 8,1K,64K (list), 1..4M:x4 (growing by 4)
    #[arg(long, value_parser = unit::parse_sizes)]
    pub(crate) sizes: Option<Sizes>,
}

impl RowArgs {
    /// Returns whether all rows are chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.sizes.is_none()
    }

    /// Returns whether benchmarks or row keys are chosen.
    pub(crate) fn has_patterns(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Keeps the chosen rows. `name` says where they come from.
    ///
    /// # Errors
    /// No row remains.
    pub(crate) fn choose(&self, mut cases: Vec<CaseSamples>, name: &str) -> Result<Vec<CaseSamples>> {
        if self.is_empty() || cases.is_empty() {
            return Ok(cases);
        }
        let mut names: Vec<String> = cases.iter().map(|case| case.row().bench.clone()).collect();
        names.dedup();
        cases.retain(|case| self.contains(case));
        if cases.is_empty() {
            let names = names.join(", ");
            return Err(Error::usage(format!("no row of {name} fits --rows and --sizes: there are {names}")));
        }
        Ok(cases)
    }

    fn contains(&self, case: &CaseSamples) -> bool {
        let row = case.row();
        let named = |pattern: &glob::Pattern| pattern.matches(&row.bench) || pattern.matches(&row.key);
        let sized = |sizes: &Sizes| row.bytes.is_some_and(|bytes| sizes.contains(&Bytes(bytes)));
        (self.rows.is_empty() || self.rows.iter().any(named)) && self.sizes.as_ref().is_none_or(sized)
    }
}

/// Reads a pattern of benchmarks or row keys.
pub(crate) fn row_pattern(text: &str) -> std::result::Result<glob::Pattern, String> {
    glob::Pattern::new(text).map_err(|e| e.to_string())
}

/// Units and percentiles of tables and CSV.
#[derive(Debug, Default, Args)]
pub(crate) struct ShownArgs {
    /// Units of times and of bandwidths, such as ns,Gbit/s [default: us,MB/s; in CSV ns,MB/s]
    #[arg(long, value_parser = some_of(&UNITS), value_name = "UNIT", value_delimiter = ',', help_heading = "Output")]
    pub(crate) unit: Vec<Units>,
    /// Percentiles of single iterations, such as 50,99,99.9 [default: 99; in CSV 95,99,99.9]
    #[arg(long, value_name = "P,P", help_heading = "Output")]
    pub(crate) percentiles: Option<Percentiles>,
}

/// Values of `--unit`.
pub(crate) const UNITS: [(&str, &str, Units); 6] = [
    ("ns", "Nanoseconds", Units { time: Some(TimeUnit::Ns), rate: None }),
    ("us", "Microseconds", Units { time: Some(TimeUnit::Us), rate: None }),
    ("ms", "Milliseconds", Units { time: Some(TimeUnit::Ms), rate: None }),
    ("MB/s", "10^6 bytes per second", Units { time: None, rate: Some(RateUnit::MegaBytes) }),
    ("MiB/s", "2^20 bytes per second", Units { time: None, rate: Some(RateUnit::MebiBytes) }),
    ("Gbit/s", "10^9 bits per second", Units { time: None, rate: Some(RateUnit::GigaBits) }),
];

/// Returns the units that `--unit` gives together.
///
/// # Errors
/// Usage error for two units of times or of bandwidths.
pub(crate) fn chosen_units(given: &[Units]) -> Result<Units> {
    let mut units = Units::default();
    for unit in given {
        if unit.time.is_some() && units.time.is_some() || unit.rate.is_some() && units.rate.is_some() {
            return Err(Error::usage("--unit: give at most one unit of times and one of bandwidths"));
        }
        units = Units { time: units.time.or(unit.time), rate: units.rate.or(unit.rate) };
    }
    Ok(units)
}

impl ShownArgs {
    /// Returns what a format shows. Only tables and CSV have a choice.
    pub(crate) fn shown(&self, format: Format) -> Result<Shown> {
        let has_choice = matches!(format, Format::Table | Format::Csv | Format::Markdown | Format::Latex);
        if let Some(given) = self.given().filter(|_| !has_choice) {
            return Err(Error::usage(format!(
                "{given} is for tables and CSV: leave it out, or choose another --format"
            )));
        }
        let units = chosen_units(&self.unit)?;
        Ok(Shown { units, percentiles: self.percentiles.clone().unwrap_or_default() })
    }

    /// Returns the units, of which [`ShownArgs::shown`] finds mistakes.
    pub(crate) fn units(&self) -> Units {
        chosen_units(&self.unit).unwrap_or_default()
    }

    /// Rejects these options of a command that has no use for them.
    pub(crate) fn refuse(&self, command: &str) -> Result<()> {
        let refused = |given| Err(Error::usage(format!("{command} has no option {given}")));
        self.given().map_or(Ok(()), refused)
    }

    /// Returns the option that is given, if one is.
    fn given(&self) -> Option<&'static str> {
        let percentiles = self.percentiles.as_ref().map(|_| "--percentiles");
        if self.unit.is_empty() { percentiles } else { Some("--unit") }
    }
}
