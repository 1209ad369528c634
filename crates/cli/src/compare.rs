//! `ombx compare`: two sides of result files, case by case, and a gate for CI.

mod files;
pub(crate) mod junit;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use ombx_core::error::{Error, Result};
use ombx_results::{
    compare::{Comparison, SideResults},
    render::compare as render,
};

use crate::{args::Color, output};

/// The exit code of a regression beyond the threshold.
const REGRESSION: u8 = 3;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombx compare before.jsonl after.jsonl\n  ombx compare --base a1.jsonl a2.jsonl --new b1.jsonl b2.jsonl --fail-on 5%\n  ombx compare 'nightly/*.jsonl' today/ --junit report.xml"
)]
pub(crate) struct CompareArgs {
    /// BASE and NEW: a result file each, or several as a list a.jsonl,b.jsonl, a glob or a directory; each run is a launch
    #[arg(value_name = "BASE NEW", num_args = 2, required_unless_present = "base")]
    pub(crate) sides: Vec<String>,
    /// Files of the base, one launch or more in each
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "new", conflicts_with = "sides")]
    pub(crate) base: Vec<String>,
    /// Files of what is compared with it
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "base", conflicts_with = "sides")]
    pub(crate) new: Vec<String>,
    /// Colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
}

/// What is made of a comparison.
#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// One JSON object instead of tables
    #[arg(long, help_heading = "Comparison")]
    pub(crate) json: bool,
    /// Exit with 3 when a case is worse by more than this, or fails on the new side only, for example: 5%
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = threshold, help_heading = "Comparison")]
    pub(crate) fail_on: Option<f64>,
    /// JUnit report for CI: a case that is worse (by more than --fail-on) is a failure
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    pub(crate) junit: Option<PathBuf>,
}

fn threshold(text: &str) -> std::result::Result<f64, String> {
    match ombx_core::unit::percentage(text) {
        Some(percent) if (0.0..=10_000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("not a percentage from 0, such as 5%".into()),
    }
}

pub(crate) fn compare(args: &CompareArgs) -> Result<u8> {
    let [base, new] = match args.sides.as_slice() {
        [base, new] => [std::slice::from_ref(base), std::slice::from_ref(new)],
        _ => [args.base.as_slice(), args.new.as_slice()],
    };
    let (base, new) = (files::side(base)?, files::side(new)?);
    conclude(&base, &new, &args.gate, args.color)
}

/// Compares, prints, writes the report, and returns the exit code.
pub(crate) fn conclude(base: &SideResults, new: &SideResults, gate: &GateArgs, color: Color) -> Result<u8> {
    let comparison = Comparison::of(base, new);
    if comparison.cases.is_empty() && comparison.broken.is_empty() {
        return Err(nothing(&comparison));
    }
    if let Some(path) = &gate.junit {
        let report = junit::report(&comparison, gate.fail_on.unwrap_or(0.0));
        std::fs::write(path, report).map_err(|e| {
            Error::storage(format!("the report cannot be written to {}: {e}", path.display()))
        })?;
    }
    match print(&comparison, gate.json, color) {
        // A reader that has gone away is no error.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Error::storage(format!("standard output: {e}")));
        }
        _ => {}
    }
    let Some(beyond) = gate.fail_on else { return Ok(0) };
    let (worse, broken) = (comparison.regressions(beyond).count(), comparison.broken.len());
    if worse + broken == 0 {
        return Ok(0);
    }
    let percent = beyond * 100.0;
    let of = match (worse, broken) {
        (0, _) => format!("{broken} failed on the new side"),
        (_, 0) => format!("{worse} worse by more than {percent}%"),
        _ => format!("{worse} worse by more than {percent}%, {broken} failed on the new side"),
    };
    tell!("ombx: of {} cases {of}", comparison.cases.len() + broken);
    Ok(REGRESSION)
}

fn nothing(comparison: &Comparison) -> Error {
    let first = |side: &str, only| {
        let mut keys = comparison.unmatched.iter().filter(|lost| lost.only == only);
        keys.next().map_or(format!("{side} measured nothing"), |lost| {
            format!("{side} has {} and {} others", lost.key, keys.count())
        })
    };
    use ombx_results::compare::Side;
    Error::usage(format!(
        "no case is on both sides: {}; {}",
        first("base", Side::Base),
        first("new", Side::New)
    ))
}

fn print(comparison: &Comparison, json: bool, color: Color) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if json {
        writeln!(out, "{}", render::json(comparison))?;
    } else {
        render::table(&mut out, comparison, output::paint(color))?;
    }
    out.flush()
}
