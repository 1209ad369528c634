//! `ombx compare`: compares two sets of result files case by case, and fails as a gate in CI with `--fail-on`.

mod files;
mod gate;
pub(crate) mod junit;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use ombx_core::{
    error::{Error, Result},
    unit::{check_no_fraction, percentage},
};
use ombx_results::{
    compare::{Comparison, Settings, Side, SideResults},
    render::compare as render,
};

use crate::{
    arguments::output::{Color, Format, some_of},
    output::{
        renderers,
        stdout::{is_closed, reason},
        target, terminal,
    },
};

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The two sides; each is a result file, a list a.jsonl,b.jsonl, a glob or a directory. A verdict needs four runs of ombx run a side, or a file of ombx ab for each
    #[arg(value_name = "BASE NEW", num_args = 2, required_unless_present = "base")]
    pub(crate) sides: Vec<String>,
    /// Files of the base side, each with one or more runs
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "new", conflicts_with = "sides")]
    pub(crate) base: Vec<String>,
    /// Files of the new side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "base", conflicts_with = "sides")]
    pub(crate) new: Vec<String>,
    /// Format of the comparison
    #[arg(long, default_value = "table", value_parser = some_of(&FORMATS))]
    pub(crate) format: Format,
    /// Use of colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
}

/// Formats of a comparison.
pub(crate) const FORMATS: [(&str, &str, Format); 4] = [
    ("table", "Table for people", Format::Table),
    ("markdown", "The answer and a table of all cases in Markdown", Format::Markdown),
    ("json", "One JSON object", Format::Json),
    ("junit", "Report for CI systems", Format::Junit),
];

/// What is done with a comparison.
#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// Differences up to this do not matter [default: 5%]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = margin, conflicts_with = "fail_on", help_heading = "Comparison")]
    margin: Option<f64>,
    /// Exit with 3 if a case is slower by more than this or fails on the new side only, with 8 if a case is not shown to be slower by at most this; sets the margin, for example: 5%
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = margin, help_heading = "Comparison")]
    fail_on: Option<f64>,
    /// What --fail-on does about undecided cases
    #[arg(long, value_enum, default_value_t = Undecided::Fail, requires = "fail_on", help_heading = "Comparison")]
    undecided: Undecided,
    /// JUnit report to write beside what is printed; a case that is worse is a failure, an undecided one is skipped
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    junit: Option<PathBuf>,
    /// Markdown file to write beside what is printed: the answer and a table of all cases
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    markdown: Option<PathBuf>,
    /// Names of the two sides in titles, for example: old,new
    #[arg(long, value_name = "A,B", value_parser = Names::parse, help_heading = "Comparison")]
    names: Option<Names>,
}

/// What a gate does about cases that are neither worse nor shown not to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Undecided {
    /// Exit with 8
    Fail,
    /// Exit with 0
    Pass,
}

/// Names of two sides.
#[derive(Debug, Clone)]
pub(crate) struct Names([String; 2]);

impl Names {
    /// Reads `A,B`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Names, String> {
        let mut names = text.split(',').map(str::trim);
        match (names.next(), names.next(), names.next()) {
            (Some(a), Some(b), None) if !a.is_empty() && !b.is_empty() && a != b => {
                Ok(Names([a.to_owned(), b.to_owned()]))
            }
            _ => Err("not two different names, such as old,new".into()),
        }
    }

    pub(crate) fn labels(names: Option<&Names>) -> [Option<String>; 2] {
        names.map_or([None, None], |Names(names)| names.clone().map(Some))
    }
}

impl GateArgs {
    /// Returns how the sides are compared.
    pub(crate) fn settings(&self) -> Settings {
        let default = Settings::default().margin;
        Settings { margin: self.fail_on.or(self.margin).unwrap_or(default) }
    }

    /// Returns the files to write, each with its option.
    fn written(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [("--junit", &self.junit), ("--markdown", &self.markdown)];
        all.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)))
    }

    /// Returns the names of the sides, or the default ones.
    pub(crate) fn labels(&self, default: [&str; 2]) -> [Option<String>; 2] {
        match &self.names {
            Some(_) => Names::labels(self.names.as_ref()),
            None => default.map(|name| Some(name.to_owned())),
        }
    }
}

fn margin(text: &str) -> std::result::Result<f64, String> {
    check_no_fraction(text).map_err(|e| e.to_string())?;
    match percentage(text) {
        Some(percent) if (0.0..=10_000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("not a percentage of at least 0, such as 5%".into()),
    }
}

pub(crate) fn compare(args: &CompareArgs) -> Result<u8> {
    let [base, new] = match args.sides.as_slice() {
        [base, new] => [std::slice::from_ref(base), std::slice::from_ref(new)],
        _ => [args.base.as_slice(), args.new.as_slice()],
    };
    let [base_label, new_label] = args.gate.labels(["base", "new"]);
    let (base_files, new_files) = (files::of(base)?, files::of(new)?);
    for (option, path) in args.gate.written() {
        let inputs = base_files.iter().chain(&new_files);
        target::check(path, option, inputs.map(|file| ("a result file that is read", file.as_path())))?;
    }
    let base = files::side(base, &base_files)?.labelled(base_label);
    let new = files::side(new, &new_files)?.labelled(new_label);
    conclude(&base, &new, &args.gate, args.format, args.color)
}

/// Compares two sides, prints the comparison, writes the JUnit report, and returns the exit code.
pub(crate) fn conclude(
    base: &SideResults,
    new: &SideResults,
    args: &GateArgs,
    format: Format,
    color: Color,
) -> Result<u8> {
    let comparison = Comparison::of(base, new, args.settings());
    if comparison.cases.is_empty() && comparison.broken.is_empty() {
        return Err(no_common_case(&comparison));
    }
    let write = |path: &Option<PathBuf>, text: fn(&Comparison) -> String| match path {
        None => Ok(()),
        Some(path) => target::replace(path, text(&comparison).as_bytes()).map_err(|e| {
            Error::storage(format!("cannot write the comparison to {}: {}", path.display(), reason(&e)))
        }),
    };
    write(&args.junit, junit::report)?;
    write(&args.markdown, render::markdown)?;
    is_closed(print(&comparison, format, color))?;
    if args.fail_on.is_none() {
        return Ok(0);
    }
    let gate = gate::Gate::of(&comparison, args.undecided);
    if let Some(reason) = gate.reason() {
        stderr_line!("ombx: {reason}");
    }
    Ok(gate.exit_code())
}

fn no_common_case(comparison: &Comparison) -> Error {
    let first = |side: &str, only| {
        let mut keys = comparison.unmatched.iter().filter(|case| case.only == only);
        keys.next().map_or(format!("{side} has no rows"), |case| {
            format!("{side} has {} and {} others", case.key, keys.count())
        })
    };
    Error::usage(format!(
        "the two sides have no case in common: {}; {}",
        first("base", Side::Base),
        first("new", Side::New)
    ))
}

fn print(comparison: &Comparison, format: Format, color: Color) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match format {
        Format::Json => writeln!(out, "{}", render::json(comparison))?,
        Format::Junit => writeln!(out, "{}", junit::report(comparison))?,
        Format::Markdown => write!(out, "{}", render::markdown(comparison))?,
        _ => render::table(&mut out, comparison, renderers::paint(color), terminal::columns())?,
    }
    out.flush()
}
