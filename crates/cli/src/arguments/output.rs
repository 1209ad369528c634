//! Arguments that choose where rows go and how they are printed.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use ombx_estimate::{
    number::{RateUnit, TimeUnit, Units},
    percentiles::Percentiles,
    samples::CaseSamples,
};
use ombx_launch::output::{
    destination::{Color, Destination, Existing, Format, LinksFiles, Screen},
    renderers,
};
use ombx_record::{
    error::{Error, Result},
    link,
    result::Measurement,
    unit::{self, Bytes},
};
use ombx_show::Shown;

use crate::arguments::launches::Sizes;

/// Where rows go and what else is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Format of the printed rows
    #[arg(long, default_value = "table", value_parser = some_of(&FORMATS), help_heading = "Output")]
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
    #[arg(long, default_value = "auto", value_parser = some_of(&COLORS), hide_possible_values = true, help_heading = "Output")]
    pub(crate) color: Color,
}

/// The result file.
#[derive(Debug, Clone, Default, Args)]
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

impl FileArgs {
    /// Returns whether `-o -` sends the lines of the result file to standard output.
    fn are_lines(&self) -> Result<bool> {
        match self.existing() {
            _ if !self.is_stdout() => Ok(false),
            Existing::Refuse => Ok(true),
            Existing::Replace | Existing::Append => {
                Err(Error::usage("-o - writes no file: leave out --force and --append"))
            }
        }
    }

    /// Returns the file, and what happens to one that exists, of a command whose standard output has a format of its own.
    pub(crate) fn beside_format(self) -> Result<(Option<PathBuf>, Existing)> {
        if self.are_lines()? { Err(no_format()) } else { Ok((self.out.clone(), self.existing())) }
    }
}

impl OutputArgs {
    /// Returns where the rows of benchmarks go.
    pub(crate) fn of_rows(self) -> Result<Destination> {
        let format = self.settled_format()?;
        renderers::plot_columns(format, self.plot)?;
        let screen = Screen::Rows { format, plot: self.plot, shown: self.shown.shown(format)? };
        Ok(self.to(screen))
    }

    /// Returns where links go. `follow` shows their map while it fills.
    pub(crate) fn of_links(self, follow: bool, files: LinksFiles) -> Result<Destination> {
        let screen = Screen::Links { format: self.settled_format()?, follow, files };
        Ok(self.to(screen))
    }

    fn to(self, screen: Screen) -> Destination {
        let (existing, is_stdout) = (self.file.existing(), self.file.is_stdout());
        Destination {
            screen,
            color: self.color,
            file: self.file.out.filter(|_| !is_stdout),
            existing,
            openmetrics: self.openmetrics,
            allow_skips: self.allow_skips,
            quiet: self.quiet,
            verbose: self.verbose,
        }
    }

    /// Returns the format. `-o -` means the lines of the result file instead of a table.
    fn settled_format(&self) -> Result<Format> {
        match (self.file.are_lines()?, self.format) {
            (false, format) => Ok(format),
            (true, Format::Table | Format::Jsonl) if !self.plot => Ok(Format::Jsonl),
            _ => Err(no_format()),
        }
    }
}

/// Returns the error that standard output cannot have the lines of a result file.
fn no_format() -> Error {
    Error::usage(
        "-o - writes the lines of a result file to standard output: leave it out, or --format and --plot",
    )
}

/// Values of `--format` of rows.
pub(crate) const FORMATS: [(&str, &str, Format); 7] = [
    ("table", "Table for people", Format::Table),
    ("markdown", "Tables for a document in Markdown", Format::Markdown),
    ("latex", "Tables for a document in LaTeX, with the packages booktabs and siunitx", Format::Latex),
    ("osu", "Output of the OSU benchmarks", Format::Osu),
    ("csv", "CSV, one line per row", Format::Csv),
    ("jsonl", "Lines of the result file", Format::Jsonl),
    ("openmetrics", "Text for Prometheus, for example through its textfile collector", Format::OpenMetrics),
];

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

/// Values of `--color`.
pub(crate) const COLORS: [(&str, &str, Color); 3] = [
    ("auto", "On a terminal only", Color::Auto),
    ("always", "Always", Color::Always),
    ("never", "Never", Color::Never),
];

/// Which rows of result files are shown or drawn.
#[derive(Debug, Args)]
pub(crate) struct RowArgs {
    /// Only these benchmarks or row keys, for example p2p.latency, 'p2p.*' or 'rma.put_bw/*sync=lock*'; may be repeated
    #[arg(long, alias = "bench", value_name = "PATTERN", value_parser = row_pattern)]
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
        let names: BTreeSet<String> = cases.iter().map(|case| case.row().bench.clone()).collect();
        cases.retain(|case| self.contains(case.row()));
        if cases.is_empty() { Err(RowArgs::no_row(name, &names)) } else { Ok(cases) }
    }

    /// Returns the error that rows of these benchmarks exist and none is chosen.
    pub(crate) fn no_row(name: &str, benches: &BTreeSet<String>) -> Error {
        let benches = Vec::from_iter(benches.iter().map(String::as_str)).join(", ");
        Error::usage(format!("no row of {name} fits --rows and --sizes: there are {benches}"))
    }

    /// Returns whether a row is chosen.
    pub(crate) fn contains(&self, row: &Measurement) -> bool {
        let named = |pattern: &glob::Pattern| pattern.matches(&row.bench) || pattern.matches(&row.key);
        let sized = |sizes: &Sizes| row.bytes.is_some_and(|bytes| sizes.contains(&Bytes(bytes)));
        (self.rows.is_empty() || self.rows.iter().any(named)) && self.sizes.as_ref().is_none_or(sized)
    }

    /// Returns whether sweeps over links are chosen. Their verdict is about all sizes.
    pub(crate) fn contains_sweeps(&self) -> bool {
        let named = |pattern: &glob::Pattern| pattern.matches(link::BENCH);
        self.sizes.is_none() && (self.rows.is_empty() || self.rows.iter().any(named))
    }
}

/// Returns whether a format has units, percentiles and columns that can be chosen.
pub(crate) fn has_columns(format: Format) -> bool {
    matches!(format, Format::Table | Format::Csv | Format::Markdown | Format::Latex)
}

/// Reads a pattern of benchmarks or row keys.
pub(crate) fn row_pattern(text: &str) -> std::result::Result<glob::Pattern, String> {
    glob::Pattern::new(text).map_err(|e| e.to_string())
}

/// Units and percentiles of tables and CSV.
#[derive(Debug, Clone, Default, Args)]
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
        if let Some(given) = self.given().filter(|_| !has_columns(format)) {
            return Err(Error::usage(format!(
                "{given} is for tables and CSV: leave it out, or choose another --format"
            )));
        }
        let units = chosen_units(&self.unit)?;
        let percentiles = self.percentiles.clone().unwrap_or_default();
        Ok(Shown { units, percentiles, ..Shown::default() })
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
