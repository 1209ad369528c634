//! `ombx compare`: compares two sets of result files case by case, and fails as a gate in CI with `--fail-on`.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use ombx_compare::{CaseComparison, Comparison, Settings, Side, SideResults, Verdict};
use ombx_estimate::number::Units;
use ombx_launch::{
    output::{
        destination::{Color, Format},
        junit::{self, Outcome, TestCase},
        renderers, target,
        terminal::{self, is_closed, reason},
    },
    result_file::{KnownRuns, of_directory},
    stderr_line,
};
use ombx_record::{
    error::{Error, Exit, Result},
    unit::{check_no_fraction, counted, percentage},
};
use ombx_show::compare::{self as render, percent, verdict};

use crate::arguments::output::{COLORS, JSON, JUNIT, UNITS, chosen_units, some_of};

/// Name of the words on the command line.
pub(crate) const SIDES: &str = "BASE NEW";

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The two sides; each is a result file, a list a.jsonl,b.jsonl, a glob or a directory. A verdict needs four runs of ombx run a side, or a file of ombx ab for each
    #[arg(value_name = SIDES, num_args = 2, required_unless_present = "base")]
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
    /// Units of times and of bandwidths, such as ns,Gbit/s [default: us,MB/s]
    #[arg(long, value_parser = some_of(&UNITS), value_name = "UNIT", value_delimiter = ',')]
    unit: Vec<Units>,
    /// Use of colours
    #[arg(long, default_value = "auto", value_parser = some_of(&COLORS))]
    pub(crate) color: Color,
    /// Print nothing if --fail-on finds nothing
    #[arg(short, long, requires = "fail_on")]
    quiet: bool,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
}

/// How a comparison is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printing {
    pub(crate) units: Units,
    pub(crate) format: Format,
    pub(crate) color: Color,
    /// Whether nothing is printed if the exit code is 0.
    pub(crate) is_quiet: bool,
}

/// Formats of a comparison.
pub(crate) const FORMATS: [(&str, &str, Format); 4] = [
    ("table", "Table for people", Format::Table),
    ("markdown", "The answer and a table of all cases in Markdown", Format::Markdown),
    JSON,
    JUNIT,
];

/// What is done with a comparison.
#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// Differences up to this do not matter [default: 5%]
    #[arg(
        long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = read_margin,
        conflicts_with = "fail_on", help_heading = "Comparison"
    )]
    margin: Option<f64>,
    /// Exit with 3 if a case is slower by more than this or fails on the new side only, else with 8 if a case is not shown to be slower by at most this (--undecided pass: 0). It is also the margin, for example: 5%
    #[arg(
        long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = read_margin,
        help_heading = "Comparison"
    )]
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
    #[arg(long, value_name = "A,B", value_parser = read_names, help_heading = "Comparison")]
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
pub(crate) type Names = [String; 2];

/// Reads `A,B`.
pub(crate) fn read_names(text: &str) -> std::result::Result<Names, String> {
    let mut names = text.split(',').map(str::trim);
    match (names.next(), names.next(), names.next()) {
        (Some(a), Some(b), None) if !a.is_empty() && !b.is_empty() && a != b => Ok([a, b].map(str::to_owned)),
        _ => Err("not two different names, such as old,new".into()),
    }
}

impl GateArgs {
    /// Returns how the sides are compared.
    pub(crate) fn settings(&self) -> Settings {
        let default = Settings::default().margin;
        Settings { margin: self.fail_on.or(self.margin).unwrap_or(default) }
    }

    /// Refuses a file that cannot be written, that the command uses otherwise, or that is a result file. The command itself writes and
    /// uses other files.
    pub(crate) fn check_files(
        &self,
        written: &[(&str, Option<&PathBuf>)],
        used: &[(&'static str, PathBuf)],
    ) -> Result<()> {
        let derived = [("--junit", self.junit.as_ref()), ("--markdown", self.markdown.as_ref())];
        target::check_all(&[written, &derived].concat(), used)?;
        derived
            .into_iter()
            .try_for_each(|(option, path)| path.map_or(Ok(()), |path| target::check_path(option, path)))
    }

    /// Returns the names of the sides, or the default ones.
    pub(crate) fn labels(&self, default: [&str; 2]) -> [Option<String>; 2] {
        self.names.clone().unwrap_or_else(|| default.map(str::to_owned)).map(Some)
    }
}

fn read_margin(text: &str) -> std::result::Result<f64, String> {
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
    let units = chosen_units(&args.unit)?;
    let [base_label, new_label] = args.gate.labels(["base", "new"]);
    let (base_files, new_files) = (files(base)?, files(new)?);
    let read: Vec<_> = base_files.iter().chain(&new_files).map(|file| (target::READ, file.clone())).collect();
    args.gate.check_files(&[], &read)?;
    let base = side(base, &base_files)?.labelled(base_label);
    let new = side(new, &new_files)?.labelled(new_label);
    let printing = Printing { units, format: args.format, color: args.color, is_quiet: args.quiet };
    conclude(&base, &new, &args.gate, printing)
}

/// Compares two sides, prints the comparison, writes the JUnit report, and returns the exit code.
pub(crate) fn conclude(
    base: &SideResults,
    new: &SideResults,
    args: &GateArgs,
    printing: Printing,
) -> Result<u8> {
    let comparison = Comparison::new(base, new, args.settings()).in_units(printing.units);
    if comparison.cases.is_empty() && comparison.broken.is_empty() {
        return Err(no_common_case(&comparison));
    }
    write(args.junit.as_deref(), &comparison, report)?;
    write(args.markdown.as_deref(), &comparison, render::markdown)?;
    let gate = args.fail_on.map(|_| gate(&comparison, args.undecided));
    let code = gate.as_ref().map_or(0, |(code, _)| *code);
    if code > 0 || !printing.is_quiet {
        is_closed(print(&comparison, printing))?;
    }
    if let Some((1.., reason)) = gate {
        stderr_line!("ombx: {reason}");
    }
    Ok(code)
}

/// Writes a comparison to the file of an option, if it is given.
fn write(path: Option<&Path>, comparison: &Comparison, text: fn(&Comparison) -> String) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    target::replace(path, text(comparison).as_bytes()).map_err(|e| {
        Error::storage(format!("cannot write the comparison to {}: {}", path.display(), reason(&e)))
    })
}

fn no_common_case(comparison: &Comparison) -> Error {
    Error::usage(format!(
        "the two sides have no case in common: {}; {}",
        first_case(comparison, "base", Side::Base),
        first_case(comparison, "new", Side::New)
    ))
}

/// Returns a clause with the first case that only one side has, and the number of others.
fn first_case(comparison: &Comparison, name: &str, side: Side) -> String {
    let mut cases = comparison.unmatched.iter().filter(|case| case.only == side);
    let Some(case) = cases.next() else { return format!("{name} has no rows") };
    match cases.count() {
        0 => format!("{name} has only {}", case.key),
        others => format!("{name} has {} and {}", case.key, counted(others, "other")),
    }
}

fn print(comparison: &Comparison, printing: Printing) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match printing.format {
        Format::Json => writeln!(out, "{}", render::comparison_json(comparison))?,
        Format::Junit => writeln!(out, "{}", report(comparison))?,
        Format::Markdown => write!(out, "{}", render::markdown(comparison))?,
        _ => render::table(&mut out, comparison, renderers::paint(printing.color), terminal::columns())?,
    }
    out.flush()
}

/// Returns the files that arguments name.
fn files(names: &[String]) -> Result<Vec<PathBuf>> {
    Ok(names.iter().map(|name| expand(name)).collect::<Result<Vec<_>>>()?.concat())
}

/// Reads the files that arguments name as one side.
fn side(names: &[String], paths: &[PathBuf]) -> Result<SideResults> {
    let mut launches = SideResults::named(names.join(" "));
    let mut known = KnownRuns::default();
    paths.iter().try_for_each(|path| known.add_to(&mut launches, path))?;
    Ok(launches)
}

/// Returns the files of an argument: a file, the result files of a directory, a list with commas, or a glob.
fn expand(name: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(name);
    let none = |what: &str| Err(Error::storage(format!("{name}: {what}")));
    if path.is_dir() {
        let found = of_directory(path);
        return if found.is_empty() { none("the directory has no *.jsonl files") } else { Ok(found) };
    }
    if !path.exists() && name.contains(',') {
        let parts = name.split(',').filter(|part| !part.is_empty()).map(expand);
        return Ok(parts.collect::<Result<Vec<_>>>()?.concat());
    }
    if !path.exists() && name.contains(['*', '?', '[']) {
        let paths = glob::glob(name).map_err(|e| Error::usage(format!("{name}: {e}")))?;
        let found: Vec<PathBuf> = paths.flatten().collect();
        return if found.is_empty() { none("no file matches") } else { Ok(found) };
    }
    Ok(vec![path.to_owned()])
}

/// Returns the exit code of a gate, and what it counts.
fn gate(comparison: &Comparison, on_undecided: Undecided) -> (u8, String) {
    let lost = comparison.lost().filter(|case| case.only == Side::Base).count();
    let (worse, broken) = (comparison.counts().worse, comparison.broken.len());
    let undecided = comparison.undecided().count() + lost;
    let code = match (worse + broken, undecided, on_undecided) {
        (1.., ..) => Exit::Regression.code(),
        (0, 1.., Undecided::Fail) => Exit::Undecided.code(),
        (0, ..) => 0,
    };
    let margin = render::margin(comparison.margin);
    let counts = [
        (worse > 0).then(|| format!("{worse} worse by more than {margin}")),
        (broken > 0).then(|| format!("{broken} failed on the new side only")),
        (undecided > 0).then(|| format!("{undecided} not shown to be within {margin}")),
    ];
    let counts = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let cases = counted(comparison.cases.len() + broken + lost, "case");
    (code, format!("of {cases} {counts}"))
}

/// Returns the report. A case is a failure if it is worse, an error if it fails on the new side, and skipped if it is undecided
/// or on one side only.
pub(crate) fn report(comparison: &Comparison) -> String {
    let state = comparison.state.core_to_core_ns.map(|ns| format!(", cores {ns:.0} ns apart"));
    let state = state.unwrap_or_default();
    let compared = comparison.cases.iter().map(|case| compared(case, comparison.margin, &state));
    let broken = comparison
        .broken
        .iter()
        .map(|(key, why)| bare_case(key, Outcome::Broken(format!("failed on the new side: {why}"))));
    let lost = comparison.lost().map(|lost| {
        let why = format!("measured on one side only; the other: {}", lost.why);
        bare_case(&lost.key, Outcome::Skipped(why))
    });
    let about = format!("{} against {}", comparison.new.name, comparison.base.name);
    junit::report("ombx compare", &about, compared.chain(broken).chain(lost))
}

/// Returns the case of a key without a text.
fn bare_case(key: &str, outcome: Outcome) -> TestCase {
    TestCase {
        class: key.split('/').next().unwrap_or(key).to_owned(),
        name: key.to_owned(),
        outcome,
        text: String::new(),
    }
}

fn compared(case: &CaseComparison, margin: f64, state: &str) -> TestCase {
    let (subject, change) = (&case.id, &case.change);
    let interval = change.ci90.map_or("no interval".into(), |[low, high]| {
        format!("90% interval {} .. {}", percent(low), percent(high))
    });
    let text = format!(
        "{}: {} {unit} before, {} {unit} now, time {}, {interval}{state}",
        verdict(&case.verdict, margin),
        case.base.median,
        case.new.median,
        percent(change.estimate),
        unit = subject.unit
    );
    let outcome = match case.verdict {
        Verdict::Worse => Outcome::Failed(text.clone()),
        Verdict::Undecided(_) => Outcome::Skipped(text.clone()),
        Verdict::Better | Verdict::Same => Outcome::Passed,
    };
    TestCase { class: subject.bench.clone(), name: subject.key.clone(), outcome, text }
}
